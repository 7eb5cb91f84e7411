/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_series - which series a query means. ClickHouse gives those of the tenant and the days, and
 * firn matches: labels have one meaning, that of model/selector.h, wherever profiles are.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/service.h"
#include "server/clickhouse/ch_rows.h"
#include "server/clickhouse/ch_store_int.h"
#include "server/persist/manifest/tombstones.h"

#define LABELS_PER_ROW_MAX TABLES_LABELS_PER_SET_MAX

static void add_tenant(struct strbuf *sql, const struct ch_wanted *wanted)
{
	strbuf_add_text(sql, " WHERE ");
	if (wanted->one_tenant) {
		strbuf_add_text(sql, "tenant = ");
		ch_add_text(sql, wanted->tenant);
	} else {
		strbuf_add_text(sql, "1");
	}
}

void ch_add_where(struct strbuf *sql, const struct ch_wanted *wanted)
{
	add_tenant(sql, wanted);
	if (wanted->from_ns > 0)
		strbuf_addf(sql, " AND start >= fromUnixTimestamp64Nano(toInt64(%lld))",
			    (long long)wanted->from_ns);
	if (wanted->to_ns < INT64_MAX)
		strbuf_addf(sql, " AND start < fromUnixTimestamp64Nano(toInt64(%lld))",
			    (long long)(wanted->to_ns > 0 ? wanted->to_ns : 0));
}

static void add_days(struct strbuf *sql, const struct ch_wanted *wanted)
{
	add_tenant(sql, wanted);
	if (wanted->from_ns > 0)
		strbuf_addf(sql, " AND day >= toDate(%lld)",
			    (long long)(wanted->from_ns / CH_DAY_NS));
	if (wanted->to_ns < INT64_MAX)
		strbuf_addf(sql, " AND day <= toDate(%lld)",
			    (long long)(wanted->to_ns > 0 ? wanted->to_ns / CH_DAY_NS : 0));
}

static bool id_equal(const void *context, uint32_t id, const void *key)
{
	const struct ch_catalogue *catalogue = context;

	return catalogue->items[id].id == *(const uint64_t *)key;
}

const struct ch_series *ch_catalogue_find(const struct ch_catalogue *catalogue, uint64_t id)
{
	uint32_t at = idmap_find(&catalogue->map, id, id_equal, catalogue, &id);

	return at == IDMAP_NONE ? NULL : &catalogue->items[at];
}

static uint32_t take_string(struct byte_reader *in, struct tables *tables)
{
	return tables_string(tables, ch_take_text(in));
}

static uint32_t take_labels(struct byte_reader *in, struct tables *tables)
{
	struct label labels[LABELS_PER_ROW_MAX] = { 0 };
	uint32_t count = ch_take_count(in, 1);

	if (count > LABELS_PER_ROW_MAX) {
		in->failed = true;
		return 0;
	}
	for (uint32_t i = 0; i < count; i++)
		labels[i].name = take_string(in, tables);
	in->failed |= ch_take_count(in, 1) != count;
	for (uint32_t i = 0; i < count && !in->failed; i++)
		labels[i].value = take_string(in, tables);
	return in->failed ? 0 : tables_label_set(tables, labels, count);
}

static uint32_t take_group(struct byte_reader *in, struct tables *tables, uint32_t name)
{
	struct column columns[TABLES_COLUMNS_PER_GROUP_MAX] = { 0 };
	struct group group = { .name = name, .column_count = ch_take_count(in, 1) };

	if (!group.column_count || group.column_count > TABLES_COLUMNS_PER_GROUP_MAX) {
		in->failed = true;
		return 0;
	}
	for (uint32_t i = 0; i < group.column_count; i++)
		columns[i].sample_type = take_string(in, tables);
	in->failed |= ch_take_count(in, 1) != group.column_count;
	for (uint32_t i = 0; i < group.column_count; i++)
		columns[i].sample_unit = take_string(in, tables);
	in->failed |= ch_take_count(in, 1) != group.column_count;
	for (uint32_t i = 0; i < group.column_count; i++) {
		columns[i].kind = (uint8_t)byte_reader_fixed(in, 1);
		in->failed |= columns[i].kind > COLUMN_GAUGE;
	}
	group.period_type = take_string(in, tables);
	group.period_unit = take_string(in, tables);
	group.period = (int64_t)byte_reader_u64(in);
	return in->failed ? 0 : tables_group(tables, &group, columns);
}

/* Decided by what the series says; of one whose rows have labels, the rows may say more. */
static bool is_wanted(const struct ch_catalogue *catalogue, const struct ch_wanted *wanted,
		      const struct ch_series *item)
{
	struct tables_view view = tables_view_of(&catalogue->tables);
	const struct series *series = &view.series[item->series];
	const struct selector *selector = wanted->selector;

	if (!selector)
		return true;
	if (wanted->exactly)
		return tombstone_selects(selector, &view, item->series);
	if (selector->has_type &&
	    !profile_type_may_be(&selector->type,
				 tables_text(&view, view.groups[series->group].name)))
		return false;
	if (item->labelled)
		return true;
	return selector_matches(selector, &view, series->label_set);
}

static void add_item(struct ch_catalogue *catalogue, const struct ch_series *item)
{
	uint32_t at = idmap_find(&catalogue->map, item->id, id_equal, catalogue, &item->id);

	if (at != IDMAP_NONE) {
		catalogue->items[at].labelled |= item->labelled;
		return;
	}
	mem_grow(catalogue->items, catalogue->count, catalogue->capacity);
	catalogue->items[catalogue->count] = *item;
	idmap_add(&catalogue->map, item->id, catalogue->count++);
}

static int take_series(struct byte_reader *in, const struct ch_wanted *wanted,
		       struct ch_catalogue *catalogue, struct err *err)
{
	struct tables *tables = &catalogue->tables;
	struct ch_series item = { 0 };
	uint32_t name = take_string(in, tables), labels, group;

	item.service = take_string(in, tables);
	item.id = byte_reader_u64(in);
	item.labelled = byte_reader_fixed(in, 1) != 0;
	labels = take_labels(in, tables);
	group = take_group(in, tables, name);
	if (in->failed)
		return err_set(err, ERR_CORRUPT,
			       "ClickHouse: a row of firn_series cannot be read; is the table of "
			       "another firn?");
	item.series = tables_series(tables, labels, group);
	if (item.series == TABLES_FULL || labels == TABLES_FULL || group == TABLES_FULL)
		return err_set(err, ERR_NO_MEMORY,
			       "ClickHouse: too many series; ask for a shorter time");
	if (is_wanted(catalogue, wanted, &item))
		add_item(catalogue, &item);
	return 0;
}

/* For names on which the series' rows do not decide. */
static void add_matcher(struct strbuf *sql, const struct matcher *matcher)
{
	strbuf_add_text(sql, "(labelled OR vals[indexOf(names, ");
	ch_add_text(sql, matcher->name);
	strbuf_add_text(sql, matcher->op == MATCH_EQUAL ? ")] = " : ")] != ");
	ch_add_text(sql, matcher->value);
	strbuf_add_text(sql, ")");
}

/*
 * What ClickHouse can leave out without knowing more than bytes; firn decides on what comes. A
 * label that is not there is "", here as there.
 */
static void add_selector(struct strbuf *sql, const struct selector *selector)
{
	if (selector->has_type) {
		strbuf_add_text(sql, " AND type IN (");
		ch_add_text(sql, selector->type.name);
		if (profile_type_may_be(&selector->type, SLICE_LITERAL("on_cpu")))
			strbuf_add_text(sql, ", 'on_cpu'");
		strbuf_add_text(sql, ")");
	}
	for (size_t i = 0; i < selector->matchers_count; i++) {
		const struct matcher *matcher = &selector->matchers[i];

		if (slice_is(matcher->name, SERVICE_LABEL) ||
		    (matcher->op != MATCH_EQUAL && matcher->op != MATCH_NOT_EQUAL))
			continue;
		strbuf_add_text(sql, " AND ");
		add_matcher(sql, matcher);
	}
}

void ch_catalogue_init(struct ch_catalogue *catalogue)
{
	*catalogue = (struct ch_catalogue){ 0 };
	tables_init(&catalogue->tables);
}

int ch_catalogue_take(struct ch_catalogue *catalogue, const struct ch_wanted *wanted,
		      struct slice rows, struct err *err)
{
	struct byte_reader in = byte_reader_of(rows);
	int rc = 0;

	while (!rc && byte_reader_left(&in))
		rc = take_series(&in, wanted, catalogue, err);
	return rc;
}

int ch_catalogue_read(struct ch_store *store, const struct store_query *query,
		      const struct ch_wanted *wanted, struct ch_catalogue *ret, struct err *err)
{
	struct strbuf sql = { 0 }, rows = { 0 };
	int rc;

	ch_catalogue_init(ret);
	strbuf_add_text(&sql, "SELECT type, service, series, labelled, names, vals, sample_types, "
			      "sample_units, kinds, period_type, period_unit, period FROM "
			      "firn_series");
	add_days(&sql, wanted);
	if (wanted->selector && !wanted->exactly)
		add_selector(&sql, wanted->selector);
	strbuf_add_text(&sql, " LIMIT 1 BY tenant, series, labelled");
	rc = ch_store_ask(store, query, &sql, &rows, err);
	if (!rc)
		rc = ch_catalogue_take(ret, wanted, strbuf_slice(&rows), err);
	strbuf_free(&sql);
	strbuf_free(&rows);
	return rc;
}

void ch_catalogue_free(struct ch_catalogue *catalogue)
{
	tables_free(&catalogue->tables);
	idmap_free(&catalogue->map);
	free(catalogue->items);
}
