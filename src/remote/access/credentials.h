/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials - the secrets and certificates of a configuration, read from their files each time,
 * because both may be replaced while the server runs. Any thread.
 */
#ifndef FIRN_REMOTE_ACCESS_CREDENTIALS_H
#define FIRN_REMOTE_ACCESS_CREDENTIALS_H

#include "base/strbuf.h"
#include "config/http_access_config.h"
#include "net/tls.h"

/*
 * Appends the text, or the content of the file, without surrounding white space. ERR_INVALID if it
 * has bytes that a header may not have; errors name the file.
 */
int credentials_add_secret(struct slice text, struct slice file, struct strbuf *out,
			   struct err *err);

/* Makes a client's TLS configuration for HTTP/1.1; release it with tls_unref. */
int credentials_tls(const struct http_tls_config *config, struct tls **ret, struct err *err);

#endif
