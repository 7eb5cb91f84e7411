/* SPDX-License-Identifier: Apache-2.0 */
/* Statements as an old ClickHouse knows them, and the tables of a cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/clickhouse/ch_schema.h"

static const char *spelt(const char *version, const char *sql, struct strbuf *room)
{
	strbuf_clear(room);
	ch_dialect_spell(ch_dialect_of(slice_of(version)), slice_of(sql), room);
	return strbuf_text(room);
}

static void version_chooses_dialect(void **state)
{
	static const char *const old[] = { "18.16.1", "19.17.2.4" };
	static const char *const today[] = { "20.3.1", "23.8.1.94", "26.7.2.1", "", "v", "-1.2" };

	(void)state;
	for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++)
		assert_false(ch_dialect_of(slice_of(old[i]))->expires_rows);
	for (size_t i = 0; i < sizeof(today) / sizeof(*today); i++)
		assert_true(ch_dialect_of(slice_of(today[i]))->expires_rows);
}

static void today_spells_as_written(void **state)
{
	static const char sql[] = "SELECT arrayMax(x) CODEC(T64) FROM firn_report FINAL WHERE 1";
	struct strbuf room = { 0 };

	(void)state;
	assert_string_equal(spelt("26.7", sql, &room), sql);
	strbuf_free(&room);
}

static void old_words_replace_new_ones(void **state)
{
	struct strbuf room = { 0 };

	(void)state;
	assert_string_equal(
		spelt("18.16.1",
		      "SELECT toUnixTimestamp64Nano(start), arrayMax(m) FROM firn_report FINAL "
		      "WHERE start >= fromUnixTimestamp64Nano(toInt64(7)) AND tenant = "
		      "unhex('61')",
		      &room),
		"SELECT (start), arrayReduce('max', m) FROM firn_report FINAL WHERE rank < 2 AND "
		"start >= (toInt64(7)) AND tenant = unhex('61')");
	assert_string_equal(spelt("18.16.1", "a UInt64 CODEC(Delta(4), ZSTD(1)), b UInt8", &room),
			    "a UInt64, b UInt8");
	assert_string_equal(spelt("18.16.1", "a UInt64 CODEC(Delta(4", &room), "a UInt64");
	assert_string_equal(spelt("18.16.1", "", &room), "");
	strbuf_free(&room);
}

/* What 18.16 refuses in a statement that makes a table. */
static void old_tables_have_no_new_words(void **state)
{
	static const char *const refused[] = {
		"CODEC",       "LowCardinality", "TTL", "DateTime64", "ttl_only_drop_parts",
		"fsync_after", "toDate(start)",
	};
	const struct ch_schema_form form = {
		.dialect = ch_dialect_of(SLICE_LITERAL("18.16.1")),
		.database = "profiles",
		.cluster = { "c1" },
	};
	struct strbuf out = { 0 };

	(void)state;
	ch_schema_print(&form, &out);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		assert_null(strstr(strbuf_text(&out), refused[i]));
	assert_non_null(strstr(
		strbuf_text(&out),
		"CREATE TABLE IF NOT EXISTS firn_report_local ON CLUSTER 'c1' (\n  tenant String"));
	assert_non_null(strstr(strbuf_text(&out),
			       "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/"
			       "profiles/firn_report', '{replica}', rank) PARTITION BY"));
	assert_non_null(strstr(strbuf_text(&out),
			       "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/"
			       "profiles/firn_frame', '{replica}') PARTITION BY"));
	assert_non_null(strstr(strbuf_text(&out),
			       "CREATE TABLE IF NOT EXISTS firn_report ON CLUSTER 'c1' AS "
			       "profiles.firn_report_local\n  ENGINE = Distributed('c1', "
			       "'profiles', firn_report_local, cityHash64(tenant, series));\n"));
	strbuf_free(&out);
}

static void names_of_clusters_need_no_quotes(void **state)
{
	static const char *const wrong[] = { "", "a'b", "a b", "a`b", "\xc3\xa4" };
	char longest[CH_CLUSTER_NAME_MAX + 2] = "";
	struct ch_cluster cluster;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(ch_cluster_named(wrong[i], &cluster, &err), -ERR_INVALID);
	memset(longest, 'a', CH_CLUSTER_NAME_MAX + 1);
	assert_int_equal(ch_cluster_named(longest, &cluster, &err), -ERR_INVALID);
	longest[CH_CLUSTER_NAME_MAX] = '\0';
	assert_int_equal(ch_cluster_named(longest, &cluster, &err), 0);
	assert_int_equal(ch_cluster_named("eu-west_1.a", &cluster, &err), 0);
	assert_string_equal(cluster.name, "eu-west_1.a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_chooses_dialect),
		cmocka_unit_test(today_spells_as_written),
		cmocka_unit_test(old_words_replace_new_ones),
		cmocka_unit_test(old_tables_have_no_new_words),
		cmocka_unit_test(names_of_clusters_need_no_quotes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
