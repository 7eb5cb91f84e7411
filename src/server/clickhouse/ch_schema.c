/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_schema.h"

#include <assert.h>
#include <string.h>

#include "server/clickhouse/ch_rows.h"

#define TIMEOUT_NS (60 * CLOCK_NS_PER_S)

/*
 * Texts that repeat are LowCardinality. What must be the same once is in the sorting key of a
 * ReplacingMergeTree, so that whatever arrives twice, by whatever server, counts once.
 */
static const char *const statements[] = {
	"CREATE TABLE IF NOT EXISTS firn_schema (\n"
	"  version UInt32, at DateTime, by String\n"
	") ENGINE = ReplacingMergeTree ORDER BY version",

	"CREATE TABLE IF NOT EXISTS firn_report (\n"
	"  tenant LowCardinality(String), type LowCardinality(String), service "
	"LowCardinality(String),\n"
	"  start DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)), series UInt64 CODEC(ZSTD(1)),\n"
	"  batch UInt64 CODEC(NONE), rank UInt8, keep UInt16 CODEC(ZSTD(1)),\n"
	"  duration Int64 CODEC(T64, ZSTD(1)), dict UInt64 CODEC(ZSTD(1)),\n"
	"  totals Array(Int64) CODEC(T64, ZSTD(1)),\n"
	"  stacks Array(UInt32) CODEC(Delta(4), T64, ZSTD(1)),\n"
	"  vals Array(Int64) CODEC(T64, ZSTD(1)), lsets Array(UInt32) CODEC(ZSTD(1)),\n"
	"  moment_rows Array(UInt32) CODEC(Delta(4), ZSTD(1)),\n"
	"  moment_ticks Array(UInt32) CODEC(T64, ZSTD(1)),\n"
	"  moment_links Array(FixedString(24)) CODEC(ZSTD(1))\n"
	") ENGINE = ReplacingMergeTree(rank) PARTITION BY (toDate(start), keep)\n"
	"  ORDER BY (tenant, type, service, start, series, batch)\n"
	"  TTL toDateTime(start) + toIntervalDay(keep)\n"
	"  SETTINGS index_granularity = 512, ttl_only_drop_parts = 1, fsync_after_insert = 1",

	"CREATE TABLE IF NOT EXISTS firn_series (\n"
	"  tenant LowCardinality(String), type LowCardinality(String), service "
	"LowCardinality(String),\n"
	"  day Date, keep UInt16, series UInt64, labelled UInt8,\n"
	"  names Array(LowCardinality(String)) CODEC(ZSTD(1)), vals Array(String) CODEC(ZSTD(1)),\n"
	"  sample_types Array(LowCardinality(String)), sample_units "
	"Array(LowCardinality(String)),\n"
	"  kinds Array(UInt8), period_type LowCardinality(String),\n"
	"  period_unit LowCardinality(String), period Int64\n"
	") ENGINE = ReplacingMergeTree PARTITION BY (day, keep)\n"
	"  ORDER BY (tenant, type, service, day, series, labelled)\n"
	"  TTL toDateTime(day) + toIntervalDay(keep + 1)\n"
	"  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1",

	"CREATE TABLE IF NOT EXISTS firn_stack (\n"
	"  tenant LowCardinality(String), service LowCardinality(String), day Date, keep UInt16,\n"
	"  dict UInt64, flush UInt32, nodes Array(UInt32) CODEC(Delta(4), ZSTD(1)),\n"
	"  parents Array(UInt32) CODEC(Delta(4), ZSTD(1)), frames Array(UInt32) CODEC(ZSTD(3)),\n"
	"  first_node UInt32 CODEC(Delta, T64, ZSTD(1)), ups Array(UInt32) CODEC(ZSTD(1)),\n"
	"  first_stack UInt32 CODEC(Delta, T64, ZSTD(1)),\n"
	"  ends Array(UInt32) CODEC(Delta(4), ZSTD(1))\n"
	") ENGINE = ReplacingMergeTree PARTITION BY (day, keep)\n"
	"  ORDER BY (tenant, service, day, dict, flush)\n"
	"  TTL toDateTime(day) + toIntervalDay(keep + 1)\n"
	"  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1",

	"CREATE TABLE IF NOT EXISTS firn_frame (\n"
	"  tenant LowCardinality(String), service LowCardinality(String), day Date, keep UInt16,\n"
	"  dict UInt64, frame UInt32 CODEC(Delta, ZSTD(1)), kind UInt8, flags UInt8,\n"
	"  address UInt64 CODEC(ZSTD(1)), mapping LowCardinality(String),\n"
	"  build_id LowCardinality(String), function String CODEC(ZSTD(3)),\n"
	"  system_name String CODEC(ZSTD(3)), file LowCardinality(String),\n"
	"  line UInt32 CODEC(T64, ZSTD(1)), col UInt32 CODEC(T64, ZSTD(1)),\n"
	"  start_line UInt32 CODEC(T64, ZSTD(1))\n"
	") ENGINE = ReplacingMergeTree PARTITION BY (day, keep)\n"
	"  ORDER BY (tenant, service, day, dict, frame)\n"
	"  TTL toDateTime(day) + toIntervalDay(keep + 1)\n"
	"  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1",

	"CREATE TABLE IF NOT EXISTS firn_label_set (\n"
	"  tenant LowCardinality(String), service LowCardinality(String), day Date, keep UInt16,\n"
	"  dict UInt64, lset UInt32, names Array(LowCardinality(String)), texts Array(String),\n"
	"  units Array(LowCardinality(String)), numbers Array(Int64), numeric Array(UInt8)\n"
	") ENGINE = ReplacingMergeTree PARTITION BY (day, keep)\n"
	"  ORDER BY (tenant, service, day, dict, lset)\n"
	"  TTL toDateTime(day) + toIntervalDay(keep + 1)\n"
	"  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1",

	"CREATE TABLE IF NOT EXISTS firn_delete (\n"
	"  number UInt64, tenant String, one_tenant UInt8, selector String, from_ns Int64,\n"
	"  to_ns Int64, by String, created_ns Int64, done_ns Int64\n"
	") ENGINE = ReplacingMergeTree(done_ns) ORDER BY number\n"
	"  SETTINGS fsync_after_insert = 1",
};

/* What tables of version 1 lack. Rows that they have stay as they are, and are read. */
static const char *const from_version_1[] = {
	"ALTER TABLE firn_stack\n"
	"  ADD COLUMN IF NOT EXISTS first_node UInt32 CODEC(Delta, T64, ZSTD(1)) AFTER frames,\n"
	"  ADD COLUMN IF NOT EXISTS ups Array(UInt32) CODEC(ZSTD(1)) AFTER first_node,\n"
	"  ADD COLUMN IF NOT EXISTS first_stack UInt32 CODEC(Delta, T64, ZSTD(1)) AFTER ups,\n"
	"  ADD COLUMN IF NOT EXISTS ends Array(UInt32) CODEC(Delta(4), ZSTD(1)) AFTER "
	"first_stack,\n"
	"  MODIFY COLUMN frames Array(UInt32) CODEC(ZSTD(3))",

	"ALTER TABLE firn_report\n"
	"  MODIFY COLUMN stacks Array(UInt32) CODEC(Delta(4), T64, ZSTD(1))",
};

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

/*
 * In a cluster, by what rows are spread: rows with the same key are in one shard, where they count
 * once, and so is all of a dictionary. In the order of the statements.
 */
static const struct sharding {
	const char *table, *by;
} shardings[] = {
	{ "firn_schema", "version" },
	{ "firn_report", "cityHash64(tenant, series)" },
	{ "firn_series", "cityHash64(tenant, series)" },
	{ "firn_stack", "cityHash64(tenant, dict)" },
	{ "firn_frame", "cityHash64(tenant, dict)" },
	{ "firn_label_set", "cityHash64(tenant, dict)" },
	{ "firn_delete", "number" },
};

_Static_assert(COUNT_OF(shardings) == COUNT_OF(statements), "a sharding for each table");

#define CREATE "CREATE TABLE IF NOT EXISTS "

/* The replicated table of every shard. */
static void add_local(const struct ch_schema_form *form, size_t table, struct strbuf *sql)
{
	const char *name = shardings[table].table;
	struct strbuf from = { 0 }, to = { 0 }, plain = { 0 }, versioned = { 0 };

	strbuf_addf(&from, CREATE "%s", name);
	strbuf_add_text(&to, CREATE);
	ch_cluster_add_table(&form->cluster, name, &to);
	strbuf_addf(&versioned,
		    "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/%s/%s', "
		    "'{replica}'",
		    form->database, name);
	strbuf_addf(&plain, "%s) ", strbuf_text(&versioned));
	strbuf_add_text(&versioned, ", ");
	ch_spell(
		(const struct ch_spelling[]){
			{ strbuf_text(&from), strbuf_text(&to) },
			{ "ENGINE = ReplacingMergeTree(", strbuf_text(&versioned) },
			{ "ENGINE = ReplacingMergeTree ", strbuf_text(&plain) },
		},
		3, slice_of(statements[table]), sql);
	strbuf_free(&from);
	strbuf_free(&to);
	strbuf_free(&plain);
	strbuf_free(&versioned);
}

static void add_distributed(const struct ch_schema_form *form, size_t table, struct strbuf *sql)
{
	const struct sharding *sharding = &shardings[table];

	strbuf_addf(sql,
		    CREATE "%s ON CLUSTER '%s' AS %s.%s_local\n"
			   "  ENGINE = Distributed('%s', '%s', %s_local, %s)",
		    sharding->table, form->cluster.name, form->database, sharding->table,
		    form->cluster.name, form->database, sharding->table, sharding->by);
}

typedef int statement_f(void *context, struct slice sql, struct err *err);

static int each_statement(const struct ch_schema_form *form, statement_f *take, void *context,
			  struct err *err)
{
	struct strbuf sql = { 0 };
	int rc = 0;

	for (size_t i = 0; !rc && i < COUNT_OF(statements); i++) {
		if (!form->cluster.name[0]) {
			rc = take(context, slice_of(statements[i]), err);
			continue;
		}
		strbuf_clear(&sql);
		add_local(form, i, &sql);
		rc = take(context, strbuf_slice(&sql), err);
		strbuf_clear(&sql);
		add_distributed(form, i, &sql);
		if (!rc)
			rc = take(context, strbuf_slice(&sql), err);
	}
	strbuf_free(&sql);
	return rc;
}

struct printing {
	const struct ch_dialect *dialect;
	struct strbuf *out;
};

static int print(void *context, struct slice sql, struct err *err)
{
	const struct printing *printing = context;

	(void)err;
	ch_dialect_spell(printing->dialect, sql, printing->out);
	strbuf_add_text(printing->out, ";\n");
	return 0;
}

void ch_schema_print(const struct ch_schema_form *form, struct strbuf *out)
{
	struct printing printing = { form->dialect, out };
	int rc = each_statement(form, print, &printing, NULL);

	assert(!rc);
	if (!form->dialect->expires_rows || form->cluster.name[0])
		return; /* which firn can use since version 2 */
	strbuf_add_text(out, "-- for tables of version 1, besides:\n");
	for (size_t i = 0; i < COUNT_OF(from_version_1); i++)
		strbuf_addf(out, "%s;\n", from_version_1[i]);
}

int ch_schema_version(struct ch_client *client, uint32_t *ret, struct err *err)
{
	struct strbuf rows = { 0 };
	const struct ch_limits limits = { .timeout_ns = TIMEOUT_NS, .bytes_max = 4096 };
	int rc = ch_read(client, slice_of("SELECT toUInt32(max(version)) FROM firn_schema"),
			 &limits, &rows, err);

	*ret = 0;
	if (!rc) {
		struct byte_reader in = byte_reader_of(strbuf_slice(&rows));

		*ret = byte_reader_u32(&in);
		if (in.failed || byte_reader_left(&in))
			rc = err_set(err, ERR_CORRUPT,
				     "ClickHouse: firn_schema was not answered with a version");
	} else if (rc == -ERR_NOT_FOUND) {
		rc = 0;
	}
	strbuf_free(&rows);
	return rc;
}

static int refuse_newer(uint32_t version, struct err *err)
{
	return err_set(
		err, ERR_UNSUPPORTED,
		"ClickHouse: the tables have version %u, and this firn knows up to %u; run a "
		"newer firn",
		version, CH_SCHEMA_VERSION);
}

static int run(void *context, struct slice sql, struct err *err)
{
	return ch_run(context, sql, TIMEOUT_NS, err);
}

/* The cluster that is asked for, which has to be that of tables that are there. */
static int choose_cluster(struct ch_client *client, const char *asked, uint32_t version,
			  struct ch_cluster *ret, struct err *err)
{
	struct ch_cluster wanted = { 0 };
	int rc = asked ? ch_cluster_named(asked, &wanted, err) : 0;

	*ret = wanted;
	if (rc || !version)
		return rc;
	rc = ch_cluster_find(client, ret, err);
	if (!rc && asked && strcmp(wanted.name, ret->name))
		rc = err_set(err, ERR_INVALID,
			     "--clickhouse-cluster %s: the database has tables already, %s%s",
			     asked, ret->name[0] ? "in the cluster " : "and in no cluster",
			     ret->name);
	return rc;
}

int ch_schema_migrate(struct ch_client *client, const char *cluster, const char *by,
		      struct err *err)
{
	struct ch_schema_form form = { .database = ch_client_database(client) };
	struct strbuf sql = { 0 };
	uint32_t version;
	int rc = ch_schema_version(client, &version, err);

	if (!rc && version > CH_SCHEMA_VERSION)
		rc = refuse_newer(version, err);
	if (!rc)
		rc = choose_cluster(client, cluster, version, &form.cluster, err);
	if (!rc)
		rc = each_statement(&form, run, client, err);
	for (size_t i = 0; !rc && version == 1 && i < COUNT_OF(from_version_1); i++)
		rc = ch_run(client, slice_of(from_version_1[i]), TIMEOUT_NS, err);
	if (!rc && version < CH_SCHEMA_VERSION) {
		strbuf_add_u32(&sql, CH_SCHEMA_VERSION);
		strbuf_add_u32(&sql, (uint32_t)(clock_real_ns() / CLOCK_NS_PER_S));
		ch_put_text(&sql, slice_of(by));
		rc = ch_insert(client, "firn_schema (version, at, by)", strbuf_slice(&sql),
			       TIMEOUT_NS, err);
	}
	strbuf_free(&sql);
	return rc;
}

int ch_schema_check(struct ch_client *client, struct err *err)
{
	uint32_t version;
	int rc = ch_schema_version(client, &version, err);

	if (rc)
		return rc;
	if (!version)
		return err_set(err, ERR_NOT_FOUND,
			       "ClickHouse: the database has no tables of firn; make them with "
			       "`firn clickhouse migrate` and the same --clickhouse options");
	if (version < CH_SCHEMA_VERSION)
		return err_set(
			err, ERR_UNSUPPORTED,
			"ClickHouse: the tables have version %u, and this firn needs %u; run "
			"`firn clickhouse migrate` with the same --clickhouse options",
			version, CH_SCHEMA_VERSION);
	return version > CH_SCHEMA_VERSION ? refuse_newer(version, err) : 0;
}
