/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/access/http_access.h"

#include "remote/access/credentials.h"
#include "remote/access/oauth2.h"

static int add_basic(const struct http_access_config *config, struct strbuf *out, struct err *err)
{
	struct strbuf pair = { 0 };
	int rc = credentials_add_secret(config->basic.username, config->basic.username_file, &pair,
					err);

	strbuf_add_byte(&pair, ':');
	if (!rc)
		rc = credentials_add_secret(config->basic.password, config->basic.password_file,
					    &pair, err);
	if (!rc) {
		fetch_add_basic(out, "authorization", strbuf_slice(&pair));
	}
	strbuf_wipe(&pair);
	return rc;
}

static int add_authorization(const struct http_access_config *config, const struct fetch *fetch,
			     struct strbuf *out, struct err *err)
{
	struct slice type = config->authorization.type;
	struct slice text = config->authorization.credentials;
	struct slice file = config->authorization.credentials_file;
	int rc;

	if (config->oauth2.token_url.len) {
		strbuf_add_text(out, "authorization: ");
		rc = oauth2_add_token(&config->oauth2, fetch->deadline_at_ns, fetch->cancelled, out,
				      err);
		strbuf_add_text(out, "\r\n");
		return rc;
	}
	if (config->basic.username.len || config->basic.username_file.len)
		return add_basic(config, out, err);
	if (!text.len && !file.len) {
		text = config->bearer_token;
		file = config->bearer_token_file;
	}
	if (!text.len && !file.len)
		return 0;
	strbuf_addf(out, "authorization: %.*s ", type.len ? (int)type.len : 6,
		    type.len ? type.data : "Bearer");
	rc = credentials_add_secret(text, file, out, err);
	strbuf_add_text(out, "\r\n");
	return rc;
}

static const char *text_or_null(struct slice text)
{
	return text.len ? text.data : NULL;
}

int http_access_make(const struct http_access_config *config, const char *headers,
		     struct fetch *fetch, struct http_access *ret, struct err *err)
{
	int rc;

	*ret = (struct http_access){ .tls = NULL };
	rc = add_authorization(config, fetch, &ret->headers, err);
	if (!rc && !fetch->tls && !strncmp(fetch->url, "https:", strlen("https:")))
		rc = credentials_tls(&config->tls, &ret->tls, err);
	if (headers)
		strbuf_add_text(&ret->headers, headers);
	fetch->headers = strbuf_text(&ret->headers);
	fetch->stays = !config->follow_redirects;
	fetch->tls_name = text_or_null(config->tls.server_name);
	fetch->proxy = fetch->socket_path ? NULL : text_or_null(config->proxy_url);
	if (!fetch->tls)
		fetch->tls = ret->tls;
	return rc;
}

void http_access_free(struct http_access *access)
{
	strbuf_wipe(&access->headers);
	tls_unref(access->tls);
	access->tls = NULL;
}

int http_access_get(const struct http_request *request, int *ret_status, struct err *err)
{
	struct strbuf refusal = { 0 };
	struct http_access access;
	struct fetch fetch = {
		.url = request->url,
		.socket_path = request->socket_path,
		.deadline_at_ns = clock_monotonic_ns() + request->timeout_ns,
		.body_bytes_max = request->body_bytes_max,
		.begin = request->begin,
		.take = request->take,
		.context = request->context,
		.cancelled = request->cancelled,
		.may_end_with_connection = true, /* half a list is none */
		.refusal = &refusal,
	};
	int rc = http_access_make(request->access, request->headers, &fetch, &access, err);

	*ret_status = 0;
	if (!rc)
		rc = fetch_get(&fetch, ret_status, err);
	if (!rc && *ret_status != 200)
		rc = fetch_refused(*ret_status, &refusal, err);
	if (rc && rc != -ERR_CANCELLED)
		err_wrap(err, "GET %.200s", request->url);
	http_access_free(&access);
	strbuf_free(&refusal);
	return rc;
}
