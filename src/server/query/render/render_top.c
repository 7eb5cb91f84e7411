/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_top - the table of functions, as `go tool pprof -top -nodefraction=0 -edgefraction=0`.
 *
 * The rows of functions.h. Of a diff, values are what changed, and shares are of the base, as with
 * its -diff_base.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

#include "base/mem.h"
#include "base/printable.h"
#include "server/query/tree/functions.h"
#include "server/query/render/measure.h"
#include "server/query/render/render.h"
#include "server/query/work.h"

#define NO_ROW FUNCTIONS_NO_ROW

struct top_row {
	struct slice name;
	struct functions_value value;
	bool called, inlined; /* as in struct tree_row */
	uint32_t number;      /* of the functions' row */
};

struct top_edge {
	uint32_t caller, callee;
	uint32_t open;
	bool inlined; /* wherever it occurs */
};

struct top {
	const struct tree *tree;
	struct functions functions;
	struct top_row *rows;
	size_t rows_count;
	struct top_edge *edges;
	size_t edges_count, edges_capacity;
	struct idmap edge_map;
	struct top_step *path;
	size_t path_count;
	int64_t total;
};

/* A node on the path to the current one. */
struct top_step {
	uint32_t node;
	uint32_t row;  /* NO_ROW: a group, or the root */
	uint32_t edge; /* from the row above; NO_ROW: none */
};

static bool edge_equal(const void *context, uint32_t id, const void *key)
{
	const struct top_edge *a = &((const struct top *)context)->edges[id], *b = key;

	return a->caller == b->caller && a->callee == b->callee;
}

static uint32_t edge_of(struct top *top, uint32_t caller, uint32_t callee)
{
	struct top_edge made = { .caller = caller, .callee = callee, .inlined = true };
	uint64_t hash = hash_mix(hash_mix(0, caller), callee);
	uint32_t id = idmap_find(&top->edge_map, hash, edge_equal, top, &made);

	assert(top->edges_count <= top->edges_capacity);
	if (id != IDMAP_NONE)
		return id;
	mem_grow(top->edges, top->edges_count, top->edges_capacity);
	id = (uint32_t)top->edges_count++;
	top->edges[id] = made;
	idmap_add(&top->edge_map, hash, id);
	return id;
}

static void leave_until(struct top *top, uint32_t parent)
{
	while (top->path_count && top->path[top->path_count - 1].node != parent) {
		const struct top_step *step = &top->path[--top->path_count];

		if (step->edge != NO_ROW)
			top->edges[step->edge].open--;
	}
}

static void enter(struct top *top, uint32_t id)
{
	const struct tree_node *node = &top->tree->nodes[id];
	uint32_t row = top->functions.row_of[node->function];
	uint32_t caller = top->path_count ? top->path[top->path_count - 1].row : NO_ROW;
	struct top_step *step = &top->path[top->path_count++];

	assert(id < top->tree->nodes_count);
	*step = (struct top_step){ id, row, NO_ROW };
	if (row == NO_ROW || caller == NO_ROW || caller == row)
		return;
	step->edge = edge_of(top, caller, row);
	if (!top->edges[step->edge].open++)
		top->edges[step->edge].inlined &= node->inlined;
}

static void walk(struct top *top)
{
	const struct tree *tree = top->tree;

	top->path = mem_new_array(struct top_step, (size_t)tree->depth_max + 1);
	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		int64_t self = tree->nodes[i].self;

		leave_until(top, i ? tree->nodes[i].parent : NO_ROW);
		enter(top, i);
		top->total = work_add(top->total, self < 0 ? work_multiply(self, -1) : self);
	}
	/* Shares are of everything, whatever filters show. */
	top->total = work_add(top->total, tree->filtered < 0 ? work_multiply(tree->filtered, -1)
							     : tree->filtered);
	if (tree->base && work_add(tree->base_total, tree->base_filtered) > 0)
		top->total = work_add(tree->base_total, tree->base_filtered);
	for (size_t i = 0; i < top->edges_count; i++) {
		struct top_row *row = &top->rows[top->edges[i].callee];

		row->inlined |= top->edges[i].inlined;
		row->called |= !top->edges[i].inlined;
	}
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static int row_order(const void *left, const void *right)
{
	const struct top_row *a = left, *b = right;

	if (magnitude(a->value.flat) != magnitude(b->value.flat))
		return magnitude(a->value.flat) > magnitude(b->value.flat) ? -1 : 1;
	return slice_compare(a->name, b->name);
}

/* Sorts, and drops rows without a value and beyond the limit. */
static void sort_rows(struct top *top, size_t limit)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->rows_count; i++)
		if (top->rows[i].value.flat || top->rows[i].value.cum)
			top->rows[kept++] = top->rows[i];
	if (kept)
		qsort(top->rows, kept, sizeof(*top->rows), row_order);
	top->rows_count = limit && limit < kept ? limit : kept;
}

static struct slice shown_unit(const struct top *top)
{
	uint64_t smallest = 0;

	for (size_t i = 0; i < top->rows_count; i++) {
		const struct top_row *row = &top->rows[i];
		uint64_t value = magnitude(row->value.flat ? row->value.flat : row->value.cum);

		if (value && (!smallest || value < smallest))
			smallest = value;
	}
	return measure_unit_for((int64_t)smallest, top->total, top->tree->type.sample_unit);
}

static bool has_intervals(const struct tree *tree)
{
	return tree->intervals && tree->intervals->of.method != SIGNIFICANCE_NONE;
}

/* "1.20s..1.40s" */
static void print_interval(const struct top *top, const struct top_row *row,
			   enum comparison_what what, struct slice shown, struct strbuf *out)
{
	const struct significance_test *test =
		&top->tree->intervals->tests[(size_t)row->number * COMPARISON_WHATS + what];
	struct slice unit = top->tree->type.sample_unit;
	struct strbuf text = { 0 };

	assert(what < 2);
	measure_value(&text, llround(test->low), unit, shown);
	strbuf_add_text(&text, "..");
	measure_value(&text, llround(test->high), unit, shown);
	strbuf_addf(out, " %20s", strbuf_text(&text));
	strbuf_free(&text);
}

static void print_rows(const struct top *top, struct strbuf *out)
{
	struct slice unit = top->tree->type.sample_unit, shown = shown_unit(top);
	struct strbuf value = { 0 };
	int64_t sum = 0;

	for (size_t i = 0; i < top->rows_count; i++) {
		const struct top_row *row = &top->rows[i];

		sum = work_add(sum, row->value.flat);
		strbuf_clear(&value);
		measure_value(&value, row->value.flat, unit, shown);
		strbuf_addf(out, "%10s ", strbuf_text(&value));
		measure_percentage(out, row->value.flat, top->total);
		strbuf_add_byte(out, ' ');
		measure_percentage(out, sum, top->total);
		strbuf_clear(&value);
		measure_value(&value, row->value.cum, unit, shown);
		strbuf_addf(out, " %10s ", strbuf_text(&value));
		measure_percentage(out, row->value.cum, top->total);
		if (has_intervals(top->tree)) {
			print_interval(top, row, COMPARISON_SELF, shown, out);
			print_interval(top, row, COMPARISON_TOTAL, shown, out);
		}
		strbuf_add_text(out, "  ");
		printable_add(out, row->name);
		if (row->inlined)
			strbuf_add_text(out, row->called ? " (partial-inline)" : " (inline)");
		strbuf_add_byte(out, '\n');
	}
	strbuf_free(&value);
}

/* The rows as the query has made them. */
static void take_rows(struct top *top)
{
	const struct tree *tree = top->tree;

	top->total = tree->total;
	top->rows_count = tree->rows_count;
	top->rows = mem_new_array(struct top_row, top->rows_count);
	for (size_t i = 0; i < top->rows_count; i++) {
		const struct tree_row *row = &tree->rows[i];

		top->rows[i] = (struct top_row){
			.name = row->name,
			.value = { row->flat, row->cum },
			.called = row->called,
			.inlined = row->inlined,
		};
	}
}

static void make_rows(struct top *top)
{
	const struct tree *tree = top->tree;

	functions_make(&top->functions, tree);
	top->rows_count = top->functions.rows_count;
	top->rows = mem_new_array(struct top_row, top->rows_count);
	for (size_t i = 0; i < top->rows_count; i++) {
		const struct functions_row *row = &top->functions.rows[i];

		top->rows[i].name = row->name;
		top->rows[i].number = (uint32_t)i;
		top->rows[i].value = (struct functions_value){ row->value.flat - row->base.flat,
							       row->value.cum - row->base.cum };
	}
	walk(top);
}

void render_top(const struct tree *tree, size_t limit, struct strbuf *out)
{
	struct top top = { .tree = tree };

	if (tree->rows)
		take_rows(&top);
	else
		make_rows(&top);
	sort_rows(&top, limit);
	strbuf_add_text(out, "      flat  flat%   sum%        cum   cum%");
	if (has_intervals(tree))
		strbuf_add_text(out, "             flat 95%              cum 95%");
	strbuf_add_byte(out, '\n');
	print_rows(&top, out);
	free(top.rows);
	functions_free(&top.functions);
	free(top.edges);
	free(top.path);
	idmap_free(&top.edge_map);
}

/* The subtree of a group-by value as a tree; the caller frees its nodes. */
static struct tree part_of(const struct tree *tree, uint32_t group, uint32_t end)
{
	struct tree part = *tree;

	assert(group < end && end <= tree->nodes_count);
	part.nodes_count = end - group;
	part.nodes = mem_new_array(struct tree_node, part.nodes_count);
	for (uint32_t i = group; i < end; i++) {
		struct tree_node *node = &part.nodes[i - group];

		*node = tree->nodes[i];
		node->parent = i > group ? node->parent - group : 0;
		node->depth--;
	}
	part.intervals = NULL;
	part.total = tree->nodes[group].total;
	part.filtered = work_add(tree->filtered, tree->total - part.total);
	return part;
}

static void print_group(const struct tree *part, int64_t all, struct strbuf *out)
{
	struct strbuf value = { 0 };

	measure_value_auto(&value, part->total, part->type.sample_unit);
	if (out->len)
		strbuf_add_byte(out, '\n');
	printable_add(out, part->functions[part->nodes[0].function].name);
	strbuf_addf(out, ": %s ", strbuf_text(&value));
	measure_percentage(out, part->total, all);
	strbuf_add_byte(out, '\n');
	strbuf_free(&value);
}

void render_top_groups(const struct tree *tree, size_t limit, struct strbuf *out)
{
	uint32_t end;

	for (uint32_t group = 1; group < tree->nodes_count; group = end) {
		struct tree part;

		end = group + 1;
		while (end < tree->nodes_count && tree->nodes[end].depth > 1)
			end++;
		part = part_of(tree, group, end);
		print_group(&part, work_add(tree->total, tree->filtered), out);
		render_top(&part, limit, out);
		free(part.nodes);
	}
}
