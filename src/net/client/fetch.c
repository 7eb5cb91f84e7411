/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client/fetch.h"

#include <stdatomic.h>
#include <stdio.h>

#include "codec/wire/base64.h"
#include "net/client/answer.h"
#include "net/client/link.h"
#include "net/client/url.h"
#include "net/http/uri.h"

#define REDIRECTIONS_MAX 5
#define CONNECT_NS (10 * CLOCK_NS_PER_S)
#define TUNNEL_HEAD_BYTES_MAX 16384u
#define LOOK_NS (200 * CLOCK_NS_PER_MS) /* between looks at `cancelled` */

int fetch_check_url(const char *url, struct err *err)
{
	struct url target;

	return url_parse(url, &target, err);
}

void fetch_add_path(struct strbuf *url, struct slice text)
{
	strbuf_add_for_uri(url, text, "/+");
}

void fetch_add_parameter(struct strbuf *url, const char *name, struct slice value)
{
	if (!value.len)
		return;
	strbuf_addf(url, "&%s=", name);
	strbuf_add_for_uri(url, value, "");
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

/* What proves who we are is for whom it was meant, not for where he sends us. */
static bool is_own_host(const struct fetch *fetch, const struct url *target)
{
	struct url first;

	return !url_parse(fetch->url, &first, NULL) && first.is_tls == target->is_tls &&
	       !strcmp(first.authority, target->authority);
}

/* What a proxy is and who we are there. */
struct proxy {
	struct url url;
	struct strbuf authorization; /* a line, or nothing */
};

static int refuse_proxy(const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "proxy: %s", why);
}

void fetch_add_basic(struct strbuf *headers, const char *name, struct slice user_and_password)
{
	strbuf_addf(headers, "%s: Basic ", name);
	base64_encode(user_and_password, true, headers);
	strbuf_add_text(headers, "\r\n");
}

/* The part before '@', if there is one, as Basic authorization. */
static int take_user(struct slice *authority, struct strbuf *line, struct err *err)
{
	const char *at = memrchr(authority->data, '@', authority->len);
	struct strbuf pair = { 0 };
	struct slice user;

	if (!at)
		return 0;
	user = slice_from(authority->data, (size_t)(at - authority->data));
	*authority = slice_tail(*authority, user.len + 1);
	if (!uri_decode(user, false, &pair))
		return refuse_proxy("the user is not percent-encoded right", err);
	if (!memchr(pair.data, ':', pair.len))
		strbuf_add_byte(&pair, ':');
	fetch_add_basic(line, "proxy-authorization", strbuf_slice(&pair));
	strbuf_wipe(&pair);
	return 0;
}

/* To be freed in any case. */
static int read_proxy(const char *text, struct proxy *ret, struct err *err)
{
	static const char scheme[] = "http://";
	struct slice authority = slice_of(text), path;
	struct strbuf plain = { 0 };
	int rc;

	*ret = (struct proxy){ .authorization = { 0 } };
	if (!slice_starts_with(authority, slice_of(scheme)))
		return refuse_proxy("it does not begin with http://", err);
	authority = slice_cut(slice_tail(authority, strlen(scheme)), '/', &path);
	rc = take_user(&authority, &ret->authorization, err);
	strbuf_addf(&plain, "%s%.*s", scheme, SLICE_FMT(authority));
	if (!rc && url_parse(strbuf_text(&plain), &ret->url, err))
		rc = err_wrap(err, "proxy");
	strbuf_free(&plain);
	return rc;
}

static void free_proxy(struct proxy *proxy)
{
	strbuf_wipe(&proxy->authorization);
}

int fetch_check_proxy(const char *proxy, struct err *err)
{
	struct proxy read;
	int rc = read_proxy(proxy, &read, err);

	free_proxy(&read);
	return rc;
}

/* The head of the answer to CONNECT; behind it the tunnel begins, in which we speak first. */
static int receive_tunnel(struct link *link, const struct fetch *fetch, struct err *err)
{
	struct strbuf head = { 0 };
	int rc = 0, status = 0;

	while (!rc && !memmem(head.data, head.len, "\r\n\r\n", 4)) {
		struct slice bytes = { 0 };

		if (head.len > TUNNEL_HEAD_BYTES_MAX)
			rc = err_set(err, ERR_LIMIT, "the proxy's answer is too long");
		else
			rc = receive(link, fetch, &bytes, err);
		if (!rc)
			strbuf_add_slice(&head, bytes);
	}
	if (!rc &&
	    (sscanf(strbuf_text(&head), "HTTP/1.%*1[01] %3d", &status) != 1 || status / 100 != 2))
		rc = err_set(err, ERR_UNAVAILABLE, "the proxy opens no tunnel: status %d", status);
	strbuf_free(&head);
	return rc;
}

static int open_tunnel(struct link *link, const struct fetch *fetch, const struct proxy *proxy,
		       const struct address *to, struct err *err)
{
	struct strbuf request = { 0 };
	bool is_ip6 = strchr(to->host, ':');
	char place[ADDRESS_HOST_BYTES + 16];
	int rc;

	snprintf(place, sizeof(place), is_ip6 ? "[%s]:%u" : "%s:%u", to->host, to->port);
	strbuf_addf(&request, "CONNECT %s HTTP/1.1\r\nhost: %s\r\nuser-agent: firn/%s\r\n%s\r\n",
		    place, place, FIRN_VERSION, strbuf_text(&proxy->authorization));
	rc = link_send(link, strbuf_slice(&request), fetch->deadline_at_ns, err);
	strbuf_wipe(&request);
	return rc ? rc : receive_tunnel(link, fetch, err);
}

/* To the target or to a proxy, and through it. */
static int open_link(struct link *link, const struct fetch *fetch, const struct url *target,
		     const struct proxy *proxy, struct err *err)
{
	int64_t until_ns = clock_monotonic_ns() + CONNECT_NS;
	bool is_own = is_own_host(fetch, target);
	int rc;

	if (until_ns > fetch->deadline_at_ns)
		until_ns = fetch->deadline_at_ns;
	if (target->is_tls && !fetch->tls)
		return err_set(err, ERR_UNSUPPORTED, "https is not set up");
	if (fetch->socket_path)
		return link_open_local(link, fetch->socket_path, until_ns, err);
	rc = link_open(link, proxy ? &proxy->url.address : &target->address, NULL, until_ns, err);
	if (!rc && proxy && target->is_tls)
		rc = open_tunnel(link, fetch, proxy, &target->address, err);
	if (!rc && target->is_tls)
		rc = link_secure(link, fetch->tls,
				 is_own && fetch->tls_name ? fetch->tls_name : target->address.host,
				 until_ns, err);
	return rc;
}

static void write_request(const struct fetch *fetch, const struct url *target,
			  const struct proxy *proxy, struct strbuf *out)
{
	bool is_passed_on = proxy && !target->is_tls;

	strbuf_addf(out, "%s ", fetch->post.len ? "POST" : "GET");
	if (is_passed_on)
		strbuf_addf(out, "http://%s", target->authority);
	strbuf_addf(out,
		    "%s%.*s HTTP/1.1\r\nhost: %s\r\nuser-agent: firn/%s\r\n"
		    "accept: */*\r\naccept-encoding: identity\r\nconnection: close\r\n",
		    target->path.len ? "" : "/", SLICE_FMT(target->path), target->authority,
		    FIRN_VERSION);
	if (is_passed_on)
		strbuf_add_slice(out, strbuf_slice(&proxy->authorization));
	if (fetch->headers && is_own_host(fetch, target))
		strbuf_add_text(out, fetch->headers);
	if (fetch->post.len)
		strbuf_addf(out, "content-length: %zu\r\n", fetch->post.len);
	strbuf_add_text(out, "\r\n");
	strbuf_add_slice(out, fetch->post);
}

static int ask(const struct fetch *fetch, const struct url *target, struct answer *answer,
	       struct err *err)
{
	struct proxy read = { 0 }, *proxy = fetch->proxy ? &read : NULL;
	struct strbuf request = { 0 };
	struct link link;
	int rc = proxy ? read_proxy(fetch->proxy, proxy, err) : 0;

	link_init(&link);
	if (!rc)
		rc = open_link(&link, fetch, target, proxy, err);
	if (!rc) {
		write_request(fetch, target, proxy, &request);
		rc = link_send(&link, strbuf_slice(&request), fetch->deadline_at_ns, err);
	}
	if (!rc)
		rc = converse(&link, fetch, answer, err);
	strbuf_wipe(&request); /* it may hold a password */
	link_close(&link);
	if (proxy)
		free_proxy(proxy);
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
		rc = ask(fetch, &target, &answer, err);
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

int fetch_refused(int status, struct strbuf *refusal, struct err *err)
{
	struct slice text = slice_from(strbuf_text(refusal), refusal->len);

	return err_set(err, ERR_UNAVAILABLE, "status %d: %.*s", status,
		       SLICE_FMT(slice_trim(text)));
}
