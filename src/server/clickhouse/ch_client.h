/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_client - statements to ClickHouse over its HTTP interface, rows in RowBinary both ways.
 *
 * Several addresses name one cluster: a statement goes to the one that answered last, and to the
 * next if that cannot be reached. Every statement may run twice (it may have arrived although no
 * answer came back), so callers only make idempotent statements. Statements are spelt as the server
 * that answers first knows them (ch_dialect.h).
 *
 * Errors are ClickHouse's words with its code: ERR_UNAVAILABLE (unreachable, overloaded, no quorum;
 * a later try may succeed), ERR_DENIED, ERR_NOT_FOUND (no such table or database), ERR_NO_MEMORY
 * (over a limit of memory or bytes), ERR_DEADLINE, ERR_CANCELLED, ERR_INVALID (the statement), else
 * ERR_IO. Thread-safe; each call has a connection of its own, which is kept for the next.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_CLIENT_H
#define FIRN_SERVER_CLICKHOUSE_CH_CLIENT_H

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "server/clickhouse/ch_dialect.h"

#define CH_URLS_MAX 16

struct clickhouse_options {
	const char *url;	   /* http[s]://HOST:PORT, several with commas between */
	const char *database;	   /* NULL: default */
	const char *user;	   /* NULL: default */
	const char *password_file; /* NULL: no password */
	const char *ca_file;	   /* NULL: the system's authorities */
	uint64_t
		query_memory_bytes; /* ClickHouse's, for one query; 0: as the user's profile says */
};

struct ch_client;

/* Connects to nobody yet. Errors name the option. */
MUST_USE int ch_client_new(const struct clickhouse_options *options, struct ch_client **ret,
			   struct err *err);
void ch_client_free(struct ch_client *client); /* accepts NULL; no call is running */

/*
 * All statements, running ones included, end by this time (monotonic) with ERR_CANCELLED. Any
 * thread.
 */
void ch_client_end_by(struct ch_client *client, int64_t at_ns);

/* Known once a statement was answered. */
const struct ch_dialect *ch_client_dialect(const struct ch_client *client);
const char *ch_client_database(const struct ch_client *client);

struct ch_limits {
	int64_t timeout_ns; /* ClickHouse is told, and gives up by itself */
	uint64_t bytes_max;
	/* Soon after one is set the connection is closed and ClickHouse stops; may be NULL. */
	const _Atomic bool *stops[2];
};

/* Reads: rows of the statement in RowBinary are appended to `ret`. */
MUST_USE int ch_read(struct ch_client *client, struct slice sql, const struct ch_limits *limits,
		     struct strbuf *ret, struct err *err);

/* Changes the schema or the data; the answer has no rows. */
MUST_USE int ch_run(struct ch_client *client, struct slice sql, int64_t timeout_ns,
		    struct err *err);

/*
 * Inserts rows in RowBinary; `into` is "firn_x (a, b)". Success: ClickHouse has acknowledged them
 * all.
 */
MUST_USE int ch_insert(struct ch_client *client, const char *into, struct slice rows,
		       int64_t timeout_ns, struct err *err);

/* Appends the text as a SQL literal that no content can end. */
void ch_add_text(struct strbuf *sql, struct slice text);

#endif
