/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_retention.h"

#include "server/clickhouse/ch_rows.h"

#define ASK_NS (30 * CLOCK_NS_PER_S)
#define DROP_NS (5 * CLOCK_NS_PER_S) /* a replica that is away does it when it is back */
#define ANSWER_BYTES_MAX ((uint64_t)4 << 20)
#define DAY_NS (86400 * CLOCK_NS_PER_S)

/* Of a part's name, YYYYMMDD-KEEP_n_n_n. */
#define DAY                                                                                        \
	"toUInt32(toDateOrZero(concat(substring(name, 1, 4), '-', substring(name, 5, 2), '-', "    \
	"substring(name, 7, 2))))"
#define KEEP "toUInt32OrZero(extract(name, '^[0-9]+-([0-9]+)_'))"

static int read_old(struct ch_client *client, const struct ch_cluster *cluster, struct strbuf *rows,
		    struct err *err)
{
	const struct ch_limits limits = { .timeout_ns = ASK_NS, .bytes_max = ANSWER_BYTES_MAX };
	struct strbuf sql = { 0 };
	int rc;

	strbuf_add_text(&sql, "SELECT DISTINCT replaceOne(table, '_local', '') AS t, "
			      "extract(name, '^([0-9]+-[0-9]+)_') AS id FROM ");
	ch_cluster_add_system(cluster, "parts", &sql);
	strbuf_add_text(&sql, " WHERE active AND startsWith(table, 'firn_') AND "
			      "match(name, '^[0-9]{8}-[0-9]+_') AND database = ");
	ch_add_text(&sql, slice_of(ch_client_database(client)));
	strbuf_addf(&sql,
		    " AND " DAY " + " KEEP " + if(t = 'firn_report', 1, 2) <= %lld "
		    "ORDER BY t != 'firn_report'",
		    (long long)(clock_real_ns() / DAY_NS));
	rc = ch_read(client, strbuf_slice(&sql), &limits, rows, err);
	strbuf_free(&sql);
	return rc;
}

/* "firn_x", "20261129-30": both go into a statement. */
static bool is_plain(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!(text.data[i] >= 'a' && text.data[i] <= 'z') && text.data[i] != '_' &&
		    !(text.data[i] >= '0' && text.data[i] <= '9') && text.data[i] != '-')
			return false;
	return text.len > 0 && text.len <= 64;
}

static int drop(struct ch_client *client, const struct ch_cluster *cluster, struct slice table,
		struct slice id, struct err *err)
{
	struct strbuf sql = { 0 }, name = { 0 };
	int rc;

	strbuf_add_slice(&name, table);
	strbuf_add_text(&sql, "ALTER TABLE ");
	ch_cluster_add_table(cluster, strbuf_text(&name), &sql);
	strbuf_addf(&sql, " DROP PARTITION ID '%.*s'", SLICE_FMT(id));
	rc = ch_run(client, strbuf_slice(&sql), DROP_NS, err);
	strbuf_free(&sql);
	strbuf_free(&name);
	return rc;
}

int ch_retention_apply(struct ch_client *client, const struct ch_cluster *cluster, struct err *err)
{
	struct strbuf rows = { 0 };
	int rc = read_old(client, cluster, &rows, err);
	struct byte_reader in = byte_reader_of(strbuf_slice(&rows));

	while (!rc && byte_reader_left(&in)) {
		struct slice table = ch_take_text(&in), id = ch_take_text(&in);

		if (in.failed || !is_plain(table) || !is_plain(id))
			rc = err_set(err, ERR_CORRUPT,
				     "ClickHouse: a list of partitions in an unexpected form");
		else
			rc = drop(client, cluster, table, id, err);
	}
	strbuf_free(&rows);
	return rc;
}
