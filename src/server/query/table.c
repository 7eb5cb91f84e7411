/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/table.h"

#include "base/hash.h"

#define NO_ROW UINT32_MAX
#define SPOT_LINES UINT32_MAX /* look at the frame's lines */

/* What something sums up in pre-order: it is on the path already before the place `until`. */
struct sum {
	uint64_t until;
	int64_t value;
};

/* A function, or an address, which gets its name when the row is shown. */
struct table_row {
	struct slice name; /* of an address: its binary */
	uint64_t address;
	int64_t flat;
	bool is_address;
	bool has_inlined;     /* some line of it was inlined */
	bool called, inlined; /* as in struct tree_row */
};

/* Who calls a function that is inlined somewhere. */
struct edge {
	uint32_t caller, callee;
	uint64_t until;
	bool inlined; /* wherever it occurs */
};

/* What a frame means when it is one line, not inlined. */
struct spot {
	uint32_t row;  /* + 1; 0 = not known yet; or SPOT_LINES */
	uint32_t item; /* why it has no name; 0: it has */
};

/*
 * Nodes are met in pre-order, whatever their order in the trie is: so it is known whether something
 * is on the path already. Places go on from trie to trie.
 */
struct table {
	struct work *work;
	struct name_table *names;
	const struct merge_trie *trie;
	struct table_row *rows;
	size_t rows_count, rows_capacity;
	struct sum *cums; /* by row */
	size_t cums_capacity;
	struct idmap rows_map; /* by name, or by binary and address */
	uint32_t *row_of;      /* by function: its row + 1; 0 = not known yet */
	size_t row_of_capacity;
	struct sum *items; /* by reason why there is no name; 0 is for all together */
	size_t items_capacity;
	struct edge *edges;
	size_t edges_count, edges_capacity;
	struct idmap edges_map;
	bool any_inlined, with_edges;
	struct spot *spots; /* by frame of the trie */
	size_t spots_capacity;
	/* By node of the trie. */
	int64_t *totals;
	uint32_t *sizes, *places, *next, *order, *last_rows;
	size_t nodes_capacity;
	uint64_t begin; /* place of the trie's root */
	int64_t total;
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

/* Room for what is known of the trie's nodes and frames. False when over budget. */
static bool make_room(struct table *table)
{
	const struct tables_view *view = &table->trie->view;
	struct arena *arena = &table->work->arena;

	if (table->nodes_capacity < view->nodes_count) {
		size_t count = view->nodes_count;

		table->totals = arena_new_array(arena, int64_t, count);
		table->sizes = arena_new_array(arena, uint32_t, count);
		table->places = arena_new_array(arena, uint32_t, count);
		table->next = arena_new_array(arena, uint32_t, count);
		table->order = arena_new_array(arena, uint32_t, count);
		table->last_rows = arena_new_array(arena, uint32_t, count);
		table->nodes_capacity = count;
	}
	if (table->spots_capacity < view->frames_count) {
		table->spots = arena_new_array(arena, struct spot, view->frames_count);
		table->spots_capacity = view->frames_count;
	} else if (view->frames_count) {
		memset(table->spots, 0, view->frames_count * sizeof(*table->spots));
	}
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
	const struct table_row *a = &((const struct table *)context)->rows[id], *b = key;

	return a->address == b->address && a->is_address == b->is_address &&
	       slice_equal(a->name, b->name);
}

/* Finds or adds; NO_ROW when over budget. */
static uint32_t find_row(struct table *table, const struct table_row *sought)
{
	uint64_t hash = hash_mix(hash_bytes(sought->name.data, sought->name.len), sought->address);
	uint32_t row = idmap_find(&table->rows_map, hash, row_equal, table, sought);
	struct arena *arena = &table->work->arena;

	if (row != IDMAP_NONE)
		return row;
	if (!WORK_GROW(arena, table->rows, table->rows_count, table->rows_capacity) ||
	    !WORK_GROW(arena, table->cums, table->rows_count, table->cums_capacity))
		return NO_ROW;
	row = (uint32_t)table->rows_count++;
	table->rows[row] = *sought;
	idmap_add(&table->rows_map, hash, row);
	return row;
}

static uint32_t row_of_function(struct table *table, uint32_t function)
{
	while (table->row_of_capacity <= function) {
		size_t before = table->row_of_capacity;

		table->row_of = work_grown(&table->work->arena, table->row_of,
					   sizeof(*table->row_of), before, &table->row_of_capacity);
		if (!table->row_of)
			return NO_ROW;
	}
	if (!table->row_of[function]) {
		const struct table_row sought = { .name = table->names->functions[function].name };

		table->row_of[function] = find_row(table, &sought) + 1;
	}
	return table->row_of[function] - 1;
}

/* Equal for addresses that are called the same. */
static uint32_t row_of_address(struct table *table, const struct frame *frame)
{
	struct slice mapping = tables_text(table->names->view, frame->mapping_file);
	struct table_row sought = { .name = name_binary_of(mapping),
				    .address = frame->address,
				    .is_address = true };

	if (slice_is(sought.name, "[anon]"))
		sought.address = 0; /* all are one */
	else if (sought.name.len > 2 && sought.name.data[0] == '[' &&
		 sought.name.data[sought.name.len - 1] == ']')
		sought.name = slice_from(sought.name.data + 1, sought.name.len - 2);
	return find_row(table, &sought);
}

static uint32_t row_of_line(struct table *table, const struct frame *frame,
			    const struct name_line *line)
{
	return line->function == NAME_BY_ADDRESS ? row_of_address(table, frame)
						 : row_of_function(table, line->function);
}

/* Adds the value of a node at `place` unless what it is added to is on the path already. */
static void add_once(struct sum *sum, uint64_t place, uint64_t end, int64_t value)
{
	if (place < sum->until)
		return;
	sum->until = end;
	sum->value = work_add(sum->value, value);
}

/* A node without a name, for the reason with that number. */
static bool meet_item(struct table *table, uint32_t item, uint64_t place, uint64_t end,
		      int64_t total)
{
	while (table->items_capacity <= item) {
		size_t before = table->items_capacity;

		table->items = work_grown(&table->work->arena, table->items, sizeof(*table->items),
					  before, &table->items_capacity);
		if (!table->items)
			return false;
	}
	add_once(&table->items[0], place, end, total);
	add_once(&table->items[item], place, end, total);
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

/* A node's row, called from another. False when over budget. */
static bool meet_edge(struct table *table, uint32_t caller, uint32_t row, bool inlined,
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
	uint32_t caller = table->last_rows[at->parent];

	for (uint32_t i = chain ? chain->line_count : 0; i > 0; i--) {
		const struct name_line *line = &table->names->lines[chain->line_first + i - 1];
		uint32_t row = row_of_line(table, frame, line);

		if (row == NO_ROW)
			return false;
		table->rows[row].has_inlined |= line->inlined;
		table->any_inlined |= line->inlined;
		if (!table->with_edges)
			add_once(&table->cums[row], place, end, table->totals[node]);
		else if (!meet_edge(table, caller, row, line->inlined, place, end))
			return false;
		caller = row;
	}
	table->last_rows[node] = caller;
	return chain;
}

/* What the frame means; false when over budget. */
static bool find_spot(struct table *table, uint32_t frame, struct spot *spot)
{
	const struct name_chain *chain = name_frame(table->names, frame);
	const struct name_line *line;
	uint32_t row;

	if (!chain)
		return false;
	line = &table->names->lines[chain->line_first];
	*spot = (struct spot){ .row = SPOT_LINES };
	if (chain->line_count > 1 || line->inlined)
		return true;
	row = row_of_line(table, &table->trie->view.frames[frame], line);
	*spot = (struct spot){ row + 1, line->function == NAME_BY_ADDRESS ? line->line : 0 };
	return row != NO_ROW;
}

static bool meet_node(struct table *table, uint32_t node)
{
	const struct node *at = &table->trie->view.nodes[node];
	struct spot *spot = &table->spots[at->frame];
	uint64_t place = table->begin + table->places[node], end = place + table->sizes[node];
	uint32_t row;

	if (!spot->row && !find_spot(table, at->frame, spot))
		return false;
	if (spot->row == SPOT_LINES)
		return meet_lines(table, node, place, end);
	row = spot->row - 1;
	table->last_rows[node] = row;
	if (table->with_edges)
		return meet_edge(table, table->last_rows[at->parent], row, false, place, end);
	add_once(&table->cums[row], place, end, table->totals[node]);
	return !spot->item || meet_item(table, spot->item, place, end, table->totals[node]);
}

static int walk_trie(struct table *table, const struct merge_trie *trie, struct err *err)
{
	uint32_t count = trie->view.nodes_count;
	int rc = name_view(table->names, &trie->view, err);

	table->trie = trie;
	if (rc)
		return rc;
	if (!make_room(table))
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
			table->rows[row].flat =
				work_add(table->rows[row].flat, trie->values[i].value);
	}
	if (!table->with_edges)
		table->total = work_add(table->total, table->totals[0]);
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
		struct table_row *row = &table->rows[table->edges[i].callee];

		row->inlined |= table->edges[i].inlined;
		row->called |= !table->edges[i].inlined;
	}
	table->names->pending = pending; /* names were asked for twice */
	return rc;
}

/* A heap with the smallest value at its top, of which that one is replaced. */
static void sink(int64_t *heap, size_t count, int64_t value)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < count) {
		child += child + 1 < count && heap[child + 1] < heap[child];
		if (heap[child] >= value)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = value;
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
			sink(heap, limit, table->rows[i].flat);
	return heap[0];
}

static struct slice name_of(const struct table_row *row, struct strbuf *scratch, struct arena *into)
{
	if (!row->is_address)
		return row->name;
	strbuf_clear(scratch);
	name_address(scratch, row->name, row->address);
	return arena_copy(into, strbuf_slice(scratch));
}

/* Those that can be among the first `limit`: names decide between equal values. */
static int show_rows(const struct table *table, struct tree *tree, size_t limit, struct err *err)
{
	int64_t least = least_shown(table, limit, &table->work->arena);
	struct strbuf scratch = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < table->rows_count; i++)
		count += table->rows[i].flat >= least;
	tree->rows = arena_new_array(&tree->arena, struct tree_row, count);
	for (size_t i = 0; tree->rows && i < table->rows_count; i++) {
		const struct table_row *row = &table->rows[i];

		if (row->flat >= least)
			tree->rows[tree->rows_count++] =
				(struct tree_row){ name_of(row, &scratch, &tree->arena), row->flat,
						   table->cums[i].value, row->called,
						   row->inlined };
	}
	strbuf_free(&scratch);
	return tree->rows && !tree->arena.over_budget ? 0 : work_over_budget(table->work, err);
}

int table_into(struct tree *tree, struct work *work, const struct merge *merge,
	       struct name_table *names, size_t limit, struct err *err)
{
	struct table table = { .work = work, .names = names };
	int rc;

	work_add_map(work, &table.rows_map);
	work_add_map(work, &table.edges_map);
	names->by_address = true;
	rc = walk(&table, merge, err);
	if (!rc)
		rc = show_rows(&table, tree, limit, err);
	tree->total = table.total;
	for (size_t i = 0; i < names->unresolved.count && i + 1 < table.items_capacity; i++)
		names->unresolved.items[i].value = table.items[i + 1].value;
	if (table.items_capacity)
		tree->unresolved_value = table.items[0].value;
	work_drop_map(work, &table.edges_map);
	work_drop_map(work, &table.rows_map);
	return rc;
}
