/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_schema - the tables that hold profiles in ClickHouse, and their version.
 *
 * docs/formats/clickhouse.md says what each column means. A server never changes the schema: the
 * operator does, with `firn clickhouse migrate`.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_SCHEMA_H
#define FIRN_SERVER_CLICKHOUSE_CH_SCHEMA_H

#include "server/clickhouse/ch_cluster.h"

#define CH_SCHEMA_VERSION 2u

/* Where the tables are to be. */
struct ch_schema_form {
	const struct ch_dialect *dialect; /* for ch_schema_print */
	const char *database;
	struct ch_cluster cluster;
};

/* The statements of all versions, each ended by ";\n". */
void ch_schema_print(const struct ch_schema_form *form, struct strbuf *out);

/*
 * Brings the database up to date, and records by whom. Idempotent. `cluster` may be NULL: none, or
 * that which has the tables.
 */
MUST_USE int ch_schema_migrate(struct ch_client *client, const char *cluster, const char *by,
			       struct err *err);

/* The version that the database has; 0: none. */
MUST_USE int ch_schema_version(struct ch_client *client, uint32_t *ret, struct err *err);

/* Checks that this program can work with the database. Errors say which command to run. */
MUST_USE int ch_schema_check(struct ch_client *client, struct err *err);

#endif
