/* SPDX-License-Identifier: Apache-2.0 */
/* Reports as they were sent, each with its rows. */
#include <assert.h>
#include <string.h>

#include "server/clickhouse/ch_reading.h"

static bool wants_moments(const struct store_query *query)
{
	return !query->sums_only && !query->step_ns;
}

int ch_read_reports(struct ch_reading *reading, struct err *err)
{
	struct strbuf sql = { 0 };
	int rc;

	strbuf_add_text(&sql, "SELECT series, toUnixTimestamp64Nano(start), batch, duration, dict, "
			      "stacks, vals, lsets");
	if (wants_moments(reading->query))
		strbuf_add_text(&sql, ", moment_rows, moment_ticks, moment_links");
	strbuf_add_text(&sql, " FROM firn_report FINAL");
	ch_add_where(&sql, &reading->wanted);
	ch_add_services(reading, &sql);
	ch_add_series(reading, &sql);
	rc = ch_store_ask(reading->store, reading->query, &sql, &reading->reports, err);
	strbuf_free(&sql);
	return rc ? rc : ch_pay(reading, reading->reports.len, err);
}

/* A report as it lies in its row. */
struct raw {
	uint64_t series, batch, dict;
	int64_t start_ns, duration_ns;
	uint32_t rows, values, labels, moments, links;
	struct slice stacks_bytes, values_bytes, labels_bytes, rows_bytes, ticks_bytes, links_bytes;
};

static bool take_raw(struct byte_reader *in, bool with_moments, struct raw *ret)
{
	uint32_t ticks;

	*ret = (struct raw){ 0 };
	ret->series = byte_reader_u64(in);
	ret->start_ns = (int64_t)byte_reader_u64(in);
	ret->batch = byte_reader_u64(in);
	ret->duration_ns = (int64_t)byte_reader_u64(in);
	ret->dict = byte_reader_u64(in);
	ret->stacks_bytes = ch_take_array(in, 4, &ret->rows);
	ret->values_bytes = ch_take_array(in, 8, &ret->values);
	ret->labels_bytes = ch_take_array(in, 4, &ret->labels);
	if (ret->labels && ret->labels != ret->rows)
		return false;
	if (with_moments) {
		ret->rows_bytes = ch_take_array(in, 4, &ret->moments);
		ret->ticks_bytes = ch_take_array(in, 4, &ticks);
		ret->links_bytes = ch_take_array(in, 24, &ret->links);
		if (ticks != ret->moments || (ret->links && ret->links != ret->moments))
			return false;
	}
	return !in->failed;
}

static int name_rows(struct ch_reading *reading, const struct raw *raw, struct err *err)
{
	struct ch_read_dict *dict = ch_add_dict(reading, raw->dict);

	for (uint32_t i = 0; i < raw->rows; i++)
		ch_name(reading, dict, ch_u32_at(raw->stacks_bytes, i),
			raw->labels ? ch_u32_at(raw->labels_bytes, i) : 0);
	return ch_pay(reading, reading->reports.len, err);
}

int ch_find_dicts(struct ch_reading *reading, struct err *err)
{
	struct byte_reader in = byte_reader_of(strbuf_slice(&reading->reports));
	struct raw raw;
	int rc = 0;

	while (!rc && byte_reader_left(&in)) {
		if (!take_raw(&in, wants_moments(reading->query), &raw))
			return ch_malformed("firn_report", err);
		if (ch_catalogue_find(&reading->catalogue, raw.series))
			rc = name_rows(reading, &raw, err);
	}
	return rc;
}

/* False: the dictionary lacks what the report names. */
static bool translate_rows(struct ch_reading *reading, const struct raw *raw,
			   const struct ch_read_dict *dict)
{
	reading->rows = ch_scratch(reading->rows, raw->rows, &reading->rows_capacity,
				   sizeof(*reading->rows));
	for (uint32_t i = 0; i < raw->rows; i++) {
		uint32_t set = raw->labels ? ch_u32_at(raw->labels_bytes, i) : 0;
		uint32_t stack = ch_here(&dict->stacks, ch_u32_at(raw->stacks_bytes, i));
		uint32_t labels = ch_here(&dict->label_sets, set);

		if (!stack || !labels)
			return false;
		reading->rows[i] = (struct row){ stack - 1, labels - 1 };
	}
	return true;
}

static void take_values(struct ch_reading *reading, const struct raw *raw, uint32_t columns)
{
	reading->values = ch_scratch(reading->values, raw->values, &reading->values_capacity,
				     sizeof(*reading->values));
	for (uint32_t column = 0; column < columns; column++)
		for (uint32_t i = 0; i < raw->rows; i++)
			reading->values[(size_t)i * columns + column] =
				ch_i64_at(raw->values_bytes, (uint64_t)column * raw->rows + i);
}

/* Times whose rows or order are wrong are left out: the report is whole without them. */
static void add_moments(struct ch_reading *reading, const struct raw *raw)
{
	if (!raw->moments)
		return;
	reading->moments = ch_scratch(reading->moments, raw->moments, &reading->moments_capacity,
				      sizeof(*reading->moments));
	for (uint32_t i = 0; i < raw->moments; i++) {
		struct moment *moment = &reading->moments[i];

		*moment = (struct moment){ ch_u32_at(raw->rows_bytes, i),
					   ch_u32_at(raw->ticks_bytes, i), 0 };
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

static int add_report(struct ch_reading *reading, const struct raw *raw, struct err *err)
{
	const struct ch_series *item = ch_catalogue_find(&reading->catalogue, raw->series);
	const struct ch_read_dict *dict = ch_find_dict(reading, raw->dict);
	uint32_t columns, series;

	if (!item)
		return 0;
	assert(dict);
	columns = tables_series_columns(&reading->series_copy.from, item->series);
	if (raw->values != (uint64_t)raw->rows * columns)
		return ch_malformed("firn_report", err);
	if (!translate_rows(reading, raw, dict)) {
		reading->unreadable++;
		return 0;
	}
	take_values(reading, raw, columns);
	series = tables_copy_series(&reading->series_copy, item->series);
	if (series == TABLES_FULL ||
	    tables_report_begin(reading->tables, series, raw->start_ns, raw->duration_ns,
				raw->batch) == TABLES_FULL)
		return ch_too_large(reading, err);
	if (!tables_rows(reading->tables, reading->rows, raw->rows, reading->values))
		return ch_too_large(reading, err);
	add_moments(reading, raw);
	return 0;
}

int ch_take_reports(struct ch_reading *reading, struct err *err)
{
	struct byte_reader in = byte_reader_of(strbuf_slice(&reading->reports));
	struct tables_view view = tables_view_of(&reading->catalogue.tables);
	uint64_t rows = 0;
	struct raw raw;
	int rc = ch_translate_dicts(reading, err);

	tables_copy_begin(&reading->series_copy, reading->tables, &view);
	while (!rc && byte_reader_left(&in)) {
		bool is_whole = take_raw(&in, wants_moments(reading->query), &raw);

		assert(is_whole); /* ch_find_dicts has read them all */
		rc = add_report(reading, &raw, err);
		rows += raw.rows + 1;
		if (!rc && rows >= CH_ROWS_BETWEEN_CHECKS) {
			rows = 0;
			rc = ch_pay(reading, reading->reports.len, err);
		}
	}
	tables_copy_end(&reading->series_copy);
	return rc;
}
