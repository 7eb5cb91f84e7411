/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_dialect.h"

#define OLD_BEFORE 20

static const struct ch_dialect today = {
	.read_settings = "&readonly=2&cancel_http_readonly_queries_on_client_close=1",
	.write_settings = "&async_insert=0&max_partitions_per_insert_block=0"
			  "&insert_distributed_sync=1",
	.expires_rows = true,
	.waits_for_mutations = true,
};

/*
 * 18.16, as Debian packages it. Times of reports are nanoseconds in an Int64, the bytes of which
 * are those of a DateTime64(9).
 */
static const struct ch_spelling old_spellings[] = {
	{ " CODEC(", NULL },
	{ "LowCardinality(String)", "String" },
	{ "DateTime64(9, 'UTC')", "Int64" },
	{ "toDate(start)", "toDate(intDiv(start, 1000000000))" },
	{ "\n  TTL toDateTime(start) + toIntervalDay(keep)", "" },
	{ "\n  TTL toDateTime(day) + toIntervalDay(keep + 1)", "" },
	{ "\n  SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1", "" },
	{ "\n  SETTINGS fsync_after_insert = 1", "" },
	{ ", ttl_only_drop_parts = 1, fsync_after_insert = 1", "" },
	{ " SETTINGS mutations_sync = 2", "" },
	{ "firn_report FINAL WHERE ", "firn_report FINAL WHERE rank < 2 AND " }, /* ch_delete.c */
	{ "toUnixTimestamp64Nano(now64(9))", "toInt64(toUnixTimestamp(now())) * 1000000000" },
	{ "toUnixTimestamp64Nano(", "(" },
	{ "fromUnixTimestamp64Nano(", "(" },
	{ "arrayMax(", "arrayReduce('max', " },
};

static const struct ch_dialect old = {
	.spellings = old_spellings,
	.spellings_count = sizeof(old_spellings) / sizeof(*old_spellings),
	.read_settings = "&readonly=2",
	.write_settings = "&insert_distributed_sync=1",
};

const struct ch_dialect *ch_dialect_of(struct slice version)
{
	struct slice rest;
	uint64_t major;
	bool known = slice_parse_u64(slice_cut(version, '.', &rest), &major);

	return known && major < OLD_BEFORE ? &old : &today;
}

/* Behind the parenthesis that closes what was opened before `at`. */
static size_t end_of_call(struct slice sql, size_t at)
{
	for (size_t depth = 1; at < sql.len && depth; at++)
		depth += (sql.data[at] == '(') - (size_t)(sql.data[at] == ')');
	return at;
}

static const struct ch_spelling *find(const struct ch_spelling *spellings, size_t count,
				      struct slice rest)
{
	for (size_t i = 0; i < count; i++)
		if (slice_starts_with(rest, slice_of(spellings[i].from)))
			return &spellings[i];
	return NULL;
}

void ch_spell(const struct ch_spelling *spellings, size_t count, struct slice sql,
	      struct strbuf *out)
{
	size_t plain = 0;

	for (size_t at = 0; at < sql.len;) {
		const struct ch_spelling *spelling = find(spellings, count, slice_tail(sql, at));

		if (!spelling) {
			at++;
			continue;
		}
		strbuf_add(out, sql.data + plain, at - plain);
		at += strlen(spelling->from);
		if (spelling->to)
			strbuf_add_text(out, spelling->to);
		else
			at = end_of_call(sql, at);
		plain = at;
	}
	strbuf_add(out, sql.data + plain, sql.len - plain);
}
