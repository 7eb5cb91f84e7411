/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: a snapshot is one set of plain tables (ch_reading.h). ClickHouse sums where the query
 * lets it (ch_sums.c), else every report is fetched.
 *
 * Memory is bounded: all snapshots together, with ClickHouse's answers while they are made, take it
 * from store->memory. A query over more fails.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "server/clickhouse/ch_reading.h"
#include "server/persist/log/tables_check.h"

static int read_raw(struct ch_reading *reading, struct err *err)
{
	int rc = ch_read_reports(reading, err);

	if (!rc)
		rc = ch_find_dicts(reading, err);
	if (!rc)
		rc = ch_read_dicts(reading, err);
	return rc ? rc : ch_take_reports(reading, err);
}

static int read_all(struct ch_reading *reading, struct err *err)
{
	bool raw = true;
	enum ch_sums_of of;
	int rc = ch_catalogue_read(reading->store, reading->query, &reading->wanted,
				   &reading->catalogue, err);

	if (rc || !reading->catalogue.count)
		return rc;
	of = ch_sums_for(reading);
	if (of != CH_SUMS_NONE)
		rc = ch_read_sums(reading, of, &raw, err);
	metric_add(raw ? &ch_raw_snapshots : &ch_summed_snapshots, !rc);
	if (rc || !raw)
		return rc;
	if (of != CH_SUMS_NONE)
		ch_reading_again(reading);
	return read_raw(reading, err);
}

/* What came is a stranger's: from here on nobody checks an id. */
static int check(const struct ch_reading *reading, struct err *err)
{
	struct tables_view view = tables_view_of(reading->tables);

	return tables_check(&view, err) ? err_wrap(err, "ClickHouse: the tables of firn") : 0;
}

static void show(struct ch_reading *reading, struct store_snapshot *ret)
{
	struct tables_view view = tables_view_of(reading->tables);

	*ret = (struct store_snapshot){ .segments = mem_new(struct segment),
					.count = 1,
					.parts_unreadable = reading->unreadable > 0,
					.pins = reading->pins };
	segment_of_tables(ret->segments, &view);
	ret->segments->sums = reading->pins->sums;
	ret->segments->from_ns = reading->query->from_ns;
	ret->segments->to_ns = reading->query->to_ns;
	reading->pins->taken = reading->taken;
	reading->pins = NULL;
	metric_add(&ch_unreadable, (int64_t)reading->unreadable);
}

int ch_snapshot(struct store *base, const struct store_query *query, struct store_snapshot *ret,
		struct err *err)
{
	struct ch_store *store = ch_store_of(base);
	struct ch_reading reading;
	int rc;

	ch_reading_init(&reading, &store->memory);
	reading.store = store;
	reading.query = query;
	reading.wanted = (struct ch_wanted){ .one_tenant = query->one_tenant,
					     .tenant = query->tenant,
					     .from_ns = query->from_ns,
					     .to_ns = query->to_ns,
					     .selector = query->selector };
	rc = read_all(&reading, err);
	if (!rc)
		rc = check(&reading, err);
	ch_reading_give_dicts(&reading);
	if (!rc)
		rc = ch_pay(&reading, 0, err);
	if (!rc)
		show(&reading, ret);
	ch_reading_free(&reading);
	return rc;
}

void ch_snapshot_release(struct store *store, struct store_snapshot *snapshot)
{
	free(snapshot->segments);
	ch_pins_free(snapshot->pins, &ch_store_of(store)->memory);
	*snapshot = (struct store_snapshot){ 0 };
}
