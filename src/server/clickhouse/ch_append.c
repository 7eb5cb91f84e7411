/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending: group flush.
 *
 * Every append joins the queue. Whoever finds nobody flushing takes what waits, makes rows of it
 * and inserts them: what reports name first (frames, stacks, label sets, series), the reports last.
 * Then all its callers return. Meanwhile the next group forms, so the more arrive, the larger the
 * inserts, as ClickHouse wants them.
 *
 * A flush that fails may be there all the same, whole or in part. Nothing is concluded from it: the
 * callers are refused and send again, and identity makes the repetition harmless. What this server
 * believed to be stored is forgotten with the dictionary and the ledger. In a ledger a refused
 * report would count as seen.
 */
#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/clickhouse/ch_retention.h"
#include "server/clickhouse/ch_rows.h"
#include "server/clickhouse/ch_store_int.h"
#include "server/persist/log/tables_check.h"

#define GROUP_BATCHES_MAX 256
#define BATCH_BYTES_MAX ((size_t)128 << 20)
#define IN_FLIGHT_BYTES_MAX ((size_t)64 << 20) /* or one larger batch alone */
#define FOREVER_DAYS 20000u /* a start of today and this many days are in the range of DateTime */
#define EXPIRE_NS (600 * CLOCK_NS_PER_S)
#define DROP_NS (3600 * CLOCK_NS_PER_S)
#define ELSEWHERE_NS (24 * 3600 * CLOCK_NS_PER_S) /* baselines last as long */

struct ch_pending {
	const struct tables_view *batch;
	size_t bytes;
	struct append_result result;
	struct err err;
	int rc;
	bool done;
	struct ch_pending *next;
};

static size_t batch_bytes(const struct tables_view *view)
{
	return view->string_bytes_count + view->frames_count * sizeof(struct frame) +
	       view->nodes_count * sizeof(struct node) +
	       view->reports_count * sizeof(struct report) + view->rows_count * sizeof(struct row) +
	       view->values_count * sizeof(int64_t) + view->moments_count * sizeof(struct moment);
}

static uint16_t keep_days(void *context, struct slice tenant)
{
	int64_t retention_ns = ch_store_retention_ns(context, tenant);
	int64_t days = (retention_ns + CH_DAY_NS - 1) / CH_DAY_NS;

	return (uint16_t)(!retention_ns || days > FOREVER_DAYS ? FOREVER_DAYS : days);
}

static int begin_dict(struct ch_store *store, struct err *err)
{
	uint64_t id;

	if (store->dict && ch_dict_bytes(store->dict) > store->dict_bytes) {
		ch_dict_free(store->dict);
		store->dict = NULL;
	}
	if (store->dict)
		return 0;
	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return err_set(err, ERR_IO, "ClickHouse: no random number for a dictionary");
	store->dict = ch_dict_new(id, keep_days, store);
	return 0;
}

static void forget(struct ch_store *store)
{
	ch_dict_free(store->dict);
	store->dict = NULL;
	ledger_fini(&store->ledger);
	store->ledger = (struct ledger){ 0 };
}

static void expire(struct ch_store *store)
{
	int64_t now_ns = clock_real_ns();

	if (now_ns - store->expired_at_ns < EXPIRE_NS && now_ns >= store->expired_at_ns)
		return;
	store->expired_at_ns = now_ns;
	dedupe_expire(&store->ledger.dedupe, now_ns);
	baselines_expire(&store->ledger.baselines, now_ns);
}

/* Old rows, once an hour. What fails now is done an hour later. */
static void drop_old(struct ch_store *store)
{
	int64_t now_ns = clock_monotonic_ns();
	struct err err;

	if (ch_client_dialect(store->client)->expires_rows ||
	    (store->dropped_at_ns && now_ns - store->dropped_at_ns < DROP_NS))
		return;
	store->dropped_at_ns = now_ns;
	if (ch_retention_apply(store->client, &store->cluster, &err))
		log_warn("clickhouse", "old profiles could not be dropped", "error='%s'",
			 err.message);
}

static uint32_t cumulative_columns(const struct tables_view *view, uint32_t series)
{
	const struct group *group = &view->groups[view->series[series].group];
	uint32_t count = 0;

	for (uint32_t i = 0; i < group->column_count; i++)
		count += view->columns[group->column_first + i].kind == COLUMN_CUMULATIVE;
	return count;
}

/* Rows of (series, newest start), of series that the batch has. */
static int note_elsewhere(struct ch_store *store, const struct tables_view *batch,
			  struct slice rows, struct err *err)
{
	struct byte_reader in = byte_reader_of(rows);

	while (byte_reader_left(&in)) {
		uint64_t low = byte_reader_u64(&in);
		int64_t start_ns = (int64_t)byte_reader_u64(&in);

		if (in.failed)
			return err_set(err, ERR_CORRUPT, "ClickHouse: a row of series is cut");
		for (uint32_t i = 0; i < batch->series_count; i++) {
			uint32_t columns = cumulative_columns(batch, i);
			struct identity series = identity_of_series(batch, i);

			if (columns && series.low == low)
				baselines_taken_elsewhere(&store->ledger.baselines, series,
							  start_ns, columns);
		}
	}
	return 0;
}

/* Whether other servers took reports of the batch's cumulative series meanwhile. */
static int look_elsewhere(struct ch_store *store, const struct tables_view *batch, struct err *err)
{
	struct strbuf sql = { 0 }, rows = { 0 };
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; i < batch->series_count && !rc; i++) {
		if (cumulative_columns(batch, i)) {
			if (!count++)
				strbuf_addf(&sql,
					    "SELECT series, toUnixTimestamp64Nano(max(start)) FROM "
					    "firn_report WHERE start >= fromUnixTimestamp64Nano("
					    "toInt64(%lld)) AND series IN (",
					    (long long)(clock_real_ns() - ELSEWHERE_NS));
			strbuf_addf(&sql, "%s%llu", count > 1 ? "," : "",
				    (unsigned long long)identity_of_series(batch, i).low);
		}
		if (count && (count == CH_IDS_MAX || i + 1 == batch->series_count)) {
			strbuf_add_text(&sql, ") GROUP BY series");
			rc = ch_store_read(store, &sql, IN_FLIGHT_BYTES_MAX, &rows, err);
			if (!rc)
				rc = note_elsewhere(store, batch, strbuf_slice(&rows), err);
			strbuf_clear(&rows);
			strbuf_clear(&sql);
			count = 0;
		}
	}
	strbuf_free(&sql);
	strbuf_free(&rows);
	return rc;
}

static int insert(struct ch_store *store, const char *into, const struct strbuf *rows,
		  struct err *err)
{
	if (!rows->len)
		return 0;
	return ch_insert(store->client, into, strbuf_slice(rows), CH_INSERT_NS, err);
}

static int insert_all(struct ch_store *store, const struct ch_flush *flush, struct err *err)
{
	int rc = insert(store, CH_DICT_FRAMES, &flush->frames, err);

	if (!rc)
		rc = insert(store, CH_DICT_STACKS, &flush->stacks, err);
	if (!rc)
		rc = insert(store, CH_DICT_LABEL_SETS, &flush->label_sets, err);
	if (!rc)
		rc = insert(store, CH_DICT_SERIES, &flush->series, err);
	if (!rc)
		rc = insert(store, CH_DICT_REPORTS, &flush->reports, err);
	return ch_store_note(store, rc, err);
}

/* Retention differs by tenant; a batch is one's. */
static struct memtable_window window_of(const struct ch_store *store,
					const struct tables_view *batch)
{
	int64_t now = clock_real_ns(), retention_ns = store->retention_ns, from = 0;

	if (batch->series_count)
		retention_ns = ch_store_retention_ns(
			store, tables_label_value(batch, batch->series[0].label_set,
						  slice_of("__tenant__")));
	if (retention_ns)
		from = now - retention_ns;
	return (struct memtable_window){ .received_ns = now,
					 .from_ns = from > 0 ? from : 0,
					 .to_ns = now + STORE_FUTURE_MAX_NS };
}

static int flush_group(struct ch_store *store, struct ch_pending *group, size_t count,
		       struct err *err)
{
	struct ch_flush flush = { 0 };
	size_t i = 0;
	int rc = begin_dict(store, err);

	expire(store);
	for (struct ch_pending *pending = group; i < count && !rc; pending = pending->next, i++) {
		struct memtable_window window = window_of(store, pending->batch);

		rc = look_elsewhere(store, pending->batch, err);
		if (!rc)
			memtable_apply(ch_dict_table(store->dict), &store->ledger, pending->batch,
				       &window, &pending->result);
	}
	if (!rc) {
		ch_dict_flush(store->dict, &flush);
		rc = insert_all(store, &flush, err);
		ch_flush_free(&flush);
	}
	if (rc)
		forget(store);
	else
		drop_old(store);
	return rc;
}

/* Whatever ClickHouse says, the client should come again, except that it asks too much at once. */
static enum err_code code_for_client(enum err_code code)
{
	return code == ERR_CANCELLED || code == ERR_NO_MEMORY ? code : ERR_UNAVAILABLE;
}

static void finish_group(struct ch_store *store, struct ch_pending *group, size_t count, int rc,
			 const struct err *err)
{
	uint64_t rows = 0;

	lock_assert_held(&store->lock);
	while (count--) {
		struct ch_pending *next = group->next;

		rows += rc ? 0 : group->result.rows_stored;
		group->rc = rc ? -(int)code_for_client(err->code) : 0;
		if (rc) {
			group->err = *err;
			group->err.code = code_for_client(err->code);
		}
		store->in_flight_bytes -= group->bytes;
		group->done = true;
		group = next;
	}
	metric_add(&ch_rows_inserted, (int64_t)rows);
	lock_broadcast(&store->changed);
}

static size_t take_group(struct ch_store *store, struct ch_pending **ret)
{
	struct ch_pending **end = &store->queue;
	size_t count = 0;

	lock_assert_held(&store->lock);
	*ret = store->queue;
	for (; *end && count < GROUP_BATCHES_MAX; count++)
		end = &(*end)->next;
	store->queue = *end;
	if (!store->queue)
		store->queue_end = &store->queue;
	return count;
}

/* Flushes groups until its own batch was in one; gives the lock up meanwhile. */
static void lead(struct ch_store *store, const struct ch_pending *mine)
{
	assert(!store->flushing);
	store->flushing = true;
	while (!mine->done) {
		struct err err = { 0 };
		struct ch_pending *group;
		size_t count = take_group(store, &group);
		int64_t begin_ns = clock_monotonic_ns();
		int rc;

		lock_give(&store->lock);
		rc = flush_group(store, group, count, &err);
		metric_add(&ch_flushes, 1);
		metric_add(&ch_flush_errors, rc != 0);
		metric_add(&ch_flush_seconds, clock_monotonic_ns() - begin_ns);
		if (rc)
			log_warn("clickhouse", "profiles could not be stored; clients send again",
				 "error='%s'", err.message);
		lock_take(&store->lock);
		finish_group(store, group, count, rc, &err);
	}
	store->flushing = false;
	lock_broadcast(&store->changed);
}

static int join(struct ch_store *store, struct ch_pending *mine, struct err *err)
{
	lock_take(&store->lock);
	if (store->in_flight_bytes && store->in_flight_bytes + mine->bytes > IN_FLIGHT_BYTES_MAX) {
		lock_give(&store->lock);
		return err_set(err, ERR_NO_MEMORY,
			       "batches of %zu bytes wait for ClickHouse already; try again later",
			       IN_FLIGHT_BYTES_MAX);
	}
	store->in_flight_bytes += mine->bytes;
	*store->queue_end = mine;
	store->queue_end = &mine->next;
	while (!mine->done) {
		if (store->flushing)
			lock_wait(&store->changed, &store->lock);
		else
			lead(store, mine);
	}
	lock_give(&store->lock);
	return 0;
}

int ch_append(struct store *base, const struct tables_view *batch, struct append_result *ret,
	      struct err *err)
{
	struct ch_store *store = ch_store_of(base);
	struct ch_pending pending = { .batch = batch, .bytes = batch_bytes(batch) };
	int rc;

	if (!batch->reports_count) {
		*ret = (struct append_result){ 0 };
		return 0;
	}
	if (pending.bytes > BATCH_BYTES_MAX)
		return err_set(err, ERR_INVALID, "a batch of %zu bytes is over the limit of %zu",
			       pending.bytes, BATCH_BYTES_MAX);
	if (tables_check(batch, &pending.err))
		return err_set(err, ERR_INVALID, "batch: %s", pending.err.message);
	rc = join(store, &pending, err);
	if (rc)
		return rc;
	if (pending.rc) {
		if (err)
			*err = pending.err;
		return pending.rc;
	}
	*ret = pending.result;
	return 0;
}
