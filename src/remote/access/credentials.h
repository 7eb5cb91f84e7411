/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials - what a configuration says of secrets and certificates, read from its files each
 * time, since both are replaced while the server runs. Any thread.
 */
#ifndef FIRN_REMOTE_ACCESS_CREDENTIALS_H
#define FIRN_REMOTE_ACCESS_CREDENTIALS_H

#include "base/strbuf.h"
#include "config/http_access_config.h"
#include "net/tls.h"

/*
 * Appends the text, or what the file says, without blanks around it. ERR_INVALID when it has what
 * may not stand in a header; errors name the file.
 */
int credentials_add_secret(struct slice text, struct slice file, struct strbuf *out,
			   struct err *err);

/* The certificates of a client, for HTTP/1.1; tls_unref them. */
int credentials_tls(const struct http_tls_config *config, struct tls **ret, struct err *err);

#endif
