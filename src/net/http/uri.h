/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uri - request targets (RFC 3986, RFC 9112 section 3.2) and their percent-encoding.
 */
#ifndef FIRN_NET_HTTP_URI_H
#define FIRN_NET_HTTP_URI_H

#include "base/strbuf.h"

/*
 * Splits "/path?query" or "http://host/path?query". The slices borrow from `target`; a fragment
 * is removed. False for any other form.
 */
bool uri_split(struct slice target, struct slice *ret_path, struct slice *ret_query);

/* "host:80" of "http://host:80/path"; false if the target has only a path. */
bool uri_authority(struct slice target, struct slice *ret);

/*
 * Appends the decoded text to `out`. False on a '%' without two hex digits, and on an encoded NUL,
 * which C strings cannot hold; `out` then has the text before it.
 */
bool uri_decode(struct slice text, bool plus_is_blank, struct strbuf *out);

/* The byte that "%XX" at text.data[at] encodes, or -1 if there is no such escape. */
int uri_escaped_byte(struct slice text, size_t at);

/* True if uri_decode would accept it. */
bool uri_is_decodable(struct slice text);

#endif
