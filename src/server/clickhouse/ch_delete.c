/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting. ClickHouse rewrites its parts without the reports before a delete returns. The order is
 * written down before and after, so that an order that was cut short shows as not done.
 *
 * An old ClickHouse never rewrites the newest part of a day that was inserted with insert_quorum.
 * There, firn first adds a row to each report that hides it: the reports are in older parts then,
 * and gone for readers at once.
 */
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "server/clickhouse/ch_rows.h"
#include "server/clickhouse/ch_store_int.h"

#define DELETE_NS (600 * CLOCK_NS_PER_S)
#define ORDERS_SHOWN 1000
#define ORDERS_BYTES_MAX ((uint64_t)16 << 20)
#define ORDERS                                                                                     \
	"firn_delete (number, tenant, one_tenant, selector, from_ns, to_ns, by, created_ns, "      \
	"done_ns)"

static int write_down(struct ch_store *store, const struct store_delete *order, uint64_t number,
		      int64_t done_ns, struct err *err)
{
	struct strbuf rows = { 0 };
	int rc;

	strbuf_add_u64(&rows, number);
	ch_put_text(&rows, order->one_tenant ? order->tenant : (struct slice){ "", 0 });
	ch_put_u8(&rows, order->one_tenant);
	ch_put_text(&rows, order->selector);
	strbuf_add_u64(&rows, (uint64_t)order->from_ns);
	strbuf_add_u64(&rows, (uint64_t)order->to_ns);
	ch_put_text(&rows, slice_of(order->by ? order->by : ""));
	strbuf_add_u64(&rows, number);
	strbuf_add_u64(&rows, (uint64_t)done_ns);
	rc = ch_insert(store->client, ORDERS, strbuf_slice(&rows), CH_INSERT_NS, err);
	strbuf_free(&rows);
	return rc;
}

/* " WHERE ...": reports of the wanted time and tenant, of these series. */
static void add_meant(const struct ch_wanted *wanted, const struct ch_series *series,
		      uint32_t count, struct strbuf *sql)
{
	ch_add_where(sql, wanted);
	strbuf_add_text(sql, " AND series IN (");
	for (uint32_t i = 0; i < count; i++)
		strbuf_addf(sql, "%s%llu", i ? "," : "", (unsigned long long)series[i].id);
	strbuf_add_text(sql, ")");
}

#define KEY "tenant, type, service, start, series, batch, keep"

/* Later rows with the same keys, of a rank that no reader sees. */
static int hide_series(struct ch_store *store, struct slice meant, struct err *err)
{
	struct strbuf sql = { 0 };
	int rc;

	strbuf_add_text(&sql, "INSERT INTO firn_report (" KEY ", rank) SELECT " KEY
			      ", toUInt8(2) FROM firn_report FINAL");
	strbuf_add_slice(&sql, meant);
	rc = ch_run(store->client, strbuf_slice(&sql), DELETE_NS, err);
	strbuf_free(&sql);
	return rc;
}

/* Until no row with content is left in the shards. */
static int wait_until_gone(struct ch_store *store, struct slice meant, struct err *err)
{
	static const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
	int64_t end_at_ns = clock_monotonic_ns() + DELETE_NS;
	struct strbuf sql = { 0 };
	uint64_t left = 1;
	int rc = 0;

	strbuf_add_text(&sql, "SELECT count() FROM firn_report");
	strbuf_add_slice(&sql, meant);
	strbuf_add_text(&sql, " AND rank < 2");
	while (!rc && left) {
		rc = ch_store_numbers(store, &sql, &left, 1, err);
		if (!rc && left && clock_monotonic_ns() > end_at_ns)
			rc = err_set(err, ERR_DEADLINE,
				     "ClickHouse: %llu reports are deleted, but still on the disk",
				     (unsigned long long)left);
		if (!rc && left)
			nanosleep(&pause, NULL);
	}
	strbuf_free(&sql);
	return rc;
}

static int delete_series(struct ch_store *store, const struct ch_wanted *wanted,
			 const struct ch_series *series, uint32_t count, struct err *err)
{
	bool waits = ch_client_dialect(store->client)->waits_for_mutations;
	struct strbuf sql = { 0 }, meant = { 0 };
	int rc = 0;

	add_meant(wanted, series, count, &meant);
	if (!waits)
		rc = hide_series(store, strbuf_slice(&meant), err);
	strbuf_add_text(&sql, "ALTER TABLE ");
	ch_cluster_add_table(&store->cluster, "firn_report", &sql);
	strbuf_addf(&sql, " DELETE%s SETTINGS mutations_sync = 2", strbuf_text(&meant));
	if (!rc)
		rc = ch_run(store->client, strbuf_slice(&sql), DELETE_NS, err);
	if (!rc && !waits)
		rc = wait_until_gone(store, strbuf_slice(&meant), err);
	strbuf_free(&sql);
	strbuf_free(&meant);
	return rc;
}

static int delete_all(struct ch_store *store, const struct ch_wanted *wanted,
		      const struct store_delete *order, uint64_t number, struct err *err)
{
	const struct store_query patient = { 0 };
	struct ch_catalogue catalogue;
	int rc = ch_catalogue_read(store, &patient, wanted, &catalogue, err);

	if (!rc)
		rc = write_down(store, order, number, 0, err);
	for (uint32_t i = 0; !rc && i < catalogue.count; i += CH_IDS_MAX) {
		uint32_t count = catalogue.count - i;

		rc = delete_series(store, wanted, &catalogue.items[i],
				   count < CH_IDS_MAX ? count : CH_IDS_MAX, err);
	}
	if (!rc)
		rc = write_down(store, order, number, clock_real_ns(), err);
	ch_catalogue_free(&catalogue);
	return rc;
}

int ch_delete_reports(struct store *base, const struct store_delete *order, uint64_t *ret_number,
		      struct err *err)
{
	struct ch_store *store = ch_store_of(base);
	struct selector selector;
	struct ch_wanted wanted = { .one_tenant = order->one_tenant,
				    .tenant = order->tenant,
				    .from_ns = order->from_ns,
				    .to_ns = order->to_ns,
				    .selector = &selector,
				    .exactly = true };
	uint64_t number = (uint64_t)clock_real_ns();
	int rc = selector_parse(order->selector, &selector, err);

	if (rc)
		return rc;
	if (!selector.has_type && !selector.matchers_count)
		rc = err_set(err, ERR_INVALID,
			     "the selector means everything; name a type or a label");
	if (!rc)
		rc = ch_store_note(store, delete_all(store, &wanted, order, number, err), err);
	selector_free(&selector);
	if (!rc)
		*ret_number = number;
	return rc;
}

static char *take_copy(struct byte_reader *in)
{
	struct slice text = ch_take_text(in);

	return mem_strndup(text.data, text.len);
}

void ch_deletes(struct store *base, const struct slice *tenant, struct store_deletes *ret)
{
	struct strbuf sql = { 0 }, rows = { 0 };
	size_t capacity = 0;
	struct err err;
	struct byte_reader in;

	*ret = (struct store_deletes){ 0 };
	strbuf_add_text(&sql,
			"SELECT number, selector, by, from_ns, to_ns, created_ns, done_ns FROM "
			"firn_delete FINAL");
	if (tenant) {
		strbuf_add_text(&sql, " WHERE one_tenant AND tenant = ");
		ch_add_text(&sql, *tenant);
	}
	strbuf_addf(&sql, " ORDER BY number DESC LIMIT %d", ORDERS_SHOWN);
	if (ch_store_read(ch_store_of(base), &sql, ORDERS_BYTES_MAX, &rows, &err))
		strbuf_clear(&rows);
	in = byte_reader_of(strbuf_slice(&rows));
	while (byte_reader_left(&in)) {
		struct store_deleted order = { .number = byte_reader_u64(&in) };

		order.selector = take_copy(&in);
		order.by = take_copy(&in);
		order.from_ns = (int64_t)byte_reader_u64(&in);
		order.to_ns = (int64_t)byte_reader_u64(&in);
		order.created_ns = (int64_t)byte_reader_u64(&in);
		order.done_ns = (int64_t)byte_reader_u64(&in);
		if (in.failed) {
			free(order.selector);
			free(order.by);
			break;
		}
		mem_grow(ret->items, ret->count, capacity);
		ret->items[ret->count++] = order;
	}
	strbuf_free(&sql);
	strbuf_free(&rows);
}
