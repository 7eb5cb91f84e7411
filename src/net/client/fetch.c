/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client/fetch.h"

#include <ctype.h>
#include <stdatomic.h>

#include "net/client/answer.h"
#include "net/client/link.h"
#include "net/client/url.h"

#define REDIRECTIONS_MAX 5
#define CONNECT_NS (10 * CLOCK_NS_PER_S)
#define LOOK_NS (200 * CLOCK_NS_PER_MS) /* between looks at `cancelled` */

int fetch_check_url(const char *url, struct err *err)
{
	struct url target;

	return url_parse(url, &target, err);
}

void fetch_add_path(struct strbuf *url, struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c && (isalnum(c) || strchr("/-._~+", c)))
			strbuf_add_byte(url, (char)c);
		else
			strbuf_addf(url, "%%%02X", c);
	}
}

static bool is_cancelled(const struct fetch *fetch)
{
	return fetch->cancelled && atomic_load(fetch->cancelled);
}

/* As link_receive, but gives up when nobody wants the answer any more. */
static int receive(struct link *link, const struct fetch *fetch, struct slice *ret, struct err *err)
{
	for (;;) {
		int64_t until_ns = clock_monotonic_ns() + LOOK_NS;
		int rc;

		if (until_ns > fetch->deadline_at_ns)
			until_ns = fetch->deadline_at_ns;
		rc = link_receive(link, ret, until_ns, err);
		if (is_cancelled(fetch))
			return err_set(err, ERR_CANCELLED, "the request was abandoned");
		if (rc != -ERR_DEADLINE || clock_monotonic_ns() >= fetch->deadline_at_ns)
			return rc;
	}
}

static int converse(struct link *link, const struct fetch *fetch, struct answer *answer,
		    struct err *err)
{
	int rc = 0;

	while (!rc && !answer->is_over) {
		struct slice bytes;

		rc = receive(link, fetch, &bytes, err);
		if (rc)
			break;
		rc = answer_add(answer, bytes, err);
		if (rc)
			return rc;
	}
	if (rc && link->is_at_end && answer_end(answer))
		return 0;
	/* A status and no more is an answer, too. */
	return rc == -ERR_UNAVAILABLE && answer->status > 299 ? 0 : rc;
}

static int ask(const struct fetch *fetch, const struct url *target, const char *headers,
	       struct answer *answer, struct err *err)
{
	int64_t connect_until_ns = clock_monotonic_ns() + CONNECT_NS;
	struct strbuf request = { 0 };
	struct link link;
	int rc;

	if (connect_until_ns > fetch->deadline_at_ns)
		connect_until_ns = fetch->deadline_at_ns;
	if (target->is_tls && !fetch->tls)
		return err_set(err, ERR_UNSUPPORTED, "https is not set up");
	link_init(&link);
	if (fetch->socket_path)
		rc = link_open_local(&link, fetch->socket_path, connect_until_ns, err);
	else
		rc = link_open(&link, &target->address, target->is_tls ? fetch->tls : NULL,
			       connect_until_ns, err);
	if (rc)
		return rc;
	strbuf_addf(&request,
		    "GET %s%.*s HTTP/1.1\r\nhost: %s\r\nuser-agent: firn/%s\r\n"
		    "accept: */*\r\naccept-encoding: identity\r\nconnection: close\r\n%s\r\n",
		    target->path.len ? "" : "/", SLICE_FMT(target->path), target->authority,
		    FIRN_VERSION, headers);
	rc = link_send(&link, strbuf_slice(&request), fetch->deadline_at_ns, err);
	if (!rc)
		rc = converse(&link, fetch, answer, err);
	strbuf_wipe(&request); /* it may hold a password */
	link_close(&link);
	return rc;
}

/* Where the answer points to becomes the URL: another one, or a path on the same server. */
static int redirect(const struct url *target, struct slice location, struct strbuf *url,
		    struct err *err)
{
	bool is_path = location.data[0] == '/' && !slice_starts_with(location, SLICE_LITERAL("//"));

	strbuf_clear(url);
	if (is_path)
		strbuf_addf(url, "%s://%s", target->is_tls ? "https" : "http", target->authority);
	strbuf_add_slice(url, location);
	if (target->is_tls && !slice_starts_with(strbuf_slice(url), SLICE_LITERAL("https://")))
		return err_set(err, ERR_DENIED, "\"%s\" leads away from https", target->authority);
	return 0;
}

/* What proves who we are is for whom it was meant, not for where he sends us. */
static bool may_have_headers(const struct fetch *fetch, const struct url *target)
{
	struct url first;

	return fetch->headers && !url_parse(fetch->url, &first, NULL) &&
	       first.is_tls == target->is_tls && !strcmp(first.authority, target->authority);
}

/* One request; *ret_is_moved: the URL is another one now. */
static int try_url(const struct fetch *fetch, struct strbuf *url, int *ret_status,
		   bool *ret_is_moved, struct err *err)
{
	const struct answer_sink sink = { fetch->begin,	  fetch->take,
					  fetch->context, fetch->body_bytes_max,
					  fetch->refusal, fetch->may_end_with_connection };
	struct strbuf asked = { 0 };
	struct url target;
	struct answer answer;
	int rc;

	answer_begin(&answer, &sink);
	strbuf_add_slice(&asked, strbuf_slice(url)); /* the target borrows from it */
	rc = url_parse(strbuf_text(&asked), &target, err);
	if (!rc)
		rc = ask(fetch, &target, may_have_headers(fetch, &target) ? fetch->headers : "",
			 &answer, err);
	*ret_is_moved = !rc && !fetch->stays && answer_is_redirection(&answer);
	*ret_status = answer.status;
	if (*ret_is_moved)
		rc = redirect(&target, strbuf_slice(&answer.location), url, err);
	strbuf_free(&asked);
	answer_free(&answer);
	return rc;
}

int fetch_get(const struct fetch *fetch, int *ret_status, struct err *err)
{
	struct strbuf url = { 0 };
	bool is_moved = true;
	int status = 0, rc = 0;

	strbuf_add_text(&url, fetch->url);
	for (int i = 0; !rc && is_moved; i++) {
		if (i > (fetch->socket_path ? 0 : REDIRECTIONS_MAX))
			rc = err_set(err, ERR_UNAVAILABLE, "more than %d redirections",
				     fetch->socket_path ? 0 : REDIRECTIONS_MAX);
		else
			rc = try_url(fetch, &url, &status, &is_moved, err);
	}
	strbuf_free(&url);
	if (!rc)
		*ret_status = status;
	return rc;
}
