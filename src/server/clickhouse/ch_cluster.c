/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_cluster.h"

#include "server/clickhouse/ch_rows.h"

#define ASK_NS (60 * CLOCK_NS_PER_S)
#define ANSWER_BYTES_MAX 4096

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

static int take_name(struct slice name, struct ch_cluster *ret, struct err *err)
{
	bool plain = name.len > 0 && name.len <= CH_CLUSTER_NAME_MAX;

	for (size_t i = 0; plain && i < name.len; i++)
		plain = is_plain(name.data[i]);
	if (!plain)
		return err_set(err, ERR_INVALID,
			       "a cluster's name has 1 to %u letters, digits or -_.",
			       CH_CLUSTER_NAME_MAX);
	memcpy(ret->name, name.data, name.len);
	ret->name[name.len] = '\0';
	return 0;
}

int ch_cluster_named(const char *name, struct ch_cluster *ret, struct err *err)
{
	return take_name(slice_of(name), ret, err) ? err_wrap(err, "--clickhouse-cluster") : 0;
}

int ch_cluster_find(struct ch_client *client, struct ch_cluster *ret, struct err *err)
{
	struct strbuf sql = { 0 }, rows = { 0 };
	const struct ch_limits limits = { .timeout_ns = ASK_NS, .bytes_max = ANSWER_BYTES_MAX };
	struct byte_reader in;
	struct slice name;
	int rc;

	*ret = (struct ch_cluster){ 0 };
	strbuf_add_text(&sql, "SELECT extract(engine_full, '^Distributed\\\\(\\'?([^,\\']+)') FROM "
			      "system.tables WHERE name = 'firn_report' AND database = ");
	ch_add_text(&sql, slice_of(ch_client_database(client)));
	rc = ch_read(client, strbuf_slice(&sql), &limits, &rows, err);
	in = byte_reader_of(strbuf_slice(&rows));
	name = ch_take_text(&in);
	if (!rc && name.len)
		rc = take_name(name, ret, err) ? err_wrap(err, "ClickHouse: firn_report") : 0;
	strbuf_free(&sql);
	strbuf_free(&rows);
	return rc;
}

void ch_cluster_add_table(const struct ch_cluster *cluster, const char *table, struct strbuf *sql)
{
	strbuf_add_text(sql, table);
	if (cluster->name[0])
		strbuf_addf(sql, "_local ON CLUSTER '%s'", cluster->name);
}

void ch_cluster_add_system(const struct ch_cluster *cluster, const char *table, struct strbuf *sql)
{
	if (cluster->name[0])
		strbuf_addf(sql, "cluster('%s', system.%s)", cluster->name, table);
	else
		strbuf_addf(sql, "system.%s", table);
}
