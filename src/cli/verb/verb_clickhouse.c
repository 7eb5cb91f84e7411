/* SPDX-License-Identifier: Apache-2.0 */
/* firn clickhouse schema, migrate, check, import - the tables that hold profiles in ClickHouse. */
#include <stdio.h>

#include "base/printable.h"
#include "cli/flags/clickhouse_flags.h"
#include "cli/verb.h"
#include "server/clickhouse/ch_check.h"
#include "server/clickhouse/ch_import.h"
#include "server/clickhouse/ch_schema.h"
#include "server/clickhouse/ch_store.h"

struct schema_options {
	struct verb_common common;
	struct clickhouse_options clickhouse;
	const char *cluster; /* NULL: none */
};

static const struct option schema_options[] = {
	CLICKHOUSE_FLAGS_OPTIONS(struct schema_options, clickhouse),
	OPTION_AT(CLICKHOUSE_CLUSTER, offsetof(struct schema_options, cluster)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb schema_spec = {
	.name = "clickhouse schema",
	.operands = "",
	.summary = "print the tables that hold profiles in ClickHouse",
	.details = "Prints the statements that `firn clickhouse migrate` runs, for who reviews\n"
		   "them or runs them by other means. With --clickhouse-url: as that server's\n"
		   "version needs them; else those for 23.8 and later.",
	.options = schema_options,
	.options_count = VERB_COUNT_OF(schema_options),
};

static int print_schema(const struct schema_options *values, struct strbuf *out, struct err *err)
{
	struct ch_schema_form form = { .dialect = ch_dialect_of(SLICE_LITERAL("")),
				       .database = values->clickhouse.database
							   ? values->clickhouse.database
							   : "default" };
	struct ch_client *client = NULL;
	uint32_t version;
	int rc = values->cluster ? ch_cluster_named(values->cluster, &form.cluster, err) : 0;

	if (!rc && values->clickhouse.url)
		rc = ch_client_new(&values->clickhouse, &client, err);
	if (!rc && client)
		rc = ch_schema_version(client, &version, err);
	if (!rc && client)
		form.dialect = ch_client_dialect(client);
	if (!rc)
		ch_schema_print(&form, out);
	ch_client_free(client);
	return rc;
}

static int run_schema(int argc, char **argv)
{
	struct schema_options values = { 0 };
	struct option_operands operands;
	struct strbuf sql = { 0 };
	struct err err;
	int code = verb_parse(&verb_clickhouse_schema, argc, argv, &values, &operands), rc;

	if (code >= 0)
		return code;
	rc = print_schema(&values, &sql, &err);
	if (!rc)
		fwrite(sql.data, 1, sql.len, stdout);
	strbuf_free(&sql);
	return rc ? verb_error(&verb_clickhouse_schema, &err) : VERB_OK;
}

const struct verb verb_clickhouse_schema = { &schema_spec, run_schema, LOG_WARN };

static const struct option_verb migrate_spec = {
	.name = "clickhouse migrate",
	.operands = "",
	.summary = "make or update the tables that hold profiles in ClickHouse",
	.details =
		"Run it once before the first server, and after an update of firn. Servers do\n"
		"not change tables themselves; they refuse to start and say what to run.\n"
		"With --clickhouse-cluster the tables are spread over the shards of that\n"
		"cluster, and replicated in each; its servers have the macros shard and replica.\n"
		"\n"
		"  firn clickhouse migrate --clickhouse-url http://clickhouse:8123",
	.options = schema_options,
	.options_count = VERB_COUNT_OF(schema_options),
};

static int need_url(const struct clickhouse_options *options, struct err *err)
{
	return options->url ? 0
			    : err_set(err, ERR_INVALID,
				      "which ClickHouse? Give --clickhouse-url, for example "
				      "http://127.0.0.1:8123");
}

static int migrate(const struct schema_options *values, struct err *err)
{
	struct ch_client *client;
	int rc = ch_client_new(&values->clickhouse, &client, err);

	if (rc)
		return rc;
	rc = ch_schema_migrate(client, values->cluster, "firn " FIRN_VERSION, err);
	ch_client_free(client);
	return rc;
}

static int run_migrate(int argc, char **argv)
{
	struct schema_options values = { 0 };
	struct option_operands operands;
	struct err err;
	int code = verb_parse(&verb_clickhouse_migrate, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (need_url(&values.clickhouse, &err) || migrate(&values, &err))
		return verb_error(&verb_clickhouse_migrate, &err);
	printable_print(stdout, "the tables of firn have version %u\n", CH_SCHEMA_VERSION);
	return VERB_OK;
}

const struct verb verb_clickhouse_migrate = { &migrate_spec, run_migrate, LOG_WARN };

struct which_options {
	struct verb_common common;
	struct clickhouse_options clickhouse;
};

static const struct option which_options[] = {
	CLICKHOUSE_FLAGS_OPTIONS(struct which_options, clickhouse),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb check_spec = {
	.name = "clickhouse check",
	.operands = "",
	.summary = "see whether a ClickHouse is fit to keep profiles",
	.details = "Says which version answers, whether the clocks agree, whether the tables are\n"
		   "there, what an acknowledged profile survives (the loss of power, of a\n"
		   "machine), and whether ClickHouse keeps up. Each warning says what to do.\n"
		   "Changes nothing. Exit status 1: there are warnings.\n"
		   "\n"
		   "  firn clickhouse check --clickhouse-url http://clickhouse:8123",
	.options = which_options,
	.options_count = VERB_COUNT_OF(which_options),
};

static int check(const struct clickhouse_options *options, struct strbuf *out,
		 uint32_t *ret_warnings, struct err *err)
{
	struct ch_client *client;
	int rc = ch_client_new(options, &client, err);

	if (rc)
		return rc;
	rc = ch_check(client, out, ret_warnings, err);
	ch_client_free(client);
	return rc;
}

static int run_check(int argc, char **argv)
{
	struct which_options values = { 0 };
	struct option_operands operands;
	struct strbuf out = { 0 };
	uint32_t warnings = 0;
	struct err err;
	int code = verb_parse(&verb_clickhouse_check, argc, argv, &values, &operands), rc;

	if (code >= 0)
		return code;
	rc = need_url(&values.clickhouse, &err);
	if (!rc)
		rc = check(&values.clickhouse, &out, &warnings, &err);
	printable_print(stdout, "%s", strbuf_text(&out));
	strbuf_free(&out);
	if (rc)
		return verb_error(&verb_clickhouse_check, &err);
	return warnings ? VERB_NEGATIVE : VERB_OK;
}

const struct verb verb_clickhouse_check = { &check_spec, run_check, LOG_WARN };

struct import_options {
	struct verb_common common;
	struct clickhouse_options clickhouse;
	int64_t retention_ns;
};

static const struct option import_options[] = {
	CLICKHOUSE_FLAGS_OPTIONS(struct import_options, clickhouse),
	OPTION_AT(STORAGE_RETENTION_TIME, offsetof(struct import_options, retention_ns)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb import_spec = {
	.name = "clickhouse import",
	.operands = "DIR",
	.summary = "copy the profiles of a storage directory into ClickHouse",
	.details =
		"Copies every report that was not deleted, without the times of single samples.\n"
		"DIR is only read, and no server may write to it meanwhile. A failed copy may be\n"
		"repeated: no report counts twice. --storage-retention-time says how long\n"
		"ClickHouse keeps the copied reports, from their own time on.\n"
		"\n"
		"  firn clickhouse import --clickhouse-url http://clickhouse:8123 /var/lib/firn",
	.options = import_options,
	.options_count = VERB_COUNT_OF(import_options),
};

static int import(const char *dir, const struct import_options *values,
		  struct ch_import_result *result, struct err *err)
{
	const struct store_options open = { .path = dir, .read_only = true, .no_background = true };
	const struct ch_store_options into = { .clickhouse = values->clickhouse,
					       .retention_ns = values->retention_ns };
	struct store *from, *to;
	int rc = store_open(&open, &from, err);

	if (rc)
		return rc;
	rc = ch_store_open(&into, &to, err);
	if (!rc) {
		rc = ch_import(from, to, result, err);
		store_close(to);
	}
	store_close(from);
	return rc;
}

static int run_import(int argc, char **argv)
{
	struct import_options values = { 0 };
	struct option_operands operands;
	struct ch_import_result result = { 0 };
	struct err err;
	int code = verb_parse(&verb_clickhouse_import, argc, argv, &values, &operands), rc;

	if (code >= 0)
		return code;
	rc = need_url(&values.clickhouse, &err);
	if (!rc && operands.count != 1)
		rc = err_set(&err, ERR_INVALID, "which storage directory? Give one");
	if (!rc)
		rc = import(operands.items[0], &values, &result, &err);
	if (rc)
		return verb_error(&verb_clickhouse_import, &err);
	printable_print(stdout, "copied %llu reports of %llu rows; %llu were older than is kept\n",
			(unsigned long long)result.reports, (unsigned long long)result.rows,
			(unsigned long long)result.refused);
	return VERB_OK;
}

const struct verb verb_clickhouse_import = { &import_spec, run_import, LOG_WARN };
