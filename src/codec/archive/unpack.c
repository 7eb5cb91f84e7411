/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/archive/unpack.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"

#define OUT_BYTES ((size_t)256 * 1024)
#define WINDOW_LOG_MAX 27
#define XZ_MEMORY_BYTES_MAX ((uint64_t)256 << 20)
#define GZIP_WINDOW_BITS (15 + 16)
#define MAGIC_BYTES_MAX 6

enum format { FORMAT_UNKNOWN, FORMAT_PLAIN, FORMAT_GZIP, FORMAT_ZSTD, FORMAT_XZ };

struct unpack {
	unpack_sink_f *sink;
	void *context;
	uint64_t left; /* that may still come out */
	enum format format;
	char magic[MAGIC_BYTES_MAX]; /* until the format is known */
	size_t magic_len;
	bool is_between; /* members or frames: an end here is a good one */
	z_stream gzip;
	ZSTD_DStream *zstd;
	lzma_stream xz;
	char *out;
};

static const char *const names[] = {
	[FORMAT_UNKNOWN] = "",	[FORMAT_PLAIN] = "", [FORMAT_GZIP] = "gzip",
	[FORMAT_ZSTD] = "zstd", [FORMAT_XZ] = "xz",
};

struct unpack *unpack_new(uint64_t plain_bytes_max, unpack_sink_f *sink, void *context)
{
	struct unpack *unpack = mem_new(struct unpack);

	unpack->sink = sink;
	unpack->context = context;
	unpack->left = plain_bytes_max;
	return unpack;
}

void unpack_free(struct unpack *unpack)
{
	if (!unpack)
		return;
	if (unpack->format == FORMAT_GZIP)
		inflateEnd(&unpack->gzip);
	ZSTD_freeDStream(unpack->zstd);
	lzma_end(&unpack->xz);
	free(unpack->out);
	free(unpack);
}

static int damaged(const struct unpack *unpack, struct err *err)
{
	return err_set(err, ERR_INVALID, "not valid %s data", names[unpack->format]);
}

static int put(struct unpack *unpack, const void *bytes, size_t len, struct err *err)
{
	if (len > unpack->left)
		return err_set(err, ERR_LIMIT,
			       "more comes out of the compressed data than allowed");
	unpack->left -= len;
	return len ? unpack->sink(unpack->context, slice_from(bytes, len), err) : 0;
}

static int add_gzip(struct unpack *unpack, struct slice bytes, struct err *err)
{
	z_stream *gzip = &unpack->gzip;
	int rc = 0;

	gzip->next_in = (unsigned char *)(uintptr_t)bytes.data;
	gzip->avail_in = (unsigned)bytes.len;
	while (!rc) {
		int code;

		if (unpack->is_between && gzip->avail_in) {
			inflateReset(gzip);
			unpack->is_between = false;
		}
		gzip->next_out = (unsigned char *)unpack->out;
		gzip->avail_out = OUT_BYTES;
		code = inflate(gzip, Z_NO_FLUSH);
		if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
			return damaged(unpack, err);
		rc = put(unpack, unpack->out, OUT_BYTES - gzip->avail_out, err);
		if (code == Z_STREAM_END)
			unpack->is_between = true;
		if (!gzip->avail_in && gzip->avail_out)
			break;
	}
	return rc;
}

static int add_zstd(struct unpack *unpack, struct slice bytes, struct err *err)
{
	ZSTD_inBuffer in = { bytes.data, bytes.len, 0 };
	int rc = 0;

	while (!rc) {
		ZSTD_outBuffer out = { unpack->out, OUT_BYTES, 0 };
		size_t code = ZSTD_decompressStream(unpack->zstd, &out, &in);

		if (ZSTD_isError(code))
			return damaged(unpack, err);
		unpack->is_between = code == 0;
		rc = put(unpack, unpack->out, out.pos, err);
		if (in.pos == in.size && out.pos < out.size)
			break;
	}
	return rc;
}

static int add_xz(struct unpack *unpack, struct slice bytes, lzma_action action, struct err *err)
{
	lzma_stream *xz = &unpack->xz;
	int rc = 0;

	xz->next_in = (const uint8_t *)bytes.data;
	xz->avail_in = bytes.len;
	while (!rc) {
		lzma_ret code;

		xz->next_out = (uint8_t *)unpack->out;
		xz->avail_out = OUT_BYTES;
		code = lzma_code(xz, action);
		if (code != LZMA_OK && code != LZMA_STREAM_END && code != LZMA_BUF_ERROR)
			return damaged(unpack, err);
		unpack->is_between = code == LZMA_STREAM_END;
		rc = put(unpack, unpack->out, OUT_BYTES - xz->avail_out, err);
		if (code != LZMA_OK || (!xz->avail_in && xz->avail_out))
			break;
	}
	return rc;
}

static int add(struct unpack *unpack, struct slice bytes, struct err *err)
{
	if (unpack->format == FORMAT_GZIP)
		return add_gzip(unpack, bytes, err);
	if (unpack->format == FORMAT_ZSTD)
		return add_zstd(unpack, bytes, err);
	if (unpack->format == FORMAT_XZ)
		return add_xz(unpack, bytes, LZMA_RUN, err);
	return put(unpack, bytes.data, bytes.len, err);
}

/* Decides by the first bytes, and hands them on. */
static int begin(struct unpack *unpack, struct err *err)
{
	struct slice magic = slice_from(unpack->magic, unpack->magic_len);
	bool is_ready = true;

	unpack->format = FORMAT_PLAIN;
	if (slice_starts_with(magic, SLICE_LITERAL("\x1f\x8b"))) {
		unpack->format = FORMAT_GZIP;
		is_ready = inflateInit2(&unpack->gzip, GZIP_WINDOW_BITS) == Z_OK;
	} else if (slice_starts_with(magic, SLICE_LITERAL("\x28\xb5\x2f\xfd"))) {
		unpack->format = FORMAT_ZSTD;
		unpack->zstd = ZSTD_createDStream();
		is_ready = unpack->zstd &&
			   !ZSTD_isError(ZSTD_DCtx_setParameter(unpack->zstd, ZSTD_d_windowLogMax,
								WINDOW_LOG_MAX));
	} else if (slice_starts_with(magic, SLICE_LITERAL("\xfd"
							  "7zXZ\0"))) {
		unpack->format = FORMAT_XZ;
		is_ready = lzma_stream_decoder(&unpack->xz, XZ_MEMORY_BYTES_MAX,
					       LZMA_CONCATENATED) == LZMA_OK;
	}
	if (!is_ready)
		abort(); /* out of memory: as mem.h */
	if (unpack->format != FORMAT_PLAIN)
		unpack->out = mem_calloc(OUT_BYTES, 1);
	return add(unpack, magic, err);
}

int unpack_add(struct unpack *unpack, struct slice bytes, struct err *err)
{
	int rc = 0;

	while (!rc && unpack->format == FORMAT_UNKNOWN && bytes.len) {
		unpack->magic[unpack->magic_len++] = bytes.data[0];
		bytes = slice_tail(bytes, 1);
		if (unpack->magic_len == MAGIC_BYTES_MAX)
			rc = begin(unpack, err);
	}
	while (!rc && bytes.len) {
		struct slice piece = bytes;

		if (piece.len > OUT_BYTES)
			piece.len = OUT_BYTES;
		rc = add(unpack, piece, err);
		bytes = slice_tail(bytes, piece.len);
	}
	return rc;
}

int unpack_end(struct unpack *unpack, struct err *err)
{
	int rc = 0;

	if (unpack->format == FORMAT_UNKNOWN)
		rc = begin(unpack, err);
	if (!rc && unpack->format == FORMAT_XZ)
		rc = add_xz(unpack, (struct slice){ 0 }, LZMA_FINISH, err);
	if (!rc && unpack->format != FORMAT_PLAIN && !unpack->is_between)
		return err_set(err, ERR_INVALID, "%s data ends too early", names[unpack->format]);
	return rc;
}
