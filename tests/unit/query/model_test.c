/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random tables against a naive model: all rows as a flat list, stacks as lists of strings, POSIX
 * regular expressions, one loop per query. Checks trees (also at full detail), time series and
 * catalogues, and the invariants that every tree keeps.
 */
#include "world.h"

#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coded.h"
#include "naive_filter.h"
#include "server/query/index/index_cache.h"
#include "server/query/render/render.h"
#include "tree_checks.h"

#define INDEXES_FEW_BYTES ((size_t)4 << 10)
#define WORLDS (BUILT_WITH_TSAN ? 12 : BUILT_WITH_ASAN ? 30 : 60)
#define QUESTIONS 40
#define RECORDS_MAX 600
#define DEPTH_MAX 7
#define REPORT_NS 10
#define TIMES 8
#define PERIOD 1000
#define COMMON_MULTIPLE 2520 /* of 1..10 */

/* One step of a stack: a physical frame and what may be inlined into it. */
struct step {
	struct frame frames[2]; /* outermost first; texts are indexes into `texts` */
	uint32_t count;
	const char *names[2]; /* as shown */
};

enum {
	T_NONE,
	T_MAIN,
	T_RUN,
	T_WORK,
	T_INL,
	T_MOD,
	T_APP,
	T_LIB,
	T_KERN,
	T_ANON,
	T_B1,
	T_B2,
	T_A_PY,
	T_B_PY,
	T_LIB2
};
static const char *const texts[] = {
	"",	    "main",   "run", "work", "inl",  "<module>", "/bin/app",	  "/lib/libx.so",
	"[kernel]", "[anon]", "b1",  "b2",   "a.py", "b.py",	 "/other/libx.so"
};

#define NATIVE(fn, map, build, addr, ln)                                                           \
	{                                                                                          \
		.kind = FRAME_NATIVE, .function = fn, .mapping_file = map, .build_id = build,      \
		.address = addr, .line = ln                                                        \
	}
#define PYTHON(fn, path, ln)                                                                       \
	{                                                                                          \
		.kind = FRAME_PYTHON, .function = fn, .file = path, .line = ln                     \
	}

static const struct step steps[] = {
	{ { NATIVE(T_MAIN, T_APP, T_B1, 16, 1) }, 1, { "main" } },
	{ { NATIVE(T_MAIN, T_APP, T_B1, 17, 2) }, 1, { "main" } },
	{ { NATIVE(T_RUN, T_APP, T_B1, 32, 0) }, 1, { "run" } },
	{ { NATIVE(T_WORK, T_LIB, T_B1, 48, 5) }, 1, { "work" } },
	{ { NATIVE(T_WORK, T_LIB2, T_B2, 64, 6) }, 1, { "work" } },
	{ { NATIVE(T_NONE, T_LIB, T_B1, 80, 0) }, 1, { "0x50 [libx.so]" } },
	{ { NATIVE(T_NONE, T_LIB, T_B1, 81, 0) }, 1, { "0x51 [libx.so]" } },
	{ { NATIVE(T_NONE, T_ANON, T_NONE, 1, 0) }, 1, { "[anon]" } },
	{ { NATIVE(T_NONE, T_ANON, T_NONE, 2, 0) }, 1, { "[anon]" } },
	{ { { .kind = FRAME_KERNEL, .function = T_RUN, .mapping_file = T_KERN } }, 1, { "run" } },
	{ { PYTHON(T_MOD, T_A_PY, 1) }, 1, { "<module>" } },
	{ { PYTHON(T_MOD, T_A_PY, 9) }, 1, { "<module>" } },
	{ { PYTHON(T_MOD, T_B_PY, 1) }, 1, { "<module>" } },
	{ { NATIVE(T_RUN, T_APP, T_B1, 40, 3), NATIVE(T_INL, T_APP, T_B1, 40, 4) },
	  2,
	  { "run", "inl" } },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static const char *const comms[] = { "a", "b", "c" };
static const char *const pods[] = { "", "p1", "p2" };
static const char *const threads[] = { "", "t1", "t2" };
static const char *const row_pods[] = { "", "", "p1", "p9" };
static const char *const numbers[] = { "", "", "64", "128" };

/* The groups of columns that the worlds have. */
static const struct {
	const char *types[2];
	uint32_t columns;
} groups[] = {
	{ { WORLD_ON_CPU }, 1 },
	{ { "memory:alloc_space:bytes:space:bytes:delta", "memory:inuse_space:bytes:space:bytes" },
	  2 },
};

/* One row, flat. */
struct record {
	uint32_t view, report, group;
	const char *comm, *pod, *thread, *row_pod, *number;
	int64_t start_ns;
	uint32_t depth;
	uint8_t stack[DEPTH_MAX]; /* steps, root first */
	int64_t values[2];
};

struct model {
	struct record records[RECORDS_MAX];
	size_t count;
	uint32_t reports;
};

struct query {
	uint32_t group, column;
	const char *matchers;
	const char *group_by;
	int64_t from_ns, to_ns;
	struct naive_filters filters;
	uint32_t threads;
};

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % below);
}

#define PICK(array) (array)[draw(sizeof(array) / sizeof((array)[0]))]

/* ---- making worlds ---- */

static uint32_t load_frame(struct tables *tables, const struct frame *from, bool inlined)
{
	struct frame frame = *from;

	frame.function = tables_string(tables, slice_of(texts[from->function]));
	frame.mapping_file = tables_string(tables, slice_of(texts[from->mapping_file]));
	frame.build_id = tables_string(tables, slice_of(texts[from->build_id]));
	frame.file = tables_string(tables, slice_of(texts[from->file]));
	frame.flags = inlined ? FRAME_INLINED : 0;
	return tables_frame(tables, &frame);
}

static uint32_t load_stack(struct tables *tables, const struct record *record)
{
	uint32_t node = 0;

	for (uint32_t i = 0; i < record->depth; i++) {
		const struct step *step = &steps[record->stack[i]];

		for (uint32_t at = 0; at < step->count; at++)
			node = tables_node(tables, node,
					   load_frame(tables, &step->frames[at], at > 0));
	}
	return node;
}

static uint32_t load_series(struct tables *tables, const struct record *record)
{
	struct column columns[2];
	struct group group = { .period = PERIOD, .column_count = groups[record->group].columns };
	char labels[64];

	for (uint32_t i = 0; i < group.column_count; i++) {
		struct profile_type type;

		assert_int_equal(
			profile_type_parse(slice_of(groups[record->group].types[i]), &type, NULL),
			0);
		group.name = tables_string(tables, type.name);
		group.period_type = tables_string(tables, type.period_type);
		group.period_unit = tables_string(tables, type.period_unit);
		columns[i] = (struct column){ tables_string(tables, type.sample_type),
					      tables_string(tables, type.sample_unit),
					      type.delta ? COLUMN_DELTA : COLUMN_GAUGE };
	}
	snprintf(labels, sizeof(labels), *record->pod ? "comm=%s,pod=%s" : "comm=%s", record->comm,
		 record->pod);
	return tables_series(tables, world_labels(tables, labels),
			     tables_group(tables, &group, columns));
}

static void load_row(struct tables *tables, const struct record *record)
{
	char labels[96] = "";

	if (*record->thread)
		sprintf(labels + strlen(labels), "thread=%s,", record->thread);
	if (*record->row_pod)
		sprintf(labels + strlen(labels), "pod=%s,", record->row_pod);
	if (*record->number)
		sprintf(labels + strlen(labels), "bytes=#%s,", record->number);
	assert_true(tables_row(tables, load_stack(tables, record), world_labels(tables, labels),
			       record->values));
}

static void make_row(struct record *record, bool labels)
{
	record->depth = draw(DEPTH_MAX + 1);
	for (uint32_t i = 0; i < record->depth; i++)
		record->stack[i] = (uint8_t)draw(i < 2 ? 3 : STEPS);
	record->thread = labels ? PICK(threads) : "";
	record->row_pod = labels ? PICK(row_pods) : "";
	record->number = labels ? PICK(numbers) : "";
	record->values[0] = draw(8) ? draw(1000) : 0;
	record->values[1] = (int64_t)draw(1000) - (draw(10) ? 0 : 500);
}

static void make_world(struct world *world, struct model *model)
{
	bool labels = draw(2);
	uint32_t reports = 5 + draw(40);

	world_init(world, 1 + draw(4));
	model->count = 0;
	for (model->reports = 0; model->reports < reports; model->reports++) {
		struct record base = { .view = draw((uint32_t)world->views_count),
				       .report = model->reports,
				       .group = draw(2),
				       .comm = PICK(comms),
				       .pod = PICK(pods),
				       .start_ns = (int64_t)draw(TIMES) * REPORT_NS };
		struct tables *tables = &world->tables[base.view];
		uint32_t rows = 1 + draw(RECORDS_MAX / 50);

		world_report(tables, load_series(tables, &base), base.start_ns, REPORT_NS);
		for (uint32_t i = 0; i < rows && model->count < RECORDS_MAX; i++) {
			struct record *record = &model->records[model->count++];

			*record = base;
			make_row(record, labels);
			load_row(tables, record);
		}
	}
}

static const char *const matcher_lists[] = {
	"",
	"",
	"{}",
	"{comm=\"a\"}",
	"{comm=~\"a|b\"}",
	"{comm!~\"a.*\"}",
	"{pod!=\"\"}",
	"{pod=\"\"}",
	"{pod=\"p1\"}",
	"{pod!=\"p1\"}",
	"{pod=~\"p.\",comm!=\"b\"}",
	"{thread=\"t1\"}",
	"{thread!=\"t1\"}",
	"{thread=~\"t.*\",pod!~\"p2\"}",
	"{bytes=\"64\"}",
	"{bytes=~\"..\"}",
	"{bytes!~\"1.*\",thread=\"\"}",
	"{none=\"\"}",
	"{none!=\"\"}",
	"{none=~\".*\"}",
};
static const char *const group_lists[] = { "",	       "",	"comm",	      "pod", "thread",
					   "comm,pod", "bytes", "thread,pod", "none" };

static struct query make_query(void)
{
	struct query query = { .group = draw(2),
			       .matchers = PICK(matcher_lists),
			       .group_by = PICK(group_lists) };

	query.column = draw(groups[query.group].columns);
	query.from_ns = (int64_t)draw(TIMES) * REPORT_NS + (int64_t)draw(3) - 1;
	query.to_ns = query.from_ns + (int64_t)draw(TIMES * REPORT_NS);
	return query;
}

/* ---- the naive answers ---- */

static const char *label_of(const struct record *record, struct slice name)
{
	if (slice_is(name, "comm"))
		return record->comm;
	if (slice_is(name, "pod"))
		return *record->pod ? record->pod : record->row_pod;
	if (slice_is(name, "thread"))
		return record->thread;
	return slice_is(name, "bytes") ? record->number : "";
}

static bool regex_fits(const char *value, struct slice pattern)
{
	char text[64];
	regex_t regex;
	bool fits;

	snprintf(text, sizeof(text), "^(%.*s)$", SLICE_FMT(pattern));
	assert_int_equal(regcomp(&regex, text, REG_EXTENDED | REG_NOSUB), 0);
	fits = !regexec(&regex, value, 0, NULL, 0);
	regfree(&regex);
	return fits;
}

static bool record_fits(const struct record *record, const struct query *query,
			const struct selector *selector)
{
	if (record->group != query->group || record->start_ns < query->from_ns ||
	    record->start_ns >= query->to_ns)
		return false;
	for (size_t i = 0; i < selector->matchers_count; i++) {
		const struct matcher *matcher = &selector->matchers[i];
		const char *value = label_of(record, matcher->name);
		bool regex = matcher->op == MATCH_REGEX || matcher->op == MATCH_NOT_REGEX;
		bool negative = matcher->op == MATCH_NOT_EQUAL || matcher->op == MATCH_NOT_REGEX;
		bool fits =
			regex ? regex_fits(value, matcher->value) : slice_is(matcher->value, value);

		if (fits == negative)
			return false;
	}
	return true;
}

/* Reports of the record's series in the range: what a gauge's sum is divided by. */
static int64_t reports_of_series(const struct model *model, const struct record *of,
				 int64_t from_ns, int64_t to_ns)
{
	int64_t count = 0;

	for (size_t i = 0; i < model->count; i++) {
		const struct record *record = &model->records[i];

		count += (!i || record->report != record[-1].report) &&
			 record->group == of->group && record->comm == of->comm &&
			 record->pod == of->pod && record->start_ns >= from_ns &&
			 record->start_ns < to_ns;
	}
	return count;
}

static void add_groups(struct strbuf *out, const struct record *record, const char *group_by)
{
	struct slice rest = slice_of(group_by);
	const char *separator = "";

	while (rest.len) {
		const char *value = label_of(record, slice_cut(rest, ',', &rest));

		strbuf_addf(out, "%s%s", separator, *value ? value : "(none)");
		separator = ",";
	}
}

/* A line of an answer: the shown path, and a key that tells frames apart at full detail. */
struct line {
	char *shown;
	char *key;
	int64_t value; /* times COMMON_MULTIPLE while summing */
};

static int by_key(const void *left, const void *right)
{
	return strcmp(((const struct line *)left)->key, ((const struct line *)right)->key);
}

static int by_shown(const void *left, const void *right)
{
	return strcmp(((const struct line *)left)->shown, ((const struct line *)right)->shown);
}

/* The record's frames, root first; returns how many. */
static uint32_t frames_of(const struct record *record, struct naive_frame *frames)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < record->depth; i++) {
		const struct step *step = &steps[record->stack[i]];

		for (uint32_t at = 0; at < step->count; at++)
			frames[count++] = (struct naive_frame){
				.name = step->names[at],
				.binary = texts[step->frames[at].mapping_file],
				.file = texts[step->frames[at].file],
				.kind = frame_kind_name((enum frame_kind)step->frames[at].kind),
				.address = step->frames[at].address,
				.line = step->frames[at].line,
			};
	}
	return count;
}

static struct line line_of(const struct record *record, const struct query *query)
{
	struct naive_frame frames[2 * DEPTH_MAX];
	struct strbuf shown = { 0 }, key = { 0 };
	uint32_t count = frames_of(record, frames);

	add_groups(&shown, record, query->group_by);
	naive_filters_frames(&query->filters, frames, &count);
	for (uint32_t i = 0; i < count; i++)
		strbuf_addf(&shown, "%s%s", shown.len ? ";" : "", frames[i].name);
	if (!shown.len)
		strbuf_add_text(&shown, "[no frames]");
	strbuf_addf(&key, "%s", strbuf_text(&shown));
	for (uint32_t i = 0; i < record->depth; i++)
		strbuf_addf(&key, "/%u", record->stack[i]);
	return (struct line){ shown.data, key.data, 0 };
}

/* Adds up neighbours that `order` calls equal; returns how many are left. */
static size_t fold_lines(struct line *lines, size_t count, int (*order)(const void *, const void *))
{
	size_t kept = 0;

	qsort(lines, count, sizeof(*lines), order);
	for (size_t i = 0; i < count; i++) {
		if (kept && !order(&lines[kept - 1], &lines[i])) {
			lines[kept - 1].value += lines[i].value;
			free(lines[i].shown);
			free(lines[i].key);
		} else {
			lines[kept++] = lines[i];
		}
	}
	return kept;
}

static char *print_lines(struct line *lines, size_t count)
{
	struct strbuf out = { 0 };

	strbuf_reserve(&out, 1)[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (lines[i].value)
			strbuf_addf(&out, "%s %lld\n", lines[i].shown, (long long)lines[i].value);
		free(lines[i].shown);
		free(lines[i].key);
	}
	free(lines);
	return out.data;
}

static int64_t round_half_away(int64_t numerator)
{
	int64_t half = COMMON_MULTIPLE / 2;

	return (numerator + (numerator < 0 ? -half : half)) / COMMON_MULTIPLE;
}

/* Distinct stacks at full detail, values times COMMON_MULTIPLE; with `hidden` those that filters
 * hide. */
static struct line *naive_lines(const struct model *model, const struct query *query,
				const struct selector *selector, bool hidden, size_t *ret_count)
{
	struct line *lines = mem_new_array(struct line, model->count + 1);
	struct naive_frame frames[2 * DEPTH_MAX];
	size_t count = 0;

	for (size_t i = 0; i < model->count; i++) {
		const struct record *record = &model->records[i];
		int64_t divisor = 1;

		if (!record_fits(record, query, selector) ||
		    naive_filters_show(&query->filters, frames, frames_of(record, frames)) ==
			    hidden)
			continue;
		if (!selector->type.delta)
			divisor = reports_of_series(model, record, query->from_ns, query->to_ns);
		assert_in_range(divisor, 1, 10);
		lines[count] = line_of(record, query);
		lines[count++].value = record->values[query->column] * (COMMON_MULTIPLE / divisor);
	}
	*ret_count = fold_lines(lines, count, by_key);
	return lines;
}

/* Of types whose values add up. */
static char *naive_folded(const struct model *model, const struct query *query,
			  const struct selector *selector, bool hidden)
{
	size_t count;
	struct line *lines = naive_lines(model, query, selector, hidden, &count);

	for (size_t i = 0; i < count; i++)
		lines[i].value = round_half_away(lines[i].value);
	count = fold_lines(lines, count, by_shown);
	return print_lines(lines, count);
}

/* ---- the answers under test, and their invariants ---- */

/* The stacks, at full detail, folded by their functions' names. */
static char *folded_stacks(const struct tree *tree)
{
	struct line *lines = mem_new_array(struct line, (size_t)tree->stacks_count + 1);
	size_t count;

	for (uint32_t i = 0; i < tree->stacks_count; i++) {
		const struct tree_stack *stack = &tree->stacks[i];
		struct strbuf shown = { 0 };

		assert_true(stack->group < tree->groups_count);
		strbuf_add_slice(&shown, tree->groups[stack->group]);
		for (uint32_t at = stack->location_count; at > 0; at--) {
			uint32_t id = tree->stack_locations[stack->location_first + at - 1];
			const struct tree_location *location = &tree->locations[id];

			assert_true(id < tree->locations_count && location->line_count);
			for (uint32_t l = location->line_count; l > 0; l--) {
				uint32_t f = tree->lines[location->line_first + l - 1].function;

				strbuf_addf(&shown, "%s%.*s", shown.len ? ";" : "",
					    SLICE_FMT(tree->functions[f].name));
			}
		}
		if (!shown.len)
			strbuf_add_text(&shown, "[no frames]");
		strbuf_reserve(&shown, 1)[0] = '\0';
		lines[i] = (struct line){ shown.data, NULL, stack->value };
	}
	count = fold_lines(lines, tree->stacks_count, by_shown);
	return print_lines(lines, count);
}

static char *merged_folded(const struct tree *tree)
{
	char *folded = world_folded(tree);
	struct line *lines = mem_new_array(struct line, (size_t)tree->nodes_count + 1);
	struct slice rest = slice_of(folded);
	size_t count = 0;

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);
		size_t blank = line.len;

		while (line.data[blank - 1] != ' ')
			blank--;
		lines[count++] = (struct line){ mem_strndup(line.data, blank - 1), NULL,
						strtoll(line.data + blank, NULL, 10) };
	}
	free(folded);
	count = fold_lines(lines, count, by_shown);
	return print_lines(lines, count);
}

static int64_t sum_of_lines(char *folded)
{
	struct slice rest = slice_of(folded);
	int64_t sum = 0;

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);
		size_t blank = line.len;

		while (line.data[blank - 1] != ' ')
			blank--;
		sum += strtoll(line.data + blank, NULL, 10);
	}
	free(folded);
	return sum;
}

/* `as` says which tree. */
static struct tree *ask_as(const struct query_source *source, const struct query *query,
			   const struct selector *selector, const struct query_params *as)
{
	struct query_params params = *as;
	struct slice rest = slice_of(query->group_by);
	struct filter_list filters = { 0 };
	struct tree *tree = NULL;
	struct err err = { 0 };

	params.selector = selector;
	params.from_ns = query->from_ns;
	params.to_ns = query->to_ns;
	params.limits.threads_max = query->threads;
	while (rest.len)
		params.group_by[params.group_by_count++] = slice_cut(rest, ',', &rest);
	if (filter_list_parse(&filters, slice_of(query->filters.text), &err))
		fail_msg("%s: %s", query->filters.text, err.message);
	params.filters = &filters;
	if (query_tree(source, &params, &tree, &err))
		fail_msg("query: %s", err.message);
	filter_list_free(&filters);
	return tree;
}

/* What a terminal is shown. */
static void render_table(const struct tree *tree, uint32_t limit, struct strbuf *out)
{
	render_top(tree, limit, out);
	if (tree->unresolved_count)
		render_unresolved_text(tree, out);
}

static size_t indexes_used, indexes_made;

/* Without the tree the table is the same; returns whether it came without. */
static bool check_table(const struct query_source *source, const struct query *query,
			const struct selector *selector, const struct tree *tree)
{
	uint32_t limit = draw(2) ? 1 + draw(6) : 0;
	struct tree *table =
		ask_as(source, query, selector,
		       &(struct query_params){ .rows_only = true, .rows_limit = limit });
	struct strbuf rows = { 0 }, expected = { 0 };
	bool has_rows = table->rows;

	indexes_used += table->stats.indexes_used;
	indexes_made += table->stats.indexes_made;
	render_table(table, limit, &rows);
	render_table(tree, limit, &expected);
	assert_string_equal(strbuf_text(&rows), strbuf_text(&expected));
	strbuf_free(&rows);
	strbuf_free(&expected);
	tree_free(table);
	return has_rows;
}

static size_t pictures_trimmed;

/* A tree that is trimmed while it is made shows the same; of all, when nothing is too narrow. */
static void check_picture(const struct query_source *source, const struct query *query,
			  const struct selector *selector, const struct tree *tree)
{
	uint32_t width_px = draw(3) ? 1 + draw(40) : 1000000;
	struct tree *trimmed =
		ask_as(source, query, selector,
		       &(struct query_params){ .nodes_only = true, .width_px = width_px });
	struct strbuf shown = { 0 }, expected = { 0 };

	tree_checks_draw(trimmed, width_px, &shown);
	tree_checks_draw(tree, width_px, &expected);
	assert_string_equal(strbuf_text(&shown), strbuf_text(&expected));
	if (trimmed->cut) {
		assert_true(trimmed->nodes_untrimmed >= tree->nodes_count);
		if (trimmed->nodes_count == tree->nodes_count)
			assert_int_equal(trimmed->nodes_untrimmed, tree->nodes_count);
		pictures_trimmed += trimmed->nodes_count < tree->nodes_count;
	}
	strbuf_free(&shown);
	strbuf_free(&expected);
	tree_free(trimmed);
}

static size_t tables_without_trees;

/* The value of a folded line that begins so; 0 without it. */
static int64_t value_of(const char *folded, const char *shown)
{
	size_t len = strlen(shown);

	for (; *folded; folded = strchr(folded, '\n') + 1)
		if (!strncmp(folded, shown, len) && folded[len] == ' ')
			return strtoll(folded + len, NULL, 10);
	return 0;
}

static int64_t free_lines(struct line *lines, size_t count)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		sum += lines[i].value;
		free(lines[i].shown);
		free(lines[i].key);
	}
	free(lines);
	return sum;
}

/*
 * Means as whole numbers: each stack within one of its mean, all together the mean of all, rounded
 * once. Lines of one name may be several stacks.
 */
static void check_means(const struct model *model, const struct query *query,
			const struct selector *selector, const struct tree *tree,
			const char *folded)
{
	size_t count, hidden_count;
	struct line *lines = naive_lines(model, query, selector, false, &count);
	struct line *hidden = naive_lines(model, query, selector, true, &hidden_count);
	int64_t sum, all;

	qsort(lines, count, sizeof(*lines), by_shown);
	for (size_t first = 0, end; first < count; first = end) {
		int64_t exact = 0, off;

		for (end = first; end < count && !by_shown(&lines[first], &lines[end]); end++)
			exact += lines[end].value;
		off = value_of(folded, lines[first].shown) * COMMON_MULTIPLE - exact;
		assert_true(llabs(off) < (int64_t)(end - first) * COMMON_MULTIPLE);
	}
	sum = free_lines(lines, count);
	all = sum + free_lines(hidden, hidden_count);
	assert_int_equal(tree->total, round_half_away(sum));
	assert_int_equal(tree->total + tree->filtered, round_half_away(all));
}

static void check_tree(const struct query_source *source, const struct model *model,
		       const struct query *query, const char *text, const struct selector *selector)
{
	struct tree *tree = ask_as(source, query, selector, &(struct query_params){ 0 });
	bool means = !selector->type.delta;
	char *folded = merged_folded(tree);
	char *stacks = folded_stacks(tree);
	char *expected = means ? mem_strndup(folded, strlen(folded))
			       : naive_folded(model, query, selector, false);

	if (strcmp(expected, folded) || strcmp(expected, stacks))
		print_message("%s by %s [%d, %d) filters %s\n", text, query->group_by,
			      (int)query->from_ns, (int)query->to_ns, query->filters.text);
	assert_string_equal(folded, expected);
	assert_string_equal(stacks, expected);
	if (means)
		check_means(model, query, selector, tree, folded);
	else
		assert_int_equal(tree->filtered,
				 sum_of_lines(naive_folded(model, query, selector, true)));
	tree_checks_nodes(tree);
	tree_checks_siblings(tree);
	/* Asked about again, segments are indexed, and then answer by that. */
	for (int round = 0; round < (source->indexes ? 4 : 1); round++)
		tables_without_trees += check_table(source, query, selector, tree);
	check_picture(source, query, selector, tree);
	free(expected);
	free(folded);
	free(stacks);
	tree_free(tree);
}

/* The same answers with filters; half of the queries have none. */
static void draw_filters(struct query *query)
{
	if (draw(2))
		naive_filters_draw(&query->filters, draw);
}

static const char *const labels_of_rows[] = { "thread", "pod", "bytes" };

/* Whether the query names a label that rows may carry. */
static bool names_rows(const struct query *query, const struct selector *selector)
{
	for (size_t i = 0; i < sizeof(labels_of_rows) / sizeof(labels_of_rows[0]); i++) {
		if (strstr(query->group_by, labels_of_rows[i]))
			return true;
		for (size_t at = 0; at < selector->matchers_count; at++)
			if (slice_is(selector->matchers[at].name, labels_of_rows[i]))
				return true;
	}
	return false;
}

/* As the store would plan it, where partitions are made by `comm`. */
static struct query_source plan_source(struct coded *coded, const struct query *query,
				       const struct selector *selector)
{
	struct coded_wanted wanted = { query->from_ns, query->to_ns, false, false };

	if (!names_rows(query, selector)) {
		wanted.rolled_up = draw(3);
		wanted.all = draw(2);
	}
	return coded_source(coded, &wanted);
}

static void trees_agree_with_the_model(void **state)
{
	struct model *model = mem_new(struct model);

	(void)state;
	random_state = 1;
	for (int i = 0; i < WORLDS; i++) {
		size_t limit_bytes = i % 4 ? INDEX_CACHE_BYTES_DEFAULT : INDEXES_FEW_BYTES;
		struct index_cache *indexes = index_cache_new(limit_bytes);
		struct coded *coded;
		struct world world;

		make_world(&world, model);
		coded = coded_new(&world, "comm");
		for (int at = 0; at < QUESTIONS; at++) {
			struct query query = make_query();
			struct query_source source;
			struct selector selector;
			char text[160];

			draw_filters(&query);
			snprintf(text, sizeof(text), "%s%s",
				 groups[query.group].types[query.column], query.matchers);
			assert_int_equal(selector_parse(slice_of(text), &selector, NULL), 0);
			source = world_source(&world);
			check_tree(&source, model, &query, text, &selector);
			query.threads = 1 + draw(3);
			source = plan_source(coded, &query, &selector);
			source.indexes = indexes;
			check_tree(&source, model, &query, text, &selector);
			selector_free(&selector);
		}
		assert_true(index_cache_bytes(indexes) <= limit_bytes);
		index_cache_free(indexes);
		coded_free(coded);
		world_free(&world);
	}
	assert_true(indexes_made > WORLDS);
	assert_true(indexes_used > 2 * indexes_made);
	assert_true(tables_without_trees > WORLDS);
	assert_true(pictures_trimmed > WORLDS);
	free(model);
}

static struct query_params params_of(const struct query *query, const struct selector *selector)
{
	return (struct query_params){ .selector = selector,
				      .from_ns = query->from_ns,
				      .to_ns = query->to_ns,
				      .limits = { .threads_max = query->threads } };
}

/* What one side of a diff has by itself: of means what its tree has, which check_means looks at. */
static char *side_folded(const struct query_source *source, const struct model *model,
			 const struct query *query, const struct selector *selector)
{
	struct tree *tree;
	char *folded;

	if (selector->type.delta)
		return naive_folded(model, query, selector, false);
	tree = ask_as(source, query, selector, &(struct query_params){ 0 });
	folded = merged_folded(tree);
	check_means(model, query, selector, tree, folded);
	tree_free(tree);
	return folded;
}

static void check_diff(const struct query_source *base_source, const struct query_source *source,
		       const struct model *model, const struct query queries[2],
		       const struct selector selectors[2])
{
	struct query_params base = params_of(&queries[0], &selectors[0]);
	struct query_params params = params_of(&queries[1], &selectors[1]);
	char *expected[2], *folded[2];
	struct filter_list filters = { 0 };
	struct tree *tree;

	assert_int_equal(filter_list_parse(&filters, slice_of(queries[1].filters.text), NULL), 0);
	params.filters = &filters;
	assert_int_equal(query_diff(base_source, &base, source, &params, &tree, NULL), 0);
	filter_list_free(&filters);
	for (int i = 0; i < 2; i++)
		expected[i] =
			side_folded(i ? source : base_source, model, &queries[i], &selectors[i]);
	tree_checks_nodes(tree);
	folded[1] = merged_folded(tree);
	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		tree->nodes[i].self = tree->base[i].self;
		tree->nodes[i].total = tree->base[i].total;
	}
	tree->total = tree->base_total;
	tree_checks_nodes(tree);
	folded[0] = merged_folded(tree);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(folded[i], expected[i]);
		free(folded[i]);
		free(expected[i]);
	}
	tree_free(tree);
}

static void diffs_hold_both_trees(void **state)
{
	struct model *model = mem_new(struct model);

	(void)state;
	random_state = 5;
	for (int i = 0; i < WORLDS; i++) {
		struct coded *coded;
		struct world world;

		make_world(&world, model);
		coded = coded_new(&world, "comm");
		for (int at = 0; at < QUESTIONS / 4; at++) {
			struct query queries[2] = { make_query(), make_query() };
			struct query_source base_source = world_source(&world), source;
			struct selector selectors[2];

			draw_filters(&queries[1]);
			queries[0].filters = queries[1].filters;
			queries[0].group = queries[1].group;
			queries[0].column = queries[1].column;
			for (int side = 0; side < 2; side++) {
				char text[160];

				queries[side].group_by = "";
				queries[side].threads = 1 + draw(3);
				snprintf(text, sizeof(text), "%s%s",
					 groups[queries[side].group].types[queries[side].column],
					 queries[side].matchers);
				assert_int_equal(
					selector_parse(slice_of(text), &selectors[side], NULL), 0);
			}
			source = plan_source(coded, &queries[1], &selectors[1]);
			check_diff(&base_source, &source, model, queries, selectors);
			selector_free(&selectors[0]);
			selector_free(&selectors[1]);
		}
		coded_free(coded);
		world_free(&world);
	}
	free(model);
}

/* The model without the rows of a partition. */
static void drop_partition(struct model *model, const struct coded_broken *broken)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->count; i++) {
		const struct record *record = &model->records[i];

		if (record->view != broken->view ||
		    (record->group == 0) != broken->one_delta_column ||
		    !slice_is(broken->key, record->comm))
			model->records[kept++] = *record;
	}
	model->count = kept;
}

static void partitions_that_cannot_be_read_are_left_out_as_a_whole(void **state)
{
	struct model *model = mem_new(struct model);

	(void)state;
	random_state = 4;
	for (int i = 0; i < WORLDS; i++) {
		struct coded *coded;
		struct world world;

		make_world(&world, model);
		coded = coded_new(&world, "comm");
		for (uint32_t n = 0; n < 1 + coded_count(coded) / 4; n++) {
			struct coded_broken broken =
				coded_break(coded, draw((uint32_t)coded_count(coded)));

			drop_partition(model, &broken);
		}
		for (int at = 0; at < QUESTIONS / 4; at++) {
			struct query query = make_query();
			struct query_source source;
			struct selector selector;
			char text[160];

			/* All of it: what is never read is not noticed. */
			query.column = 0;
			query.from_ns = 0;
			query.to_ns = TIMES * REPORT_NS;
			query.threads = 1 + draw(3);
			snprintf(text, sizeof(text), "%s", groups[query.group].types[0]);
			assert_int_equal(selector_parse(slice_of(text), &selector, NULL), 0);
			source = plan_source(coded, &query, &selector);
			check_tree(&source, model, &query, text, &selector);
			selector_free(&selector);
		}
		coded_free(coded);
		world_free(&world);
	}
	free(model);
}

/* The naive value of one bucket of one line. */
static int64_t naive_point(const struct model *model, const struct query *query,
			   const struct selector *selector, const char *line, int64_t from_ns,
			   int64_t to_ns)
{
	int64_t sum = 0;

	from_ns = from_ns > query->from_ns ? from_ns : query->from_ns;
	to_ns = to_ns < query->to_ns ? to_ns : query->to_ns;
	for (size_t i = 0; i < model->count; i++) {
		const struct record *record = &model->records[i];
		struct strbuf group = { 0 };
		int64_t divisor = 1;
		bool same;

		add_groups(&group, record, query->group_by);
		same = !strcmp(strbuf_text(&group), line);
		strbuf_free(&group);
		if (!same || !record_fits(record, query, selector) || record->start_ns < from_ns ||
		    record->start_ns >= to_ns)
			continue;
		if (!selector->type.delta)
			divisor = reports_of_series(model, record, from_ns, to_ns);
		sum += record->values[query->column] * (COMMON_MULTIPLE / divisor);
	}
	return round_half_away(sum);
}

/* The line's labels as add_groups writes them. */
static void line_name(const struct query *query, const struct query_series *series,
		      struct strbuf *out)
{
	struct slice rest = slice_of(query->group_by);

	strbuf_reserve(out, 1)[0] = '\0';
	while (rest.len) {
		struct slice name = slice_cut(rest, ',', &rest), value = SLICE_LITERAL("(none)");

		for (size_t i = 0; i < series->labels_count; i++)
			if (slice_equal(series->labels[i].name, name))
				value = series->labels[i].value;
		strbuf_addf(out, "%s%.*s", out->len ? "," : "", SLICE_FMT(value));
	}
}

/* Each point is right, and together they are all there is. */
static void check_series(const struct query_source *source, const struct model *model,
			 const struct query *query, const struct selector *selector)
{
	struct query_range_params params = {
		.base = { .selector = selector,
			  .from_ns = query->from_ns,
			  .to_ns = query->to_ns + 1 },
		.step_ns = 1000000, /* the least allowed: one bucket or two */
		.sum_all = !*query->group_by,
	};
	struct query asked = *query;
	struct slice rest = slice_of(query->group_by);
	struct query_series_set set;
	int64_t sum = 0, expected = 0;

	asked.to_ns++;
	while (rest.len)
		params.base.group_by[params.base.group_by_count++] = slice_cut(rest, ',', &rest);
	assert_int_equal(query_series(source, &params, &set, NULL), 0);
	for (size_t i = 0; i < set.series_count; i++) {
		struct strbuf name = { 0 };

		line_name(query, &set.series[i], &name);
		assert_in_range(set.series[i].points_count, 1, 2);
		for (size_t at = 0; at < set.series[i].points_count; at++) {
			const struct query_point *point = &set.series[i].points[at];

			assert_int_equal(point->value,
					 naive_point(model, &asked, selector, strbuf_text(&name),
						     point->at_ns, point->at_ns + params.step_ns));
			sum += point->value;
		}
		strbuf_free(&name);
	}
	query_series_free(&set);
	for (size_t i = 0; i < model->count; i++)
		if (record_fits(&model->records[i], &asked, selector))
			expected += model->records[i].values[query->column];
	if (selector->type.delta)
		assert_int_equal(sum, expected);
}

/* A gauge that is read row by row has no event where a report has no row for the line. */
static bool is_by_rows(const struct query *query)
{
	return strstr(query->group_by, "thread") || strstr(query->group_by, "bytes") ||
	       strstr(query->group_by, "pod");
}

static void series_agree_with_the_model(void **state)
{
	struct model *model = mem_new(struct model);

	(void)state;
	random_state = 2;
	for (int i = 0; i < WORLDS; i++) {
		struct coded *coded;
		struct world world;

		make_world(&world, model);
		coded = coded_new(&world, "comm");
		for (int at = 0; at < QUESTIONS; at++) {
			struct query query = make_query();
			struct query_source source;
			struct selector selector;
			char text[160];

			snprintf(text, sizeof(text), "%s%s",
				 groups[query.group].types[query.column], query.matchers);
			assert_int_equal(selector_parse(slice_of(text), &selector, NULL), 0);
			if (selector.type.delta || !is_by_rows(&query)) {
				source = world_source(&world);
				check_series(&source, model, &query, &selector);
				query.to_ns++;
				source = plan_source(coded, &query, &selector);
				query.to_ns--;
				check_series(&source, model, &query, &selector);
			}
			selector_free(&selector);
		}
		coded_free(coded);
		world_free(&world);
	}
	free(model);
}

static void check_values(const struct query_source *source, const struct model *model,
			 const struct query *query, const struct selector *selector,
			 const char *name)
{
	struct slice *values = NULL;
	struct arena arena;
	size_t count = 0;

	arena_init(&arena, 0);
	assert_int_equal(query_label_values(source, selector, slice_of(name), query->from_ns,
					    query->to_ns, &arena, &values, &count, NULL),
			 0);
	for (size_t i = 0; i + 1 < count; i++)
		assert_true(slice_compare(values[i], values[i + 1]) < 0);
	for (size_t i = 0; i < model->count; i++) {
		const char *value = label_of(&model->records[i], slice_of(name));
		bool found = !*value || !record_fits(&model->records[i], query, selector);

		for (size_t at = 0; !found && at < count; at++)
			found = slice_is(values[at], value);
		assert_true(found);
	}
	/* No row carries a comm: there is nothing but what series have. */
	for (size_t at = 0; !strcmp(name, "comm") && at < count; at++) {
		bool found = false;

		for (size_t i = 0; !found && i < model->count; i++)
			found = slice_is(values[at], model->records[i].comm) &&
				record_fits(&model->records[i], query, selector);
		assert_true(found);
	}
	arena_free(&arena);
}

static void catalogues_list_what_the_model_has(void **state)
{
	static const char *const names[] = { "comm", "pod", "thread", "bytes" };
	struct model *model = mem_new(struct model);

	(void)state;
	random_state = 3;
	for (int i = 0; i < WORLDS; i++) {
		struct coded *coded;
		struct world world;

		make_world(&world, model);
		coded = coded_new(&world, "comm");
		for (int at = 0; at < QUESTIONS; at++) {
			struct query query = make_query();
			struct query_source source;
			struct selector selector;
			const char *name;
			char text[160];

			snprintf(text, sizeof(text), "%s%s",
				 groups[query.group].types[query.column], query.matchers);
			assert_int_equal(selector_parse(slice_of(text), &selector, NULL), 0);
			name = PICK(names);
			source = world_source(&world);
			check_values(&source, model, &query, &selector, name);
			source = coded_source(
				coded,
				&(struct coded_wanted){ query.from_ns, query.to_ns, false, false });
			check_values(&source, model, &query, &selector, name);
			selector_free(&selector);
		}
		coded_free(coded);
		world_free(&world);
	}
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees_agree_with_the_model),
		cmocka_unit_test(partitions_that_cannot_be_read_are_left_out_as_a_whole),
		cmocka_unit_test(diffs_hold_both_trees),
		cmocka_unit_test(series_agree_with_the_model),
		cmocka_unit_test(catalogues_list_what_the_model_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
