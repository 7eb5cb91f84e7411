/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_dict.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/clickhouse/ch_rows.h"
#include "server/persist/part/part_key.h"

#define KEEP_BYTES ((size_t)4 << 20) /* of emptied arrays */
#define DAY_NS (86400 * CLOCK_NS_PER_S)

/* A set of numbers that grows with them. */
struct numbers {
	uint64_t *bits;
	size_t words;
};

static bool numbers_add(struct numbers *numbers, uint32_t number)
{
	size_t word = number / 64;
	uint64_t bit = (uint64_t)1 << number % 64;

	if (word >= numbers->words) {
		size_t words = word + word / 2 + 16;

		numbers->bits = mem_realloc(numbers->bits, words, sizeof(uint64_t));
		for (size_t i = numbers->words; i < words; i++)
			numbers->bits[i] = 0;
		numbers->words = words;
	}
	if (numbers->bits[word] & bit)
		return false;
	numbers->bits[word] |= bit;
	return true;
}

struct place {
	char *key; /* tenant, service, day as bytes */
	size_t key_len;
	struct slice tenant, service; /* of the key */
	uint16_t day, keep;
	struct numbers frames, nodes, label_sets;
	uint32_t *added; /* nodes of this flush */
	size_t added_count, added_capacity;
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
		free(place->frames.bits);
		free(place->nodes.bits);
		free(place->label_sets.bits);
		free(place->added);
	}
	free(dict->places);
	free(dict->told);
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

		bytes += sizeof(*place) +
			 (place->frames.words + place->nodes.words + place->label_sets.words) *
				 sizeof(uint64_t);
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

static void put_place(const struct ch_dict *dict, const struct place *place, struct strbuf *rows)
{
	ch_put_text(rows, place->tenant);
	ch_put_text(rows, place->service);
	ch_put_u16(rows, place->day);
	ch_put_u16(rows, place->keep);
	strbuf_add_u64(rows, dict->id);
}

static void put_frame(const struct ch_dict *dict, const struct place *place,
		      const struct tables_view *view, uint32_t id, struct strbuf *rows)
{
	const struct frame *frame = &view->frames[id];

	put_place(dict, place, rows);
	strbuf_add_u32(rows, id);
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

/* The stack with all that it hangs on, as far as the place lacks it. */
static void add_stack(const struct ch_dict *dict, struct place *place,
		      const struct tables_view *view, uint32_t node, struct ch_flush *flush)
{
	for (; node && numbers_add(&place->nodes, node); node = view->nodes[node].parent) {
		uint32_t frame = view->nodes[node].frame;

		mem_grow(place->added, place->added_count, place->added_capacity);
		place->added[place->added_count++] = node;
		if (numbers_add(&place->frames, frame))
			put_frame(dict, place, view, frame, &flush->frames);
	}
}

static int number_order(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* A row of all nodes that a place got by this flush: parents stand before children. */
static void put_stacks(const struct ch_dict *dict, struct place *place,
		       const struct tables_view *view, struct strbuf *rows)
{
	if (!place->added_count)
		return;
	qsort(place->added, place->added_count, sizeof(uint32_t), number_order);
	put_place(dict, place, rows);
	strbuf_add_u32(rows, dict->flushes);
	strbuf_add_varint(rows, place->added_count);
	for (size_t i = 0; i < place->added_count; i++)
		strbuf_add_u32(rows, place->added[i]);
	strbuf_add_varint(rows, place->added_count);
	for (size_t i = 0; i < place->added_count; i++)
		strbuf_add_u32(rows, view->nodes[place->added[i]].parent);
	strbuf_add_varint(rows, place->added_count);
	for (size_t i = 0; i < place->added_count; i++)
		strbuf_add_u32(rows, view->nodes[place->added[i]].frame);
	place->added_count = 0;
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

static void put_label_set(const struct ch_dict *dict, const struct place *place,
			  const struct tables_view *view, uint32_t id, struct strbuf *rows)
{
	const struct label_set *set = &view->label_sets[id];
	const struct label *labels = &view->labels[set->label_first];

	put_place(dict, place, rows);
	strbuf_add_u32(rows, id);
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

static void put_moments(const struct tables_view *view, const struct report *report,
			struct strbuf *rows)
{
	const struct moment *moments = &view->moments[report->moment_first];
	uint32_t count = report->moment_count, links = 0;

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
static void put_values(const struct tables_view *view, const struct report *report,
		       uint32_t columns, struct strbuf *rows)
{
	const int64_t *values = &view->values[report->value_first];

	strbuf_add_varint(rows, (uint64_t)report->row_count * columns);
	for (uint32_t column = 0; column < columns; column++)
		for (uint32_t i = 0; i < report->row_count; i++)
			strbuf_add_u64(rows, (uint64_t)values[(size_t)i * columns + column]);
}

/*
 * `rank`: of two reports with one identity, the one with rows counts. The other is of a server that
 * had nothing to subtract from (batch/baseline.h).
 */
static void put_report(const struct ch_dict *dict, const struct place *place,
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
	strbuf_add_u64(rows, dict->id);
	strbuf_add_varint(rows, group->column_count);
	for (uint32_t i = 0; i < group->column_count; i++)
		strbuf_add_u64(rows, (uint64_t)view->totals[report->total_first + i]);
	strbuf_add_varint(rows, report->row_count);
	for (uint32_t i = 0; i < report->row_count; i++)
		strbuf_add_u32(rows, view->rows[report->row_first + i].stack);
	put_values(view, report, group->column_count, rows);
	strbuf_add_varint(rows, labelled ? report->row_count : 0);
	for (uint32_t i = 0; labelled && i < report->row_count; i++)
		strbuf_add_u32(rows, view->rows[report->row_first + i].label_set);
	put_moments(view, report, rows);
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
	for (uint32_t i = 0; i < report->row_count; i++) {
		const struct row *row = &view->rows[report->row_first + i];

		add_stack(dict, place, view, row->stack, flush);
		if (row->label_set && numbers_add(&place->label_sets, row->label_set))
			put_label_set(dict, place, view, row->label_set, &flush->label_sets);
	}
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
