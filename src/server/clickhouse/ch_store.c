/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/clickhouse/ch_lexicon.h"
#include "server/clickhouse/ch_rows.h"
#include "server/clickhouse/ch_schema.h"
#include "server/clickhouse/ch_store_int.h"

#define SNAPSHOT_BYTES_DEFAULT ((uint64_t)1 << 30)
#define DICT_BYTES_DEFAULT ((uint64_t)256 << 20)
#define STAT_AGE_NS (10 * CLOCK_NS_PER_S) /* counting reads the keys of all reports */
#define PING_AGE_NS (2 * CLOCK_NS_PER_S)
#define PING_NS (2 * CLOCK_NS_PER_S)
#define STAT_BYTES_MAX 4096
#define ANSWER_BYTES_MIN ((int64_t)1 << 20)

METRIC_COUNTER(ch_flushes, "firn_clickhouse_flushes_total", "", "Groups of batches inserted");
METRIC_COUNTER(ch_flush_errors, "firn_clickhouse_flush_errors_total", "",
	       "Groups of batches that ClickHouse did not acknowledge; clients send them again");
struct metric ch_flush_seconds = { .type = METRIC_TYPE_COUNTER,
				   .name = "firn_clickhouse_flush_seconds_total",
				   .labels = "",
				   .help = "Time spent on inserting",
				   .scale = 1e-9 };
METRIC_COUNTER(ch_rows_inserted, "firn_clickhouse_rows_total", "",
	       "Rows (report, stack) that ClickHouse has acknowledged");
METRIC_COUNTER(ch_reads, "firn_clickhouse_reads_total", "", "Statements that read");
METRIC_COUNTER(ch_read_errors, "firn_clickhouse_read_errors_total", "",
	       "Statements that read, and failed");
METRIC_COUNTER(ch_read_bytes, "firn_clickhouse_read_bytes_total", "", "Bytes read");
METRIC_GAUGE(ch_up, "firn_clickhouse_up", "", "1: the last statement succeeded");
METRIC_COUNTER(ch_summed_snapshots, "firn_clickhouse_summed_snapshots_total", "",
	       "Queries whose reports ClickHouse summed");
METRIC_COUNTER(ch_raw_snapshots, "firn_clickhouse_raw_snapshots_total", "",
	       "Queries that fetched every report");
METRIC_COUNTER(ch_unreadable, "firn_clickhouse_reports_unreadable_total", "",
	       "Reports left out of answers because their stacks are missing");

static struct metric *const metrics[] = {
	&ch_flushes,	  &ch_flush_errors,	&ch_flush_seconds, &ch_rows_inserted,
	&ch_reads,	  &ch_read_errors,	&ch_read_bytes,	   &ch_up,
	&ch_unreadable,	  &ch_summed_snapshots, &ch_raw_snapshots, &ch_lexicons_bytes,
	&ch_lexicon_hits, &ch_lexicon_misses
};

int ch_store_note(struct ch_store *store, int rc, const struct err *err)
{
	bool changed;

	lock_take(&store->lock);
	changed = rc ? !store->error.code : store->error.code != 0;
	store->error = (struct err){ 0 };
	if (rc)
		store->error = *err;
	store->spoke_at_ns = clock_monotonic_ns();
	lock_give(&store->lock);
	metric_set(&ch_up, !rc);
	if (changed && rc)
		log_warn("clickhouse", "a statement failed", "error='%s'", err->message);
	else if (changed)
		log_info("clickhouse", "ClickHouse answers again", "error=none");
	return rc;
}

/* What the query is at fault for says nothing of ClickHouse. */
static bool is_ours(int rc)
{
	return rc == -ERR_NO_MEMORY || rc == -ERR_DEADLINE || rc == -ERR_CANCELLED;
}

static int read_within(struct ch_store *store, const struct strbuf *sql,
		       const struct ch_limits *limits, struct strbuf *ret, struct err *err)
{
	size_t before = ret->len;
	int rc = ch_read(store->client, strbuf_slice(sql), limits, ret, err);

	metric_add(&ch_reads, 1);
	metric_add(&ch_read_errors, rc != 0);
	metric_add(&ch_read_bytes, (int64_t)(ret->len - before));
	return is_ours(rc) ? rc : ch_store_note(store, rc, err);
}

int ch_store_read(struct ch_store *store, const struct strbuf *sql, uint64_t bytes_max,
		  struct strbuf *ret, struct err *err)
{
	const struct ch_limits limits = { .timeout_ns = CH_READ_NS, .bytes_max = bytes_max };

	return read_within(store, sql, &limits, ret, err);
}

int ch_store_ask(struct ch_store *store, const struct store_query *query, const struct strbuf *sql,
		 struct strbuf *ret, struct err *err)
{
	struct ch_limits limits = { .timeout_ns = CH_READ_NS,
				    .bytes_max = ch_store_bytes_left(store),
				    .stops = { query->cancelled, query->stopped } };

	if (query->deadline_at_ns) {
		int64_t left_ns = query->deadline_at_ns - clock_monotonic_ns();

		if (left_ns <= 0)
			return err_set(err, ERR_DEADLINE, "ClickHouse: the query's time is over");
		if (left_ns < limits.timeout_ns)
			limits.timeout_ns = left_ns;
	}
	return read_within(store, sql, &limits, ret, err);
}

uint64_t ch_store_bytes_left(const struct ch_store *store)
{
	int64_t left = store->memory.max_bytes - atomic_load(&store->memory.used_bytes);

	return left > ANSWER_BYTES_MIN ? (uint64_t)left : ANSWER_BYTES_MIN;
}

int64_t ch_store_retention_ns(const struct ch_store *store, struct slice tenant)
{
	for (size_t i = 0; i < store->tenants_count; i++)
		if (slice_is(tenant, store->tenants[i].name) && store->tenants[i].retention_ns)
			return store->tenants[i].retention_ns;
	return store->retention_ns;
}

/* Readiness is asked often, statements come by themselves most of the time. */
static int takes_appends(struct store *base, struct err *err)
{
	struct ch_store *store = ch_store_of(base);
	struct strbuf rows = { 0 };
	struct err failed = { 0 };
	const struct ch_limits limits = { .timeout_ns = PING_NS, .bytes_max = STAT_BYTES_MAX };
	bool is_recent;
	int rc = 0;

	lock_take(&store->lock);
	is_recent = clock_monotonic_ns() - store->spoke_at_ns < PING_AGE_NS;
	failed = store->error;
	lock_give(&store->lock);
	if (!is_recent) {
		failed = (struct err){ 0 };
		rc = ch_read(store->client, slice_of("SELECT 1"), &limits, &rows, &failed);
		ch_store_note(store, rc, &failed);
		strbuf_free(&rows);
	}
	if (failed.code)
		return err_set(err, failed.code, "%s", failed.message);
	return 0;
}

int ch_store_numbers(struct ch_store *store, const struct strbuf *sql, uint64_t *ret, size_t count,
		     struct err *err)
{
	struct strbuf rows = { 0 };
	int rc = ch_store_read(store, sql, STAT_BYTES_MAX, &rows, err);

	if (!rc) {
		struct byte_reader in = byte_reader_of(strbuf_slice(&rows));

		for (size_t i = 0; i < count; i++)
			ret[i] = byte_reader_u64(&in);
		if (in.failed || byte_reader_left(&in))
			rc = err_set(err, ERR_CORRUPT, "ClickHouse: numbers of another count");
	}
	strbuf_free(&rows);
	return rc;
}

static int count_reports(struct ch_store *store, uint64_t *ret, struct err *err)
{
	struct strbuf sql = { 0 };
	int rc;

	strbuf_add_text(
		&sql, "SELECT count(), toUInt64(sum(length(stacks))), uniqExact(series), "
		      "toInt64(toUnixTimestamp64Nano(min(start))), "
		      "toInt64(toUnixTimestamp64Nano(max(start))) FROM firn_report FINAL WHERE 1");
	rc = ch_store_numbers(store, &sql, ret, 5, err);
	strbuf_free(&sql);
	return rc;
}

static int count_stacks(struct ch_store *store, uint64_t *ret, struct err *err)
{
	struct strbuf sql = { 0 };
	int rc;

	strbuf_add_text(&sql, "SELECT toUInt64(sum(length(nodes))) FROM firn_stack FINAL");
	rc = ch_store_numbers(store, &sql, ret, 1, err);
	strbuf_free(&sql);
	return rc;
}

static int count_bytes(struct ch_store *store, uint64_t *ret, struct err *err)
{
	struct strbuf sql = { 0 };
	int rc;

	strbuf_add_text(&sql, "SELECT toUInt64(sum(bytes_on_disk)), "
			      "toUInt64(sumIf(bytes_on_disk, startsWith(table, 'firn_report'))), "
			      "toUInt64(sumIf(bytes_on_disk, startsWith(table, 'firn_stack'))), "
			      "toUInt64(sumIf(bytes_on_disk, startsWith(table, 'firn_frame'))), "
			      "toUInt64(count()) FROM ");
	ch_cluster_add_system(&store->cluster, "parts", &sql);
	strbuf_add_text(&sql, " WHERE active AND startsWith(table, 'firn_') AND database = ");
	ch_add_text(&sql, slice_of(ch_client_database(store->client)));
	rc = ch_store_numbers(store, &sql, ret, 5, err);
	strbuf_free(&sql);
	return rc;
}

static int take_stat(struct ch_store *store, struct store_stat *ret, struct err *err)
{
	uint64_t reports[5], stacks[1], bytes[5];
	int rc = count_reports(store, reports, err);

	if (!rc)
		rc = count_stacks(store, stacks, err);
	if (!rc)
		rc = count_bytes(store, bytes, err);
	if (rc)
		return rc;
	*ret = (struct store_stat){ .reports = reports[0],
				    .rows = reports[1],
				    .series = reports[2],
				    .stacks = stacks[0],
				    .bytes_total = bytes[0],
				    .bytes_samples = bytes[1],
				    .bytes_stacks = bytes[2],
				    .bytes_symbols = bytes[3],
				    .parts = bytes[4] };
	if (reports[0]) {
		ret->oldest_ns = (int64_t)reports[3];
		ret->newest_ns = (int64_t)reports[4];
	}
	return 0;
}

static int stat(struct store *base, struct store_stat *ret, struct err *err)
{
	struct ch_store *store = ch_store_of(base);
	bool is_recent;
	int rc;

	lock_take(&store->lock);
	is_recent = store->stat_at_ns && clock_monotonic_ns() - store->stat_at_ns < STAT_AGE_NS;
	*ret = store->stat;
	lock_give(&store->lock);
	if (is_recent)
		return 0;
	rc = take_stat(store, ret, err);
	if (rc)
		return rc;
	lock_take(&store->lock);
	store->stat = *ret;
	store->stat_at_ns = clock_monotonic_ns();
	lock_give(&store->lock);
	return 0;
}

/* ClickHouse merges by itself; what it does not drop, appends do. */
static int tick(struct store *base, struct err *err)
{
	(void)base;
	(void)err;
	return 0;
}

static void remote_stat(struct store *base, struct store_remote_stat *ret)
{
	struct ch_store *store = ch_store_of(base);

	ret->kind = "ClickHouse";
	lock_take(&store->lock);
	memcpy(ret->error, store->error.message, sizeof(ret->error));
	lock_give(&store->lock);
}

static void end_by(struct store *base, int64_t at_ns)
{
	ch_client_end_by(ch_store_of(base)->client, at_ns);
}

static void close_store(struct store *base)
{
	struct ch_store *store = ch_store_of(base);

	assert(!store->flushing && !store->queue);
	ch_client_free(store->client);
	ch_dict_free(store->dict);
	ch_lexicons_free(store->lexicons);
	ledger_fini(&store->ledger);
	for (size_t i = 0; i < store->tenants_count; i++)
		free(store->tenants[i].name);
	free(store->tenants);
	lock_condition_free(&store->changed);
	lock_free(&store->lock);
	free(store);
}

static const struct store_engine engine = {
	.append = ch_append,
	.takes_appends = takes_appends,
	.snapshot = ch_snapshot,
	.snapshot_release = ch_snapshot_release,
	.stat = stat,
	.remote_stat = remote_stat,
	.delete_reports = ch_delete_reports,
	.deletes = ch_deletes,
	.end_by = end_by,
	.tick = tick,
	.close = close_store,
};

static void copy_tenants(struct ch_store *store, const struct ch_store_options *options)
{
	store->tenants = mem_new_array(struct ch_tenant, options->tenant_limits_count);
	store->tenants_count = options->tenant_limits_count;
	for (size_t i = 0; i < store->tenants_count; i++) {
		const struct store_tenant_limit *limit = &options->tenant_limits[i];

		store->tenants[i] =
			(struct ch_tenant){ mem_strndup(limit->tenant, strlen(limit->tenant)),
					    limit->retention_ns };
	}
}

int ch_store_open(const struct ch_store_options *options, struct store **ret, struct err *err)
{
	static bool registered;
	struct ch_cluster cluster;
	struct ch_client *client;
	struct ch_store *store;
	int rc = ch_client_new(&options->clickhouse, &client, err);

	if (rc)
		return rc;
	rc = ch_schema_check(client, err);
	if (!rc)
		rc = ch_cluster_find(client, &cluster, err);
	if (rc) {
		ch_client_free(client);
		return rc;
	}
	store = mem_new(struct ch_store);
	store->base.engine = &engine;
	store->client = client;
	store->cluster = cluster;
	store->retention_ns = options->retention_ns;
	store->memory.max_bytes = (int64_t)(options->snapshot_bytes ? options->snapshot_bytes
								    : SNAPSHOT_BYTES_DEFAULT);
	store->dict_bytes = options->dict_bytes ? options->dict_bytes : DICT_BYTES_DEFAULT;
	store->lexicons = ch_lexicons_new(CH_LEXICONS_BYTES_DEFAULT);
	store->queue_end = &store->queue;
	lock_init(&store->lock, "clickhouse.store", LOCK_STORE + 10);
	lock_condition_init(&store->changed);
	copy_tenants(store, options);
	if (!registered)
		metrics_register(metrics, sizeof(metrics) / sizeof(*metrics));
	registered = true;
	ch_store_note(store, 0, NULL);
	*ret = &store->base;
	return 0;
}
