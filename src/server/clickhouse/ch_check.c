/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_check.h"

#include <stdio.h>

#include "server/clickhouse/ch_rows.h"
#include "server/clickhouse/ch_schema.h"

#define ASK_NS (30 * CLOCK_NS_PER_S)
#define ANSWER_BYTES_MAX 65536
#define SKEW_NS CLOCK_NS_PER_S
#define PARTS_WARN 300u /* of a partition; ClickHouse delays inserts at 1,000 */
#define TESTED_FROM "23.8"
#define TESTED_OLD "18.16"

struct checking {
	struct ch_client *client;
	struct ch_cluster cluster;
	struct strbuf *out, rows;
	uint32_t warnings;
	struct err *err;
};

static int ask(struct checking *checking, const char *sql, struct byte_reader *ret)
{
	const struct ch_limits limits = { .timeout_ns = ASK_NS, .bytes_max = ANSWER_BYTES_MAX };
	int rc;

	strbuf_clear(&checking->rows);
	rc = ch_read(checking->client, slice_of(sql), &limits, &checking->rows, checking->err);
	*ret = byte_reader_of(strbuf_slice(&checking->rows));
	return rc;
}

static int finish(const struct checking *checking, const struct byte_reader *in)
{
	return in->failed ? err_set(checking->err, ERR_CORRUPT,
				    "ClickHouse: an answer in an unexpected form")
			  : 0;
}

static void good(struct checking *checking, const char *what)
{
	strbuf_addf(checking->out, "ok       %s\n", what);
}

static void warn(struct checking *checking, const char *what, const char *to_do)
{
	checking->warnings++;
	strbuf_addf(checking->out, "warning  %s\n         %s\n", what, to_do);
}

static void judge(struct checking *checking, bool is_good, const char *what, const char *to_do)
{
	if (is_good)
		good(checking, what);
	else
		warn(checking, what, to_do);
}

/* 23.8 before 23.10. */
static bool is_at_least(const char *version, const char *least)
{
	int have[2] = { 0 }, want[2] = { 0 };

	(void)!sscanf(version, "%d.%d", &have[0], &have[1]);
	(void)!sscanf(least, "%d.%d", &want[0], &want[1]);
	return have[0] != want[0] ? have[0] > want[0] : have[1] >= want[1];
}

/* The clock is read between two looks at ours: what may lie between is no difference. */
static int check_server(struct checking *checking)
{
	int64_t before_ns = clock_real_ns(), after_ns, there_ns, skew_ns = 0;
	char version[64], text[160];
	struct byte_reader in;
	struct slice found;
	int rc = ask(checking, "SELECT toUnixTimestamp64Nano(now64(9)), version()", &in);

	if (rc)
		return rc;
	after_ns = clock_real_ns();
	there_ns = (int64_t)byte_reader_u64(&in);
	found = ch_take_text(&in);
	snprintf(version, sizeof(version), "%.*s", (int)(found.len < 63 ? found.len : 63),
		 found.data);
	if (there_ns < before_ns)
		skew_ns = before_ns - there_ns;
	else if (there_ns > after_ns)
		skew_ns = there_ns - after_ns;
	snprintf(text, sizeof(text), "ClickHouse %s answers", version);
	judge(checking, is_at_least(version, TESTED_FROM) || !strncmp(version, TESTED_OLD ".", 6),
	      text,
	      "firn's statements need " TESTED_FROM " or later (or " TESTED_OLD
	      "); update ClickHouse");
	snprintf(text, sizeof(text), "clocks differ by %.1f s or less",
		 (double)skew_ns / 1e9 + 0.1);
	judge(checking, skew_ns < SKEW_NS, text,
	      "set both by NTP: days and retention are ClickHouse's, times of profiles firn's");
	return finish(checking, &in);
}

static int check_schema(struct checking *checking, bool *ret_there)
{
	uint32_t version;
	char text[96];
	int rc = ch_schema_version(checking->client, &version, checking->err);

	if (!rc)
		rc = ch_cluster_find(checking->client, &checking->cluster, checking->err);
	if (rc)
		return rc;
	*ret_there = version > 0;
	snprintf(text, sizeof(text), version ? "the tables have version %u" : "no tables of firn",
		 version);
	judge(checking, version == CH_SCHEMA_VERSION, text,
	      version > CH_SCHEMA_VERSION ? "run a newer firn"
					  : "make them: firn clickhouse migrate, with the same "
					    "--clickhouse options");
	return 0;
}

/* Either an insert is on a disk before it is acknowledged, or on several machines. */
static int check_acknowledgement(struct checking *checking)
{
	uint64_t tables, synced, replicated;
	bool has_quorum;
	struct byte_reader in;
	struct slice quorum;
	int rc =
		ask(checking,
		    "SELECT count(), countIf(position(create_table_query, "
		    "'fsync_after_insert = 1') > 0), countIf(startsWith(engine, 'Replicated') OR "
		    "startsWith(engine, 'Shared')), ifNull((SELECT any(value) FROM system.settings "
		    "WHERE name = 'insert_quorum'), '') FROM system.tables WHERE database = "
		    "currentDatabase() AND startsWith(name, 'firn_') AND engine != 'Distributed' "
		    "AND NOT startsWith(name, 'firn_schema')",
		    &in);

	if (rc)
		return rc;
	tables = byte_reader_u64(&in);
	synced = byte_reader_u64(&in);
	replicated = byte_reader_u64(&in);
	quorum = ch_take_text(&in);
	has_quorum = replicated == tables && quorum.len && !slice_is(quorum, "0") &&
		     !slice_is(quorum, "1");
	if (synced == tables)
		good(checking, "an insert is on ClickHouse's disk before it is acknowledged "
			       "(fsync_after_insert)");
	else if (!has_quorum)
		warn(checking,
		     "an acknowledged insert may be lost when the machine loses its power",
		     "ALTER TABLE firn_x MODIFY SETTING fsync_after_insert = 1, for each table; or "
		     "replicate, with insert_quorum");
	if (has_quorum)
		good(checking, "an insert is on several replicas before it is acknowledged "
			       "(insert_quorum)");
	else if (replicated == tables)
		warn(checking, "an acknowledged insert may be on only one replica",
		     "set insert_quorum = 'auto' in the profile of firn's user, so that none is "
		     "lost with a machine");
	else
		warn(checking, "each profile is on only one machine",
		     "its loss would lose the profiles: use a database of engine "
		     "Replicated, or ClickHouse Cloud, or make backups");
	return finish(checking, &in);
}

static int check_parts(struct checking *checking)
{
	struct strbuf sql = { 0 };
	char text[96];
	struct byte_reader in;
	uint64_t most;
	int rc;

	strbuf_add_text(&sql, "SELECT toUInt64(max(parts)) FROM (SELECT count() AS parts FROM ");
	ch_cluster_add_system(&checking->cluster, "parts", &sql);
	strbuf_add_text(&sql, " WHERE active AND startsWith(table, 'firn_') AND database = ");
	ch_add_text(&sql, slice_of(ch_client_database(checking->client)));
	strbuf_add_text(&sql, " GROUP BY table, partition)");
	rc = ask(checking, strbuf_text(&sql), &in);
	strbuf_free(&sql);
	if (rc)
		return rc;
	most = byte_reader_u64(&in);
	snprintf(text, sizeof(text), "%llu parts in a partition at most", (unsigned long long)most);
	judge(checking, most < PARTS_WARN, text,
	      "ClickHouse does not keep up with merging, and will slow inserts down: fewer values "
	      "of "
	      "--tenant-retention, or more CPU and faster disks for ClickHouse");
	return finish(checking, &in);
}

int ch_check(struct ch_client *client, struct strbuf *out, uint32_t *ret_warnings, struct err *err)
{
	struct checking checking = { .client = client, .out = out, .err = err };
	bool there = false;
	int rc = check_server(&checking);

	if (!rc)
		rc = check_schema(&checking, &there);
	if (!rc && there)
		rc = check_acknowledgement(&checking);
	if (!rc && there)
		rc = check_parts(&checking);
	strbuf_free(&checking.rows);
	*ret_warnings = checking.warnings;
	return rc;
}
