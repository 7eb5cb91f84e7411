/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/http_access.h"

#include "base/whole_file.h"
#include "codec/wire/base64.h"

#define SECRET_BYTES_MAX ((size_t)64 << 10)

/* The text, or what the file says, without what may not stand in a header. */
static int add_secret(struct strbuf *out, struct slice text, struct slice file, struct err *err)
{
	struct strbuf read = { 0 };
	int rc = 0;

	if (file.len) {
		rc = whole_file_read(file.data, SECRET_BYTES_MAX, &read, err);
		text = slice_trim((struct slice){ strbuf_text(&read), read.len });
	}
	for (size_t i = 0; !rc && i < text.len; i++)
		if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
			rc = err_set(err, ERR_INVALID, "\"%s\": a secret with a control character",
				     file.len ? file.data : "(of the configuration)");
	if (!rc)
		strbuf_add_slice(out, text);
	strbuf_wipe(&read);
	return rc;
}

static int add_basic(const struct http_access_config *config, struct strbuf *out, struct err *err)
{
	struct strbuf pair = { 0 };
	int rc = add_secret(&pair, config->basic.username, config->basic.username_file, err);

	strbuf_add_byte(&pair, ':');
	if (!rc)
		rc = add_secret(&pair, config->basic.password, config->basic.password_file, err);
	if (!rc) {
		strbuf_add_text(out, "authorization: Basic ");
		base64_encode(strbuf_slice(&pair), true, out);
		strbuf_add_text(out, "\r\n");
	}
	strbuf_wipe(&pair);
	return rc;
}

static int add_authorization(const struct http_access_config *config, struct strbuf *out,
			     struct err *err)
{
	struct slice type = config->authorization.type;
	struct slice text = config->authorization.credentials;
	struct slice file = config->authorization.credentials_file;
	int rc;

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
	rc = add_secret(out, text, file, err);
	strbuf_add_text(out, "\r\n");
	return rc;
}

static int read_pem(struct slice text, struct slice file, struct strbuf *buffer,
		    struct tls_pem *ret, struct err *err)
{
	if (file.len)
		return tls_read_pem(file.data, buffer, ret, err);
	if (text.len)
		*ret = (struct tls_pem){ text, "tls_config" };
	return 0;
}

int http_access_tls(const struct http_access_config *config, struct tls **ret, struct err *err)
{
	struct strbuf ca = { 0 }, cert = { 0 }, key = { 0 };
	struct tls_client_options options = { .trusts_everyone = config->tls.insecure_skip_verify,
					      .http1_only = true };
	int rc = read_pem(config->tls.ca, config->tls.ca_file, &ca, &options.ca, err);

	if (!rc)
		rc = read_pem(config->tls.cert, config->tls.cert_file, &cert, &options.certificate,
			      err);
	if (!rc)
		rc = read_pem(config->tls.key, config->tls.key_file, &key, &options.key, err);
	if (!rc)
		rc = tls_client_new(&options, ret, err);
	strbuf_free(&ca);
	strbuf_free(&cert);
	strbuf_wipe(&key);
	return rc;
}

int http_access_make(const struct http_access_config *config, bool wants_tls,
		     struct http_access *ret, struct err *err)
{
	int rc;

	*ret = (struct http_access){ .tls = NULL };
	rc = add_authorization(config, &ret->headers, err);
	return rc || !wants_tls ? rc : http_access_tls(config, &ret->tls, err);
}

void http_access_free(struct http_access *access)
{
	strbuf_wipe(&access->headers);
	tls_unref(access->tls);
	access->tls = NULL;
}
