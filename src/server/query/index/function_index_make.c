/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/index/function_index.h"

#include <assert.h>
#include <stdlib.h>

#include "server/query/sum/trie_union.h"
#include "server/query/name/name.h"

#define PLACE_NEW UINT32_MAX

/* What a frame means: its lines, outermost first. */
struct index_place {
	uint32_t line_first, line_count; /* PLACE_NEW: not known yet */
	uint32_t item;			 /* why it has no name; 0: it has */
};

struct line {
	uint32_t row; /* as met */
	bool inlined;
};

/* A row as it is met, and its place among all. */
struct index_row {
	struct row_key key;
	uint64_t hash;
	uint32_t occurrences;
	uint32_t number; /* in the index */
	bool ends_stacks;
	bool is_unnamed;
};

struct entry {
	uint32_t first, end;
	uint32_t caller; /* row as met + 1; 0 = none */
	bool inlined;
};

struct making {
	struct work *work;
	struct trie_union united;
	const struct tables_view *view; /* its */
	struct name_table names;
	struct row_place place;
	struct index_row *rows;
	size_t rows_count, rows_capacity;
	struct idmap map;
	struct index_place *places; /* by frame */
	struct line *lines;
	size_t lines_count, lines_capacity;
	uint32_t *before; /* by node: the stacks before it; one more at the end */
	uint32_t *row_at; /* by node: the innermost of its rows + 1; 0 = none */
	uint32_t *order;  /* rows as met, in the order of the index */
	struct entry *entries;
	size_t *starts; /* by row as met: of its entries */
	struct strbuf bytes;
	struct function_index index; /* in the work's arena, and in `bytes` */
};

/* Stacks are nodes that some slot means. */
static void number_stacks(struct making *making)
{
	const struct trie_union *united = &making->united;
	uint32_t stacks = 0;

	for (size_t i = 0; i < united->segments_count; i++)
		for (uint32_t slot = 0; slot < united->segments[i]->slots_count; slot++)
			making->before[united->nodes[i][slot]] = 1;
	for (uint32_t node = 0; node <= making->view->nodes_count; node++) {
		uint32_t mark = making->before[node];

		making->before[node] = stacks;
		stacks += mark;
	}
	making->index.stacks_count = stacks;
}

static bool is_stack(const struct making *making, uint32_t node)
{
	return making->before[node] < making->before[node + 1];
}

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	return row_key_equal(&((const struct index_row *)context)[id].key, key);
}

/* IDMAP_NONE when over budget. */
static uint32_t row_of(struct making *making, const struct row_key *key, uint64_t hash)
{
	uint32_t row = idmap_find(&making->map, hash, row_equal, making->rows, key);

	assert(making->rows_count <= making->rows_capacity);
	if (row != IDMAP_NONE)
		return row;
	if (!WORK_GROW(&making->work->arena, making->rows, making->rows_count,
		       making->rows_capacity))
		return IDMAP_NONE;
	row = (uint32_t)making->rows_count++;
	making->rows[row] = (struct index_row){ .key = *key, .hash = hash };
	idmap_add(&making->map, hash, row);
	return row;
}

static uint32_t row_of_line(struct making *making, const struct frame *frame,
			    const struct name_line *line)
{
	struct row_key key = { 0 };
	uint64_t hash;

	if (line->function == NAME_BY_ADDRESS) {
		key = row_key_of_address(&making->place, making->view, frame, &hash);
	} else {
		key.name = making->names.functions[line->function].name;
		hash = row_key_hash(&key, hash_bytes(key.name.data, key.name.len));
	}
	return row_of(making, &key, hash);
}

static bool find_place(struct making *making, uint32_t id, struct index_place *found)
{
	const struct frame *frame = &making->view->frames[id];
	const struct name_chain *chain = name_frame(&making->names, id);

	assert(id < making->view->frames_count);
	if (!chain)
		return false;
	*found = (struct index_place){ (uint32_t)making->lines_count, chain->line_count, 0 };
	for (uint32_t i = chain->line_count; i-- > 0;) {
		const struct name_line *line = &making->names.lines[chain->line_first + i];
		uint32_t row = row_of_line(making, frame, line);

		if (row == IDMAP_NONE || !WORK_GROW(&making->work->arena, making->lines,
						    making->lines_count, making->lines_capacity))
			return false;
		making->lines[making->lines_count++] = (struct line){ row, line->inlined };
		if (name_line_missing(&making->names, line)) {
			found->item = name_line_missing(&making->names, line);
			making->rows[row].is_unnamed = true;
		}
	}
	return true;
}

static bool has_stacks_below(const struct making *making, uint32_t node)
{
	return making->before[node] < making->before[making->united.ends[node]];
}

/* Meets rows, counts their occurrences. */
static int meet_nodes(struct making *making, struct err *err)
{
	assert(making->view && making->places);
	for (uint32_t node = 1; node < making->view->nodes_count; node++) {
		uint32_t frame = making->view->nodes[node].frame;
		struct index_place *found = &making->places[frame];
		int rc = work_tick(making->work, 4, err);

		if (rc)
			return rc;
		if (!has_stacks_below(making, node))
			continue;
		if (found->line_count == PLACE_NEW && !find_place(making, frame, found))
			return work_over_budget(making->work, err);
		for (uint32_t i = 0; i < found->line_count; i++) {
			uint32_t row = making->lines[found->line_first + i].row;

			making->rows[row].occurrences++;
			making->row_at[node] = row + 1;
		}
	}
	for (uint32_t node = 1; node < making->view->nodes_count; node++)
		if (making->row_at[node] && is_stack(making, node))
			making->rows[making->row_at[node] - 1].ends_stacks = true;
	return 0;
}

static int row_order(const void *left, const void *right, void *context)
{
	const struct index_row *rows = context;
	const struct index_row *a = &rows[*(const uint32_t *)left];
	const struct index_row *b = &rows[*(const uint32_t *)right];

	if (a->ends_stacks != b->ends_stacks)
		return a->ends_stacks ? -1 : 1;
	return (a->hash > b->hash) - (a->hash < b->hash);
}

static bool sort_rows(struct making *making)
{
	size_t count = making->rows_count, start = 0;

	assert(making->rows_count <= making->rows_capacity);
	making->order = arena_new_array(&making->work->arena, uint32_t, count);
	making->starts = arena_new_array(&making->work->arena, size_t, count + 1);
	if (!making->order || !making->starts)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		making->order[i] = i;
		making->starts[i] = start;
		start += making->rows[i].occurrences;
	}
	making->starts[count] = start;
	if (count)
		qsort_r(making->order, count, sizeof(*making->order), row_order, making->rows);
	for (uint32_t i = 0; i < count; i++) {
		making->rows[making->order[i]].number = i;
		making->index.flat_rows_count += making->rows[making->order[i]].ends_stacks;
	}
	making->index.rows_count = (uint32_t)count;
	return true;
}

/* The occurrences of each row in pre-order; what starts[row] was is then starts[row - 1]'s end. */
static bool collect_entries(struct making *making)
{
	size_t count = making->starts[making->rows_count];

	making->entries = arena_new_array(&making->work->arena, struct entry, count);
	if (!making->entries)
		return false;
	for (uint32_t node = 1; node < making->view->nodes_count; node++) {
		const struct node *at = &making->view->nodes[node];
		const struct index_place *found = &making->places[at->frame];
		uint32_t caller = making->row_at[at->parent];

		if (!has_stacks_below(making, node))
			continue;
		for (uint32_t i = 0; i < found->line_count; i++) {
			const struct line *line = &making->lines[found->line_first + i];

			making->entries[making->starts[line->row]++] = (struct entry){
				.first = making->before[node],
				.end = making->before[making->united.ends[node]],
				.caller = caller,
				.inlined = line->inlined,
			};
			caller = line->row + 1;
		}
	}
	return true;
}

/* Header: how many, and whether callers are told. */
static void put_entries(struct making *making, const struct entry *entries, size_t count,
			bool with_callers)
{
	uint32_t first = 0;

	assert(entries || !count);
	strbuf_add_varint(&making->bytes, (uint64_t)count << 1 | with_callers);
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[i];
		uint64_t caller = 0;

		strbuf_add_varint(&making->bytes, entry->first - first);
		strbuf_add_varint(&making->bytes, entry->end - entry->first - 1);
		first = entry->first;
		if (entry->caller)
			caller = making->rows[entry->caller - 1].number + 1ull;
		if (with_callers)
			strbuf_add_varint(&making->bytes, caller << 1 | entry->inlined);
	}
}

/* False when over budget, or there are more than places can tell. */
static bool begin_entries(struct making *making, uint32_t *ret_place)
{
	*ret_place = (uint32_t)making->bytes.len;
	return making->bytes.len <= UINT32_MAX && making->bytes.len <= making->work->limit_bytes;
}

static bool encode_rows(struct making *making)
{
	struct function_index *index = &making->index;

	index->places = arena_new_array(&making->work->arena, uint32_t, making->rows_count);
	if (!index->places)
		return false;
	for (uint32_t i = 0; i < making->rows_count; i++) {
		const struct index_row *row = &making->rows[making->order[i]];
		size_t end = making->starts[making->order[i]];

		if (!begin_entries(making, &index->places[i]))
			return false;
		put_entries(making, &making->entries[end - row->occurrences], row->occurrences,
			    !row->key.is_address);
	}
	return true;
}

/* For one reason, or for any: the occurrences that are not inside another. */
struct reason {
	uint32_t until; /* stacks are below the last one */
	size_t start, count;
};

/* Counts, or, with `into`, puts where `start` says; neighbours there are one. */
static void meet_reason(struct reason *reason, uint32_t first, uint32_t end, struct entry *into)
{
	struct entry *last = into ? &into[reason->start + reason->count] - 1 : NULL;

	if (first < reason->until)
		return;
	reason->until = end;
	if (into && reason->count && last->end == first) {
		last->end = end;
		return;
	}
	if (into)
		last[1] = (struct entry){ .first = first, .end = end };
	reason->count++;
}

static void meet_reasons(const struct making *making, struct reason *reasons, struct entry *into)
{
	for (uint32_t node = 1; node < making->view->nodes_count; node++) {
		uint32_t item = making->places[making->view->nodes[node].frame].item;
		uint32_t first = making->before[node],
			 end = making->before[making->united.ends[node]];

		if (!item || first == end)
			continue;
		meet_reason(&reasons[0], first, end, into);
		meet_reason(&reasons[item], first, end, into);
	}
}

/* Occurrences of reasons, behind those of rows. */
static bool encode_reasons(struct making *making)
{
	size_t count = making->names.unresolved.count + 1, start = 0;
	struct arena *arena = &making->work->arena;
	struct reason *reasons = arena_new_array(arena, struct reason, count);
	struct function_index *index = &making->index;
	struct entry *entries;

	index->item_places = arena_new_array(&making->work->arena, uint32_t, count);
	if (!reasons || !index->item_places)
		return false;
	meet_reasons(making, reasons, NULL);
	for (size_t i = 0; i < count; i++) {
		size_t met = reasons[i].count;

		reasons[i] = (struct reason){ .start = start };
		start += met;
	}
	entries = arena_new_array(arena, struct entry, start);
	if (!entries)
		return false;
	meet_reasons(making, reasons, entries);
	for (size_t i = 0; i < count; i++) {
		if (!begin_entries(making, &index->item_places[i]))
			return false;
		put_entries(making, &entries[reasons[i].start], reasons[i].count, false);
	}
	index->bytes = making->bytes.data;
	index->bytes_count = making->bytes.len;
	return true;
}

/* Binaries of addresses; more than a row can tell are refused. */
static uint32_t name_of_binary(struct function_index *index, uint32_t count, struct slice text)
{
	for (uint32_t i = 0; i < count; i++)
		if (slice_equal(index->names[i].text, text))
			return i;
	return FUNCTION_INDEX_NONE;
}

/* What rows are called. */
static bool name_rows(struct making *making)
{
	struct function_index *index = &making->index;
	uint32_t count = index->rows_count, binaries = 0, named = 0, last = 0;

	for (uint32_t i = 0; i < count; i++)
		named += !making->rows[i].key.is_address;
	index->keys = arena_new_array(&making->work->arena, uint64_t, count);
	index->binaries = arena_new_array(&making->work->arena, uint16_t, count);
	index->unnamed = arena_new_array(&making->work->arena, uint8_t, count);
	/* At most as many binaries as strings are named by frames without a name. */
	index->names = arena_new_array(&making->work->arena, struct function_index_name,
				       named + making->view->strings_count);
	if (!index->keys || !index->binaries || !index->unnamed || !index->names)
		return false;
	for (uint32_t i = 0; i < count; i++)
		index->unnamed[i] = making->rows[making->order[i]].is_unnamed;
	for (uint32_t i = 0; i < count; i++) {
		const struct index_row *row = &making->rows[making->order[i]];
		struct slice name = row->key.name;

		if (!row->key.is_address)
			continue;
		if (!binaries || !slice_equal(index->names[last].text, name))
			last = name_of_binary(index, binaries, name);
		if (last == FUNCTION_INDEX_NONE) {
			last = binaries++;
			index->names[last].hash = hash_bytes(name.data, name.len);
			index->names[last].text = arena_copy(&making->work->arena, name);
		}
		if (last >= FUNCTION_INDEX_NAMED)
			return false;
		index->binaries[i] = (uint16_t)last;
		index->keys[i] = row->key.address;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct index_row *row = &making->rows[making->order[i]];
		struct slice name = row->key.name;

		if (row->key.is_address)
			continue;
		index->names[binaries].hash = hash_bytes(name.data, name.len);
		index->names[binaries].text = arena_copy(&making->work->arena, name);
		index->binaries[i] = FUNCTION_INDEX_NAMED;
		index->keys[i] = binaries++;
	}
	index->names_count = binaries;
	return !making->work->arena.over_budget;
}

static bool place_slots(struct making *making)
{
	const struct trie_union *united = &making->united;
	struct function_index *index = &making->index;
	struct arena *arena = &making->work->arena;

	index->members_count = (uint32_t)united->segments_count;
	index->members =
		arena_new_array(arena, struct function_index_member, united->segments_count);
	index->row_of_stack = arena_new_array(arena, uint32_t, index->stacks_count);
	if (!index->members || !index->row_of_stack)
		return false;
	for (size_t i = 0; i < united->segments_count; i++) {
		uint32_t *stacks = united->nodes[i]; /* their numbers from now on */

		index->members[i] =
			(struct function_index_member){ united->segments[i]->id,
							united->segments[i]->slots_count, stacks };
		for (uint32_t slot = 0; slot < united->segments[i]->slots_count; slot++)
			stacks[slot] = making->before[stacks[slot]];
	}
	for (uint32_t node = 0; node < making->view->nodes_count; node++) {
		uint32_t row = making->row_at[node];

		if (is_stack(making, node))
			index->row_of_stack[making->before[node]] =
				row ? making->rows[row - 1].number : index->flat_rows_count;
	}
	return true;
}

/* Texts of what was looked in, and of reasons. */
static bool keep_places(struct making *making)
{
	struct function_index *index = &making->index;
	const struct name_table *names = &making->names;
	struct arena *arena = &making->work->arena;

	index->looked_in =
		arena_new_array(arena, struct function_index_binary, names->binaries_count);
	index->items = arena_new_array(arena, struct tree_unresolved, names->unresolved.count);
	if (!index->looked_in || !index->items)
		return false;
	for (size_t i = 0; i < names->binaries_count; i++)
		index->looked_in[i] = (struct function_index_binary){
			arena_copy(arena, names->binaries[i].build_id),
			arena_copy(arena, names->binaries[i].mapping), names->binaries[i].by_offset
		};
	index->looked_in_count = (uint32_t)names->binaries_count;
	for (size_t i = 0; i < names->unresolved.count; i++) {
		const struct tree_unresolved *item = &names->unresolved.items[i];

		index->items[i] = (struct tree_unresolved){
			.code = item->code,
			.text = arena_copy(arena, item->text),
			.mapping = arena_copy(arena, item->mapping),
			.build_id = arena_copy(arena, item->build_id),
		};
	}
	index->items_count = (uint32_t)names->unresolved.count;
	return !arena->over_budget;
}

static bool begin(struct making *making)
{
	const struct tables_view *view = making->view;
	struct arena *arena = &making->work->arena;

	making->index.nodes_count = view->nodes_count;
	making->before = arena_new_array(arena, uint32_t, view->nodes_count + 1ull);
	making->row_at = arena_new_array(arena, uint32_t, view->nodes_count);
	making->places = arena_new_array(arena, struct index_place, view->frames_count);
	for (uint32_t i = 0; making->places && i < view->frames_count; i++)
		making->places[i].line_count = PLACE_NEW;
	return !arena->over_budget;
}

/* *ret_possible: there can be an index. */
static int make(struct making *making, bool *ret_possible, struct err *err)
{
	int rc;

	*ret_possible = false;
	making->view = &making->united.view;
	if (!begin(making))
		return work_over_budget(making->work, err);
	number_stacks(making);
	rc = name_view(&making->names, making->view, err);
	if (!rc)
		rc = meet_nodes(making, err);
	if (rc || making->names.pending)
		return rc;
	if (!sort_rows(making) || !collect_entries(making) || !encode_rows(making) ||
	    !encode_reasons(making) || !name_rows(making) || !place_slots(making) ||
	    !keep_places(making))
		return work_over_budget(making->work, err);
	*ret_possible = true;
	return work_check(making->work, err);
}

int function_index_make(struct segment *const *segments, size_t count, struct resolver *resolver,
			const struct query_params *params, struct function_index **ret,
			struct err *err)
{
	struct work work;
	struct making making = { .work = &work };
	bool possible = false;
	int rc;

	assert(count > 0);
	*ret = NULL;
	work_begin(&work, &params->limits);
	work_add_map(&work, &making.map);
	rc = name_begin(&making.names, &work, resolver, &work.arena, err);
	making.names.by_address = true;
	making.names.demangle = params->demangle;
	if (!rc)
		rc = trie_union_make(&making.united, &work, segments, count, err);
	if (!rc)
		rc = make(&making, &possible, err);
	if (!rc && possible)
		*ret = function_index_pack(&making.index);
	strbuf_free(&making.bytes);
	name_end(&making.names);
	trie_union_free(&making.united, &work);
	work_drop_map(&work, &making.map);
	work_end(&work);
	return rc;
}
