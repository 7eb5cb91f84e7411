/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames - snappy and LZ4 on whole buffers, with a limit on what comes out; as compress.h.
 */
#ifndef FIRN_CODEC_ARCHIVE_FRAMES_H
#define FIRN_CODEC_ARCHIVE_FRAMES_H

#include "base/err.h"
#include "base/strbuf.h"

bool frames_is_lz4(struct slice bytes); /* by magic 04 22 4d 18 */

/*
 * Each appends to `out`: ERR_LIMIT over max_bytes, ERR_INVALID when the bytes are not what they
 * claim. snappy: one block, or the framing format, whose checksums are not looked at; senders
 * write both under one name. LZ4: frames, one or several.
 */
MUST_USE int frames_unsnappy(struct slice bytes, size_t max_bytes, struct strbuf *out,
			     struct err *err);
MUST_USE int frames_unlz4(struct slice bytes, size_t max_bytes, struct strbuf *out,
			  struct err *err);

#endif
