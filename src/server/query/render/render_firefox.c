/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_firefox - profiler.firefox.com's processed profile format
 * (https://github.com/firefox-devtools/profiler, docs-developer/processed-profile-format.md and
 * src/app-logic/constants.ts), version 62: columns in objects, shared by all threads.
 *
 * A stack is a node of the tree, a frame a function; a thread is a group-by value, or all. Samples
 * are weighted, and lie one behind the other: of times as long as they took.
 */
#include <stdio.h>

#include "base/clock.h"

#include "codec/wire/json.h"
#include "server/query/render/render_export.h"

#define VERSION 62 /* preprocessedProfileVersion */
#define GECKO_VERSION 24
#define NS_PER_MS 1e6

enum category { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL, CATEGORY_INTERPRETED, CATEGORIES };

static const struct {
	const char *name, *color;
} categories[CATEGORIES] = {
	[CATEGORY_OTHER] = { "Other", "grey" },
	[CATEGORY_USER] = { "User", "yellow" },
	[CATEGORY_KERNEL] = { "Kernel", "orange" },
	[CATEGORY_INTERPRETED] = { "Interpreted", "blue" },
};

static enum category category_of(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_UNKNOWN:
	case FRAME_MARKER:
		return CATEGORY_OTHER;
	case FRAME_KERNEL:
		return CATEGORY_KERNEL;
	case FRAME_NATIVE:
	case FRAME_GO:
	case FRAME_RUST:
	case FRAME_PYTHON_RUNTIME:
	case FRAME_V8_RUNTIME:
	case FRAME_RUBY_RUNTIME:
	case FRAME_DOTNET_RUNTIME:
	case FRAME_PHP_RUNTIME:
	case FRAME_BEAM_RUNTIME:
	case FRAME_PERL_RUNTIME:
	case FRAME_LUA_RUNTIME:
		return CATEGORY_USER;
	default:
		return CATEGORY_INTERPRETED;
	}
}

/* A column with an element per function; 0 is the root. */
struct firefox_column {
	const char *name;
	void (*put)(struct json *json, const struct tree *tree, uint32_t function);
};

static void put_minus_one(struct json *json, const struct tree *tree, uint32_t function)
{
	(void)tree;
	(void)function;
	json_put_int(json, -1);
}

static void put_zero(struct json *json, const struct tree *tree, uint32_t function)
{
	(void)tree;
	(void)function;
	json_put_int(json, 0);
}

static void put_null(struct json *json, const struct tree *tree, uint32_t function)
{
	(void)tree;
	(void)function;
	json_put_null(json);
}

static void put_false(struct json *json, const struct tree *tree, uint32_t function)
{
	(void)tree;
	(void)function;
	json_put_bool(json, false);
}

static void put_self(struct json *json, const struct tree *tree, uint32_t function)
{
	(void)tree;
	json_put_uint(json, function);
}

static void put_category(struct json *json, const struct tree *tree, uint32_t function)
{
	json_put_uint(json, category_of(tree->functions[function].kind));
}

static void put_line(struct json *json, const struct tree *tree, uint32_t function)
{
	if (tree->functions[function].start_line)
		json_put_uint(json, tree->functions[function].start_line);
	else
		json_put_null(json);
}

/* Strings: the names of functions in their order, then their files. */
static void put_file_number(struct json *json, const struct tree *tree, uint32_t function)
{
	(void)tree;
	json_put_uint(json, (uint64_t)tree->functions_count + function);
}

static void put_source(struct json *json, const struct tree *tree, uint32_t function)
{
	if (tree->functions[function].file.len)
		json_put_uint(json, function);
	else
		json_put_null(json);
}

static void put_name(struct json *json, const struct tree *tree, uint32_t function)
{
	json_put_string(json, function ? tree->functions[function].name : SLICE_LITERAL("(root)"));
}

static void put_file(struct json *json, const struct tree *tree, uint32_t function)
{
	json_put_string(json, tree->functions[function].file);
}

static void put_table(struct json *json, const struct tree *tree, const char *name,
		      const struct firefox_column *columns, size_t count)
{
	json_member_object(json, name);
	json_member_uint(json, "length", tree->functions_count);
	for (size_t i = 0; i < count; i++) {
		json_member_array(json, columns[i].name);
		for (uint32_t k = 0; k < tree->functions_count; k++)
			columns[i].put(json, tree, k);
		json_close_array(json);
	}
	json_close_object(json);
}

/* Named columns without anything in them. */
static void put_empty(struct json *json, const char *name, const char *const *columns, size_t count)
{
	json_member_object(json, name);
	json_member_uint(json, "length", 0);
	for (size_t i = 0; i < count; i++) {
		json_member_array(json, columns[i]);
		json_close_array(json);
	}
	json_close_object(json);
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void put_stacks(struct json *json, const struct tree *tree)
{
	json_member_object(json, "stackTable");
	json_member_uint(json, "length", tree->nodes_count);
	json_member_array(json, "frame");
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		json_put_uint(json, i ? tree->nodes[i].function : 0);
	json_close_array(json);
	json_member_array(json, "prefix");
	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		uint32_t parent = tree->nodes[i].parent;

		/* Neither the root nor a group-by value is shown as a frame. */
		if (i && parent && !tree->functions[tree->nodes[parent].function].is_label)
			json_put_uint(json, parent);
		else
			json_put_null(json);
	}
	json_close_array(json);
	json_close_object(json);
}

static void put_shared(struct json *json, const struct tree *tree)
{
	static const struct firefox_column frames[] = {
		{ "address", put_minus_one },  { "inlineDepth", put_zero },
		{ "category", put_category },  { "subcategory", put_zero },
		{ "func", put_self },	       { "nativeSymbol", put_null },
		{ "innerWindowID", put_zero }, { "line", put_null },
		{ "column", put_null },
	};
	static const struct firefox_column functions[] = {
		{ "name", put_self },		{ "isJS", put_false },
		{ "relevantForJS", put_false }, { "resource", put_minus_one },
		{ "source", put_source },	{ "lineNumber", put_line },
		{ "columnNumber", put_null },
	};
	static const struct firefox_column sources[] = {
		{ "id", put_null },	      { "filename", put_file_number },
		{ "startLine", put_null },    { "startColumn", put_null },
		{ "sourceMapURL", put_null },
	};
	static const char *const symbols[] = { "address", "functionSize", "libIndex", "name" };
	static const char *const resources[] = { "lib", "name", "host", "type" };

	json_member_object(json, "shared");
	put_table(json, tree, "frameTable", frames, COUNT_OF(frames));
	put_table(json, tree, "funcTable", functions, COUNT_OF(functions));
	put_table(json, tree, "sources", sources, COUNT_OF(sources));
	put_stacks(json, tree);
	put_empty(json, "nativeSymbols", symbols, COUNT_OF(symbols));
	put_empty(json, "resourceTable", resources, COUNT_OF(resources));
	json_member_array(json, "stringArray");
	for (uint32_t i = 0; i < tree->functions_count; i++)
		put_name(json, tree, i);
	for (uint32_t i = 0; i < tree->functions_count; i++)
		put_file(json, tree, i);
	json_close_array(json);
	json_close_object(json);
}

static bool is_shown(const struct tree *tree, uint32_t node)
{
	return tree->nodes[node].self > 0;
}

static void put_samples(struct json *json, const struct tree *tree, uint32_t first, uint32_t end)
{
	double ms = render_export_ns(tree) / NS_PER_MS;
	bool is_bytes = slice_is(tree->type.sample_unit, "bytes");
	double before = 0;
	uint32_t count = 0;

	for (uint32_t i = first; i < end; i++)
		count += is_shown(tree, i);
	json_member_object(json, "samples");
	json_member_uint(json, "length", count);
	json_member_text(json, "weightType", is_bytes ? "bytes" : "samples");
	json_member_array(json, "stack");
	for (uint32_t i = first; i < end; i++)
		if (is_shown(tree, i))
			json_put_uint(json, i);
	json_close_array(json);
	json_member_array(json, "weight");
	for (uint32_t i = first; i < end; i++)
		if (is_shown(tree, i))
			json_put_int(json, tree->nodes[i].self);
	json_close_array(json);
	json_member_array(json, "timeDeltas");
	for (uint32_t i = first; i < end; i++) {
		if (!is_shown(tree, i))
			continue;
		json_put_double(json, before);
		before = ms > 0 ? ms * (double)tree->nodes[i].self : 1;
	}
	json_close_array(json);
	json_close_object(json);
}

/* Nodes first .. end - 1. */
static void put_thread(struct json *json, const struct tree *tree, struct slice name,
		       uint32_t number, uint32_t first, uint32_t end)
{
	static const char *const markers[] = { "category", "data",  "endTime",
					       "name",	   "phase", "startTime" };
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", number);
	json_open_object(json);
	json_member_string(json, "name", name);
	json_member_bool(json, "isMainThread", number == 1);
	json_member_text(json, "processType", "default");
	json_member_text(json, "processName", "firn");
	json_member_text(json, "pid", "1");
	json_member_text(json, "tid", tid);
	json_member_int(json, "processStartupTime", 0);
	json_put_key(json, "processShutdownTime");
	json_put_null(json);
	json_member_int(json, "registerTime", 0);
	json_put_key(json, "unregisterTime");
	json_put_null(json);
	json_member_bool(json, "showMarkersInTimeline", false);
	json_member_array(json, "pausedRanges");
	json_close_array(json);
	put_empty(json, "markers", markers, COUNT_OF(markers));
	put_samples(json, tree, first, end);
	json_close_object(json);
}

static uint32_t end_of_group(const struct tree *tree, uint32_t first)
{
	uint32_t end = first + 1;

	while (end < tree->nodes_count && tree->nodes[end].depth > tree->nodes[first].depth)
		end++;
	return end;
}

static void put_threads(struct json *json, const struct tree *tree)
{
	uint32_t number = 0;

	json_member_array(json, "threads");
	if (!tree->group_names_count)
		put_thread(json, tree, tree->type.sample_type, 1, 0, tree->nodes_count);
	for (uint32_t i = 1; tree->group_names_count && i < tree->nodes_count;
	     i = end_of_group(tree, i))
		put_thread(json, tree, tree->functions[tree->nodes[i].function].name, ++number, i,
			   end_of_group(tree, i));
	json_close_array(json);
}

static void put_meta(struct json *json, const struct tree *tree)
{
	static const char *const extensions[] = { "baseURL", "id", "name" };
	double ns = render_export_ns(tree);

	json_member_object(json, "meta");
	json_member_int(json, "version", GECKO_VERSION);
	json_member_int(json, "preprocessedProfileVersion", VERSION);
	json_member_string(json, "product", tree->query);
	json_put_key(json, "startTime");
	json_put_double(json, (double)(tree->start_ns / CLOCK_NS_PER_US) / 1000);
	json_put_key(json, "interval");
	json_put_double(json, ns > 0 ? ns / NS_PER_MS : 1);
	json_member_int(json, "processType", 0);
	json_member_bool(json, "debug", false);
	json_member_bool(json, "symbolicated", true);
	json_member_bool(json, "usesOnlyOneStackType", true);
	json_member_bool(json, "sourceCodeIsNotOnSearchfox", true);
	json_member_array(json, "markerSchema");
	json_close_array(json);
	json_member_array(json, "pausedRanges");
	json_close_array(json);
	put_empty(json, "extensions", extensions, COUNT_OF(extensions));
	json_member_object(json, "sampleUnits");
	json_member_text(json, "time", "ms");
	json_member_text(json, "eventDelay", "ms");
	json_member_text(json, "threadCPUDelta", "µs");
	json_close_object(json);
	json_member_array(json, "categories");
	for (size_t i = 0; i < CATEGORIES; i++) {
		json_open_object(json);
		json_member_text(json, "name", categories[i].name);
		json_member_text(json, "color", categories[i].color);
		json_member_array(json, "subcategories");
		json_put_text(json, "Other");
		json_close_array(json);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

void render_firefox(const struct tree *tree, const struct render_export_for *asked,
		    struct strbuf *out)
{
	static const char *const none[] = { "libs", "pages", "counters", "profilerOverhead" };
	struct json json;

	(void)asked;
	json_begin(&json, out);
	json_open_object(&json);
	put_meta(&json, tree);
	for (size_t i = 0; i < COUNT_OF(none); i++) {
		json_member_array(&json, none[i]);
		json_close_array(&json);
	}
	put_shared(&json, tree);
	put_threads(&json, tree);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
}
