/* SPDX-License-Identifier: Apache-2.0 */
/* report - functions as a table, a list and a call graph; and what a profile is made of. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/arrow.h"
#include "codec/wire/pb.h"
#include "server/serve/parca/report.h"
#include "server/query/tree/report_functions.h"
#include "server/serve/parca/report_texts.h"

#define NODE_ID_BYTES 24

/* Table. */

struct text_column {
	struct report_texts texts;
	int32_t *values;
	uint8_t *valid;
};

static void set_text(struct text_column *column, size_t row, struct slice text)
{
	column->valid[row] = text.len > 0;
	if (text.len)
		column->values[row] = report_text(&column->texts, text);
}

static struct arrow_column text_column_of(const char *name, const struct text_column *column)
{
	return (struct arrow_column){ .name = name,
				      .type = ARROW_TEXT_DICT,
				      .values = column->values,
				      .valid = column->valid,
				      .texts = column->texts.list,
				      .texts_count = column->texts.count };
}

enum { FILE_NAME, BUILD_ID, FUNCTION_NAME, SYSTEM_NAME, SOURCE_FILE, TEXT_COLUMNS };

struct table {
	const struct tree *tree;
	struct report_functions functions;
	struct arena arena;
	uint32_t *row; /* by function */
	struct text_column texts[TEXT_COLUMNS];
	uint64_t *address;
	uint8_t *has_address, *has_line;
	int64_t *line, *start_line, *cumulative, *flat, *cumulative_diff, *flat_diff;
	int32_t *caller_offsets, *callee_offsets;
	int64_t *callers, *callees;
};

static void fill_texts(struct table *table, size_t row, const struct tree_function *function)
{
	bool named = !function->is_address;
	struct slice none = { 0 };

	set_text(&table->texts[FILE_NAME], row, function->mapping);
	set_text(&table->texts[BUILD_ID], row, function->build_id);
	set_text(&table->texts[FUNCTION_NAME], row, named ? function->name : none);
	set_text(&table->texts[SYSTEM_NAME], row,
		 !named			     ? none
		 : function->system_name.len ? function->system_name
					     : function->name);
	set_text(&table->texts[SOURCE_FILE], row, function->file);
}

/* Counting sorts of the edges by callee (whose callers they are) and by caller. */
static void fill_edges(struct table *table)
{
	const struct report_functions *functions = &table->functions;

	for (size_t i = 0; i < functions->edges_count; i++) {
		table->caller_offsets[table->row[functions->edges[i].callee] + 1]++;
		table->callee_offsets[table->row[functions->edges[i].caller] + 1]++;
	}
	for (size_t i = 1; i <= functions->count; i++) {
		table->caller_offsets[i] += table->caller_offsets[i - 1];
		table->callee_offsets[i] += table->callee_offsets[i - 1];
	}
	for (size_t i = functions->edges_count; i-- > 0;) {
		uint32_t caller = table->row[functions->edges[i].caller];
		uint32_t callee = table->row[functions->edges[i].callee];

		table->callers[--table->caller_offsets[callee + 1]] = caller;
		table->callees[--table->callee_offsets[caller + 1]] = callee;
	}
	/* Each offset is now its row's begin: moved on by one they are the ends again. */
	for (size_t i = 0; i < functions->count; i++) {
		table->caller_offsets[i] = table->caller_offsets[i + 1];
		table->callee_offsets[i] = table->callee_offsets[i + 1];
	}
	table->caller_offsets[functions->count] = (int32_t)functions->edges_count;
	table->callee_offsets[functions->count] = (int32_t)functions->edges_count;
}

static void new_columns(struct table *table)
{
	size_t rows = table->functions.count + 2, edges = table->functions.edges_count + 1;
	struct arena *arena = &table->arena;

	for (int i = 0; i < TEXT_COLUMNS; i++) {
		table->texts[i].values = arena_new_array(arena, int32_t, rows);
		table->texts[i].valid = arena_new_array(arena, uint8_t, rows);
	}
	table->row = arena_new_array(arena, uint32_t, table->tree->functions_count);
	table->address = arena_new_array(arena, uint64_t, rows);
	table->has_address = arena_new_array(arena, uint8_t, rows);
	table->has_line = arena_new_array(arena, uint8_t, rows);
	table->line = arena_new_array(arena, int64_t, rows);
	table->start_line = arena_new_array(arena, int64_t, rows);
	table->cumulative = arena_new_array(arena, int64_t, rows);
	table->flat = arena_new_array(arena, int64_t, rows);
	table->cumulative_diff = arena_new_array(arena, int64_t, rows);
	table->flat_diff = arena_new_array(arena, int64_t, rows);
	table->caller_offsets = arena_new_array(arena, int32_t, rows);
	table->callee_offsets = arena_new_array(arena, int32_t, rows);
	table->callers = arena_new_array(arena, int64_t, edges);
	table->callees = arena_new_array(arena, int64_t, edges);
}

/*
 * A function has the first address and line of its largest node, as Parca's have those that came
 * first: they say where to look, not that it was nowhere else.
 */
static void fill_places(struct table *table)
{
	const struct tree *tree = table->tree;
	uint32_t *largest = mem_new_array(uint32_t, tree->functions_count);

	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		uint32_t *of = &largest[tree->nodes[i].function];

		if (tree->places[i].is_known &&
		    (!*of || tree->nodes[i].total > tree->nodes[*of].total))
			*of = i;
	}
	for (size_t row = 0; row < table->functions.count; row++) {
		uint32_t id = table->functions.order[row];

		table->has_address[row] = largest[id] != 0;
		table->has_line[row] = largest[id] && !tree->functions[id].is_address;
		if (table->has_address[row])
			table->address[row] = tree->places[largest[id]].address;
		if (table->has_line[row])
			table->line[row] = tree->places[largest[id]].line;
	}
	free(largest);
}

static void fill_table(struct table *table)
{
	for (size_t row = 0; row < table->functions.count; row++) {
		uint32_t id = table->functions.order[row];
		const struct tree_function *function = &table->tree->functions[id];

		table->row[id] = (uint32_t)row;
		fill_texts(table, row, function);
		table->start_line[row] = function->start_line;
		table->cumulative[row] = table->functions.cumulative[id];
		table->flat[row] = table->functions.flat[id];
		table->cumulative_diff[row] = report_cumulative_diff(&table->functions, id);
		table->flat_diff[row] = report_flat_diff(&table->functions, id);
	}
	fill_places(table);
	fill_edges(table);
}

static void write_table(const struct table *table, struct strbuf *out)
{
	const struct arrow_column columns[] = {
		text_column_of("mapping_file", &table->texts[FILE_NAME]),
		text_column_of("mapping_build_id", &table->texts[BUILD_ID]),
		{ .name = "location_address",
		  .type = ARROW_UINT64,
		  .values = table->address,
		  .valid = table->has_address },
		{ .name = "location_line",
		  .type = ARROW_INT64,
		  .values = table->line,
		  .valid = table->has_line },
		{ .name = "function_startline", .type = ARROW_INT64, .values = table->start_line },
		text_column_of("function_name", &table->texts[FUNCTION_NAME]),
		text_column_of("function_system_name", &table->texts[SYSTEM_NAME]),
		text_column_of("function_file_name", &table->texts[SOURCE_FILE]),
		{ .name = "cumulative", .type = ARROW_INT64, .values = table->cumulative },
		{ .name = "cumulative_diff",
		  .type = ARROW_INT64,
		  .values = table->cumulative_diff },
		{ .name = "flat", .type = ARROW_INT64, .values = table->flat },
		{ .name = "flat_diff", .type = ARROW_INT64, .values = table->flat_diff },
		{ .name = "callers",
		  .type = ARROW_INT64_LIST,
		  .offsets = table->caller_offsets,
		  .items = table->callers },
		{ .name = "callees",
		  .type = ARROW_INT64_LIST,
		  .offsets = table->callee_offsets,
		  .items = table->callees },
	};

	arrow_write(columns, sizeof(columns) / sizeof(columns[0]), table->functions.count, out);
}

void report_table_arrow(const struct tree *tree, struct strbuf *out)
{
	struct table table = { .tree = tree };
	struct strbuf record = { 0 };
	size_t begun;

	arena_init(&table.arena, 0); /* the query's budget bounds the tree */
	report_functions_make(tree, &table.functions);
	new_columns(&table);
	fill_table(&table);
	write_table(&table, &record);
	begun = pb_begin(out, 13); /* TableArrow{ record = 1; unit = 2 } */
	pb_put_bytes(out, 1, strbuf_slice(&record));
	pb_put_bytes(out, 2, tree->type.sample_unit);
	pb_end(out, begun);
	for (int i = 0; i < TEXT_COLUMNS; i++)
		report_texts_free(&table.texts[i].texts);
	report_functions_free(&table.functions);
	arena_free(&table.arena);
	strbuf_free(&record);
}

/* Lists. */

void report_meta(const struct tree_function *function, uint32_t number, struct strbuf *out)
{
	size_t meta = pb_begin(out, number), part = pb_begin(out, 1);

	if (function->is_address)
		pb_put_varint(out, 2, report_address(function->name));
	pb_end(out, part);
	if (function->mapping.len) {
		part = pb_begin(out, 2);
		pb_put_bytes(out, 5, function->mapping);
		pb_put_bytes(out, 6, function->build_id);
		pb_end(out, part);
	}
	if (!function->is_address) {
		part = pb_begin(out, 3);
		pb_put_varint(out, 2, function->start_line);
		pb_put_bytes(out, 3, function->name);
		pb_put_bytes(out, 4, function->system_name);
		pb_put_bytes(out, 5, function->file);
		pb_end(out, part);
	}
	pb_end(out, meta);
}

/* Top{ list = 1 { meta = 1; cumulative = 2; flat = 3; diff = 4 }; reported = 2; total = 3; unit = 4
 * } */
void report_top(const struct tree *tree, struct strbuf *out)
{
	struct report_functions functions;
	size_t begun = pb_begin(out, 7);

	report_functions_make(tree, &functions);
	for (size_t i = 0; i < functions.count; i++) {
		uint32_t id = functions.order[i];
		size_t node = pb_begin(out, 1);

		report_meta(&tree->functions[id], 1, out);
		pb_put_varint(out, 2, (uint64_t)functions.cumulative[id]);
		pb_put_varint(out, 3, (uint64_t)functions.flat[id]);
		pb_put_varint(out, 4, (uint64_t)report_cumulative_diff(&functions, id));
		pb_end(out, node);
	}
	pb_put_varint(out, 2, functions.count);
	pb_put_varint(out, 3, functions.count);
	pb_put_bytes(out, 4, tree->type.sample_unit);
	pb_end(out, begun);
	report_functions_free(&functions);
}

static void put_number_text(struct strbuf *out, uint32_t number, size_t value)
{
	char text[NODE_ID_BYTES];

	snprintf(text, sizeof(text), "%zu", value);
	pb_put_bytes(out, number, slice_of(text));
}

/*
 * Callgraph{ nodes = 1 { id = 1; meta = 2; cumulative = 3; flat = 4 };
 *            edges = 2 { id = 1; source = 2; target = 3; cumulative = 4 }; cumulative = 3 }
 */
void report_callgraph(const struct tree *tree, struct strbuf *out)
{
	struct report_functions functions;
	size_t begun = pb_begin(out, 8);

	report_functions_make(tree, &functions);
	for (size_t i = 0; i < functions.count; i++) {
		uint32_t id = functions.order[i];
		size_t node = pb_begin(out, 1);

		put_number_text(out, 1, id);
		report_meta(&tree->functions[id], 2, out);
		pb_put_varint(out, 3, (uint64_t)functions.cumulative[id]);
		pb_put_varint(out, 4, (uint64_t)functions.flat[id]);
		pb_end(out, node);
	}
	for (size_t i = 0; i < functions.edges_count; i++) {
		size_t edge = pb_begin(out, 2);

		put_number_text(out, 1, i + 1);
		put_number_text(out, 2, functions.edges[i].caller);
		put_number_text(out, 3, functions.edges[i].callee);
		pb_put_varint(out, 4, (uint64_t)functions.edges[i].value);
		pb_end(out, edge);
	}
	pb_put_varint(out, 3, (uint64_t)tree->total);
	pb_end(out, begun);
	report_functions_free(&functions);
}

/* Source{ record = 1; source = 2; unit = 3 } */
void report_source(const struct tree *tree, const struct lines *lines, struct slice text,
		   struct strbuf *out)
{
	size_t rows = 0, begun, row = 0;
	struct strbuf record = { 0 };
	struct text_column names = { 0 };
	int64_t *line, *cumulative, *flat;
	struct arena arena;

	arena_init(&arena, 0); /* the query's budget bounds the lines */
	for (size_t i = 0; i < lines->places_count; i++)
		rows += lines->places[i].values_count;
	names.values = arena_new_array(&arena, int32_t, rows + 1);
	names.valid = arena_new_array(&arena, uint8_t, rows + 1);
	line = arena_new_array(&arena, int64_t, rows + 1);
	cumulative = arena_new_array(&arena, int64_t, rows + 1);
	flat = arena_new_array(&arena, int64_t, rows + 1);
	for (size_t i = 0; i < lines->places_count; i++) {
		const struct lines_place *place = &lines->places[i];

		for (size_t at = 0; at < place->values_count; at++, row++) {
			set_text(&names, row, place->file);
			line[row] = (int64_t)place->values[at].at;
			cumulative[row] = place->values[at].total;
			flat[row] = place->values[at].self;
		}
	}
	const struct arrow_column columns[] = {
		text_column_of("filename", &names),
		{ .name = "line_number", .type = ARROW_INT64, .values = line },
		{ .name = "cumulative", .type = ARROW_INT64, .values = cumulative },
		{ .name = "flat", .type = ARROW_INT64, .values = flat },
	};

	arrow_write(columns, sizeof(columns) / sizeof(columns[0]), rows, &record);
	begun = pb_begin(out, 12);
	pb_put_bytes(out, 1, strbuf_slice(&record));
	pb_put_bytes(out, 2, text);
	pb_put_bytes(out, 3, tree->type.sample_unit);
	pb_end(out, begun);
	strbuf_free(&record);
	report_texts_free(&names.texts);
	arena_free(&arena);
}

/* ProfileMetadata{ mapping_files = 1; labels = 2 } */
void report_metadata(const struct tree *tree, const struct slice *labels, size_t labels_count,
		     struct strbuf *out)
{
	struct report_texts files = { 0 };
	size_t begun = pb_begin(out, 14);

	for (uint32_t f = 1; f < tree->functions_count; f++)
		if (tree->functions[f].mapping.len && !tree->functions[f].is_label)
			report_text(&files, tree->functions[f].mapping);
	for (size_t i = 0; i < files.count; i++)
		pb_put_bytes(out, 1, files.list[i]);
	for (size_t i = 0; i < labels_count; i++)
		pb_put_bytes(out, 2, labels[i]);
	pb_end(out, begun);
	report_texts_free(&files);
}
