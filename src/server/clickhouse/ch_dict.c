/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_dict.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "server/clickhouse/ch_rows.h"
#include "server/persist/part/part_key.h"

#define KEEP_BYTES ((size_t)4 << 20) /* of emptied arrays */
#define DAY_NS (86400 * CLOCK_NS_PER_S)

/*
 * Dense numbers from 1 for ids of the memtable, in the order in which a place first names them.
 * By pages, since ids that one service names lie together.
 */
#define PAGE_IDS 256u

struct numbers {
	uint32_t **pages; /* NULL: none of its ids has a number; 0: the id has none */
	size_t pages_count, pages_used;
	uint32_t count;
};

/* Where the id's number stands. */
static uint32_t *numbers_at(struct numbers *numbers, uint32_t id)
{
	size_t page = id / PAGE_IDS;

	if (page >= numbers->pages_count) {
		size_t count = page + page / 2 + 16;

		numbers->pages = mem_realloc(numbers->pages, count, sizeof(*numbers->pages));
		for (size_t i = numbers->pages_count; i < count; i++)
			numbers->pages[i] = NULL;
		numbers->pages_count = count;
	}
	if (!numbers->pages[page]) {
		numbers->pages[page] = mem_new_array(uint32_t, PAGE_IDS);
		numbers->pages_used++;
	}
	return &numbers->pages[page][id % PAGE_IDS];
}

/* True: the id had no number. */
static bool numbers_add(struct numbers *numbers, uint32_t id, uint32_t *ret)
{
	uint32_t *number = numbers_at(numbers, id);
	bool added = !*number;

	if (added)
		*number = ++numbers->count;
	*ret = *number;
	return added;
}

static size_t numbers_bytes(const struct numbers *numbers)
{
	return numbers->pages_count * sizeof(*numbers->pages) +
	       numbers->pages_used * PAGE_IDS * sizeof(uint32_t);
}

static void numbers_free(struct numbers *numbers)
{
	for (size_t i = 0; i < numbers->pages_count; i++)
		free(numbers->pages[i]);
	free(numbers->pages);
}

struct ids {
	uint32_t *items;
	size_t count, capacity;
};

static void ids_add(struct ids *ids, uint32_t id)
{
	mem_grow(ids->items, ids->count, ids->capacity);
	ids->items[ids->count++] = id;
}

struct place {
	uint64_t dict; /* the name under which its numbers are known */
	char *key;     /* tenant, service, day as bytes */
	size_t key_len;
	struct slice tenant, service; /* of the key */
	uint16_t day, keep;
	struct numbers frames, nodes, stacks, label_sets;
	struct ids new_nodes, new_stacks; /* of this flush, in the order of their numbers */
};

/* A row of a report, as it is written. */
struct written_row {
	uint32_t stack, label_set; /* the place's numbers */
	uint32_t from;		   /* which row of the report it is */
};

/* A series whose row was written for a day. */
struct told {
	uint64_t series;
	uint32_t day;
	bool labelled;
};

struct ch_dict {
	uint64_t id;
	uint32_t flushes;
	struct memtable *table;
	ch_keep_f *keep;
	void *keep_context;
	struct place *places;
	uint32_t places_count, places_capacity;
	struct idmap places_map;
	struct told *told;
	uint32_t told_count, told_capacity;
	struct idmap told_map;
	struct written_row *rows; /* scratch, likewise new_rows and moments */
	uint32_t *new_rows;	  /* by a report's rows */
	struct moment *moments;
	size_t rows_capacity, new_rows_capacity, moments_capacity;
};

struct ch_dict *ch_dict_new(uint64_t id, ch_keep_f *keep, void *keep_context)
{
	struct ch_dict *dict = mem_new(struct ch_dict);

	*dict = (struct ch_dict){
		.id = id, .table = memtable_new(1), .keep = keep, .keep_context = keep_context
	};
	return dict;
}

void ch_dict_free(struct ch_dict *dict)
{
	if (!dict)
		return;
	for (uint32_t i = 0; i < dict->places_count; i++) {
		struct place *place = &dict->places[i];

		free(place->key);
		numbers_free(&place->frames);
		numbers_free(&place->nodes);
		numbers_free(&place->stacks);
		numbers_free(&place->label_sets);
		free(place->new_nodes.items);
		free(place->new_stacks.items);
	}
	free(dict->places);
	free(dict->told);
	free(dict->rows);
	free(dict->new_rows);
	free(dict->moments);
	idmap_free(&dict->places_map);
	idmap_free(&dict->told_map);
	memtable_free(dict->table);
	free(dict);
}

size_t ch_dict_bytes(const struct ch_dict *dict)
{
	size_t bytes = memtable_bytes(dict->table) + dict->told_count * sizeof(struct told) * 2;

	for (uint32_t i = 0; i < dict->places_count; i++) {
		const struct place *place = &dict->places[i];

		bytes += sizeof(*place) + numbers_bytes(&place->frames) +
			 numbers_bytes(&place->nodes) + numbers_bytes(&place->stacks) +
			 numbers_bytes(&place->label_sets);
	}
	return bytes;
}

struct memtable *ch_dict_table(struct ch_dict *dict)
{
	return dict->table;
}

static bool place_equal(const void *context, uint32_t id, const void *key)
{
	const struct ch_dict *dict = context;
	const struct place *place = &dict->places[id];
	const struct slice *bytes = key;

	return slice_equal((struct slice){ place->key, place->key_len }, *bytes);
}

/* As random as the dictionary's own id. */
static uint64_t name_of(const struct ch_dict *dict, uint32_t place)
{
	const uint64_t parts[] = { dict->id, place };

	return hash_stable(parts, sizeof(parts), 0);
}

static struct place *find_place(struct ch_dict *dict, const struct part_key *key, uint16_t day)
{
	struct strbuf bytes = { 0 };
	struct place *place;
	struct slice slice;
	uint64_t hash;
	uint32_t id;

	strbuf_add_slice(&bytes, key->tenant);
	strbuf_add_slice(&bytes, key->service);
	strbuf_add_u32(&bytes, (uint32_t)key->tenant.len);
	strbuf_add_u32(&bytes, day);
	slice = strbuf_slice(&bytes);
	hash = identity_of_bytes(slice.data, slice.len).low;
	id = idmap_find(&dict->places_map, hash, place_equal, dict, &slice);
	if (id != IDMAP_NONE) {
		strbuf_free(&bytes);
		return &dict->places[id];
	}
	mem_grow(dict->places, dict->places_count, dict->places_capacity);
	place = &dict->places[dict->places_count];
	*place = (struct place){
		.dict = name_of(dict, dict->places_count),
		.key = bytes.data,
		.key_len = bytes.len,
		.tenant = { bytes.data, key->tenant.len },
		.service = { bytes.data + key->tenant.len, key->service.len },
		.day = day,
		.keep = dict->keep(dict->keep_context, key->tenant),
	};
	idmap_add(&dict->places_map, hash, dict->places_count++);
	return place;
}

static void put_place(const struct place *place, struct strbuf *rows)
{
	ch_put_text(rows, place->tenant);
	ch_put_text(rows, place->service);
	ch_put_u16(rows, place->day);
	ch_put_u16(rows, place->keep);
	strbuf_add_u64(rows, place->dict);
}

static void put_frame(const struct place *place, const struct tables_view *view, uint32_t id,
		      uint32_t number, struct strbuf *rows)
{
	const struct frame *frame = &view->frames[id];

	put_place(place, rows);
	strbuf_add_u32(rows, number);
	ch_put_u8(rows, (uint8_t)frame->kind);
	ch_put_u8(rows, (uint8_t)frame->flags);
	strbuf_add_u64(rows, frame->address);
	ch_put_text(rows, tables_text(view, frame->mapping_file));
	ch_put_text(rows, tables_text(view, frame->build_id));
	ch_put_text(rows, tables_text(view, frame->function));
	ch_put_text(rows, tables_text(view, frame->system_name));
	ch_put_text(rows, tables_text(view, frame->file));
	strbuf_add_u32(rows, frame->line);
	strbuf_add_u32(rows, frame->column);
	strbuf_add_u32(rows, frame->start_line);
}

/* The node and all that it hangs on get numbers, as far as they have none: callers first. */
static void add_nodes(struct place *place, const struct tables_view *view, uint32_t node,
		      struct ch_flush *flush)
{
	struct ids *added = &place->new_nodes;
	size_t first = added->count;
	uint32_t number;

	for (; node && !*numbers_at(&place->nodes, node); node = view->nodes[node].parent)
		ids_add(added, node);
	for (size_t low = first, high = added->count; low + 1 < high; low++) {
		uint32_t swapped = added->items[--high];

		added->items[high] = added->items[low];
		added->items[low] = swapped;
	}
	for (size_t i = first; i < added->count; i++) {
		uint32_t frame = view->nodes[added->items[i]].frame;

		numbers_add(&place->nodes, added->items[i], &number);
		if (numbers_add(&place->frames, frame, &number))
			put_frame(place, view, frame, number, &flush->frames);
	}
}

/* The number of a stack that ends at the node; 0: no frames. */
static uint32_t number_stack(struct place *place, const struct tables_view *view, uint32_t node,
			     struct ch_flush *flush)
{
	uint32_t number;

	if (!node)
		return 0;
	if (numbers_add(&place->stacks, node, &number)) {
		add_nodes(place, view, node, flush);
		ids_add(&place->new_stacks, node);
	}
	return number;
}

/* A row of the nodes and stacks that a place got by this flush. */
static void put_stacks(const struct ch_dict *dict, struct place *place,
		       const struct tables_view *view, struct strbuf *rows)
{
	const struct ids *nodes = &place->new_nodes, *stacks = &place->new_stacks;
	uint32_t first = place->nodes.count - (uint32_t)nodes->count + 1;

	if (!stacks->count)
		return;
	put_place(place, rows);
	strbuf_add_u32(rows, dict->flushes);
	strbuf_add_u32(rows, first);
	strbuf_add_varint(rows, nodes->count);
	for (uint32_t i = 0; i < nodes->count; i++) {
		uint32_t parent = view->nodes[nodes->items[i]].parent;

		strbuf_add_u32(rows, first + i - (parent ? *numbers_at(&place->nodes, parent) : 0));
	}
	strbuf_add_varint(rows, nodes->count);
	for (size_t i = 0; i < nodes->count; i++)
		strbuf_add_u32(rows,
			       *numbers_at(&place->frames, view->nodes[nodes->items[i]].frame));
	strbuf_add_u32(rows, place->stacks.count - (uint32_t)stacks->count + 1);
	strbuf_add_varint(rows, stacks->count);
	for (size_t i = 0; i < stacks->count; i++)
		strbuf_add_u32(rows, *numbers_at(&place->nodes, stacks->items[i]));
	place->new_nodes.count = place->new_stacks.count = 0;
}

/* Two columns: names, and values that are texts. */
static void put_labels(const struct tables_view *view, const struct label_set *set,
		       struct strbuf *rows)
{
	const struct label *labels = &view->labels[set->label_first];

	strbuf_add_varint(rows, set->label_count);
	for (uint32_t i = 0; i < set->label_count; i++)
		ch_put_text(rows, tables_text(view, labels[i].name));
	strbuf_add_varint(rows, set->label_count);
	for (uint32_t i = 0; i < set->label_count; i++)
		ch_put_text(rows, tables_text(view, labels[i].value));
}

static void put_label_set(const struct place *place, const struct tables_view *view, uint32_t id,
			  uint32_t number, struct strbuf *rows)
{
	const struct label_set *set = &view->label_sets[id];
	const struct label *labels = &view->labels[set->label_first];

	put_place(place, rows);
	strbuf_add_u32(rows, number);
	put_labels(view, set, rows);
	strbuf_add_varint(rows, set->label_count);
	for (uint32_t i = 0; i < set->label_count; i++)
		ch_put_text(rows, tables_text(view, labels[i].unit));
	strbuf_add_varint(rows, set->label_count);
	for (uint32_t i = 0; i < set->label_count; i++)
		strbuf_add_u64(rows, (uint64_t)labels[i].number);
	strbuf_add_varint(rows, set->label_count);
	for (uint32_t i = 0; i < set->label_count; i++)
		ch_put_u8(rows, labels[i].numeric != 0);
}

static bool told_equal(const void *context, uint32_t id, const void *key)
{
	const struct ch_dict *dict = context;
	const struct told *a = &dict->told[id], *b = key;

	return a->series == b->series && a->day == b->day && a->labelled == b->labelled;
}

static bool tell(struct ch_dict *dict, const struct told *told)
{
	uint64_t hash = told->series ^ ((uint64_t)told->day << 1 | told->labelled);

	if (idmap_find(&dict->told_map, hash, told_equal, dict, told) != IDMAP_NONE)
		return false;
	mem_grow(dict->told, dict->told_count, dict->told_capacity);
	dict->told[dict->told_count] = *told;
	idmap_add(&dict->told_map, hash, dict->told_count++);
	return true;
}

static void put_series(const struct place *place, const struct tables_view *view, uint32_t id,
		       const struct told *told, struct strbuf *rows)
{
	const struct group *group = &view->groups[view->series[id].group];
	const struct label_set *set = &view->label_sets[view->series[id].label_set];
	const struct column *columns = &view->columns[group->column_first];

	ch_put_text(rows, place->tenant);
	ch_put_text(rows, tables_text(view, group->name));
	ch_put_text(rows, place->service);
	ch_put_u16(rows, place->day);
	ch_put_u16(rows, place->keep);
	strbuf_add_u64(rows, told->series);
	ch_put_u8(rows, told->labelled);
	put_labels(view, set, rows);
	strbuf_add_varint(rows, group->column_count);
	for (uint32_t i = 0; i < group->column_count; i++)
		ch_put_text(rows, tables_text(view, columns[i].sample_type));
	strbuf_add_varint(rows, group->column_count);
	for (uint32_t i = 0; i < group->column_count; i++)
		ch_put_text(rows, tables_text(view, columns[i].sample_unit));
	strbuf_add_varint(rows, group->column_count);
	for (uint32_t i = 0; i < group->column_count; i++)
		ch_put_u8(rows, (uint8_t)columns[i].kind);
	ch_put_text(rows, tables_text(view, group->period_type));
	ch_put_text(rows, tables_text(view, group->period_unit));
	strbuf_add_u64(rows, (uint64_t)group->period);
}

static bool has_label_sets(const struct tables_view *view, const struct report *report)
{
	for (uint32_t i = 0; i < report->row_count; i++)
		if (view->rows[report->row_first + i].label_set)
			return true;
	return false;
}

static int row_order(const void *left, const void *right)
{
	const struct written_row *a = left, *b = right;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->label_set != b->label_set)
		return a->label_set < b->label_set ? -1 : 1;
	return (a->from > b->from) - (a->from < b->from);
}

/* The report's rows in the order of their stacks' numbers, in dict->rows. */
static void number_rows(struct ch_dict *dict, struct place *place, const struct tables_view *view,
			const struct report *report, struct ch_flush *flush)
{
	dict->rows = ch_scratch(dict->rows, report->row_count, &dict->rows_capacity,
				sizeof(*dict->rows));
	for (uint32_t i = 0; i < report->row_count; i++) {
		const struct row *row = &view->rows[report->row_first + i];
		uint32_t labels = 0;

		if (row->label_set && numbers_add(&place->label_sets, row->label_set, &labels))
			put_label_set(place, view, row->label_set, labels, &flush->label_sets);
		dict->rows[i] = (struct written_row){
			.stack = number_stack(place, view, row->stack, flush),
			.label_set = labels,
			.from = i,
		};
	}
	if (report->row_count)
		qsort(dict->rows, report->row_count, sizeof(*dict->rows), row_order);
}

/* The report's moments, whose rows are those of dict->rows, in their order. */
static const struct moment *moments_of(struct ch_dict *dict, const struct tables_view *view,
				       const struct report *report)
{
	uint32_t count = report->moment_count;

	dict->new_rows = ch_scratch(dict->new_rows, report->row_count, &dict->new_rows_capacity,
				    sizeof(*dict->new_rows));
	dict->moments =
		ch_scratch(dict->moments, count, &dict->moments_capacity, sizeof(*dict->moments));
	for (uint32_t i = 0; i < report->row_count; i++)
		dict->new_rows[dict->rows[i].from] = i;
	for (uint32_t i = 0; i < count; i++) {
		dict->moments[i] = view->moments[report->moment_first + i];
		dict->moments[i].row = dict->new_rows[dict->moments[i].row];
	}
	tables_order_moments(dict->moments, count);
	return dict->moments;
}

static void put_moments(const struct tables_view *view, const struct moment *moments,
			uint32_t count, struct strbuf *rows)
{
	uint32_t links = 0;

	strbuf_add_varint(rows, count);
	for (uint32_t i = 0; i < count; i++)
		strbuf_add_u32(rows, moments[i].row);
	strbuf_add_varint(rows, count);
	for (uint32_t i = 0; i < count; i++)
		strbuf_add_u32(rows, moments[i].tick);
	for (uint32_t i = 0; i < count && !links; i++)
		links = moments[i].link ? count : 0;
	strbuf_add_varint(rows, links);
	for (uint32_t i = 0; i < links; i++) {
		const struct trace_link *link = &view->links[moments[i].link];

		strbuf_add(rows, link->trace_id, sizeof(link->trace_id));
		strbuf_add(rows, link->span_id, sizeof(link->span_id));
	}
}

/* Values column by column, as they compress better. */
static void put_values(const struct ch_dict *dict, const struct tables_view *view,
		       const struct report *report, uint32_t columns, struct strbuf *rows)
{
	const int64_t *values = &view->values[report->value_first];

	strbuf_add_varint(rows, (uint64_t)report->row_count * columns);
	for (uint32_t column = 0; column < columns; column++)
		for (uint32_t i = 0; i < report->row_count; i++)
			strbuf_add_u64(
				rows,
				(uint64_t)values[(size_t)dict->rows[i].from * columns + column]);
}

/*
 * `rank`: of two reports with one identity, the one with rows counts. The other is of a server that
 * had nothing to subtract from (batch/baseline.h).
 */
static void put_report(struct ch_dict *dict, const struct place *place,
		       const struct tables_view *view, const struct report *report, uint64_t series,
		       bool labelled, struct strbuf *rows)
{
	const struct group *group = &view->groups[view->series[report->series].group];

	ch_put_text(rows, place->tenant);
	ch_put_text(rows, tables_text(view, group->name));
	ch_put_text(rows, place->service);
	strbuf_add_u64(rows, (uint64_t)report->start_ns);
	strbuf_add_u64(rows, series);
	strbuf_add_u64(rows, report->batch_id);
	ch_put_u8(rows, report->row_count > 0);
	ch_put_u16(rows, place->keep);
	strbuf_add_u64(rows, (uint64_t)report->duration_ns);
	strbuf_add_u64(rows, place->dict);
	strbuf_add_varint(rows, group->column_count);
	for (uint32_t i = 0; i < group->column_count; i++)
		strbuf_add_u64(rows, (uint64_t)view->totals[report->total_first + i]);
	strbuf_add_varint(rows, report->row_count);
	for (uint32_t i = 0; i < report->row_count; i++)
		strbuf_add_u32(rows, dict->rows[i].stack);
	put_values(dict, view, report, group->column_count, rows);
	strbuf_add_varint(rows, labelled ? report->row_count : 0);
	for (uint32_t i = 0; labelled && i < report->row_count; i++)
		strbuf_add_u32(rows, dict->rows[i].label_set);
	put_moments(view, moments_of(dict, view, report), report->moment_count, rows);
}

static void flush_report(struct ch_dict *dict, const struct tables_view *view,
			 const struct report *report, struct ch_flush *flush)
{
	struct part_key key = part_key_of(view, view->series[report->series].label_set, NULL);
	struct place *place = find_place(dict, &key, (uint16_t)(report->start_ns / DAY_NS));
	const struct told told = { .series = identity_of_series(view, report->series).low,
				   .day = place->day,
				   .labelled = has_label_sets(view, report) };

	assert(report->start_ns >= 0);
	number_rows(dict, place, view, report, flush);
	if (tell(dict, &told))
		put_series(place, view, report->series, &told, &flush->series);
	put_report(dict, place, view, report, told.series, told.labelled, &flush->reports);
	flush->reports_count++;
}

/* Reports leave; what they name stays. */
static void empty(struct memtable *table)
{
	vmarray_reset(&table->tables.reports, KEEP_BYTES);
	vmarray_reset(&table->tables.rows, KEEP_BYTES);
	vmarray_reset(&table->tables.values, KEEP_BYTES);
	vmarray_reset(&table->tables.totals, KEEP_BYTES);
	vmarray_reset(&table->tables.moments, KEEP_BYTES);
	table->min_start_ns = INT64_MAX;
	table->max_start_ns = INT64_MIN;
	memtable_check(table);
}

void ch_dict_flush(struct ch_dict *dict, struct ch_flush *ret)
{
	struct tables_view view = tables_view_of(&dict->table->tables);

	*ret = (struct ch_flush){ 0 };
	for (uint32_t i = 0; i < view.reports_count; i++)
		flush_report(dict, &view, &view.reports[i], ret);
	for (uint32_t i = 0; i < dict->places_count; i++)
		put_stacks(dict, &dict->places[i], &view, &ret->stacks);
	empty(dict->table);
	dict->flushes++;
}

void ch_flush_free(struct ch_flush *flush)
{
	strbuf_free(&flush->frames);
	strbuf_free(&flush->stacks);
	strbuf_free(&flush->label_sets);
	strbuf_free(&flush->series);
	strbuf_free(&flush->reports);
}
