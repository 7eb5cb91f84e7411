/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coding - content codings (RFC 9110 section 8.4), and whether to compress an answer.
 */
#ifndef FIRN_NET_HTTP_CODING_H
#define FIRN_NET_HTTP_CODING_H

#include "base/err.h"
#include "base/strbuf.h"

#define CODING_NAMES "gzip, deflate, zstd, snappy, lz4, identity"

/* True if the coding leaves bytes as they are: "" and "identity". */
bool coding_is_identity(struct slice name);
bool coding_is_known(struct slice name);

/* Decodes into `out`. ERR_LIMIT beyond max_bytes, ERR_UNSUPPORTED for an unknown coding. */
int coding_decode(struct slice name, struct slice bytes, size_t max_bytes, struct strbuf *out,
		  struct err *err);

/* True if an Accept-Encoding value allows gzip. */
bool coding_accepts_gzip(struct slice accept_encoding);

/* True if an answer of this type and size is worth compressing. */
bool coding_pays(const char *content_type, size_t bytes);

#endif
