/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff - recognises the protocol by the first bytes of a connection.
 *
 * HTTP/2 by prior knowledge begins with a fixed preface of 24 bytes (RFC 9113 section 3.4), which
 * may arrive in any pieces. A TLS record begins with 0x16 0x03. Everything else goes to the HTTP/1
 * parser.
 */
#ifndef FIRN_NET_SNIFF_H
#define FIRN_NET_SNIFF_H

#include "base/slice.h"

#define SNIFF_BYTES_MAX 24u   /* the most that it ever needs */
#define SNIFF_TLS_RECORD 0x16 /* a handshake (RFC 8446 section 5.1) */

enum sniff { SNIFF_MORE, SNIFF_HTTP1, SNIFF_HTTP2, SNIFF_TLS };

static inline enum sniff sniff_protocol(struct slice bytes)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	size_t len = bytes.len < SNIFF_BYTES_MAX ? bytes.len : SNIFF_BYTES_MAX;

	if (len && bytes.data[0] == SNIFF_TLS_RECORD)
		return len == 1 ? SNIFF_MORE : bytes.data[1] == 0x03 ? SNIFF_TLS : SNIFF_HTTP1;
	if (len && memcmp(bytes.data, preface, len) != 0)
		return SNIFF_HTTP1;
	return len == SNIFF_BYTES_MAX ? SNIFF_HTTP2 : SNIFF_MORE;
}

#endif
