/* SPDX-License-Identifier: Apache-2.0 */
/* report - the flame graph as Arrow columns, as Parca's UI and Grafana read them. */
#include "base/mem.h"
#include "codec/wire/arrow.h"
#include "codec/wire/pb.h"
#include "server/serve/parca/report.h"
#include "server/serve/parca/report_diff.h"
#include "server/serve/parca/report_texts.h"

#define COLUMNS_MAX 32u /* fixed ones and labels.NAME */
#define PERCENT 100.0

/* Which nodes are rows, in the order of the rows. */
struct rows {
	const struct tree *tree;
	const int64_t *timestamps; /* by node, or NULL */
	uint32_t *node;		   /* by row */
	uint32_t *row;		   /* by node; UINT32_MAX: trimmed */
	uint32_t *first_child;
	uint32_t *children; /* how many; they are neighbours */
	size_t count;
	int64_t trimmed;
	uint32_t height;
};

/* What decides whether a node is shown: of a diff, the larger side. */
static int64_t size_of(const struct tree *tree, uint32_t node)
{
	int64_t total = tree->nodes[node].total;

	return tree->base && tree->base[node].total > total ? tree->base[node].total : total;
}

/* Children of all nodes of the tree, breadth first, without those that are too small. */
static void choose_rows(struct rows *rows, double trim_percent)
{
	const struct tree *tree = rows->tree;
	uint32_t *next = mem_new_array(uint32_t, tree->nodes_count + 1);  /* sibling */
	uint32_t *child = mem_new_array(uint32_t, tree->nodes_count + 1); /* first */

	for (uint32_t i = tree->nodes_count; i-- > 1;) {
		next[i] = child[tree->nodes[i].parent];
		child[tree->nodes[i].parent] = i;
	}
	rows->node[rows->count++] = 0;
	for (size_t r = 0; r < rows->count; r++) {
		const struct tree_node *node = &tree->nodes[rows->node[r]];
		double least = (double)size_of(tree, rows->node[r]) * trim_percent / PERCENT;

		rows->first_child[r] = (uint32_t)rows->count;
		if (node->depth + 1 > rows->height)
			rows->height = node->depth + 1;
		for (uint32_t c = child[rows->node[r]]; c; c = next[c]) {
			if (trim_percent > 0 && (double)size_of(tree, c) <= least) {
				rows->trimmed += tree->nodes[c].total;
				continue;
			}
			rows->row[c] = (uint32_t)rows->count;
			rows->node[rows->count++] = c;
			rows->children[r]++;
		}
	}
	free(next);
	free(child);
}

struct table {
	struct arrow_column columns[COLUMNS_MAX];
	size_t count;
	struct arena arena;
	size_t rows;
};

static struct arrow_column *add_column(struct table *table, const char *name, enum arrow_type type)
{
	struct arrow_column *column = &table->columns[table->count++];

	*column = (struct arrow_column){ .name = name, .type = type };
	return column;
}

static void *new_values(struct table *table, size_t width)
{
	return arena_alloc_array(&table->arena, table->rows + 1, width);
}

/* A column in the narrowest type that holds its numbers. */
static struct arrow_column *add_narrow(struct table *table, const char *name,
				       const uint64_t *numbers)
{
	void *values = new_values(table, sizeof(uint64_t));
	enum arrow_type type = arrow_narrow_unsigned(numbers, table->rows, values);
	struct arrow_column *column = add_column(table, name, type);

	column->values = values;
	return column;
}

/* A text per row; rows without one are null. */
static void add_texts(struct table *table, const char *name, const struct rows *rows,
		      struct slice (*text_of)(const struct tree_function *function))
{
	struct report_texts texts = { 0 };
	int32_t *values = new_values(table, sizeof(*values));
	uint8_t *valid = new_values(table, 1);
	struct arrow_column *column = add_column(table, name, ARROW_BINARY_DICT);

	for (size_t r = 0; r < table->rows; r++) {
		const struct tree *tree = rows->tree;
		uint32_t node = rows->node[r];
		struct slice text = node ? text_of(&tree->functions[tree->nodes[node].function])
					 : (struct slice){ 0 };

		valid[r] = text.len > 0;
		if (text.len)
			values[r] = report_text(&texts, text);
	}
	column->values = values;
	column->valid = valid;
	column->texts = arena_new_array(&table->arena, struct slice, texts.count + 1);
	memcpy((void *)(uintptr_t)column->texts, texts.list, texts.count * sizeof(*texts.list));
	column->texts_count = texts.count;
	report_texts_free(&texts);
}

static struct slice name_text(const struct tree_function *function)
{
	if (function->is_address || function->is_label)
		return (struct slice){ 0 };
	return function->name;
}

static struct slice system_name_text(const struct tree_function *function)
{
	if (function->is_address || function->is_label)
		return (struct slice){ 0 };
	return function->system_name.len ? function->system_name : function->name;
}

static struct slice file_text(const struct tree_function *function)
{
	return function->file;
}

static struct slice mapping_text(const struct tree_function *function)
{
	struct slice none = { 0 };

	return function->is_label ? none : function->mapping;
}

static struct slice build_id_text(const struct tree_function *function)
{
	struct slice none = { 0 };

	return function->is_label ? none : function->build_id;
}

static void add_flags(struct table *table, const char *name, const struct rows *rows,
		      bool (*flag_of)(const struct tree *tree, uint32_t node))
{
	uint8_t *values = new_values(table, 1);

	for (size_t r = 0; r < table->rows; r++)
		values[r] = flag_of(rows->tree, rows->node[r]);
	add_column(table, name, ARROW_BOOL)->values = values;
}

static bool is_label_row(const struct tree *tree, uint32_t node)
{
	return tree->functions[tree->nodes[node].function].is_label;
}

static bool is_inlined_row(const struct tree *tree, uint32_t node)
{
	return tree->nodes[node].inlined;
}

/* Numbers of a row; `numbers` is overwritten by each. */
typedef uint64_t row_number_f(const struct rows *rows, size_t row);

static void add_numbers(struct table *table, const char *name, const struct rows *rows,
			row_number_f *number, uint64_t *numbers)
{
	for (size_t r = 0; r < table->rows; r++)
		numbers[r] = number(rows, r);
	add_narrow(table, name, numbers);
}

static uint64_t start_line_of(const struct rows *rows, size_t row)
{
	const struct tree *tree = rows->tree;

	return tree->functions[tree->nodes[rows->node[row]].function].start_line;
}

static uint64_t cumulative_of(const struct rows *rows, size_t row)
{
	int64_t total = rows->tree->nodes[rows->node[row]].total;

	return total > 0 ? (uint64_t)total : 0;
}

static uint64_t flat_of(const struct rows *rows, size_t row)
{
	int64_t self = rows->tree->nodes[rows->node[row]].self;

	return self > 0 ? (uint64_t)self : 0;
}

static uint64_t depth_of(const struct rows *rows, size_t row)
{
	return rows->tree->nodes[rows->node[row]].depth;
}

/* The place of a row; in a flame chart, what names or distinguishes its functions. */
static struct tree_place place_of(const struct rows *rows, size_t row)
{
	const struct tree *tree = rows->tree;
	uint32_t node = rows->node[row];
	const struct tree_function *function = &tree->functions[tree->nodes[node].function];
	uint64_t address =
		function->is_address ? report_address(function->name) : function->address;

	if (tree->places)
		return tree->places[node];
	return (struct tree_place){ .address = address,
				    .is_known = address != 0,
				    .several_lines = true };
}

/* Null where a node's occurrences were at several. */
static void add_addresses(struct table *table, const struct rows *rows)
{
	struct arrow_column *column = add_column(table, "location_address", ARROW_UINT64);
	uint64_t *values = new_values(table, sizeof(*values));
	uint8_t *valid = new_values(table, 1);

	for (size_t r = 0; r < table->rows; r++) {
		const struct tree_place place = place_of(rows, r);

		valid[r] = place.is_known && !place.several_addresses;
		values[r] = valid[r] ? place.address : 0;
	}
	column->values = values;
	column->valid = valid;
}

/* Likewise, and where code has no name. */
static void add_lines(struct table *table, const struct rows *rows, uint64_t *numbers)
{
	const struct tree *tree = rows->tree;
	uint8_t *valid = new_values(table, 1);

	for (size_t r = 0; r < table->rows; r++) {
		const struct tree_place place = place_of(rows, r);
		uint32_t function = tree->nodes[rows->node[r]].function;

		valid[r] = place.is_known && !place.several_lines &&
			   !tree->functions[function].is_address;
		numbers[r] = valid[r] ? place.line : 0;
	}
	add_narrow(table, "location_line", numbers)->valid = valid;
}

static void add_children(struct table *table, const struct rows *rows)
{
	int32_t *offsets = new_values(table, sizeof(*offsets));
	uint32_t *items = new_values(table, sizeof(*items));
	struct arrow_column *column = add_column(table, "children", ARROW_UINT32_LIST);
	size_t count = 0;

	for (size_t r = 0; r < table->rows; r++) {
		for (uint32_t c = 0; c < rows->children[r]; c++)
			items[count++] = rows->first_child[r] + c;
		offsets[r + 1] = (int32_t)count;
	}
	column->offsets = offsets;
	column->items = items;
}

static void add_parents(struct table *table, const struct rows *rows)
{
	int32_t *values = new_values(table, sizeof(*values));

	for (size_t r = 1; r < table->rows; r++)
		values[r] = (int32_t)rows->row[rows->tree->nodes[rows->node[r]].parent];
	values[0] = -1;
	add_column(table, "parent", ARROW_INT32)->values = values;
}

/* Where a row begins: its parent's begin and what earlier siblings take up. */
static void add_offsets(struct table *table, const struct rows *rows, uint64_t *numbers)
{
	numbers[0] = 0;
	for (size_t r = 0; r < table->rows; r++) {
		uint64_t at = numbers[r];

		for (uint32_t c = 0; c < rows->children[r]; c++) {
			numbers[rows->first_child[r] + c] = at;
			at += cumulative_of(rows, rows->first_child[r] + c);
		}
	}
	add_narrow(table, "value_offset", numbers);
}

/* In the narrowest type that holds them all, the negative ones too. */
static void add_diff(struct table *table, const struct rows *rows)
{
	int64_t *numbers = new_values(table, sizeof(*numbers));
	void *values = new_values(table, sizeof(int64_t));

	for (size_t r = 0; r < table->rows; r++)
		numbers[r] = report_node_diff(rows->tree, rows->node[r]);
	add_column(table, "diff", arrow_narrow_signed(numbers, table->rows, values))->values =
		values;
}

static void add_timestamps(struct table *table, const struct rows *rows)
{
	int64_t *values = new_values(table, sizeof(*values));

	for (size_t r = 0; rows->timestamps && r < table->rows; r++)
		values[r] = rows->timestamps[rows->node[r]];
	add_column(table, "timestamp", ARROW_INT64)->values = values;
}

/* By row, the group that it stands for; -1: none. */
static int32_t *find_groups(struct table *table, const struct rows *rows)
{
	const struct tree *tree = rows->tree;
	int32_t *found = new_values(table, sizeof(*found));
	int32_t *first = arena_new_array(&table->arena, int32_t, tree->groups_count + 1);
	struct report_texts names = { 0 };

	for (uint32_t g = 0; g < tree->groups_count; g++) {
		size_t before = names.count;
		int32_t id = report_text(&names, tree->groups[g]);

		if (names.count > before)
			first[id] = (int32_t)g;
	}
	for (size_t r = 0; r < table->rows; r++) {
		uint32_t node = rows->node[r];
		size_t count = names.count;
		int32_t id = -1;

		if (is_label_row(tree, node))
			id = report_text(&names, tree->functions[tree->nodes[node].function].name);
		found[r] = id < 0 || names.count > count ? -1 : first[id];
	}
	report_texts_free(&names);
	return found;
}

/* The value of one group-by label, on the rows that stand for a group. */
static void add_label(struct table *table, const struct rows *rows, const int32_t *groups,
		      uint32_t label)
{
	const struct tree *tree = rows->tree;
	struct strbuf name = { 0 };
	int32_t *values = new_values(table, sizeof(*values));
	uint8_t *valid = new_values(table, 1);
	struct slice *texts = arena_new_array(&table->arena, struct slice, tree->groups_count + 1);
	struct arrow_column *column;

	strbuf_addf(&name, "labels.%.*s", SLICE_FMT(tree->group_names[label]));
	column = add_column(table, arena_copy(&table->arena, strbuf_slice(&name)).data,
			    ARROW_BINARY_DICT);
	strbuf_free(&name);
	for (uint32_t g = 0; g < tree->groups_count; g++)
		texts[g] = tree->group_values[g * tree->group_names_count + label];
	for (size_t r = 0; r < table->rows; r++) {
		if (groups[r] < 0)
			continue;
		values[r] = groups[r];
		valid[r] = texts[groups[r]].len > 0;
	}
	column->values = values;
	column->valid = valid;
	column->texts = texts;
	column->texts_count = tree->groups_count;
}

static void fill_table(struct table *table, const struct rows *rows)
{
	uint64_t *numbers = new_values(table, sizeof(*numbers));
	const int32_t *groups;

	add_flags(table, "labels_only", rows, is_label_row);
	add_addresses(table, rows);
	add_texts(table, "mapping_file", rows, mapping_text);
	add_texts(table, "mapping_build_id", rows, build_id_text);
	add_lines(table, rows, numbers);
	add_flags(table, "inlined", rows, is_inlined_row);
	add_numbers(table, "function_startline", rows, start_line_of, numbers);
	add_texts(table, "function_name", rows, name_text);
	add_texts(table, "function_system_name", rows, system_name_text);
	add_texts(table, "function_file_name", rows, file_text);
	add_children(table, rows);
	add_parents(table, rows);
	add_numbers(table, "cumulative", rows, cumulative_of, numbers);
	add_numbers(table, "flat", rows, flat_of, numbers);
	add_diff(table, rows);
	add_timestamps(table, rows);
	add_numbers(table, "depth", rows, depth_of, numbers);
	add_offsets(table, rows, numbers);
	if (!rows->tree->group_names_count)
		return;
	groups = find_groups(table, rows);
	for (uint32_t i = 0; i < rows->tree->group_names_count; i++)
		add_label(table, rows, groups, i);
}

/* FlamegraphArrow{ record = 1; unit = 2; height = 3; trimmed = 4 } */
static void put_report(const struct rows *rows, struct slice record, struct strbuf *out)
{
	size_t begun = pb_begin(out, 11);

	pb_put_bytes(out, 1, record);
	pb_put_bytes(out, 2, rows->tree->type.sample_unit);
	pb_put_varint(out, 3, rows->height);
	pb_put_varint(out, 4, (uint64_t)rows->trimmed);
	pb_end(out, begun);
}

void report_flamegraph_arrow(const struct tree *tree, double trim_percent,
			     const int64_t *timestamps, struct strbuf *out)
{
	struct table table = { 0 };
	struct rows rows = { .tree = tree, .timestamps = timestamps };
	struct strbuf record = { 0 };

	arena_init(&table.arena, 0); /* the query's budget bounds the tree */
	rows.node = arena_new_array(&table.arena, uint32_t, tree->nodes_count + 1);
	rows.row = arena_new_array(&table.arena, uint32_t, tree->nodes_count + 1);
	rows.first_child = arena_new_array(&table.arena, uint32_t, tree->nodes_count + 1);
	rows.children = arena_new_array(&table.arena, uint32_t, tree->nodes_count + 1);
	choose_rows(&rows, trim_percent);
	table.rows = rows.count;
	fill_table(&table, &rows);
	arrow_write(table.columns, table.count, table.rows, &record);
	put_report(&rows, strbuf_slice(&record), out);
	strbuf_free(&record);
	arena_free(&table.arena);
}
