/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/table.h"

#include "base/hash.h"

#define NO_ROW UINT32_MAX

struct table_row {
	struct tree_row shown;
	uint64_t open_until; /* the place behind the node that it was met in last */
	bool has_inlined;    /* some line of it was inlined */
};

/* Who calls a function that is inlined somewhere. */
struct edge {
	uint32_t caller, callee;
	uint64_t open_until;
	bool inlined; /* wherever it occurs */
};

/*
 * Nodes are met in pre-order, whatever their order in the trie is: `open_until` then says whether
 * something is on the path already. Places go on from trie to trie.
 */
struct table {
	struct work *work;
	struct name_table *names;
	const struct merge_trie *trie;
	struct table_row *rows;
	size_t rows_count, rows_capacity;
	struct idmap rows_map; /* by name */
	uint32_t *row_of;      /* by function: its row + 1; 0 = not known yet */
	size_t row_of_capacity;
	uint64_t *item_until; /* of reasons why there are no names; 0 is for all together */
	size_t item_until_capacity;
	struct edge *edges;
	size_t edges_count, edges_capacity;
	struct idmap edges_map;
	bool any_inlined, with_edges;
	/* By node of the trie. */
	int64_t *totals;
	uint32_t *sizes, *places, *next, *order, *last_rows;
	size_t nodes_capacity;
	uint64_t begin; /* place of the trie's root */
	struct tree *tree;
};

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

static bool room_for_nodes(struct table *table, size_t count)
{
	struct arena *arena = &table->work->arena;

	if (table->nodes_capacity >= count)
		return true;
	table->totals = arena_new_array(arena, int64_t, count);
	table->sizes = arena_new_array(arena, uint32_t, count);
	table->places = arena_new_array(arena, uint32_t, count);
	table->next = arena_new_array(arena, uint32_t, count);
	table->order = arena_new_array(arena, uint32_t, count);
	table->last_rows = arena_new_array(arena, uint32_t, count);
	table->nodes_capacity = count;
	return !arena->over_budget;
}

/* Totals, and the order in which nodes are met: children behind their parent. */
static void lay_out(struct table *table)
{
	const struct merge_trie *trie = table->trie;
	const struct node *nodes = trie->view.nodes;
	uint32_t count = trie->view.nodes_count;

	memset(table->totals, 0, count * sizeof(*table->totals));
	for (uint32_t i = 0; i < count; i++)
		table->sizes[i] = 1;
	for (size_t i = 0; i < trie->values_count; i++) {
		int64_t *total = &table->totals[trie->values[i].stack];

		*total = work_add(*total, trie->values[i].value);
	}
	for (uint32_t i = count; i-- > 1;) {
		uint32_t parent = nodes[i].parent;

		table->totals[parent] = work_add(table->totals[parent], table->totals[i]);
		table->sizes[parent] += table->sizes[i];
	}
	table->next[0] = 1;
	for (uint32_t i = 1; i < count; i++) {
		uint32_t parent = nodes[i].parent, place = table->next[parent];

		table->places[i] = place;
		table->order[place] = i;
		table->next[parent] += table->sizes[i];
		table->next[i] = place + 1;
	}
}

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(((const struct table *)context)->rows[id].shown.name,
			   *(const struct slice *)key);
}

/* The row of a function; NO_ROW when over budget. */
static uint32_t find_row(struct table *table, uint32_t function)
{
	struct slice name = table->names->functions[function].name;
	uint64_t hash = hash_bytes(name.data, name.len);
	uint32_t row = idmap_find(&table->rows_map, hash, row_equal, table, &name);

	if (row != IDMAP_NONE)
		return row;
	if (!WORK_GROW(&table->work->arena, table->rows, table->rows_count, table->rows_capacity))
		return NO_ROW;
	row = (uint32_t)table->rows_count++;
	table->rows[row] = (struct table_row){ .shown.name = name };
	idmap_add(&table->rows_map, hash, row);
	return row;
}

static uint32_t row_of(struct table *table, uint32_t function)
{
	while (table->row_of_capacity <= function) {
		size_t before = table->row_of_capacity;

		table->row_of = work_grown(&table->work->arena, table->row_of,
					   sizeof(*table->row_of), before, &table->row_of_capacity);
		if (!table->row_of)
			return NO_ROW;
	}
	if (!table->row_of[function])
		table->row_of[function] = find_row(table, function) + 1;
	return table->row_of[function] - 1;
}

/* Whether this is the first on the path; then it is open until `end`. */
static bool open_until(uint64_t *open, uint64_t place, uint64_t end)
{
	if (place < *open)
		return false;
	*open = end;
	return true;
}

/* A node whose name is missing, for the reason with that number. */
static bool note_unresolved(struct table *table, uint32_t item, uint64_t place, uint64_t end,
			    int64_t total)
{
	struct tree_unresolved *items = table->names->unresolved.items;

	while (table->item_until_capacity <= item) {
		size_t before = table->item_until_capacity;

		table->item_until =
			work_grown(&table->work->arena, table->item_until,
				   sizeof(*table->item_until), before, &table->item_until_capacity);
		if (!table->item_until)
			return false;
	}
	if (open_until(&table->item_until[0], place, end))
		table->tree->unresolved_value = work_add(table->tree->unresolved_value, total);
	if (open_until(&table->item_until[item], place, end))
		items[item - 1].value = work_add(items[item - 1].value, total);
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

/* A line of a node at `place`, called by `caller`. False when over budget. */
static bool meet_line(struct table *table, const struct name_line *line, uint32_t row_id,
		      uint32_t caller, uint64_t place, uint64_t end, int64_t total)
{
	struct table_row *row = &table->rows[row_id];
	uint32_t item = table->names->functions[line->function].unresolved;
	struct edge *edge;

	if (!table->with_edges) {
		row->has_inlined |= line->inlined;
		table->any_inlined |= line->inlined;
		if (open_until(&row->open_until, place, end))
			row->shown.cum = work_add(row->shown.cum, total);
		return !item || note_unresolved(table, item, place, end, total);
	}
	if (!row->has_inlined || caller == NO_ROW || caller == row_id)
		return true;
	edge = edge_of(table, caller, row_id);
	if (edge && open_until(&edge->open_until, place, end))
		edge->inlined &= line->inlined;
	return edge;
}

static bool meet_node(struct table *table, uint32_t node)
{
	const struct node *at = &table->trie->view.nodes[node];
	const struct name_chain *chain = name_frame(table->names, at->frame);
	uint64_t place = table->begin + table->places[node], end = place + table->sizes[node];
	uint32_t caller = table->last_rows[at->parent];

	if (!chain)
		return false;
	for (uint32_t i = chain->line_count; i > 0; i--) {
		const struct name_line *line = &table->names->lines[chain->line_first + i - 1];
		uint32_t row = row_of(table, line->function);

		if (row == NO_ROW ||
		    !meet_line(table, line, row, caller, place, end, table->totals[node]))
			return false;
		caller = row;
	}
	table->last_rows[node] = caller;
	return true;
}

static int walk_trie(struct table *table, const struct merge_trie *trie, struct err *err)
{
	uint32_t count = trie->view.nodes_count;
	int rc = name_view(table->names, &trie->view, err);

	table->trie = trie;
	if (rc)
		return rc;
	if (!room_for_nodes(table, count))
		return work_over_budget(table->work, err);
	lay_out(table);
	table->last_rows[0] = NO_ROW;
	for (uint32_t place = 1; !rc && place < count; place++) {
		uint32_t node = table->order[place];

		if (!table->totals[node])
			continue;
		if (!meet_node(table, node))
			return work_over_budget(table->work, err);
		rc = work_tick(table->work, 4, err);
	}
	for (size_t i = 0; !rc && !table->with_edges && i < trie->values_count; i++) {
		uint32_t row = table->last_rows[trie->values[i].stack];

		if (row != NO_ROW)
			table->rows[row].shown.flat =
				work_add(table->rows[row].shown.flat, trie->values[i].value);
	}
	if (!table->with_edges)
		table->tree->total = work_add(table->tree->total, table->totals[0]);
	table->begin += count;
	return rc;
}

/* Once for values; once more for who calls and who inlines, if anything is inlined. */
static int walk(struct table *table, const struct merge *merge, struct err *err)
{
	uint64_t pending;
	int rc = 0;

	for (size_t i = 0; !rc && i < merge->tries_count; i++)
		rc = walk_trie(table, &merge->tries[i], err);
	if (rc || !table->any_inlined)
		return rc;
	table->with_edges = true;
	pending = table->names->pending;
	for (size_t i = 0; !rc && i < merge->tries_count; i++)
		rc = walk_trie(table, &merge->tries[i], err);
	for (size_t i = 0; i < table->edges_count; i++) {
		struct tree_row *row = &table->rows[table->edges[i].callee].shown;

		row->inlined |= table->edges[i].inlined;
		row->called |= !table->edges[i].inlined;
	}
	table->names->pending = pending; /* names were asked for twice */
	return rc;
}

int table_into(struct tree *tree, struct work *work, const struct merge *merge,
	       struct name_table *names, struct err *err)
{
	struct table table = { .work = work, .names = names, .tree = tree };
	int rc;

	work_add_map(work, &table.rows_map);
	work_add_map(work, &table.edges_map);
	rc = walk(&table, merge, err);
	if (!rc) {
		tree->rows = arena_new_array(&tree->arena, struct tree_row, table.rows_count);
		if (!tree->rows)
			rc = work_over_budget(work, err);
	}
	for (size_t i = 0; !rc && i < table.rows_count; i++)
		tree->rows[tree->rows_count++] = table.rows[i].shown;
	work_drop_map(work, &table.edges_map);
	work_drop_map(work, &table.rows_map);
	return rc;
}
