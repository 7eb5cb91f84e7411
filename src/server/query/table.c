/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/table.h"

#include "base/hash.h"
#include "server/query/largest.h"
#include "server/query/preorder.h"

#define NO_ROW UINT32_MAX
#define SPOT_LINES UINT32_MAX	       /* look at the frame's lines */
#define SPOT_LEFT_OUT (UINT32_MAX - 1) /* an address that cannot be among the rows shown */
#define BOUNDS (1u << 16)
#define BOUNDED_LIMIT_MAX 4096u /* with more rows to show, none is left out */

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
	int64_t least; /* that flat will be at least */
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
	uint32_t row;  /* + 1; 0 = not known yet; or SPOT_LINES, SPOT_LEFT_OUT */
	uint32_t item; /* why it has no name; 0: it has */
};

/*
 * Addresses can be hundreds of thousands, and few are shown. So their flat values are summed first
 * in so many counters, by hash: no row has more than its counter; and those of single frames are a
 * lower bound. Rows whose counter is below what the last one shown has at least are not made.
 */
struct bounds {
	int64_t *most;	/* by hash */
	int64_t *flats; /* by frame of the trie */
	size_t flats_capacity;
	int64_t *largest; /* a heap: the values of frames, as many as rows are to be shown */
	size_t largest_count;
	struct candidate {
		struct table_row row;
		int64_t flat;
	} * candidates; /* those that were among the largest */
	size_t candidates_count, candidates_capacity;
	int64_t least; /* that a row needs */
};

/* The binary of the last address. */
struct place {
	uint32_t mapping; /* string of the trie; SPOT_LINES: none yet */
	struct slice name;
	bool is_one; /* all its addresses are one row */
	uint64_t hash;
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
	struct preorder preorder; /* of the trie; marks are the last row on the way to each node */
	uint64_t begin;		  /* place of the trie's root */
	struct bounds bounds;
	struct place place;
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

/* Nothing is known of the trie's frames. False when over budget. */
static bool make_spots(struct table *table)
{
	const struct tables_view *view = &table->trie->view;

	table->place.mapping = SPOT_LINES;
	if (table->spots_capacity >= view->frames_count) {
		if (view->frames_count)
			memset(table->spots, 0, view->frames_count * sizeof(*table->spots));
		return true;
	}
	table->spots = arena_new_array(&table->work->arena, struct spot, view->frames_count);
	table->spots_capacity = table->spots ? view->frames_count : 0;
	return table->spots;
}

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	const struct table_row *a = &((const struct table *)context)->rows[id], *b = key;

	return a->address == b->address && a->is_address == b->is_address &&
	       slice_equal(a->name, b->name);
}

/* `name_hash` is that of its name. */
static uint64_t hash_of(const struct table_row *row, uint64_t name_hash)
{
	return hash_mix(name_hash, row->address);
}

/* Finds or adds; NO_ROW when over budget. */
static uint32_t find_row(struct table *table, const struct table_row *sought, uint64_t hash)
{
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
		uint64_t hash = hash_bytes(sought.name.data, sought.name.len);

		table->row_of[function] = find_row(table, &sought, hash_of(&sought, hash)) + 1;
	}
	return table->row_of[function] - 1;
}

/* Where the frame lies; neighbours mostly are in one binary. */
static const struct place *place_of(struct table *table, const struct frame *frame)
{
	struct place *place = &table->place;
	struct slice name;

	if (place->mapping == frame->mapping_file)
		return place;
	name = name_binary_of(tables_text(&table->trie->view, frame->mapping_file));
	place->mapping = frame->mapping_file;
	place->is_one = slice_is(name, "[anon]");
	if (!place->is_one && name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
		name = slice_from(name.data + 1, name.len - 2);
	place->name = name;
	place->hash = hash_bytes(name.data, name.len);
	return place;
}

/* Equal for addresses that are called the same. */
static struct table_row address_row(struct table *table, const struct frame *frame,
				    uint64_t *ret_hash)
{
	const struct place *place = place_of(table, frame);
	struct table_row row = { .name = place->name,
				 .address = place->is_one ? 0 : frame->address,
				 .is_address = true };

	*ret_hash = hash_of(&row, place->hash);
	return row;
}

static uint32_t row_of_address(struct table *table, const struct frame *frame)
{
	uint64_t hash;
	struct table_row sought = address_row(table, frame, &hash);

	return find_row(table, &sought, hash);
}

/* Whether no row for that address can be shown. Callers of what is inlined are wanted all. */
static bool is_left_out(struct table *table, const struct frame *frame)
{
	uint64_t hash;

	if (!table->bounds.least || table->with_edges)
		return false;
	address_row(table, frame, &hash);
	return table->bounds.most[hash % BOUNDS] < table->bounds.least;
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
	uint32_t caller = table->preorder.nodes[at->parent].mark;

	for (uint32_t i = chain ? chain->line_count : 0; i > 0; i--) {
		const struct name_line *line = &table->names->lines[chain->line_first + i - 1];
		uint32_t row = row_of_line(table, frame, line);

		if (row == NO_ROW)
			return false;
		table->rows[row].has_inlined |= line->inlined;
		table->any_inlined |= line->inlined;
		if (!table->with_edges)
			add_once(&table->cums[row], place, end, table->preorder.nodes[node].total);
		else if (!meet_edge(table, caller, row, line->inlined, place, end))
			return false;
		caller = row;
	}
	table->preorder.nodes[node].mark = caller;
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
	if (line->function == NAME_BY_ADDRESS &&
	    is_left_out(table, &table->trie->view.frames[frame])) {
		*spot = (struct spot){ SPOT_LEFT_OUT, line->line };
		return true;
	}
	row = row_of_line(table, &table->trie->view.frames[frame], line);
	*spot = (struct spot){ row + 1, line->function == NAME_BY_ADDRESS ? line->line : 0 };
	return row != NO_ROW;
}

static bool meet_node(struct table *table, uint32_t node, uint64_t place)
{
	const struct node *at = &table->trie->view.nodes[node];
	struct spot *spot = &table->spots[at->frame];
	uint64_t end = place + table->preorder.nodes[node].size;
	uint32_t row;

	if (!spot->row && !find_spot(table, at->frame, spot))
		return false;
	if (spot->row == SPOT_LINES)
		return meet_lines(table, node, place, end);
	if (spot->row == SPOT_LEFT_OUT) {
		table->preorder.nodes[node].mark = NO_ROW;
		return meet_item(table, spot->item, place, end, table->preorder.nodes[node].total);
	}
	row = spot->row - 1;
	table->preorder.nodes[node].mark = row;
	if (table->with_edges)
		return meet_edge(table, table->preorder.nodes[at->parent].mark, row, false, place,
				 end);
	add_once(&table->cums[row], place, end, table->preorder.nodes[node].total);
	return !spot->item ||
	       meet_item(table, spot->item, place, end, table->preorder.nodes[node].total);
}

static int walk_trie(struct table *table, const struct merge_trie *trie, struct err *err)
{
	uint32_t count = trie->view.nodes_count;
	int rc = name_view(table->names, &trie->view, err);

	table->trie = trie;
	if (rc)
		return rc;
	if (!preorder_make(&table->preorder, &table->work->arena, trie) || !make_spots(table))
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
	}
	if (!table->with_edges)
		table->total = work_add(table->total, table->preorder.nodes[0].total);
	table->begin += count;
	return rc;
}

/* Sums the flat values of named rows and of frames that are addresses. */
static int sum_flats(struct table *table, const struct merge_trie *trie, struct err *err)
{
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

/* The frames' sums into the counters. False when over budget. */
static bool take_flats(struct table *table, const struct merge_trie *trie)
{
	struct bounds *bounds = &table->bounds;

	for (uint32_t i = 0; i < trie->view.frames_count; i++) {
		struct candidate candidate = { .flat = bounds->flats[i] };
		uint64_t hash;

		if (!candidate.flat)
			continue;
		bounds->flats[i] = 0;
		candidate.row = address_row(table, &trie->view.frames[i], &hash);
		bounds->most[hash % BOUNDS] = work_add(bounds->most[hash % BOUNDS], candidate.flat);
		if (candidate.flat <= bounds->largest[0])
			continue;
		largest_sink(bounds->largest, bounds->largest_count, candidate.flat);
		if (!WORK_GROW(&table->work->arena, bounds->candidates, bounds->candidates_count,
			       bounds->candidates_capacity))
			return false;
		bounds->candidates[bounds->candidates_count++] = candidate;
	}
	return true;
}

static int bound_trie(struct table *table, const struct merge_trie *trie, struct err *err)
{
	struct bounds *bounds = &table->bounds;
	size_t count = trie->view.frames_count;
	int rc = name_view(table->names, &trie->view, err);

	table->trie = trie;
	table->place.mapping = SPOT_LINES;
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

/* Of rows so far, the smallest lower bound among the largest; 0: there are not so many. */
static int find_least(struct table *table, struct err *err)
{
	struct bounds *bounds = &table->bounds;

	for (size_t i = 0; i < bounds->candidates_count; i++) {
		const struct candidate *candidate = &bounds->candidates[i];
		struct slice name = candidate->row.name;
		uint64_t hash = hash_of(&candidate->row, hash_bytes(name.data, name.len));
		uint32_t row = find_row(table, &candidate->row, hash);

		if (row == NO_ROW)
			return work_over_budget(table->work, err);
		table->rows[row].least = work_add(table->rows[row].least, candidate->flat);
	}
	memset(bounds->largest, 0, bounds->largest_count * sizeof(*bounds->largest));
	for (size_t i = 0; i < table->rows_count; i++)
		if (table->rows[i].least > bounds->largest[0])
			largest_sink(bounds->largest, bounds->largest_count, table->rows[i].least);
	bounds->least = bounds->largest[0];
	return 0;
}

static int find_bounds(struct table *table, const struct merge *merge, size_t limit,
		       struct err *err)
{
	struct bounds *bounds = &table->bounds;
	uint64_t pending = table->names->pending;
	int rc = 0;

	if (!limit || limit > BOUNDED_LIMIT_MAX)
		return 0;
	bounds->most = arena_new_array(&table->work->arena, int64_t, BOUNDS);
	bounds->largest = arena_new_array(&table->work->arena, int64_t, limit);
	bounds->largest_count = limit;
	if (!bounds->most || !bounds->largest)
		return work_over_budget(table->work, err);
	for (size_t i = 0; !rc && i < merge->tries_count; i++)
		rc = bound_trie(table, &merge->tries[i], err);
	table->names->pending = pending; /* they are asked for again */
	return rc ? rc : find_least(table, err);
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
			largest_sink(heap, limit, table->rows[i].flat);
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
	rc = find_bounds(&table, merge, limit, err);
	if (!rc)
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
