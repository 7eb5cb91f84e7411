/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_client.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/mem.h"
#include "base/whole_file.h"
#include "net/client/fetch.h"
#include "net/client/rest.h"
#include "net/tls.h"
#include "server/clickhouse/ch_rows.h"

#define LINKS_MAX 64		    /* statements at once */
#define ANSWER_BYTES_MAX (1u << 20) /* of what has no rows */
#define PASSWORD_BYTES_MAX 4096
#define VERSION_BYTES_MAX 4096

struct link {
	struct rest *rest;
	size_t url; /* it is to */
};

struct ch_client {
	char *urls[CH_URLS_MAX];
	size_t urls_count;
	char *database;
	uint64_t query_memory_bytes; /* 0: it is not told */
	struct strbuf headers;	     /* of every request; has the password */
	struct tls *tls;
	const struct ch_dialect *_Atomic dialect; /* NULL: no server has answered yet */
	struct lock lock;			  /* of what follows */
	struct lock_condition changed;
	size_t url; /* answered last */
	struct link idle[LINKS_MAX], busy[LINKS_MAX];
	size_t idle_count, busy_count;
	int64_t end_at_ns; /* 0: not told yet */
};

static int add_urls(struct ch_client *client, const char *text, struct err *err)
{
	struct slice rest = slice_of(text);

	while (rest.len) {
		struct slice url = slice_trim(slice_cut(rest, ',', &rest));

		while (url.len && url.data[url.len - 1] == '/')
			url.len--;
		if (!url.len)
			continue;
		if (client->urls_count == CH_URLS_MAX)
			return err_set(err, ERR_INVALID, "--clickhouse-url: more than %d addresses",
				       CH_URLS_MAX);
		client->urls[client->urls_count++] = mem_strndup(url.data, url.len);
	}
	if (!client->urls_count)
		return err_set(err, ERR_INVALID,
			       "--clickhouse-url is empty; write http://HOST:8123");
	return 0;
}

static int read_password(const char *path, struct strbuf *out, struct err *err)
{
	struct strbuf file = { 0 };
	struct slice rest, line;
	int rc = whole_file_read(path, PASSWORD_BYTES_MAX, &file, err);

	line = slice_cut(strbuf_slice(&file), '\n', &rest);
	if (line.len && line.data[line.len - 1] == '\r')
		line.len--;
	strbuf_add_slice(out, line);
	strbuf_wipe(&file);
	if (rc)
		return err_wrap(err, "--clickhouse-password-file");
	return out->len ? 0
			: err_set(err, ERR_INVALID,
				  "--clickhouse-password-file \"%s\": expected a line with the "
				  "password",
				  path);
}

/* Our credentials. Base64 cannot end a header. */
static int add_login(struct ch_client *client, const struct clickhouse_options *options,
		     struct err *err)
{
	struct strbuf login = { 0 }, password = { 0 };
	int rc = 0;

	if (!options->user && !options->password_file)
		return 0;
	if (options->password_file)
		rc = read_password(options->password_file, &password, err);
	strbuf_addf(&login, "%s:", options->user ? options->user : "default");
	strbuf_add_slice(&login, strbuf_slice(&password));
	strbuf_wipe(&password);
	fetch_add_basic(&client->headers, "authorization", strbuf_slice(&login));
	strbuf_wipe(&login);
	return rc;
}

static int take_tls(struct ch_client *client, const struct clickhouse_options *options,
		    struct err *err)
{
	struct tls_client_options tls = { .http1_only = true };
	struct strbuf ca = { 0 };
	bool needed = false;
	int rc = 0;

	for (size_t i = 0; i < client->urls_count; i++)
		needed |= !strncmp(client->urls[i], "https:", 6);
	if (!needed)
		return 0;
	if (options->ca_file)
		rc = tls_read_pem(options->ca_file, &ca, &tls.ca, err);
	if (!rc)
		rc = tls_client_new(&tls, &client->tls, err);
	strbuf_free(&ca);
	return rc;
}

/* So that a malformed address is told at the start. */
static int check_urls(const struct ch_client *client, struct err *err)
{
	for (size_t i = 0; i < client->urls_count; i++) {
		struct rest *rest;

		if (rest_new(client->urls[i], client->tls, &rest, err))
			return err_wrap(err, "--clickhouse-url \"%s\"", client->urls[i]);
		rest_free(rest);
	}
	return 0;
}

int ch_client_new(const struct clickhouse_options *options, struct ch_client **ret, struct err *err)
{
	struct ch_client *client = mem_new(struct ch_client);
	const char *database = options->database ? options->database : "default";
	int rc;

	lock_init(&client->lock, "clickhouse.client", LOCK_NET + 20);
	lock_condition_init(&client->changed);
	client->database = mem_strndup(database, strlen(database));
	client->query_memory_bytes = options->query_memory_bytes;
	strbuf_add_text(&client->headers, "content-type: application/octet-stream\r\n");
	rc = add_urls(client, options->url, err);
	if (!rc)
		rc = take_tls(client, options, err);
	if (!rc)
		rc = check_urls(client, err);
	if (!rc)
		rc = add_login(client, options, err);
	if (rc) {
		ch_client_free(client);
		return rc;
	}
	*ret = client;
	return 0;
}

void ch_client_free(struct ch_client *client)
{
	if (!client)
		return;
	assert(!client->busy_count);
	for (size_t i = 0; i < client->idle_count; i++)
		rest_free(client->idle[i].rest);
	for (size_t i = 0; i < client->urls_count; i++)
		free(client->urls[i]);
	free(client->database);
	strbuf_wipe(&client->headers);
	tls_unref(client->tls);
	lock_condition_free(&client->changed);
	lock_free(&client->lock);
	free(client);
}

static bool has_ended(const struct ch_client *client)
{
	lock_assert_held(&client->lock);
	return client->end_at_ns && clock_monotonic_ns() >= client->end_at_ns;
}

void ch_client_end_by(struct ch_client *client, int64_t at_ns)
{
	lock_take(&client->lock);
	client->end_at_ns = at_ns;
	for (size_t i = 0; i < client->busy_count; i++)
		rest_end_by(client->busy[i].rest, at_ns);
	lock_broadcast(&client->changed);
	lock_give(&client->lock);
}

static struct rest *take_idle(struct ch_client *client, size_t url)
{
	for (size_t i = client->idle_count; i--;) {
		struct rest *rest = client->idle[i].rest;

		if (client->idle[i].url != url)
			continue;
		client->idle[i] = client->idle[--client->idle_count];
		return rest;
	}
	return NULL;
}

static int take_link(struct ch_client *client, size_t url, struct link *ret, struct err *err)
{
	int rc = 0;

	lock_take(&client->lock);
	while (client->busy_count == LINKS_MAX && !client->end_at_ns)
		lock_wait(&client->changed, &client->lock);
	*ret = (struct link){ take_idle(client, url), url };
	if (client->busy_count == LINKS_MAX || has_ended(client))
		rc = err_set(err, ERR_CANCELLED, "ClickHouse: the server is stopping");
	else if (!ret->rest)
		rc = rest_new(client->urls[url], client->tls, &ret->rest, err);
	if (!rc && client->end_at_ns)
		rest_end_by(ret->rest, client->end_at_ns);
	if (!rc)
		client->busy[client->busy_count++] = *ret;
	else
		rest_free(ret->rest);
	lock_give(&client->lock);
	return rc;
}

static void give_link(struct ch_client *client, struct link link, bool is_good)
{
	lock_take(&client->lock);
	for (size_t i = 0; i < client->busy_count; i++)
		if (client->busy[i].rest == link.rest)
			client->busy[i] = client->busy[--client->busy_count];
	if (is_good) {
		client->url = link.url;
		if (client->idle_count < LINKS_MAX) {
			client->idle[client->idle_count++] = link;
			link.rest = NULL;
		}
	}
	lock_broadcast(&client->changed);
	lock_give(&client->lock);
	rest_free(link.rest);
}

/* Connections to a server that has gone are of no use to anyone. */
static void drop_idle(struct ch_client *client, size_t url)
{
	struct rest *rest;

	lock_take(&client->lock);
	while ((rest = take_idle(client, url)))
		rest_free(rest);
	lock_give(&client->lock);
}

/* ClickHouse's error codes (src/Common/ErrorCodes.cpp) by what the caller can do about it. */
static enum err_code code_of(uint64_t code)
{
	switch (code) {
	case 60: /* UNKNOWN_TABLE */
	case 81: /* UNKNOWN_DATABASE */
		return ERR_NOT_FOUND;
	case 192: /* UNKNOWN_USER */
	case 193: /* WRONG_PASSWORD */
	case 194: /* REQUIRED_PASSWORD */
	case 497: /* ACCESS_DENIED */
	case 516: /* AUTHENTICATION_FAILED */
		return ERR_DENIED;
	case 158: /* TOO_MANY_ROWS */
	case 241: /* MEMORY_LIMIT_EXCEEDED */
	case 307: /* TOO_MANY_BYTES */
	case 396: /* TOO_MANY_ROWS_OR_BYTES */
		return ERR_NO_MEMORY;
	case 159: /* TIMEOUT_EXCEEDED */
	case 160: /* TOO_SLOW */
		return ERR_DEADLINE;
	case 394: /* QUERY_WAS_CANCELLED */
		return ERR_CANCELLED;
	case 202: /* TOO_MANY_SIMULTANEOUS_QUERIES */
	case 209: /* SOCKET_TIMEOUT */
	case 210: /* NETWORK_ERROR */
	case 225: /* NO_ZOOKEEPER */
	case 242: /* TABLE_IS_READ_ONLY */
	case 243: /* NOT_ENOUGH_SPACE */
	case 252: /* TOO_MANY_PARTS */
	case 279: /* ALL_CONNECTION_TRIES_FAILED */
	case 285: /* TOO_FEW_LIVE_REPLICAS */
	case 286: /* UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE */
	case 319: /* UNKNOWN_STATUS_OF_INSERT */
	case 999: /* KEEPER_EXCEPTION */
		return ERR_UNAVAILABLE;
	case 36: /* BAD_ARGUMENTS */
	case 47: /* UNKNOWN_IDENTIFIER */
	case 62: /* SYNTAX_ERROR */
		return ERR_INVALID;
	default:
		return ERR_IO;
	}
}

/* The number after "Code: ", as every exception begins. */
static uint64_t code_in(struct slice body)
{
	uint64_t code = 0;

	if (!slice_starts_with(body, slice_of("Code: ")))
		return 0;
	for (size_t i = 6; i < body.len && i < 12 && body.data[i] >= '0' && body.data[i] <= '9';
	     i++)
		code = code * 10 + (uint64_t)(body.data[i] - '0');
	return code;
}

/* The first line, without what is no text. */
static void first_line(struct slice body, char *ret, size_t bytes)
{
	size_t len = 0;

	for (; len + 1 < bytes && len < body.len && body.data[len] != '\n'; len++)
		ret[len] = (unsigned char)body.data[len] < ' ' ? '?' : body.data[len];
	ret[len] = '\0';
}

/*
 * A status that is not 200, or an exception that came with one that is: ClickHouse puts it into
 * the body, and its code into a header.
 */
static int check_answer(const struct rest_answer *answer, bool has_rows, const char *url,
			struct err *err)
{
	struct slice header = rest_header(answer, "x-clickhouse-exception-code");
	struct slice body = strbuf_slice(&answer->body);
	char line[300];
	uint64_t code;

	if (answer->status == 200 && !header.len && (has_rows || !code_in(body)))
		return 0;
	first_line(body, line, sizeof(line));
	if (!slice_parse_u64(header, &code))
		code = code_in(body);
	if (code)
		return err_set(err, code_of(code), "ClickHouse at %s: %s", url, line);
	if (answer->status == 401 || answer->status == 403)
		return err_set(err, ERR_DENIED, "ClickHouse at %s: status %d: %s", url,
			       answer->status, line);
	return err_set(err,
		       answer->status >= 500 || answer->status == 429 ? ERR_UNAVAILABLE : ERR_IO,
		       "ClickHouse at %s: status %d: %s", url, answer->status, line);
}

struct statement {
	struct slice target, body;
	int64_t deadline_at_ns;
	uint64_t bytes_max;
	struct strbuf *rows; /* NULL: it has none */
	const _Atomic bool *stops[2];
};

static bool is_cancelled(struct ch_client *client)
{
	bool cancelled;

	lock_take(&client->lock);
	cancelled = has_ended(client);
	lock_give(&client->lock);
	return cancelled;
}

static int ask_one(struct ch_client *client, const struct statement *statement, size_t url,
		   struct err *err)
{
	const struct rest_request request = { .method = "POST",
					      .target = statement->target.data,
					      .headers = strbuf_slice(&client->headers),
					      .body = statement->body,
					      .deadline_at_ns = statement->deadline_at_ns,
					      .body_bytes_max = statement->bytes_max,
					      .stops = { statement->stops[0],
							 statement->stops[1] } };
	struct rest_answer answer;
	struct link link;
	int rc = take_link(client, url, &link, err);

	if (rc)
		return rc;
	rc = rest_ask(link.rest, &request, &answer, err);
	give_link(client, link, !rc);
	if (rc && is_cancelled(client))
		return err_set(err, ERR_CANCELLED, "ClickHouse: the server is stopping");
	if (rc == -ERR_LIMIT)
		return err_set(err, ERR_NO_MEMORY,
			       "ClickHouse at %s: the answer has more than %llu bytes, the limit; "
			       "ask for a shorter time or for fewer series",
			       client->urls[url], (unsigned long long)statement->bytes_max);
	if (rc) {
		drop_idle(client, url);
		err_wrap(err, "ClickHouse at %s", client->urls[url]);
		return rc;
	}
	rc = check_answer(&answer, statement->rows, client->urls[url], err);
	if (!rc && statement->rows)
		strbuf_add_slice(statement->rows, strbuf_slice(&answer.body));
	rest_answer_free(&answer);
	return rc;
}

static int ask(struct ch_client *client, const struct statement *statement, struct err *err)
{
	size_t first;
	int rc = 0;

	lock_take(&client->lock);
	first = client->url;
	lock_give(&client->lock);
	for (size_t i = 0; i < client->urls_count || i < 2; i++) {
		rc = ask_one(client, statement, (first + i) % client->urls_count, err);
		if (rc != -ERR_UNAVAILABLE || clock_monotonic_ns() >= statement->deadline_at_ns)
			return rc;
	}
	return rc;
}

/* `wait_end_of_query`: an exception in the middle comes with its status, not behind half an answer.
 */
static void add_target(const struct ch_client *client, int64_t timeout_ns, struct strbuf *out)
{
	strbuf_add_text(out, "/?wait_end_of_query=1&database=");
	strbuf_add_for_uri(out, slice_of(client->database), "");
	strbuf_addf(out, "&max_execution_time=%lld",
		    (long long)((timeout_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S));
}

/* `more`: further settings of the statement. */
static int send_statement(struct ch_client *client, struct statement *statement, int64_t timeout_ns,
			  struct slice more, struct err *err)
{
	struct strbuf target = { 0 };
	int rc;

	add_target(client, timeout_ns, &target);
	strbuf_add_slice(&target, more);
	statement->target = strbuf_slice(&target);
	statement->deadline_at_ns = clock_monotonic_ns() + timeout_ns;
	rc = ask(client, statement, err);
	strbuf_free(&target);
	return rc;
}

/* Which dialect is spoken there; asked once, in words that all versions know. */
static int meet(struct ch_client *client, const struct ch_limits *limits, struct err *err)
{
	struct strbuf rows = { 0 };
	struct statement statement = { .body = SLICE_LITERAL("SELECT version()"),
				       .bytes_max = VERSION_BYTES_MAX,
				       .rows = &rows,
				       .stops = { limits->stops[0], limits->stops[1] } };
	struct byte_reader in;
	struct slice version;
	int rc;

	if (client->dialect)
		return 0;
	rc = send_statement(client, &statement, limits->timeout_ns,
			    SLICE_LITERAL("&default_format=RowBinary"), err);
	in = byte_reader_of(strbuf_slice(&rows));
	version = ch_take_text(&in);
	if (!rc && in.failed)
		rc = err_set(err, ERR_CORRUPT, "ClickHouse does not say its version; is it one?");
	if (!rc)
		client->dialect = ch_dialect_of(version);
	strbuf_free(&rows);
	return rc;
}

const struct ch_dialect *ch_client_dialect(const struct ch_client *client)
{
	assert(client->dialect);
	return client->dialect;
}

const char *ch_client_database(const struct ch_client *client)
{
	return client->database;
}

/* The statement as the server knows it, in `room` if need be. */
static struct slice spell(const struct ch_client *client, struct slice sql, struct strbuf *room)
{
	const struct ch_dialect *dialect = ch_client_dialect(client);

	if (!dialect->spellings_count)
		return sql;
	ch_dialect_spell(dialect, sql, room);
	return strbuf_slice(room);
}

int ch_read(struct ch_client *client, struct slice sql, const struct ch_limits *limits,
	    struct strbuf *ret, struct err *err)
{
	struct statement statement = { .bytes_max = limits->bytes_max,
				       .rows = ret,
				       .stops = { limits->stops[0], limits->stops[1] } };
	struct strbuf more = { 0 }, room = { 0 };
	int rc = meet(client, limits, err);

	if (rc)
		return rc;
	statement.body = spell(client, sql, &room);
	strbuf_addf(&more, "&default_format=RowBinary%s", ch_client_dialect(client)->read_settings);
	if (client->query_memory_bytes)
		strbuf_addf(&more, "&max_memory_usage=%llu",
			    (unsigned long long)client->query_memory_bytes);
	rc = send_statement(client, &statement, limits->timeout_ns, strbuf_slice(&more), err);
	strbuf_free(&more);
	strbuf_free(&room);
	return rc;
}

int ch_run(struct ch_client *client, struct slice sql, int64_t timeout_ns, struct err *err)
{
	struct statement statement = { .bytes_max = ANSWER_BYTES_MAX };
	const struct ch_limits limits = { .timeout_ns = timeout_ns };
	struct strbuf room = { 0 };
	int rc = meet(client, &limits, err);

	if (rc)
		return rc;
	statement.body = spell(client, sql, &room);
	rc = send_statement(client, &statement, timeout_ns,
			    slice_of(ch_client_dialect(client)->write_settings), err);
	strbuf_free(&room);
	return rc;
}

int ch_insert(struct ch_client *client, const char *into, struct slice rows, int64_t timeout_ns,
	      struct err *err)
{
	struct statement statement = { .body = rows, .bytes_max = ANSWER_BYTES_MAX };
	const struct ch_limits limits = { .timeout_ns = timeout_ns };
	struct strbuf sql = { 0 }, more = { 0 };
	int rc = meet(client, &limits, err);

	if (rc)
		return rc;
	strbuf_addf(&sql, "INSERT INTO %s FORMAT RowBinary", into);
	strbuf_addf(&more, "%s&query=", ch_client_dialect(client)->write_settings);
	strbuf_add_for_uri(&more, strbuf_slice(&sql), "");
	rc = send_statement(client, &statement, timeout_ns, strbuf_slice(&more), err);
	strbuf_free(&sql);
	strbuf_free(&more);
	return rc;
}

void ch_add_text(struct strbuf *sql, struct slice text)
{
	if (!text.len) {
		strbuf_add_text(sql, "''");
		return;
	}
	strbuf_add_text(sql, "unhex('");
	for (size_t i = 0; i < text.len; i++)
		strbuf_addf(sql, "%02x", (unsigned char)text.data[i]);
	strbuf_add_text(sql, "')");
}
