/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdeflate works on whole buffers and must be told how much room there is. Room starts from the
 * hint inside the bytes, held to what so few bytes can plausibly become, and doubles until the
 * output fits or max_bytes is reached; so a bomb costs at most twice the time of max_bytes, and a
 * lying hint costs nothing.
 */
#include "codec/archive/compress.h"

#include <libdeflate.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/mem.h"

#define ROOM_BYTES_MIN 4096u
#define ROOM_PER_INPUT_BYTE 32u /* first try at most; real profiles are near 4 */

#define XZ_MEMORY_BYTES_MAX ((uint64_t)128 << 20) /* what xz -9 needs, twice */
#define XZ_ROOM_BYTES ((size_t)256 * 1024)

enum outcome { FITS, NO_ROOM, BAD };

/* Decodes one member or frame into [out, out + room). */
typedef enum outcome decode_f(void *decoder, struct slice in, char *out, size_t room,
			      size_t *ret_in, size_t *ret_out);

bool compress_is_gzip(struct slice bytes)
{
	return bytes.len >= 2 && bytes.data[0] == '\x1f' && bytes.data[1] == '\x8b';
}

static size_t first_room(size_t hint, size_t in_bytes, size_t max_bytes)
{
	size_t room = hint;

	if (in_bytes < SIZE_MAX / ROOM_PER_INPUT_BYTE && room > in_bytes * ROOM_PER_INPUT_BYTE)
		room = in_bytes * ROOM_PER_INPUT_BYTE;
	if (room < ROOM_BYTES_MIN)
		room = ROOM_BYTES_MIN;
	return room < max_bytes ? room : max_bytes;
}

/* Appends one decoded member; *ret_in is how many bytes it took from the front of `in`. */
static enum outcome decode_growing(decode_f *decode, void *decoder, struct slice in, size_t hint,
				   size_t max_bytes, struct strbuf *out, size_t *ret_in)
{
	size_t room = first_room(hint, in.len, max_bytes);

	for (;;) {
		size_t len = 0;
		enum outcome outcome =
			decode(decoder, in, strbuf_reserve(out, room), room, ret_in, &len);

		if (outcome == FITS)
			out->len += len;
		if (outcome != NO_ROOM || room == max_bytes) {
			out->data[out->len] = '\0';
			return outcome;
		}
		room = room < max_bytes / 2 ? 2 * room : max_bytes;
	}
}

static enum outcome outcome_of(enum libdeflate_result result)
{
	if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
		return NO_ROOM;
	return result == LIBDEFLATE_SUCCESS ? FITS : BAD;
}

static enum outcome decode_gzip(void *decoder, struct slice in, char *out, size_t room,
				size_t *ret_in, size_t *ret_out)
{
	return outcome_of(libdeflate_gzip_decompress_ex(decoder, in.data, in.len, out, room, ret_in,
							ret_out));
}

static enum outcome decode_zlib(void *decoder, struct slice in, char *out, size_t room,
				size_t *ret_in, size_t *ret_out)
{
	return outcome_of(libdeflate_zlib_decompress_ex(decoder, in.data, in.len, out, room, ret_in,
							ret_out));
}

static enum outcome decode_raw(void *decoder, struct slice in, char *out, size_t room,
			       size_t *ret_in, size_t *ret_out)
{
	return outcome_of(libdeflate_deflate_decompress_ex(decoder, in.data, in.len, out, room,
							   ret_in, ret_out));
}

/* All frames at once: the output is then the window, whatever window the frames ask for. */
static enum outcome decode_zstd(void *decoder, struct slice in, char *out, size_t room,
				size_t *ret_in, size_t *ret_out)
{
	size_t len = ZSTD_decompressDCtx(decoder, out, room, in.data, in.len);

	if (ZSTD_isError(len))
		return ZSTD_getErrorCode(len) == ZSTD_error_dstSize_tooSmall ? NO_ROOM : BAD;
	*ret_in = in.len;
	*ret_out = len;
	return FITS;
}

static int limit_error(const char *format, size_t max_bytes, struct err *err)
{
	return err_set(err, ERR_LIMIT, "%s data holds more than %zu bytes", format, max_bytes);
}

static int bad_error(const char *format, struct err *err)
{
	return err_set(err, ERR_INVALID, "not valid %s data (damaged, cut short or trailed)",
		       format);
}

/* The size a gzip file claims in its last four bytes (RFC 1952, ISIZE). */
static size_t gzip_hint(struct slice bytes)
{
	size_t size = 0;

	for (int i = 1; i <= 4 && bytes.len >= 18; i++)
		size = size << 8 | (unsigned char)bytes.data[bytes.len - (size_t)i];
	return size;
}

static int gunzip_members(struct libdeflate_decompressor *decoder, struct slice bytes,
			  size_t max_bytes, struct strbuf *out, struct err *err)
{
	size_t start = out->len;

	do {
		size_t taken = 0;

		switch (decode_growing(decode_gzip, decoder, bytes, gzip_hint(bytes),
				       max_bytes - (out->len - start), out, &taken)) {
		case FITS:
			break;
		case NO_ROOM:
			return limit_error("gzip", max_bytes, err);
		case BAD:
			return bad_error("gzip", err);
		}
		bytes = slice_tail(bytes, taken);
	} while (bytes.len);
	return 0;
}

/* Takes back what a failed call appended. */
static int finish(int code, size_t start, struct strbuf *out)
{
	if (code && out->data) {
		out->len = start;
		out->data[start] = '\0';
	}
	return code;
}

struct compress_gunzip_tables {
	struct libdeflate_decompressor *decoder;
};

struct compress_gunzip_tables *compress_gunzip_tables_new(void)
{
	struct compress_gunzip_tables *tables = mem_new(struct compress_gunzip_tables);

	tables->decoder = libdeflate_alloc_decompressor();
	return tables;
}

void compress_gunzip_tables_free(struct compress_gunzip_tables *tables)
{
	if (!tables)
		return;
	libdeflate_free_decompressor(tables->decoder);
	free(tables);
}

int compress_gunzip_with(struct compress_gunzip_tables *tables, struct slice bytes,
			 size_t max_bytes, struct strbuf *out, struct err *err)
{
	size_t start = out->len;

	if (!tables->decoder)
		return err_set(err, ERR_NO_MEMORY, "decompress gzip: no memory");
	return finish(gunzip_members(tables->decoder, bytes, max_bytes, out, err), start, out);
}

int compress_gunzip(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err)
{
	struct compress_gunzip_tables tables = { libdeflate_alloc_decompressor() };
	int code = compress_gunzip_with(&tables, bytes, max_bytes, out, err);

	libdeflate_free_decompressor(tables.decoder);
	return code;
}

/* RFC 1950: compression method 8, and the first two bytes are a multiple of 31. */
static bool has_zlib_header(struct slice bytes)
{
	const unsigned char *p = (const unsigned char *)bytes.data;

	return bytes.len >= 2 && (p[0] & 0x0f) == 8 && (p[0] << 8 | p[1]) % 31 == 0;
}

static int inflate_whole(struct libdeflate_decompressor *decoder, struct slice bytes,
			 size_t max_bytes, struct strbuf *out, struct err *err)
{
	enum outcome outcome = BAD;
	size_t hint = bytes.len < SIZE_MAX / 4 ? 4 * bytes.len : bytes.len;
	size_t start = out->len;
	size_t taken = 0;

	if (has_zlib_header(bytes))
		outcome = decode_growing(decode_zlib, decoder, bytes, hint, max_bytes, out, &taken);
	if (outcome == BAD || (outcome == FITS && taken != bytes.len)) {
		finish(-1, start, out);
		outcome = decode_growing(decode_raw, decoder, bytes, hint, max_bytes, out, &taken);
	}
	if (outcome == NO_ROOM)
		return limit_error("deflate", max_bytes, err);
	if (outcome == BAD || taken != bytes.len)
		return bad_error("deflate", err);
	return 0;
}

int compress_inflate(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err)
{
	struct libdeflate_decompressor *decoder = libdeflate_alloc_decompressor();
	size_t start = out->len;
	int code;

	if (!decoder)
		return err_set(err, ERR_NO_MEMORY, "decompress deflate: no memory");
	code = inflate_whole(decoder, bytes, max_bytes, out, err);
	libdeflate_free_decompressor(decoder);
	return finish(code, start, out);
}

int compress_unzstd(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err)
{
	unsigned long long hint = ZSTD_getFrameContentSize(bytes.data, bytes.len);
	ZSTD_DCtx *decoder;
	size_t start = out->len;
	size_t taken;
	enum outcome outcome;

	if (hint == ZSTD_CONTENTSIZE_ERROR)
		return bad_error("zstd", err);
	decoder = ZSTD_createDCtx();
	if (!decoder)
		return err_set(err, ERR_NO_MEMORY, "decompress zstd: no memory");
	outcome = decode_growing(decode_zstd, decoder, bytes, (size_t)hint, max_bytes, out, &taken);
	ZSTD_freeDCtx(decoder);
	if (outcome == FITS)
		return 0;
	return finish(outcome == NO_ROOM ? limit_error("zstd", max_bytes, err)
					 : bad_error("zstd", err),
		      start, out);
}

/* As mem.h: what we compress was bounded before, so a refusal means the host is out of memory. */
static void out_of_memory(const char *format)
{
	fprintf(stderr, "firn: out of memory: compress %s\n", format);
	abort();
}

void compress_gzip(struct slice bytes, int level, struct strbuf *out)
{
	struct libdeflate_compressor *encoder = libdeflate_alloc_compressor(level);
	size_t bound;

	if (!encoder)
		out_of_memory("gzip");
	bound = libdeflate_gzip_compress_bound(encoder, bytes.len);
	out->len += libdeflate_gzip_compress(encoder, bytes.data ? bytes.data : "", bytes.len,
					     strbuf_reserve(out, bound), bound);
	out->data[out->len] = '\0';
	libdeflate_free_compressor(encoder);
}

void compress_zstd(struct slice bytes, int level, struct strbuf *out)
{
	size_t bound = ZSTD_compressBound(bytes.len);
	size_t len = ZSTD_compress(strbuf_reserve(out, bound), bound, bytes.data, bytes.len, level);

	if (ZSTD_isError(len))
		out_of_memory("zstd");
	out->len += len;
	out->data[out->len] = '\0';
}

int compress_unxz(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret result = lzma_stream_decoder(&stream, XZ_MEMORY_BYTES_MAX, LZMA_CONCATENATED);
	size_t before = out->len;

	stream.next_in = (const uint8_t *)bytes.data;
	stream.avail_in = bytes.len;
	while (result == LZMA_OK) {
		size_t left = max_bytes - (out->len - before);
		size_t room = left < XZ_ROOM_BYTES ? left : XZ_ROOM_BYTES;
		uint8_t past_limit = 0; /* one byte of output too many: not all of it fits */

		stream.next_out = room ? (uint8_t *)strbuf_reserve(out, room) : &past_limit;
		stream.avail_out = room ? room : 1;
		result = lzma_code(&stream, LZMA_FINISH);
		if (!room && !stream.avail_out) {
			result = LZMA_MEMLIMIT_ERROR;
		} else if (room) {
			out->len += room - stream.avail_out;
			out->data[out->len] = '\0';
		}
	}
	lzma_end(&stream);
	if (result == LZMA_STREAM_END)
		return 0;
	out->len = before;
	if (result == LZMA_MEMLIMIT_ERROR)
		return err_set(err, ERR_LIMIT, "decompress xz: more than %zu bytes", max_bytes);
	return err_set(err, ERR_INVALID, "decompress xz: damaged or incomplete data");
}
