/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress - gzip, zlib, zstd and xz on whole buffers, with a limit on what comes out.
 *
 * Sizes stated inside compressed bytes are untrusted hints, always capped.
 */
#ifndef FIRN_CODEC_ARCHIVE_COMPRESS_H
#define FIRN_CODEC_ARCHIVE_COMPRESS_H

#include "base/err.h"
#include "base/strbuf.h"

bool compress_is_gzip(struct slice bytes); /* by magic 1f 8b */

/*
 * Each appends to `out`. ERR_LIMIT when more than max_bytes would come out (a bomb), ERR_INVALID
 * with the offset-free cause when the bytes are not what they claim. gzip takes several members.
 */
int compress_gunzip(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err);
/* The same with tables that are kept, for who reads many small ones. One thread at a time. */
struct compress_gunzip_tables;
struct compress_gunzip_tables *compress_gunzip_tables_new(void);
void compress_gunzip_tables_free(struct compress_gunzip_tables *tables); /* accepts NULL */
int compress_gunzip_with(struct compress_gunzip_tables *tables, struct slice bytes,
			 size_t max_bytes, struct strbuf *out, struct err *err);
int compress_inflate(struct slice bytes, size_t max_bytes, struct strbuf *out,
		     struct err *err); /* zlib or raw */
int compress_unzstd(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err);
int compress_unxz(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err);

void compress_gzip(struct slice bytes, int level, struct strbuf *out); /* level 1..9 */
void compress_zstd(struct slice bytes, int level, struct strbuf *out);

#endif
