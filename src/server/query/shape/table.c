/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/shape/table.h"

#include <assert.h>

#include "base/order/heap.h"
#include "server/query/shape/table_int.h"

#define TABLE_PLACE_LINES UINT32_MAX	      /* look at the frame's lines */
#define TABLE_PLACE_LEFT_OUT (UINT32_MAX - 1) /* an address that cannot be among the rows shown */
#define MANY_ROWS ((size_t)1 << 20)
#define BITS_OF_FEW 16 /* of counters that bound what rows have */
#define BITS_OF_MANY 18
#define BOUNDED_LIMIT_MAX INDEXED_LIMIT_MAX /* with more rows to show, none is left out */

bool table_suffices(const struct query_params *params, const struct merge *merge)
{
	if (!params->rows_only || (params->filters && params->filters->count))
		return false;
	for (size_t i = 0; i < merge->tries_count; i++)
		for (size_t v = 0; v < merge->tries[i].values_count; v++)
			if (merge->tries[i].values[v].value < 0)
				return false;
	return true;
}

/* Nothing is known of the trie's frames. False when over budget. */
static bool make_places(struct table *table)
{
	const struct tables_view *view = &table->trie->view;

	table->place.view = NULL;
	if (table->places_capacity >= view->frames_count) {
		if (view->frames_count)
			memset(table->places, 0, view->frames_count * sizeof(*table->places));
		return true;
	}
	table->places =
		arena_new_array(&table->work->arena, struct table_frame, view->frames_count);
	table->places_capacity = table->places ? view->frames_count : 0;
	return table->places;
}

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	return row_key_equal(&((const struct table *)context)->rows[id].key, key);
}

uint32_t table_find_row(struct table *table, const struct row_key *key, uint64_t hash)
{
	uint32_t row = idmap_find(&table->rows_map, hash, row_equal, table, key);
	struct arena *arena = &table->work->arena;

	if (row != IDMAP_NONE)
		return row;
	if (!WORK_GROW(arena, table->rows, table->rows_count, table->rows_capacity) ||
	    !WORK_GROW(arena, table->cums, table->rows_count, table->cums_capacity))
		return NO_ROW;
	row = (uint32_t)table->rows_count++;
	table->rows[row] = (struct table_row){ .key = *key, .hash = hash };
	idmap_add(&table->rows_map, hash, row);
	return row;
}

static uint32_t row_of_function(struct table *table, uint32_t function)
{
	assert(function < table->names->functions_count);
	while (table->row_of_capacity <= function) {
		size_t before = table->row_of_capacity;

		table->row_of = work_grown(&table->work->arena, table->row_of,
					   sizeof(*table->row_of), before, &table->row_of_capacity);
		if (!table->row_of)
			return NO_ROW;
	}
	if (!table->row_of[function]) {
		const struct row_key key = { .name = table->names->functions[function].name };
		uint64_t hash = hash_bytes(key.name.data, key.name.len);

		table->row_of[function] = table_find_row(table, &key, row_key_hash(&key, hash)) + 1;
	}
	return table->row_of[function] - 1;
}

static uint32_t row_of_address(struct table *table, const struct frame *frame)
{
	uint64_t hash;
	struct row_key key = row_key_of_address(&table->place, &table->trie->view, frame, &hash);

	return table_find_row(table, &key, hash);
}

/* True if no row for that address can be shown. Callers of what is inlined are wanted all. */
static bool is_left_out(struct table *table, const struct frame *frame)
{
	uint64_t hash;

	if (!table->bounds.least || table->with_edges)
		return false;
	row_key_of_address(&table->place, &table->trie->view, frame, &hash);
	return *bounds_counter(&table->bounds, hash) < table->bounds.least;
}

static uint32_t row_of_line(struct table *table, const struct frame *frame,
			    const struct name_line *line)
{
	return line->function == NAME_BY_ADDRESS ? row_of_address(table, frame)
						 : row_of_function(table, line->function);
}

struct sum *table_item(struct table *table, uint32_t item)
{
	while (table->items_capacity <= item) {
		size_t before = table->items_capacity;

		table->items = work_grown(&table->work->arena, table->items, sizeof(*table->items),
					  before, &table->items_capacity);
		if (!table->items)
			return NULL;
	}
	return &table->items[item];
}

/* A node without a name, for the reason with that number. */
static bool meet_item(struct table *table, uint32_t item, uint64_t place, uint64_t end,
		      int64_t total)
{
	struct sum *sum = table_item(table, item);

	if (!sum)
		return false;
	table_add_once(&table->items[0], place, end, total);
	table_add_once(sum, place, end, total);
	return true;
}

static bool edge_equal(const void *context, uint32_t id, const void *key)
{
	const struct edge *a = &((const struct table *)context)->edges[id], *b = key;

	return a->caller == b->caller && a->callee == b->callee;
}

/* NULL when over budget. */
static struct edge *edge_of(struct table *table, uint32_t caller, uint32_t callee)
{
	struct edge made = { .caller = caller, .callee = callee, .inlined = true };
	uint64_t hash = hash_mix(hash_mix(0, caller), callee);
	uint32_t id = idmap_find(&table->edges_map, hash, edge_equal, table, &made);

	assert(caller < table->rows_count && callee < table->rows_count);
	assert(table->edges_count <= table->edges_capacity);
	if (id != IDMAP_NONE)
		return &table->edges[id];
	if (!WORK_GROW(&table->work->arena, table->edges, table->edges_count,
		       table->edges_capacity))
		return NULL;
	id = (uint32_t)table->edges_count++;
	table->edges[id] = made;
	idmap_add(&table->edges_map, hash, id);
	return &table->edges[id];
}

bool table_meet_edge(struct table *table, uint32_t caller, uint32_t row, bool inlined,
		     uint64_t place, uint64_t end)
{
	struct edge *edge;

	if (!table->rows[row].has_inlined || caller == NO_ROW || caller == row)
		return true;
	edge = edge_of(table, caller, row);
	if (!edge)
		return false;
	if (place >= edge->until) {
		edge->inlined &= inlined;
		edge->until = end;
	}
	return true;
}

/* The lines of a node's frame, outermost first. */
static bool meet_lines(struct table *table, uint32_t node, uint64_t place, uint64_t end)
{
	const struct node *at = &table->trie->view.nodes[node];
	const struct frame *frame = &table->trie->view.frames[at->frame];
	const struct name_chain *chain = name_frame(table->names, at->frame);
	uint32_t caller = table->preorder.nodes[at->parent].mark;

	assert(node < table->trie->view.nodes_count);
	for (uint32_t i = chain ? chain->line_count : 0; i > 0; i--) {
		const struct name_line *line = &table->names->lines[chain->line_first + i - 1];
		uint32_t row = row_of_line(table, frame, line);

		if (row == NO_ROW)
			return false;
		table->rows[row].has_inlined |= line->inlined;
		table->any_inlined |= line->inlined;
		if (!table->with_edges)
			table_add_once(&table->cums[row], place, end,
				       table->preorder.nodes[node].total);
		else if (!table_meet_edge(table, caller, row, line->inlined, place, end))
			return false;
		caller = row;
	}
	table->preorder.nodes[node].mark = caller;
	return chain;
}

/* What the frame means; false when over budget. */
static bool find_place(struct table *table, uint32_t frame, struct table_frame *at_frame)
{
	const struct name_chain *chain = name_frame(table->names, frame);
	const struct name_line *line;
	uint32_t row;

	assert(frame < table->trie->view.frames_count);
	if (!chain)
		return false;
	line = &table->names->lines[chain->line_first];
	*at_frame = (struct table_frame){ .row = TABLE_PLACE_LINES };
	if (chain->line_count > 1 || line->inlined)
		return true;
	if (line->function == NAME_BY_ADDRESS &&
	    is_left_out(table, &table->trie->view.frames[frame])) {
		*at_frame = (struct table_frame){ TABLE_PLACE_LEFT_OUT,
						  name_line_missing(table->names, line) };
		return true;
	}
	row = row_of_line(table, &table->trie->view.frames[frame], line);
	*at_frame = (struct table_frame){ row + 1, name_line_missing(table->names, line) };
	return row != NO_ROW;
}

static bool meet_node(struct table *table, uint32_t node, uint64_t place)
{
	const struct node *at = &table->trie->view.nodes[node];
	struct table_frame *at_frame = &table->places[at->frame];
	uint64_t end = place + table->preorder.nodes[node].size;
	uint32_t row;

	assert(node < table->trie->view.nodes_count);
	if (!at_frame->row && !find_place(table, at->frame, at_frame))
		return false;
	if (at_frame->row == TABLE_PLACE_LINES)
		return meet_lines(table, node, place, end);
	if (at_frame->row == TABLE_PLACE_LEFT_OUT) {
		table->preorder.nodes[node].mark = NO_ROW;
		return meet_item(table, at_frame->item, place, end,
				 table->preorder.nodes[node].total);
	}
	row = at_frame->row - 1;
	table->preorder.nodes[node].mark = row;
	if (table->with_edges)
		return table_meet_edge(table, table->preorder.nodes[at->parent].mark, row, false,
				       place, end);
	table_add_once(&table->cums[row], place, end, table->preorder.nodes[node].total);
	return !at_frame->item ||
	       meet_item(table, at_frame->item, place, end, table->preorder.nodes[node].total);
}

static int walk_trie(struct table *table, const struct merge_trie *trie, struct err *err)
{
	uint32_t count = trie->view.nodes_count;
	int rc = name_view(table->names, &trie->view, err);

	assert(trie->view.nodes_count > 0);
	table->trie = trie;
	if (rc)
		return rc;
	if (!preorder_make(&table->preorder, &table->work->arena, trie) || !make_places(table))
		return work_over_budget(table->work, err);
	table->preorder.nodes[0].mark = NO_ROW;
	for (uint32_t place = 1; !rc && place < count; place++) {
		uint32_t node = preorder_node(&table->preorder, place);

		if (!table->preorder.nodes[node].total)
			continue;
		if (!meet_node(table, node, table->begin + place))
			return work_over_budget(table->work, err);
		rc = work_tick(table->work, 4, err);
	}
	for (size_t i = 0; !rc && !table->with_edges && i < trie->values_count; i++) {
		uint32_t row = table->preorder.nodes[trie->values[i].stack].mark;

		if (row != NO_ROW)
			table->rows[row].flat =
				work_add(table->rows[row].flat, trie->values[i].value);
		if (trie->values[i].stack &&
		    table->places[trie->view.nodes[trie->values[i].stack].frame].item)
			table->unnamed_flat = work_add(table->unnamed_flat, trie->values[i].value);
	}
	if (!table->with_edges)
		table->total = work_add(table->total, table->preorder.nodes[0].total);
	table->begin += count;
	return rc;
}

/* Sums the flat values of named rows and of frames that are addresses. */
static int sum_flats(struct table *table, const struct merge_trie *trie, struct err *err)
{
	assert(trie->values || !trie->values_count);
	for (size_t i = 0; i < trie->values_count; i++) {
		const struct merge_value *value = &trie->values[i];
		uint32_t frame = trie->view.nodes[value->stack].frame, row;
		const struct name_chain *chain;
		const struct name_line *line;
		int rc = work_tick(table->work, 4, err);

		if (rc)
			return rc;
		if (!value->stack)
			continue;
		chain = name_frame(table->names, frame);
		if (!chain)
			return work_over_budget(table->work, err);
		line = &table->names->lines[chain->line_first];
		if (line->function == NAME_BY_ADDRESS) {
			table->bounds.flats[frame] =
				work_add(table->bounds.flats[frame], value->value);
			continue;
		}
		row = row_of_function(table, line->function);
		if (row == NO_ROW)
			return work_over_budget(table->work, err);
		table->rows[row].least = work_add(table->rows[row].least, value->value);
	}
	return 0;
}

/* A heap of the `count` largest values, with the smallest on top; zeros at first. */
static void replace_least(int64_t *largest, size_t count, int64_t value)
{
	largest[0] = value;
	heap_sink(largest, count, 0, a, b, a < b);
}

bool bounds_note(struct table *table, const struct row_key *key, uint64_t hash, int64_t flat)
{
	struct bounds *bounds = &table->bounds;

	if (flat <= bounds->largest[0])
		return true;
	replace_least(bounds->largest, bounds->largest_count, flat);
	if (!WORK_GROW(&table->work->arena, bounds->candidates, bounds->candidates_count,
		       bounds->candidates_capacity))
		return false;
	bounds->candidates[bounds->candidates_count++] = (struct candidate){ *key, hash, flat };
	return true;
}

/* The frames' sums into the counters. False when over budget. */
static bool take_flats(struct table *table, const struct merge_trie *trie)
{
	struct bounds *bounds = &table->bounds;

	for (uint32_t i = 0; i < trie->view.frames_count; i++) {
		int64_t flat = bounds->flats[i], *counter;
		struct row_key key;
		uint64_t hash;

		if (!flat)
			continue;
		bounds->flats[i] = 0;
		key = row_key_of_address(&table->place, &trie->view, &trie->view.frames[i], &hash);
		counter = bounds_counter(bounds, hash);
		*counter = work_add(*counter, flat);
		if (!bounds_note(table, &key, hash, flat))
			return false;
	}
	return true;
}

static int bound_trie(struct table *table, const struct merge_trie *trie, struct err *err)
{
	struct bounds *bounds = &table->bounds;
	size_t count = trie->view.frames_count;
	int rc = name_view(table->names, &trie->view, err);

	table->trie = trie;
	table->place.view = NULL;
	if (!rc && bounds->flats_capacity < count) {
		bounds->flats = arena_new_array(&table->work->arena, int64_t, count);
		bounds->flats_capacity = count;
		rc = bounds->flats ? 0 : work_over_budget(table->work, err);
	}
	if (!rc)
		rc = sum_flats(table, trie, err);
	if (!rc && !take_flats(table, trie))
		rc = work_over_budget(table->work, err);
	return rc;
}

/* Finds the smallest lower bound among the largest rows so far; 0: there are too few rows. */
static void rank_bounds(struct table *table)
{
	struct bounds *bounds = &table->bounds;

	memset(bounds->largest, 0, bounds->largest_count * sizeof(*bounds->largest));
	for (size_t i = 0; i < table->rows_count; i++)
		if (table->rows[i].least > bounds->largest[0])
			replace_least(bounds->largest, bounds->largest_count, table->rows[i].least);
	bounds->least = bounds->largest[0];
}

/* Candidates become rows, and the largest of these tell what a row needs. */
static int find_least(struct table *table, struct err *err)
{
	struct bounds *bounds = &table->bounds;
	int rc;

	for (size_t i = 0; i < bounds->candidates_count; i++) {
		const struct candidate *candidate = &bounds->candidates[i];
		uint32_t row = table_find_row(table, &candidate->key, candidate->hash);

		if (row == NO_ROW)
			return work_over_budget(table->work, err);
		table->rows[row].least = work_add(table->rows[row].least, candidate->flat);
	}
	rank_bounds(table);
	rc = table_indexed_refine(table, err);
	rank_bounds(table);
	return rc;
}

static int find_bounds(struct table *table, const struct merge *merge, size_t limit,
		       struct err *err)
{
	struct bounds *bounds = &table->bounds;
	uint64_t pending = table->names->pending;
	size_t rows = 0;
	int rc = 0;

	if (!limit || limit > BOUNDED_LIMIT_MAX)
		return 0;
	for (size_t i = 0; i < table->indexed_count; i++)
		rows += table->indexed[i].index->flat_rows_count;
	bounds->bits = rows > MANY_ROWS ? BITS_OF_MANY : BITS_OF_FEW;
	bounds->most = arena_new_array(&table->work->arena, int64_t, (size_t)1 << bounds->bits);
	bounds->largest = arena_new_array(&table->work->arena, int64_t, limit);
	bounds->largest_count = limit;
	if (!bounds->most || !bounds->largest)
		return work_over_budget(table->work, err);
	for (size_t i = 0; !rc && i < merge->tries_count; i++)
		rc = bound_trie(table, &merge->tries[i], err);
	table->names->pending = pending; /* they are asked for again */
	for (size_t i = 0; !rc && i < table->rows_count; i++) {
		int64_t *counter = bounds_counter(bounds, table->rows[i].hash);

		*counter = work_add(*counter, table->rows[i].least);
	}
	if (!rc)
		rc = table_indexed_bounds(table, err);
	return rc ? rc : find_least(table, err);
}

/* Finds the callers of functions that are inlined somewhere, and whether they are so there. */
static int walk_edges(struct table *table, const struct merge *merge, struct err *err)
{
	uint64_t pending = table->names->pending;
	int rc = 0;

	table->with_edges = true;
	for (size_t i = 0; !rc && i < merge->tries_count; i++)
		rc = walk_trie(table, &merge->tries[i], err);
	if (!rc)
		rc = table_indexed_edges(table, err);
	for (size_t i = 0; i < table->edges_count; i++) {
		struct table_row *row = &table->rows[table->edges[i].callee];

		row->inlined |= table->edges[i].inlined;
		row->called |= !table->edges[i].inlined;
	}
	table->names->pending = pending; /* names were asked for twice */
	return rc;
}

/* The smallest flat value among the `limit` largest; 0: there is no limit. */
static int64_t least_shown(const struct table *table, size_t limit, struct arena *arena)
{
	int64_t *heap = NULL;

	if (limit && limit < table->rows_count)
		heap = arena_new_array(arena, int64_t, limit);
	if (!heap)
		return 0;
	/* No value is negative: a heap of zeros is one of the smallest. */
	for (size_t i = 0; i < table->rows_count; i++)
		if (table->rows[i].flat > heap[0])
			replace_least(heap, limit, table->rows[i].flat);
	return heap[0];
}

/* Those that can be among the first `limit`: names decide between equal values. */
static int find_shown(struct table *table, size_t limit, struct err *err)
{
	int64_t least = least_shown(table, limit, &table->work->arena);

	table->shown = arena_new_array(&table->work->arena, uint32_t, table->rows_count);
	if (!table->shown)
		return work_over_budget(table->work, err);
	for (size_t i = 0; i < table->rows_count; i++)
		if (table->rows[i].flat >= least)
			table->shown[table->shown_count++] = (uint32_t)i;
	return 0;
}

/* Once for values, of which those that are shown follow; once more for callers. */
static int walk(struct table *table, const struct merge *merge, size_t limit, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < merge->tries_count; i++)
		rc = walk_trie(table, &merge->tries[i], err);
	if (!rc)
		rc = table_indexed_flats(table, err);
	if (!rc)
		rc = find_shown(table, limit, err);
	if (!rc)
		rc = table_indexed_cums(table, err);
	if (!rc)
		rc = table_indexed_reasons(table, err);
	return rc || !table->any_inlined ? rc : walk_edges(table, merge, err);
}

static struct slice name_of(const struct table *table, const struct table_row *row,
			    struct strbuf *scratch, struct arena *into)
{
	if (!row->key.is_address) /* an index's name does not live as long as the answer */
		return table->indexed_count ? arena_copy(into, row->key.name) : row->key.name;
	strbuf_clear(scratch);
	name_address(scratch, row->key.name, row->key.address);
	return arena_copy(into, strbuf_slice(scratch));
}

static int show_rows(const struct table *table, struct tree *tree, struct err *err)
{
	struct strbuf scratch = { 0 };

	tree->rows = arena_new_array(&tree->arena, struct tree_row, table->shown_count);
	for (size_t i = 0; tree->rows && i < table->shown_count; i++) {
		const struct table_row *row = &table->rows[table->shown[i]];

		tree->rows[tree->rows_count++] =
			(struct tree_row){ name_of(table, row, &scratch, &tree->arena), row->flat,
					   table->cums[table->shown[i]].value, row->called,
					   row->inlined };
	}
	strbuf_free(&scratch);
	return tree->rows && !tree->arena.over_budget ? 0 : work_over_budget(table->work, err);
}

int table_into(struct tree *tree, struct work *work, const struct merge *merge,
	       struct name_table *names, size_t limit, struct err *err)
{
	struct table table = { .work = work,
			       .names = names,
			       .indexed = merge->indexed,
			       .indexed_count = merge->indexed_count };
	int rc;

	work_add_map(work, &table.rows_map);
	work_add_map(work, &table.edges_map);
	names->by_address = true;
	rc = find_bounds(&table, merge, limit, err);
	if (!rc)
		rc = walk(&table, merge, limit, err);
	if (!rc)
		rc = show_rows(&table, tree, err);
	tree->total = table.total;
	for (size_t i = 0; i < names->unresolved.count && i + 1 < table.items_capacity; i++)
		names->unresolved.items[i].value = table.items[i + 1].value;
	if (table.items_capacity)
		tree->unresolved_value = table.items[0].value;
	tree->unresolved_leaf = table.unnamed_flat;
	work_drop_map(work, &table.edges_map);
	work_drop_map(work, &table.rows_map);
	return rc;
}
