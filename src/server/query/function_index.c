/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/function_index.h"

#include <stdlib.h>

#include "base/mem.h"
#include "server/query/name.h"

#define ENTRY_BYTES_MAX 15u /* three numbers of up to 32 bits */
#define HEADER_BYTES_MAX 6u
#define SPOT_NEW UINT32_MAX

/* What a frame means: its lines, outermost first. */
struct spot {
	uint32_t line_first, line_count; /* SPOT_NEW: not known yet */
	uint32_t item;			 /* why it has no name; 0: it has */
};

struct line {
	uint32_t row; /* as met */
	bool inlined;
};

/* A row as it is met, and its place among all. */
struct met_row {
	struct row_key key;
	uint64_t hash;
	uint32_t occurrences;
	uint32_t number; /* in the index */
	bool ends_stacks;
};

struct entry {
	uint32_t first, end;
	uint32_t caller; /* row as met + 1; 0 = none */
	bool inlined;
};

struct making {
	struct work *work;
	const struct segment *segment;
	const struct tables_view *view;
	struct name_table names;
	struct row_place place;
	struct met_row *rows;
	size_t rows_count, rows_capacity;
	struct idmap map;
	struct spot *spots; /* by frame */
	struct line *lines;
	size_t lines_count, lines_capacity;
	uint32_t *ends;	  /* by node: behind all below it */
	uint32_t *before; /* by node: the stacks before it; one more at the end */
	uint32_t *row_at; /* by node: the innermost of its rows + 1; 0 = none */
	uint32_t *order;  /* rows as met, in the order of the index */
	struct entry *entries;
	size_t *starts; /* by row as met: of its entries */
	uint8_t *bytes;
	size_t bytes_count;
	struct function_index index; /* in the work's arena */
};

size_t function_index_bytes_about(const struct segment *segment)
{
	/* A node has 8 bytes of the stacks' memory, a frame 48: see below what of it is kept. */
	return segment->stacks_bytes / 2 + (size_t)segment->slots_count * 2 * sizeof(uint32_t);
}

size_t function_index_bytes(const struct function_index *index)
{
	return sizeof(*index) + index->memory_bytes;
}

void function_index_free(struct function_index *index)
{
	free(index);
}

/* Sizes; false when nodes are not in pre-order: each behind its parent and its elder siblings. */
static bool find_ends(struct making *making)
{
	const struct node *nodes = making->view->nodes;
	uint32_t count = making->view->nodes_count;

	for (uint32_t i = 2; i < count; i++) {
		uint32_t at = i - 1;

		while (at > nodes[i].parent)
			at = nodes[at].parent;
		if (at != nodes[i].parent)
			return false;
	}
	for (uint32_t i = count; i-- > 0;) {
		uint32_t end = making->ends[i] ? making->ends[i] : i + 1;

		making->ends[i] = end;
		if (i && making->ends[nodes[i].parent] < end)
			making->ends[nodes[i].parent] = end;
	}
	return true;
}

/* Numbers of stacks; false when two slots are one node. */
static bool number_stacks(struct making *making)
{
	const struct segment *segment = making->segment;
	uint32_t stacks = 0;

	for (uint32_t slot = 0; slot < segment->slots_count; slot++) {
		uint32_t *mark = &making->before[segment_node(segment, slot)];

		if (*mark)
			return false;
		*mark = 1;
	}
	for (uint32_t node = 0; node <= making->view->nodes_count; node++) {
		uint32_t mark = making->before[node];

		making->before[node] = stacks;
		stacks += mark;
	}
	making->index.stacks_count = stacks;
	return true;
}

static bool row_equal(const void *context, uint32_t id, const void *key)
{
	return row_key_equal(&((const struct met_row *)context)[id].key, key);
}

/* IDMAP_NONE when over budget. */
static uint32_t row_of(struct making *making, const struct row_key *key, uint64_t hash)
{
	uint32_t row = idmap_find(&making->map, hash, row_equal, making->rows, key);

	if (row != IDMAP_NONE)
		return row;
	if (!WORK_GROW(&making->work->arena, making->rows, making->rows_count,
		       making->rows_capacity))
		return IDMAP_NONE;
	row = (uint32_t)making->rows_count++;
	making->rows[row] = (struct met_row){ .key = *key, .hash = hash };
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

static bool find_spot(struct making *making, uint32_t id, struct spot *spot)
{
	const struct frame *frame = &making->view->frames[id];
	const struct name_chain *chain = name_frame(&making->names, id);

	if (!chain)
		return false;
	*spot = (struct spot){ (uint32_t)making->lines_count, chain->line_count, 0 };
	for (uint32_t i = chain->line_count; i-- > 0;) {
		const struct name_line *line = &making->names.lines[chain->line_first + i];
		uint32_t row = row_of_line(making, frame, line);

		if (row == IDMAP_NONE || !WORK_GROW(&making->work->arena, making->lines,
						    making->lines_count, making->lines_capacity))
			return false;
		making->lines[making->lines_count++] = (struct line){ row, line->inlined };
		if (line->function == NAME_BY_ADDRESS)
			spot->item = line->line;
	}
	return true;
}

static bool has_stacks_below(const struct making *making, uint32_t node)
{
	return making->before[node] < making->before[making->ends[node]];
}

/* Meets rows, counts their occurrences. */
static int meet_nodes(struct making *making, struct err *err)
{
	for (uint32_t node = 1; node < making->view->nodes_count; node++) {
		uint32_t frame = making->view->nodes[node].frame;
		struct spot *spot = &making->spots[frame];
		int rc = work_tick(making->work, 4, err);

		if (rc)
			return rc;
		if (!has_stacks_below(making, node))
			continue;
		if (spot->line_count == SPOT_NEW && !find_spot(making, frame, spot))
			return work_over_budget(making->work, err);
		for (uint32_t i = 0; i < spot->line_count; i++) {
			uint32_t row = making->lines[spot->line_first + i].row;

			making->rows[row].occurrences++;
			making->row_at[node] = row + 1;
		}
	}
	for (uint32_t slot = 0; slot < making->segment->slots_count; slot++) {
		uint32_t row = making->row_at[segment_node(making->segment, slot)];

		if (row)
			making->rows[row - 1].ends_stacks = true;
	}
	return 0;
}

static int row_order(const void *left, const void *right, void *context)
{
	const struct met_row *rows = context;
	const struct met_row *a = &rows[*(const uint32_t *)left];
	const struct met_row *b = &rows[*(const uint32_t *)right];

	if (a->ends_stacks != b->ends_stacks)
		return a->ends_stacks ? -1 : 1;
	return (a->hash > b->hash) - (a->hash < b->hash);
}

static bool sort_rows(struct making *making)
{
	size_t count = making->rows_count, start = 0;

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
		const struct spot *spot = &making->spots[at->frame];
		uint32_t caller = making->row_at[at->parent];

		if (!has_stacks_below(making, node))
			continue;
		for (uint32_t i = 0; i < spot->line_count; i++) {
			const struct line *line = &making->lines[spot->line_first + i];

			making->entries[making->starts[line->row]++] = (struct entry){
				.first = making->before[node],
				.end = making->before[making->ends[node]],
				.caller = caller,
				.inlined = line->inlined,
			};
			caller = line->row + 1;
		}
	}
	return true;
}

static void put_number(struct making *making, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		making->bytes[making->bytes_count++] = (uint8_t)(number | 0x80);
	making->bytes[making->bytes_count++] = (uint8_t)number;
}

static uint64_t get_number(const uint8_t **at)
{
	uint64_t number = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = *(*at)++;

		number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return number;
	}
}

/* Header: how many, and whether callers are told. */
static void put_entries(struct making *making, const struct entry *entries, size_t count,
			bool with_callers)
{
	uint32_t first = 0;

	put_number(making, (uint64_t)count << 1 | with_callers);
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = &entries[i];
		uint64_t caller = 0;

		put_number(making, entry->first - first);
		put_number(making, entry->end - entry->first - 1);
		first = entry->first;
		if (entry->caller)
			caller = making->rows[entry->caller - 1].number + 1ull;
		if (with_callers)
			put_number(making, caller << 1 | entry->inlined);
	}
}

static bool encode_rows(struct making *making)
{
	struct function_index *index = &making->index;
	size_t most = making->rows_count * HEADER_BYTES_MAX +
		      making->starts[making->rows_count] * ENTRY_BYTES_MAX;

	making->bytes = arena_alloc(&making->work->arena, most + 1);
	index->places = arena_new_array(&making->work->arena, uint32_t, making->rows_count);
	if (!making->bytes || !index->places)
		return false;
	for (uint32_t i = 0; i < making->rows_count; i++) {
		const struct met_row *row = &making->rows[making->order[i]];
		size_t end = making->starts[making->order[i]];

		if (making->bytes_count > UINT32_MAX)
			return false;
		index->places[i] = (uint32_t)making->bytes_count;
		put_entries(making, &making->entries[end - row->occurrences], row->occurrences,
			    !row->key.is_address);
	}
	return true;
}

/* Of one reason, or of any: the occurrences that are in no other. */
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
		uint32_t item = making->spots[making->view->nodes[node].frame].item;
		uint32_t first = making->before[node], end = making->before[making->ends[node]];

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
	size_t rows_bytes = making->bytes_count;
	struct arena *arena = &making->work->arena;
	struct reason *reasons = arena_new_array(arena, struct reason, count);
	struct function_index *index = &making->index;
	const uint8_t *rows = making->bytes;
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
	making->bytes = arena_alloc(arena, rows_bytes + count * HEADER_BYTES_MAX +
						   start * ENTRY_BYTES_MAX + 1);
	if (!entries || !making->bytes)
		return false;
	memcpy(making->bytes, rows, rows_bytes);
	meet_reasons(making, reasons, entries);
	for (size_t i = 0; i < count; i++) {
		if (making->bytes_count > UINT32_MAX)
			return false;
		index->item_places[i] = (uint32_t)making->bytes_count;
		put_entries(making, &entries[reasons[i].start], reasons[i].count, false);
	}
	index->bytes = making->bytes;
	index->bytes_count = making->bytes_count;
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
	/* At most as many binaries as strings are named by frames without a name. */
	index->names = arena_new_array(&making->work->arena, struct function_index_name,
				       named + making->view->strings_count);
	if (!index->keys || !index->binaries || !index->names)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct met_row *row = &making->rows[making->order[i]];
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
		const struct met_row *row = &making->rows[making->order[i]];
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
	struct function_index *index = &making->index;
	struct arena *arena = &making->work->arena;

	index->slot_of_stack = arena_new_array(arena, uint32_t, index->stacks_count);
	index->row_of_stack = arena_new_array(arena, uint32_t, index->stacks_count);
	if (!index->slot_of_stack || !index->row_of_stack)
		return false;
	for (uint32_t slot = 0; slot < index->stacks_count; slot++) {
		uint32_t node = segment_node(making->segment, slot);
		uint32_t row = making->row_at[node], stack = making->before[node];

		index->slot_of_stack[stack] = slot;
		index->row_of_stack[stack] =
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

	making->ends = arena_new_array(arena, uint32_t, view->nodes_count + 1ull);
	making->before = arena_new_array(arena, uint32_t, view->nodes_count + 1ull);
	making->row_at = arena_new_array(arena, uint32_t, view->nodes_count);
	making->spots = arena_new_array(arena, struct spot, view->frames_count);
	for (uint32_t i = 0; making->spots && i < view->frames_count; i++)
		making->spots[i].line_count = SPOT_NEW;
	return !arena->over_budget;
}

/* *ret_possible: there can be an index. */
static int make(struct making *making, bool *ret_possible, struct err *err)
{
	int rc;

	*ret_possible = false;
	if (!begin(making))
		return work_over_budget(making->work, err);
	if (!find_ends(making) || !number_stacks(making))
		return 0;
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

/* Where the parts of an index go when it is packed: NULL, they are only counted. */
struct packing {
	char *at;
	size_t bytes;
};

static void *pack(struct packing *packing, const void *from, size_t bytes)
{
	char *to = packing->at ? packing->at + packing->bytes : NULL;

	packing->bytes += (bytes + 7) & ~(size_t)7;
	if (!to)
		return (void *)from;
	if (bytes)
		memcpy(to, from, bytes);
	return to;
}

static void pack_text(struct packing *packing, struct slice *text)
{
	text->data = pack(packing, text->data, text->len);
}

#define PACK(packing, array, count) ((array) = pack((packing), (array), (count) * sizeof(*(array))))

static void pack_index(struct packing *packing, struct function_index *index)
{
	PACK(packing, index->slot_of_stack, index->stacks_count);
	PACK(packing, index->row_of_stack, index->stacks_count);
	PACK(packing, index->keys, index->rows_count);
	PACK(packing, index->binaries, index->rows_count);
	PACK(packing, index->places, index->rows_count);
	PACK(packing, index->bytes, index->bytes_count);
	PACK(packing, index->names, index->names_count);
	PACK(packing, index->items, index->items_count);
	PACK(packing, index->item_places, index->items_count + 1ull);
	PACK(packing, index->looked_in, index->looked_in_count);
	for (uint32_t i = 0; i < index->names_count; i++)
		pack_text(packing, &index->names[i].text);
	for (uint32_t i = 0; i < index->items_count; i++) {
		pack_text(packing, &index->items[i].text);
		pack_text(packing, &index->items[i].mapping);
		pack_text(packing, &index->items[i].build_id);
	}
	for (uint32_t i = 0; i < index->looked_in_count; i++) {
		pack_text(packing, &index->looked_in[i].build_id);
		pack_text(packing, &index->looked_in[i].mapping);
	}
}

/* One block of memory, of just the size. */
static struct function_index *packed(struct function_index *made)
{
	struct packing packing = { 0 };
	struct function_index *index;

	pack_index(&packing, made);
	made->memory_bytes = packing.bytes;
	index = mem_realloc(NULL, 1, sizeof(*index) + packing.bytes);
	*index = *made;
	packing = (struct packing){ .at = (char *)(index + 1) };
	pack_index(&packing, index);
	return index;
}

int function_index_make(const struct segment *segment, struct resolver *resolver,
			const struct query_params *params, struct function_index **ret,
			struct err *err)
{
	struct work work;
	struct making making = { .work = &work, .segment = segment, .view = &segment->view };
	bool possible = false;
	int rc;

	*ret = NULL;
	work_begin(&work, &params->limits);
	work_add_map(&work, &making.map);
	making.index.nodes_count = segment->view.nodes_count;
	rc = name_begin(&making.names, &work, resolver, &work.arena, err);
	making.names.by_address = true;
	making.names.demangle = params->demangle;
	if (params->limits.names_until_ns)
		making.names.wait_until_ns = params->limits.names_until_ns;
	if (!rc)
		rc = make(&making, &possible, err);
	if (!rc && possible)
		*ret = packed(&making.index);
	name_end(&making.names);
	work_drop_map(&work, &making.map);
	work_end(&work);
	return rc;
}

/* Reading. */

static uint64_t hash_at(const struct function_index *index, uint32_t row)
{
	uint64_t hash;

	function_index_key(index, row, &hash);
	return hash;
}

/* Among rows first .. end - 1, which are in the order of their hashes. */
static uint32_t first_from(const struct function_index *index, uint32_t first, uint32_t end,
			   uint64_t hash)
{
	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (hash_at(index, middle) < hash)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

uint32_t function_index_from(const struct function_index *index, uint64_t hash)
{
	return first_from(index, 0, index->flat_rows_count, hash);
}

static uint32_t find_among(const struct function_index *index, uint32_t first, uint32_t end,
			   const struct row_key *key, uint64_t hash)
{
	for (uint32_t row = first_from(index, first, end, hash); row < end; row++) {
		uint64_t found;
		struct row_key at = function_index_key(index, row, &found);

		if (found != hash)
			break;
		if (row_key_equal(&at, key))
			return row;
	}
	return FUNCTION_INDEX_NONE;
}

uint32_t function_index_find(const struct function_index *index, const struct row_key *key,
			     uint64_t hash)
{
	uint32_t flat = index->flat_rows_count;
	uint32_t row = find_among(index, 0, flat, key, hash);

	return row != FUNCTION_INDEX_NONE ? row
					  : find_among(index, flat, index->rows_count, key, hash);
}

static struct function_occurrences occurrences_at(const uint8_t *at)
{
	uint64_t header = get_number(&at);

	return (struct function_occurrences){ .at = at,
					      .left = (uint32_t)(header >> 1),
					      .has_callers = header & 1 };
}

struct function_occurrences function_index_of_row(const struct function_index *index, uint32_t row)
{
	return occurrences_at(index->bytes + index->places[row]);
}

struct function_occurrences function_index_of_item(const struct function_index *index,
						   uint32_t item)
{
	return occurrences_at(index->bytes + index->item_places[item]);
}

bool function_occurrences_next(struct function_occurrences *occurrences,
			       struct function_occurrence *ret)
{
	uint64_t call = 0;

	if (!occurrences->left)
		return false;
	occurrences->left--;
	occurrences->first += (uint32_t)get_number(&occurrences->at);
	*ret = (struct function_occurrence){ .first = occurrences->first };
	ret->end = ret->first + (uint32_t)get_number(&occurrences->at) + 1;
	if (occurrences->has_callers)
		call = get_number(&occurrences->at);
	ret->caller = (uint32_t)(call >> 1) - 1; /* 0: none */
	ret->inlined = call & 1;
	return true;
}
