/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_schema.h"

#include "server/persist/disk/byte_reader.h"

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

void ch_schema_print(struct strbuf *out)
{
	for (size_t i = 0; i < COUNT_OF(statements); i++)
		strbuf_addf(out, "%s;\n", statements[i]);
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

int ch_schema_migrate(struct ch_client *client, const char *by, struct err *err)
{
	struct strbuf sql = { 0 };
	uint32_t version;
	int rc = ch_schema_version(client, &version, err);

	if (!rc && version > CH_SCHEMA_VERSION)
		rc = refuse_newer(version, err);
	for (size_t i = 0; !rc && i < COUNT_OF(statements); i++)
		rc = ch_run(client, slice_of(statements[i]), TIMEOUT_NS, err);
	for (size_t i = 0; !rc && version == 1 && i < COUNT_OF(from_version_1); i++)
		rc = ch_run(client, slice_of(from_version_1[i]), TIMEOUT_NS, err);
	if (!rc && version < CH_SCHEMA_VERSION) {
		strbuf_addf(&sql, "INSERT INTO firn_schema (version, at, by) SELECT %u, now(), ",
			    CH_SCHEMA_VERSION);
		ch_add_text(&sql, slice_of(by));
		rc = ch_run(client, strbuf_slice(&sql), TIMEOUT_NS, err);
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
