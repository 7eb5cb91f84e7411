/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/name.h"

#include <inttypes.h>

#include "base/hash.h"
#include "server/resolve/resolver.h"

#define LOOK_UPS_PER_RESET 256u

/* What makes two functions the same; the rest of the fields only describe. */
struct function_key {
	struct slice name, binary, file, build_id;
	enum frame_kind kind;
	bool is_label;
};

static struct slice base_name(struct slice path)
{
	for (size_t i = path.len; i > 0; i--)
		if (path.data[i - 1] == '/')
			return slice_tail(path, i);
	return path;
}

void name_address(struct strbuf *out, struct slice mapping, uint64_t address)
{
	struct slice binary = base_name(mapping);
	bool bracketed = binary.len && binary.data[0] == '[';

	if (slice_is(binary, "[anon]") || (!binary.len && !address)) {
		strbuf_add_text(out, binary.len ? "[anon]" : "[unknown]");
		return;
	}
	strbuf_addf(out, "0x%" PRIx64, address);
	if (binary.len)
		strbuf_addf(out, bracketed ? " %.*s" : " [%.*s]", SLICE_FMT(binary));
}

/* Kinds whose functions live in source files rather than in binaries. */
static bool is_interpreted(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_UNKNOWN:
	case FRAME_NATIVE:
	case FRAME_KERNEL:
	case FRAME_GO:
	case FRAME_RUST:
	case FRAME_MARKER:
		return false;
	default:
		return true;
	}
}

static struct function_key key_of(const struct tree_function *function, bool unnamed)
{
	struct function_key key = {
		.name = function->name,
		.binary = base_name(function->mapping),
		.kind = function->kind,
		.is_label = function->is_label,
	};

	if (unnamed)
		key.build_id = function->build_id;
	else if (!key.binary.len || is_interpreted(function->kind))
		key.file = function->file;
	return key;
}

struct sought_function {
	struct function_key key;
	bool unnamed;
};

static bool function_equal(const void *context, uint32_t id, const void *wanted)
{
	const struct name_table *table = context;
	const struct sought_function *sought = wanted;
	const struct function_key *a = &sought->key;
	struct function_key b = key_of(&table->functions[id], sought->unnamed);

	return a->kind == b.kind && a->is_label == b.is_label && slice_equal(a->name, b.name) &&
	       slice_equal(a->binary, b.binary) && slice_equal(a->file, b.file) &&
	       slice_equal(a->build_id, b.build_id);
}

static uint64_t key_hash(const struct function_key *key)
{
	uint64_t hash = hash_mix(key->kind, key->is_label);

	hash = hash_mix(hash, hash_bytes(key->name.data, key->name.len));
	hash = hash_mix(hash, hash_bytes(key->binary.data, key->binary.len));
	hash = hash_mix(hash, hash_bytes(key->file.data, key->file.len));
	return hash_mix(hash, hash_bytes(key->build_id.data, key->build_id.len));
}

static void fill_in(struct arena *strings, struct slice *into, struct slice from)
{
	if (!into->len && from.len)
		*into = arena_copy(strings, from);
}

/* Keeps what is known and adds what was not. */
static void describe(struct name_table *table, struct tree_function *known,
		     const struct tree_function *seen)
{
	fill_in(table->strings, &known->system_name, seen->system_name);
	fill_in(table->strings, &known->mapping, seen->mapping);
	fill_in(table->strings, &known->build_id, seen->build_id);
	if (!known->file.len) {
		fill_in(table->strings, &known->file, seen->file);
		known->start_line = seen->start_line;
	}
	if (!known->start_line && slice_equal(known->file, seen->file))
		known->start_line = seen->start_line;
}

static uint32_t intern(struct name_table *table, const struct tree_function *seen, bool unnamed)
{
	struct sought_function sought = { key_of(seen, unnamed), unnamed };
	uint64_t hash = key_hash(&sought.key);
	uint32_t id = idmap_find(&table->map, hash, function_equal, table, &sought);

	if (id == IDMAP_NONE) {
		struct tree_function made = { .kind = seen->kind, .is_label = seen->is_label };

		if (!WORK_GROW(&table->work->arena, table->functions, table->functions_count,
			       table->functions_capacity))
			return IDMAP_NONE;
		made.name = arena_copy(table->strings, seen->name);
		id = (uint32_t)table->functions_count++;
		table->functions[id] = made;
		idmap_add(&table->map, hash, id);
	}
	describe(table, &table->functions[id], seen);
	return table->strings->over_budget ? IDMAP_NONE : id;
}

int name_begin(struct name_table *table, struct work *work, const struct tables_view *view,
	       struct resolver *resolver, struct arena *strings, struct err *err)
{
	struct tree_function root = { .name = SLICE_LITERAL("total"), .kind = FRAME_UNKNOWN };

	*table = (struct name_table){
		.work = work, .resolver = resolver, .view = view, .strings = strings,
		.wait_until_ns = RESOLVE_WAIT_ALWAYS
	};
	arena_init(&table->looked_up, work->limit_bytes);
	work_add_map(work, &table->map);
	table->chains = arena_new_array(&work->arena, struct name_chain, view->frames_count);
	if (!table->chains || !WORK_GROW(&work->arena, table->functions, table->functions_count,
					 table->functions_capacity))
		return work_over_budget(work, err);
	/* Not in the map: no frame may become the root. */
	root.name = arena_copy(strings, root.name);
	table->functions[table->functions_count++] = root;
	return 0;
}

void name_end(struct name_table *table)
{
	arena_free(&table->looked_up);
}

static bool add_line(struct name_table *table, uint32_t function, uint32_t line, uint32_t column,
		     bool inlined)
{
	if (function == IDMAP_NONE || !WORK_GROW(&table->work->arena, table->lines,
						 table->lines_count, table->lines_capacity))
		return false;
	table->lines[table->lines_count++] = (struct name_line){ function, line, column, inlined };
	return true;
}

static struct tree_function function_of_frame(const struct name_table *table,
					      const struct frame *frame)
{
	const struct tables_view *view = table->view;
	struct tree_function function = {
		.name = tables_text(view, frame->function),
		.system_name = tables_text(view, frame->system_name),
		.file = tables_text(view, frame->file),
		.mapping = tables_text(view, frame->mapping_file),
		.build_id = tables_text(view, frame->build_id),
		.kind = frame->kind < FRAME_KINDS ? (enum frame_kind)frame->kind : FRAME_UNKNOWN,
		.start_line = frame->start_line,
	};

	if (slice_equal(function.system_name, function.name))
		function.system_name = SLICE_LITERAL("");
	return function;
}

static bool name_by_address(struct name_table *table, const struct frame *frame)
{
	struct tree_function function = function_of_frame(table, frame);
	struct strbuf text = { 0 };
	uint32_t id;

	name_address(&text, function.mapping, frame->address);
	function.name = strbuf_slice(&text);
	id = intern(table, &function, true);
	strbuf_free(&text);
	return add_line(table, id, frame->line, frame->column, false);
}

/* Adds the resolver's lines; *ret_found says whether there were any. */
static bool name_by_resolver(struct name_table *table, const struct frame *frame, bool *ret_found)
{
	struct tree_function function = function_of_frame(table, frame);
	struct resolved_line *lines = NULL;
	enum resolve_reason reason;
	size_t count = 0;

	if (++table->look_ups % LOOK_UPS_PER_RESET == 0)
		arena_free(&table->looked_up);
	reason = resolver_lookup(table->resolver, function.build_id, function.mapping,
				 frame->address, frame->flags & FRAME_ADDR_OFFSET,
				 table->wait_until_ns, &table->looked_up, &lines, &count);
	table->pending += reason == RESOLVE_PENDING;
	*ret_found = count > 0;
	for (size_t i = 0; i < count; i++) {
		const struct resolved_line *line = &lines[i];

		function.name = line->function.len ? line->function : SLICE_LITERAL("[unknown]");
		function.system_name = slice_equal(line->system_name, line->function)
					       ? SLICE_LITERAL("")
					       : line->system_name;
		function.file = line->file;
		function.start_line = line->start_line;
		if (!add_line(table, intern(table, &function, false), line->line, line->column,
			      i + 1 < count))
			return false;
	}
	return true;
}

static bool is_resolvable(const struct name_table *table, const struct frame *frame)
{
	return table->resolver && !is_interpreted((enum frame_kind)frame->kind) &&
	       frame->kind != FRAME_MARKER &&
	       (table->view->strings[frame->build_id].len ||
		table->view->strings[frame->mapping_file].len);
}

static bool name_new(struct name_table *table, const struct frame *frame, bool *ret_resolved)
{
	*ret_resolved = true;
	if (table->view->strings[frame->function].len) {
		struct tree_function function = function_of_frame(table, frame);

		return add_line(table, intern(table, &function, false), frame->line, frame->column,
				frame->flags & FRAME_INLINED);
	}
	if (is_resolvable(table, frame)) {
		bool done = name_by_resolver(table, frame, ret_resolved);

		if (!done || *ret_resolved)
			return done;
	}
	*ret_resolved = false;
	return name_by_address(table, frame);
}

const struct name_chain *name_frame(struct name_table *table, uint32_t frame)
{
	struct name_chain *chain = &table->chains[frame];

	if (!chain->line_count) {
		chain->line_first = (uint32_t)table->lines_count;
		if (!name_new(table, &table->view->frames[frame], &chain->resolved))
			return NULL;
		chain->line_count = (uint32_t)table->lines_count - chain->line_first;
	}
	return chain;
}

uint32_t name_group(struct name_table *table, struct slice value)
{
	return intern(table, &(struct tree_function){ .name = value, .is_label = 1 }, false);
}
