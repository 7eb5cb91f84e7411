/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/access/credentials.h"

#include "base/whole_file.h"

#define SECRET_BYTES_MAX ((size_t)64 << 10)

int credentials_add_secret(struct slice text, struct slice file, struct strbuf *out,
			   struct err *err)
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

static int read_pem(struct slice text, struct slice file, struct strbuf *buffer,
		    struct tls_pem *ret, struct err *err)
{
	if (file.len)
		return tls_read_pem(file.data, buffer, ret, err);
	if (text.len)
		*ret = (struct tls_pem){ text, "tls_config" };
	return 0;
}

int credentials_tls(const struct http_tls_config *config, struct tls **ret, struct err *err)
{
	struct strbuf ca = { 0 }, cert = { 0 }, key = { 0 };
	struct tls_client_options options = { .trusts_everyone = config->insecure_skip_verify,
					      .http1_only = true };
	int rc = read_pem(config->ca, config->ca_file, &ca, &options.ca, err);

	if (!rc)
		rc = read_pem(config->cert, config->cert_file, &cert, &options.certificate, err);
	if (!rc)
		rc = read_pem(config->key, config->key_file, &key, &options.key, err);
	if (!rc)
		rc = tls_client_new(&options, ret, err);
	strbuf_free(&ca);
	strbuf_free(&cert);
	strbuf_wipe(&key);
	return rc;
}
