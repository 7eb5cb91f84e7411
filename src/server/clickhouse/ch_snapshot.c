/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading. A snapshot is one set of plain tables, made in three steps: which series are meant
 * (ch_series.c), their reports of the time, and what the reports' dictionaries say about the stacks
 * that they name. Stacks of different dictionaries that are the same become one.
 *
 * Memory is bounded: all snapshots together, with ClickHouse's answers while they are made, take it
 * from store->memory. A query over more fails.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "server/clickhouse/ch_rows.h"
#include "server/clickhouse/ch_store_int.h"
#include "server/persist/log/tables_check.h"

#define DICT_NUMBERS_MAX ((uint32_t)1 << 25) /* of a kind; a writer begins anew long before */
#define ROWS_BETWEEN_CHECKS 4096u

/* Numbers of one dictionary, and what they are here, plus one; 0: not known. */
struct translation {
	uint32_t *ids;
	uint32_t count;
};

struct pins {
	struct tables tables;
	size_t taken; /* of store->memory, until the release */
};

struct dict {
	uint64_t id;
	struct translation frames, nodes, label_sets;
};

struct reading {
	struct ch_store *store;
	const struct store_query *query;
	struct ch_wanted wanted;
	struct ch_catalogue catalogue;
	struct strbuf reports; /* rows of firn_report */
	struct dict *dicts;
	uint32_t dicts_count, dicts_capacity;
	struct idmap dicts_map;
	struct pins *pins;
	struct tables *tables;		/* of the pins */
	size_t taken;			/* of store->memory */
	struct tables_copy series_copy; /* from the catalogue */
	uint64_t unreadable;
	struct row *rows; /* scratch, likewise values and moments */
	int64_t *values;
	struct moment *moments;
	size_t rows_capacity, values_capacity, moments_capacity;
};

static int malformed(const char *table, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		       "ClickHouse: a row of %s cannot be read; is the table of another firn?",
		       table);
}

static int too_large(const struct reading *reading, struct err *err)
{
	return err_set(err, ERR_NO_MEMORY,
		       "profiles of that time and of other running queries take more than %lld MiB "
		       "of memory; ask for a shorter time or for fewer series, or raise "
		       "--query-memory",
		       (long long)(reading->store->memory.max_bytes >> 20));
}

/* Pays for `bytes` in all, besides the tables. */
static int pay(struct reading *reading, size_t bytes, struct err *err)
{
	size_t all = bytes + tables_bytes(reading->tables);

	if (all > reading->taken && !budget_take(&reading->store->memory, all - reading->taken))
		return too_large(reading, err);
	if (all < reading->taken)
		budget_give(&reading->store->memory, reading->taken - all);
	reading->taken = all;
	return 0;
}

/* Where the number's translation stands; NULL when it is out of bounds. */
static uint32_t *translate(struct translation *translation, uint32_t number)
{
	if (number >= DICT_NUMBERS_MAX)
		return NULL;
	if (number >= translation->count) {
		uint32_t count = number + number / 2 + 64;

		translation->ids = mem_realloc(translation->ids, count, sizeof(uint32_t));
		memset(translation->ids + translation->count, 0,
		       (count - translation->count) * sizeof(uint32_t));
		translation->count = count;
	}
	return &translation->ids[number];
}

static uint32_t known(const struct translation *translation, uint32_t number)
{
	return number < translation->count ? translation->ids[number] : 0;
}

static bool dict_equal(const void *context, uint32_t id, const void *key)
{
	const struct reading *reading = context;

	return reading->dicts[id].id == *(const uint64_t *)key;
}

static struct dict *find_dict(const struct reading *reading, uint64_t id)
{
	uint32_t at = idmap_find(&reading->dicts_map, id, dict_equal, reading, &id);

	return at == IDMAP_NONE ? NULL : &reading->dicts[at];
}

static void add_dict(struct reading *reading, uint64_t id)
{
	if (find_dict(reading, id))
		return;
	mem_grow(reading->dicts, reading->dicts_count, reading->dicts_capacity);
	reading->dicts[reading->dicts_count] = (struct dict){ .id = id };
	idmap_add(&reading->dicts_map, id, reading->dicts_count++);
}

/* " AND NAME IN (...)" of the services of the series that are meant, unless they are very many. */
static void add_services(struct reading *reading, struct strbuf *sql)
{
	const struct ch_catalogue *catalogue = &reading->catalogue;
	struct tables_view view = tables_view_of(&catalogue->tables);
	uint8_t *seen = mem_new_array(uint8_t, view.strings_count);
	struct strbuf list = { 0 };
	uint32_t count = 0;

	for (uint32_t i = 0; i < catalogue->count; i++) {
		uint32_t service = catalogue->items[i].service;

		if (seen[service])
			continue;
		seen[service] = 1;
		strbuf_add_text(&list, count++ ? "," : "");
		ch_add_text(&list, tables_text(&view, service));
	}
	if (list.len < (size_t)64 << 10)
		strbuf_addf(sql, " AND service IN (%s)", strbuf_text(&list));
	strbuf_free(&list);
	free(seen);
}

static void add_series(const struct reading *reading, struct strbuf *sql)
{
	const struct ch_catalogue *catalogue = &reading->catalogue;

	if (catalogue->count > CH_IDS_MAX)
		return; /* those that are not meant are left out when they have come */
	strbuf_add_text(sql, " AND series IN (");
	for (uint32_t i = 0; i < catalogue->count; i++)
		strbuf_addf(sql, "%s%llu", i ? "," : "",
			    (unsigned long long)catalogue->items[i].id);
	strbuf_add_text(sql, ")");
}

static bool wants_moments(const struct store_query *query)
{
	return !query->sums_only && !query->step_ns;
}

static int read_reports(struct reading *reading, struct err *err)
{
	struct strbuf sql = { 0 };
	int rc;

	strbuf_add_text(&sql, "SELECT series, toUnixTimestamp64Nano(start), batch, duration, dict, "
			      "stacks, vals, lsets");
	if (wants_moments(reading->query))
		strbuf_add_text(&sql, ", moment_rows, moment_ticks, moment_links");
	strbuf_add_text(&sql, " FROM firn_report FINAL");
	ch_add_where(&sql, &reading->wanted);
	add_services(reading, &sql);
	add_series(reading, &sql);
	rc = ch_store_read(reading->store, &sql, ch_store_bytes_left(reading->store),
			   &reading->reports, err);
	strbuf_free(&sql);
	return rc ? rc : pay(reading, reading->reports.len, err);
}

/* A report as it lies in its row. */
struct raw {
	uint64_t series, batch, dict;
	int64_t start_ns, duration_ns;
	uint32_t rows, values, labels, moments, links;
	struct slice stacks_bytes, values_bytes, labels_bytes, rows_bytes, ticks_bytes, links_bytes;
};

static struct slice take_array(struct byte_reader *in, size_t element_bytes, uint32_t *ret_count)
{
	*ret_count = ch_take_count(in, element_bytes);
	return byte_reader_bytes(in, *ret_count * element_bytes);
}

static bool take_raw(struct byte_reader *in, bool with_moments, struct raw *ret)
{
	uint32_t ticks;

	*ret = (struct raw){ 0 };
	ret->series = byte_reader_u64(in);
	ret->start_ns = (int64_t)byte_reader_u64(in);
	ret->batch = byte_reader_u64(in);
	ret->duration_ns = (int64_t)byte_reader_u64(in);
	ret->dict = byte_reader_u64(in);
	ret->stacks_bytes = take_array(in, 4, &ret->rows);
	ret->values_bytes = take_array(in, 8, &ret->values);
	ret->labels_bytes = take_array(in, 4, &ret->labels);
	if (ret->labels && ret->labels != ret->rows)
		return false;
	if (with_moments) {
		ret->rows_bytes = take_array(in, 4, &ret->moments);
		ret->ticks_bytes = take_array(in, 4, &ticks);
		ret->links_bytes = take_array(in, 24, &ret->links);
		if (ticks != ret->moments || (ret->links && ret->links != ret->moments))
			return false;
	}
	return !in->failed;
}

static uint32_t u32_at(struct slice bytes, uint32_t at)
{
	uint32_t value;

	memcpy(&value, bytes.data + (size_t)at * 4, 4);
	return value;
}

static int64_t i64_at(struct slice bytes, uint64_t at)
{
	int64_t value;

	memcpy(&value, bytes.data + at * 8, 8);
	return value;
}

static int find_dicts(struct reading *reading, struct err *err)
{
	struct byte_reader in = byte_reader_of(strbuf_slice(&reading->reports));
	struct raw raw;

	while (byte_reader_left(&in)) {
		if (!take_raw(&in, wants_moments(reading->query), &raw))
			return malformed("firn_report", err);
		if (ch_catalogue_find(&reading->catalogue, raw.series))
			add_dict(reading, raw.dict);
	}
	return 0;
}

/* " FROM table WHERE ...": rows of the dictionaries that are needed. */
static void add_dict_where(struct reading *reading, const char *table, struct strbuf *sql)
{
	const struct ch_wanted *wanted = &reading->wanted;

	strbuf_addf(sql, " FROM %s WHERE 1", table);
	if (wanted->one_tenant) {
		strbuf_add_text(sql, " AND tenant = ");
		ch_add_text(sql, wanted->tenant);
	}
	if (wanted->from_ns > 0)
		strbuf_addf(sql, " AND day >= toDate(%lld)",
			    (long long)(wanted->from_ns / CH_DAY_NS));
	if (wanted->to_ns < INT64_MAX)
		strbuf_addf(sql, " AND day <= toDate(%lld)",
			    (long long)(wanted->to_ns / CH_DAY_NS));
	add_services(reading, sql);
	if (reading->dicts_count > CH_IDS_MAX)
		return;
	strbuf_add_text(sql, " AND dict IN (");
	for (uint32_t i = 0; i < reading->dicts_count; i++)
		strbuf_addf(sql, "%s%llu", i ? "," : "", (unsigned long long)reading->dicts[i].id);
	strbuf_add_text(sql, ")");
}

typedef int take_row_f(struct reading *reading, struct byte_reader *in, struct dict *dict,
		       struct err *err);

/* Each row begins with its dictionary. Others than those that are needed are read over. */
static int read_dict_rows(struct reading *reading, const char *columns, const char *table,
			  const char *order, take_row_f *take, struct err *err)
{
	struct strbuf sql = { 0 }, rows = { 0 };
	struct byte_reader in;
	uint32_t count = 0;
	int rc;

	strbuf_addf(&sql, "SELECT dict, %s", columns);
	add_dict_where(reading, table, &sql);
	strbuf_add_text(&sql, order);
	rc = ch_store_read(reading->store, &sql, ch_store_bytes_left(reading->store), &rows, err);
	in = byte_reader_of(strbuf_slice(&rows));
	while (!rc && byte_reader_left(&in)) {
		struct dict *dict = find_dict(reading, byte_reader_u64(&in));

		rc = take(reading, &in, dict, err);
		if (!rc && in.failed)
			rc = malformed(table, err);
		if (!rc && !(count++ % ROWS_BETWEEN_CHECKS))
			rc = pay(reading, reading->reports.len + rows.len, err);
	}
	strbuf_free(&sql);
	strbuf_free(&rows);
	return rc;
}

static int take_frame(struct reading *reading, struct byte_reader *in, struct dict *dict,
		      struct err *err)
{
	uint32_t number = byte_reader_u32(in), *id;
	struct slice texts[5];
	struct frame frame = { .kind = (uint32_t)byte_reader_fixed(in, 1) };

	frame.flags = (uint32_t)byte_reader_fixed(in, 1);
	frame.address = byte_reader_u64(in);
	for (size_t i = 0; i < 5; i++)
		texts[i] = ch_take_text(in);
	frame.line = byte_reader_u32(in);
	frame.column = byte_reader_u32(in);
	frame.start_line = byte_reader_u32(in);
	if (in->failed || !dict)
		return 0;
	id = translate(&dict->frames, number);
	if (!id || frame.kind >= FRAME_KINDS)
		return malformed("firn_frame", err);
	if (*id)
		return 0;
	frame.mapping_file = tables_string(reading->tables, texts[0]);
	frame.build_id = tables_string(reading->tables, texts[1]);
	frame.function = tables_string(reading->tables, texts[2]);
	frame.system_name = tables_string(reading->tables, texts[3]);
	frame.file = tables_string(reading->tables, texts[4]);
	*id = tables_frame(reading->tables, &frame) + 1;
	return *id ? 0 : too_large(reading, err); /* TABLES_FULL + 1 */
}

static int take_stacks(struct reading *reading, struct byte_reader *in, struct dict *dict,
		       struct err *err)
{
	uint32_t count, parents_count, frames_count;
	struct slice nodes = take_array(in, 4, &count);
	struct slice parents = take_array(in, 4, &parents_count);
	struct slice frames = take_array(in, 4, &frames_count);

	if (in->failed || !dict)
		return 0;
	if (parents_count != count || frames_count != count)
		return malformed("firn_stack", err);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = u32_at(nodes, i), parent = u32_at(parents, i);
		uint32_t frame = known(&dict->frames, u32_at(frames, i));
		uint32_t *id = translate(&dict->nodes, number);
		uint32_t parent_id = parent ? known(&dict->nodes, parent) : 1;

		if (!id || !number || parent >= number)
			return malformed("firn_stack", err);
		if (*id || !frame || !parent_id)
			continue; /* there already; or incomplete, and so are its reports */
		*id = tables_node(reading->tables, parent_id - 1, frame - 1) + 1;
		if (!*id)
			return too_large(reading, err);
	}
	return 0;
}

static int take_label_set(struct reading *reading, struct byte_reader *in, struct dict *dict,
			  struct err *err)
{
	struct label labels[TABLES_LABELS_PER_SET_MAX] = { 0 };
	struct tables *tables = reading->tables;
	uint32_t number = byte_reader_u32(in), counts[5], *id;

	counts[0] = ch_take_count(in, 1);
	if (counts[0] > TABLES_LABELS_PER_SET_MAX)
		return malformed("firn_label_set", err);
	for (uint32_t i = 0; i < counts[0]; i++)
		labels[i].name = tables_string(tables, ch_take_text(in));
	counts[1] = ch_take_count(in, 1);
	for (uint32_t i = 0; i < counts[1] && counts[1] == counts[0]; i++)
		labels[i].value = tables_string(tables, ch_take_text(in));
	counts[2] = ch_take_count(in, 1);
	for (uint32_t i = 0; i < counts[2] && counts[2] == counts[0]; i++)
		labels[i].unit = tables_string(tables, ch_take_text(in));
	counts[3] = ch_take_count(in, 8);
	for (uint32_t i = 0; i < counts[3] && counts[3] == counts[0]; i++)
		labels[i].number = (int64_t)byte_reader_u64(in);
	counts[4] = ch_take_count(in, 1);
	for (uint32_t i = 0; i < counts[4] && counts[4] == counts[0]; i++)
		labels[i].numeric = byte_reader_fixed(in, 1) != 0;
	if (in->failed)
		return 0;
	for (size_t i = 1; i < 5; i++)
		if (counts[i] != counts[0])
			return malformed("firn_label_set", err);
	if (!dict)
		return 0;
	id = translate(&dict->label_sets, number);
	if (!id)
		return malformed("firn_label_set", err);
	if (!*id)
		*id = tables_label_set(tables, labels, counts[0]) + 1;
	return *id ? 0 : too_large(reading, err);
}

static int read_dicts(struct reading *reading, struct err *err)
{
	int rc = read_dict_rows(reading,
				"frame, kind, flags, address, mapping, build_id, function, "
				"system_name, file, line, col, start_line",
				"firn_frame", " ORDER BY dict, frame", take_frame, err);

	/* In the order in which they were written: no stack comes before what it hangs on. */
	if (!rc)
		rc = read_dict_rows(reading, "nodes, parents, frames", "firn_stack",
				    " ORDER BY dict, flush", take_stacks, err);
	if (!rc)
		rc = read_dict_rows(reading, "lset, names, texts, units, numbers, numeric",
				    "firn_label_set", " ORDER BY dict, lset", take_label_set, err);
	return rc;
}

static void *scratch(void *memory, size_t count, size_t *capacity, size_t size)
{
	if (count <= *capacity)
		return memory;
	*capacity = count + count / 2;
	return mem_realloc(memory, *capacity, size);
}

/* False: the dictionary lacks what the report names. */
static bool translate_rows(struct reading *reading, const struct raw *raw, const struct dict *dict)
{
	reading->rows =
		scratch(reading->rows, raw->rows, &reading->rows_capacity, sizeof(*reading->rows));
	for (uint32_t i = 0; i < raw->rows; i++) {
		uint32_t node = u32_at(raw->stacks_bytes, i), stack = 1, labels = 1;

		if (node)
			stack = known(&dict->nodes, node);
		if (raw->labels && u32_at(raw->labels_bytes, i))
			labels = known(&dict->label_sets, u32_at(raw->labels_bytes, i));
		if (!stack || !labels)
			return false;
		reading->rows[i] = (struct row){ stack - 1, labels - 1 };
	}
	return true;
}

static void take_values(struct reading *reading, const struct raw *raw, uint32_t columns)
{
	reading->values = scratch(reading->values, raw->values, &reading->values_capacity,
				  sizeof(*reading->values));
	for (uint32_t column = 0; column < columns; column++)
		for (uint32_t i = 0; i < raw->rows; i++)
			reading->values[(size_t)i * columns + column] =
				i64_at(raw->values_bytes, (uint64_t)column * raw->rows + i);
}

/* Times whose rows or order are wrong are left out: the report is whole without them. */
static void add_moments(struct reading *reading, const struct raw *raw)
{
	if (!raw->moments)
		return;
	reading->moments = scratch(reading->moments, raw->moments, &reading->moments_capacity,
				   sizeof(*reading->moments));
	for (uint32_t i = 0; i < raw->moments; i++) {
		struct moment *moment = &reading->moments[i];

		*moment = (struct moment){ u32_at(raw->rows_bytes, i), u32_at(raw->ticks_bytes, i),
					   0 };
		if (raw->links) {
			struct trace_link link;

			memcpy(&link, raw->links_bytes.data + (size_t)i * sizeof(link),
			       sizeof(link));
			moment->link = tables_link(reading->tables, &link);
		}
		if (moment->row >= raw->rows || moment->link == TABLES_FULL)
			return;
	}
	tables_order_moments(reading->moments, raw->moments);
	tables_moments(reading->tables, reading->moments, raw->moments);
}

static int add_report(struct reading *reading, const struct raw *raw, struct err *err)
{
	const struct ch_series *item = ch_catalogue_find(&reading->catalogue, raw->series);
	const struct dict *dict = find_dict(reading, raw->dict);
	uint32_t columns, series;

	if (!item)
		return 0;
	assert(dict);
	columns = tables_series_columns(&reading->series_copy.from, item->series);
	if (raw->values != (uint64_t)raw->rows * columns)
		return malformed("firn_report", err);
	if (!translate_rows(reading, raw, dict)) {
		reading->unreadable++;
		return 0;
	}
	take_values(reading, raw, columns);
	series = tables_copy_series(&reading->series_copy, item->series);
	if (series == TABLES_FULL ||
	    tables_report_begin(reading->tables, series, raw->start_ns, raw->duration_ns,
				raw->batch) == TABLES_FULL)
		return too_large(reading, err);
	if (!tables_rows(reading->tables, reading->rows, raw->rows, reading->values))
		return too_large(reading, err);
	add_moments(reading, raw);
	return 0;
}

static int add_reports(struct reading *reading, struct err *err)
{
	struct byte_reader in = byte_reader_of(strbuf_slice(&reading->reports));
	struct tables_view view = tables_view_of(&reading->catalogue.tables);
	uint64_t rows = 0;
	struct raw raw;
	int rc = 0;

	tables_copy_begin(&reading->series_copy, reading->tables, &view);
	while (!rc && byte_reader_left(&in)) {
		bool is_whole = take_raw(&in, wants_moments(reading->query), &raw);

		assert(is_whole); /* find_dicts has read them all */
		rc = add_report(reading, &raw, err);
		rows += raw.rows + 1;
		if (!rc && rows >= ROWS_BETWEEN_CHECKS) {
			rows = 0;
			rc = pay(reading, reading->reports.len, err);
		}
	}
	tables_copy_end(&reading->series_copy);
	return rc;
}

static int read_all(struct reading *reading, struct err *err)
{
	int rc = ch_catalogue_read(reading->store, &reading->wanted, &reading->catalogue, err);

	if (rc || !reading->catalogue.count)
		return rc;
	rc = read_reports(reading, err);
	if (!rc)
		rc = find_dicts(reading, err);
	if (!rc && reading->dicts_count)
		rc = read_dicts(reading, err);
	if (!rc)
		rc = add_reports(reading, err);
	return rc;
}

/* What came is a stranger's: from here on nobody checks an id. */
static int check(const struct reading *reading, struct err *err)
{
	struct tables_view view = tables_view_of(reading->tables);

	return tables_check(&view, err) ? err_wrap(err, "ClickHouse: the tables of firn") : 0;
}

static void reading_free(struct reading *reading)
{
	ch_catalogue_free(&reading->catalogue);
	strbuf_free(&reading->reports);
	for (uint32_t i = 0; i < reading->dicts_count; i++) {
		free(reading->dicts[i].frames.ids);
		free(reading->dicts[i].nodes.ids);
		free(reading->dicts[i].label_sets.ids);
	}
	free(reading->dicts);
	idmap_free(&reading->dicts_map);
	free(reading->rows);
	free(reading->values);
	free(reading->moments);
}

static void show(struct reading *reading, struct store_snapshot *ret)
{
	struct tables_view view = tables_view_of(reading->tables);

	*ret = (struct store_snapshot){ .segments = mem_new(struct segment),
					.count = 1,
					.parts_unreadable = reading->unreadable > 0,
					.pins = reading->pins };
	segment_of_tables(ret->segments, &view);
	ret->segments->from_ns = reading->query->from_ns;
	ret->segments->to_ns = reading->query->to_ns;
	metric_add(&ch_unreadable, (int64_t)reading->unreadable);
}

static void unpin(struct ch_store *store, struct pins *pins)
{
	budget_give(&store->memory, pins->taken);
	tables_free(&pins->tables);
	free(pins);
}

int ch_snapshot(struct store *base, const struct store_query *query, struct store_snapshot *ret,
		struct err *err)
{
	struct reading reading = { .store = ch_store_of(base),
				   .query = query,
				   .wanted = { .one_tenant = query->one_tenant,
					       .tenant = query->tenant,
					       .from_ns = query->from_ns,
					       .to_ns = query->to_ns,
					       .selector = query->selector },
				   .pins = mem_new(struct pins) };
	int rc;

	reading.tables = &reading.pins->tables;
	tables_init(reading.tables);
	rc = read_all(&reading, err);
	if (!rc)
		rc = check(&reading, err);
	if (!rc)
		rc = pay(&reading, 0, err);
	reading.pins->taken = reading.taken;
	if (!rc)
		show(&reading, ret);
	else
		unpin(reading.store, reading.pins);
	reading_free(&reading);
	return rc;
}

void ch_snapshot_release(struct store *store, struct store_snapshot *snapshot)
{
	free(snapshot->segments);
	if (snapshot->pins)
		unpin(ch_store_of(store), snapshot->pins);
	*snapshot = (struct store_snapshot){ 0 };
}
