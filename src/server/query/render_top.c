/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_top - the table of functions, as `go tool pprof -top -nodefraction=0 -edgefraction=0`.
 *
 * A row is a name: functions of one name in several binaries share it. Flat is what was spent in
 * the function itself, cum what was spent in it or below; on a recursive path only the outermost
 * occurrence counts. Group-by values are not functions and have no row.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/query/measure.h"
#include "server/query/render.h"
#include "server/query/work.h"

#define NO_ROW UINT32_MAX

struct top_row {
	struct slice name;
	int64_t flat, cum;
	uint32_t open;	      /* occurrences on the path to the current node */
	bool called, inlined; /* has callers that call it, that have it inlined */
};

struct top_edge {
	uint32_t caller, callee;
	uint32_t open;
	bool inlined; /* wherever it occurs */
};

struct top {
	const struct tree *tree;
	struct top_row *rows;
	size_t rows_count;
	uint32_t *row_of_function;
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

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(((const struct top *)context)->rows[id].name,
			   *(const struct slice *)key);
}

static void make_rows(struct top *top)
{
	const struct tree *tree = top->tree;
	struct idmap map = { 0 };

	top->rows = mem_new_array(struct top_row, tree->functions_count);
	top->row_of_function = mem_new_array(uint32_t, tree->functions_count);
	for (uint32_t i = 0; i < tree->functions_count; i++) {
		struct slice name = tree->functions[i].name;
		uint64_t hash = hash_bytes(name.data, name.len);
		uint32_t row;

		top->row_of_function[i] = NO_ROW;
		if (i == 0 || tree->functions[i].is_label)
			continue;
		row = idmap_find(&map, hash, row_equal, top, &name);
		if (row == IDMAP_NONE) {
			row = (uint32_t)top->rows_count++;
			top->rows[row].name = name;
			idmap_add(&map, hash, row);
		}
		top->row_of_function[i] = row;
	}
	idmap_free(&map);
}

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

		if (step->row != NO_ROW)
			top->rows[step->row].open--;
		if (step->edge != NO_ROW)
			top->edges[step->edge].open--;
	}
}

static void enter(struct top *top, uint32_t id)
{
	const struct tree_node *node = &top->tree->nodes[id];
	uint32_t row = top->row_of_function[node->function];
	uint32_t caller = top->path_count ? top->path[top->path_count - 1].row : NO_ROW;
	struct top_step *step = &top->path[top->path_count++];

	*step = (struct top_step){ id, row, NO_ROW };
	if (row == NO_ROW)
		return;
	top->rows[row].flat = work_add(top->rows[row].flat, node->self);
	if (!top->rows[row].open++)
		top->rows[row].cum = work_add(top->rows[row].cum, node->total);
	if (caller == NO_ROW || caller == row)
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

	if (magnitude(a->flat) != magnitude(b->flat))
		return magnitude(a->flat) > magnitude(b->flat) ? -1 : 1;
	return slice_compare(a->name, b->name);
}

/* Sorts, and drops rows without a value and beyond the limit. */
static void sort_rows(struct top *top, size_t limit)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->rows_count; i++)
		if (top->rows[i].flat || top->rows[i].cum)
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
		uint64_t value = magnitude(row->flat ? row->flat : row->cum);

		if (value && (!smallest || value < smallest))
			smallest = value;
	}
	return measure_unit_for((int64_t)smallest, top->total, top->tree->type.sample_unit);
}

static void print_rows(const struct top *top, struct strbuf *out)
{
	struct slice unit = top->tree->type.sample_unit, shown = shown_unit(top);
	struct strbuf value = { 0 };
	int64_t sum = 0;

	for (size_t i = 0; i < top->rows_count; i++) {
		const struct top_row *row = &top->rows[i];

		sum = work_add(sum, row->flat);
		strbuf_clear(&value);
		measure_value(&value, row->flat, unit, shown);
		strbuf_addf(out, "%10s ", strbuf_text(&value));
		measure_percentage(out, row->flat, top->total);
		strbuf_add_byte(out, ' ');
		measure_percentage(out, sum, top->total);
		strbuf_clear(&value);
		measure_value(&value, row->cum, unit, shown);
		strbuf_addf(out, " %10s ", strbuf_text(&value));
		measure_percentage(out, row->cum, top->total);
		strbuf_add_text(out, "  ");
		strbuf_add_slice(out, row->name);
		if (row->inlined)
			strbuf_add_text(out, row->called ? " (partial-inline)" : " (inline)");
		strbuf_add_byte(out, '\n');
	}
	strbuf_free(&value);
}

void render_top(const struct tree *tree, size_t limit, struct strbuf *out)
{
	struct top top = { .tree = tree };

	make_rows(&top);
	walk(&top);
	sort_rows(&top, limit);
	strbuf_add_text(out, "      flat  flat%   sum%        cum   cum%\n");
	print_rows(&top, out);
	free(top.rows);
	free(top.row_of_function);
	free(top.edges);
	free(top.path);
	idmap_free(&top.edge_map);
}
