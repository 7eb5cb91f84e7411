/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64 - RFC 4648 section 4, as gRPC's "-bin" headers and grpc-web-text use it.
 *
 * Decoding takes the URL-safe letters of section 5, too (JSON of protobuf may have them), padded
 * segments put one after another (a grpc-web-text client encodes each frame on its own) and a last
 * segment without padding; anything else is refused.
 */
#ifndef FIRN_CODEC_WIRE_BASE64_H
#define FIRN_CODEC_WIRE_BASE64_H

#include "base/strbuf.h"

void base64_encode(struct slice bytes, bool padded, struct strbuf *out);

/* Appends to `out`. False when the text is not base64; `out` then holds what came before. */
bool base64_decode(struct slice text, struct strbuf *out);

#endif
