/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack - gzip, zstd and xz as their bytes arrive, in bounded memory; anything else passes as it
 * is. The first bytes decide. For whole buffers see compress.h.
 *
 * Bounds: what comes out, in all; windows of 128 MiB.
 */
#ifndef FIRN_CODEC_ARCHIVE_UNPACK_H
#define FIRN_CODEC_ARCHIVE_UNPACK_H

#include "base/err.h"
#include "base/slice.h"

struct unpack;

/* Takes a piece of what comes out. What it returns ends the unpacking when it is not 0. */
typedef int unpack_sink_f(void *context, struct slice plain, struct err *err);

struct unpack *unpack_new(uint64_t plain_bytes_max, unpack_sink_f *sink, void *context);
void unpack_free(struct unpack *unpack); /* accepts NULL */

/* 0, what the sink returned, ERR_INVALID, or ERR_LIMIT. Nothing more after that. */
int unpack_add(struct unpack *unpack, struct slice bytes, struct err *err);

/* All came. ERR_INVALID when it was cut short. */
int unpack_end(struct unpack *unpack, struct err *err);

#endif
