/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/archive/frames.h"

#include <lz4frame.h>
#include <snappy-c.h>

#define SNAPPY_HEAD "\xff\x06\x00\x00sNaPpY"
#define SNAPPY_CHUNK_HEAD_BYTES 4u
#define SNAPPY_CHECKSUM_BYTES 4u
#define SNAPPY_CHUNK_BYTES_MAX 65536u /* decompressed */
#define LZ4_STEP_BYTES ((size_t)64 << 10)

enum snappy_chunk { CHUNK_COMPRESSED = 0x00, CHUNK_PLAIN = 0x01, CHUNK_RESERVED = 0x80 };

bool frames_is_lz4(struct slice bytes)
{
	return bytes.len >= 4 && !memcmp(bytes.data, "\x04\x22\x4d\x18", 4);
}

static int fail(const char *format, size_t at, struct err *err)
{
	return err_set(err, ERR_INVALID, "not valid %s data at byte %zu", format, at);
}

static int fail_limit(const char *format, size_t max_bytes, struct err *err)
{
	return err_set(err, ERR_LIMIT, "%s data holds more than %zu bytes", format, max_bytes);
}

/* One block; what it says of its size is looked at before room is made. */
static int unsnappy_block(struct slice block, size_t at, size_t max_bytes, struct strbuf *out,
			  struct err *err)
{
	size_t len;

	if (snappy_uncompressed_length(block.data, block.len, &len) != SNAPPY_OK)
		return fail("snappy", at, err);
	if (len > max_bytes)
		return fail_limit("snappy", max_bytes, err);
	if (snappy_validate_compressed_buffer(block.data, block.len) != SNAPPY_OK ||
	    snappy_uncompress(block.data, block.len, strbuf_reserve(out, len), &len) != SNAPPY_OK)
		return fail("snappy", at, err);
	out->len += len;
	return 0;
}

static int unsnappy_chunk(unsigned type, struct slice chunk, size_t at, size_t max_bytes,
			  struct strbuf *out, struct err *err)
{
	struct slice body;

	if (type >= CHUNK_RESERVED)
		return 0; /* the head again, padding, what may be skipped */
	if ((type != CHUNK_COMPRESSED && type != CHUNK_PLAIN) || chunk.len < SNAPPY_CHECKSUM_BYTES)
		return fail("snappy", at, err);
	body = slice_tail(chunk, SNAPPY_CHECKSUM_BYTES);
	if (type == CHUNK_COMPRESSED)
		return unsnappy_block(body, at,
				      max_bytes < SNAPPY_CHUNK_BYTES_MAX ? max_bytes
									 : SNAPPY_CHUNK_BYTES_MAX,
				      out, err);
	if (body.len > max_bytes)
		return fail_limit("snappy", max_bytes, err);
	strbuf_add_slice(out, body);
	return 0;
}

static int unsnappy_chunks(struct slice bytes, size_t max_bytes, struct strbuf *out,
			   struct err *err)
{
	size_t start = out->len, at = 0;
	int rc = 0;

	while (!rc && at < bytes.len) {
		const unsigned char *head = (const unsigned char *)bytes.data + at;
		size_t len;

		if (bytes.len - at < SNAPPY_CHUNK_HEAD_BYTES)
			return fail("snappy", at, err);
		len = head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16;
		at += SNAPPY_CHUNK_HEAD_BYTES;
		if (len > bytes.len - at)
			return fail("snappy", at, err);
		rc = unsnappy_chunk(head[0], slice_from(bytes.data + at, len), at,
				    max_bytes - (out->len - start), out, err);
		at += len;
	}
	return rc;
}

int frames_unsnappy(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err)
{
	size_t start = out->len;
	int rc = slice_starts_with(bytes, SLICE_LITERAL(SNAPPY_HEAD))
			 ? unsnappy_chunks(bytes, max_bytes, out, err)
			 : unsnappy_block(bytes, 0, max_bytes, out, err);

	if (rc)
		out->len = start;
	return rc;
}

/* Room grows with what really comes out: a frame's own word on its size counts for nothing. */
static int unlz4_all(LZ4F_dctx *context, struct slice bytes, size_t max_bytes, struct strbuf *out,
		     struct err *err)
{
	size_t start = out->len, at = 0, more = 1;

	while (at < bytes.len || more) {
		size_t room = max_bytes - (out->len - start), in = bytes.len - at, made;
		char *to;

		if (room > LZ4_STEP_BYTES)
			room = LZ4_STEP_BYTES;
		to = strbuf_reserve(out, room + 1);
		made = room + 1; /* one byte too many tells that there is more than the limit */
		more = LZ4F_decompress(context, to, &made, bytes.data + at, &in, NULL);
		if (LZ4F_isError(more) || (!in && !made))
			return fail("LZ4", at, err);
		if (made > max_bytes - (out->len - start))
			return fail_limit("LZ4", max_bytes, err);
		out->len += made;
		at += in;
	}
	return 0;
}

int frames_unlz4(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err)
{
	size_t start = out->len;
	LZ4F_dctx *context;
	int rc;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
		return err_set(err, ERR_NO_MEMORY, "decompress LZ4: no memory");
	rc = unlz4_all(context, bytes, max_bytes, out, err);
	LZ4F_freeDecompressionContext(context);
	if (rc)
		out->len = start;
	return rc;
}
