/* SPDX-License-Identifier: Apache-2.0 */
/* compress: round trips, limits and damaged input. zlib is the independent second opinion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdint.h>

#include <cmocka.h>
#include <lzma.h>
#include <zlib.h>

#include "codec/archive/compress.h"

#define MANY (1u << 20)

typedef int decompress_f(struct slice bytes, size_t max_bytes, struct strbuf *out, struct err *err);
typedef void pack_f(struct slice bytes, struct strbuf *out);

static void pack_with_zlib(struct slice bytes, int window_bits, struct strbuf *out)
{
	z_stream z = { 0 };
	size_t bound;

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	bound = deflateBound(&z, bytes.len);
	z.next_in = (Bytef *)(uintptr_t)bytes.data;
	z.avail_in = (uInt)bytes.len;
	z.next_out = (Bytef *)strbuf_reserve(out, bound);
	z.avail_out = (uInt)bound;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out->len += z.total_out;
	deflateEnd(&z);
}

static void pack_gzip(struct slice bytes, struct strbuf *out)
{
	compress_gzip(bytes, 6, out);
}

static void pack_zlib_gzip(struct slice bytes, struct strbuf *out)
{
	pack_with_zlib(bytes, 15 + 16, out);
}

static void pack_zlib(struct slice bytes, struct strbuf *out)
{
	pack_with_zlib(bytes, 15, out);
}

static void pack_raw(struct slice bytes, struct strbuf *out)
{
	pack_with_zlib(bytes, -15, out);
}

static void pack_zstd(struct slice bytes, struct strbuf *out)
{
	compress_zstd(bytes, 3, out);
}

static void pack_xz(struct slice bytes, struct strbuf *out)
{
	size_t bound = lzma_stream_buffer_bound(bytes.len), len = 0;

	assert_int_equal(lzma_easy_buffer_encode(
				 1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)bytes.data, bytes.len,
				 (uint8_t *)strbuf_reserve(out, bound), &len, bound),
			 LZMA_OK);
	out->len += len;
}

static const struct {
	const char *name;
	pack_f *pack;
	decompress_f *unpack;
	bool has_checksum;
} formats[] = {
	{ "gzip", pack_gzip, compress_gunzip, true },
	{ "gzip of zlib", pack_zlib_gzip, compress_gunzip, true },
	{ "zlib", pack_zlib, compress_inflate, true },
	{ "raw deflate", pack_raw, compress_inflate, false },
	{ "zstd", pack_zstd, compress_unzstd, false },
	{ "xz", pack_xz, compress_unxz, true },
};

#define FOR_EACH_FORMAT(i) for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)

static struct strbuf noise(size_t len)
{
	struct strbuf buf = { 0 };
	uint32_t state = 1;

	for (size_t i = 0; i < len; i++) {
		state = state * 1664525u + 1013904223u;
		strbuf_add_byte(&buf, (char)(state >> 24));
	}
	return buf;
}

static void returns_what_was_packed(void **state)
{
	static const size_t sizes[] = { 0, 1, 100, 70000, MANY };

	(void)state;
	FOR_EACH_FORMAT(i)
	{
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			struct strbuf plain = noise(sizes[j]), packed = { 0 }, out = { 0 };
			struct err err = { 0 };

			formats[i].pack(strbuf_slice(&plain), &packed);
			strbuf_add_text(&out, "before");
			if (formats[i].unpack(strbuf_slice(&packed), sizes[j], &out, &err))
				fail_msg("%s of %zu: %s", formats[i].name, sizes[j], err.message);
			assert_int_equal(out.len, 6 + plain.len);
			assert_memory_equal(out.data, "before", 6);
			if (plain.len)
				assert_memory_equal(out.data + 6, plain.data, plain.len);
			strbuf_free(&plain);
			strbuf_free(&packed);
			strbuf_free(&out);
		}
	}
}

static void stops_a_bomb_at_the_limit(void **state)
{
	struct strbuf zeros = { 0 };

	(void)state;
	memset(strbuf_reserve(&zeros, 64 * MANY), 0, 64 * MANY);
	zeros.len = 64 * MANY;
	FOR_EACH_FORMAT(i)
	{
		struct strbuf packed = { 0 }, out = { 0 };
		struct err err = { 0 };

		formats[i].pack(strbuf_slice(&zeros), &packed);
		assert_int_equal(formats[i].unpack(strbuf_slice(&packed), MANY, &out, &err),
				 -ERR_LIMIT);
		assert_int_equal(err.code, ERR_LIMIT);
		assert_int_equal(out.len, 0);
		assert_true(out.capacity <= 4 * MANY);
		assert_int_equal(
			formats[i].unpack(strbuf_slice(&packed), 64 * MANY - 1, &out, NULL),
			-ERR_LIMIT);
		assert_int_equal(formats[i].unpack(strbuf_slice(&packed), 64 * MANY, &out, NULL),
				 0);
		strbuf_free(&packed);
		strbuf_free(&out);
	}
	strbuf_free(&zeros);
}

static void refuses_every_cut(void **state)
{
	(void)state;
	FOR_EACH_FORMAT(i)
	{
		struct strbuf plain = noise(300), packed = { 0 }, out = { 0 };

		formats[i].pack(strbuf_slice(&plain), &packed);
		for (size_t len = 0; len < packed.len; len++) {
			struct slice cut = slice_from(packed.data, len);

			assert_int_equal(formats[i].unpack(cut, MANY, &out, NULL), -ERR_INVALID);
			assert_int_equal(out.len, 0);
		}
		strbuf_free(&plain);
		strbuf_free(&packed);
		strbuf_free(&out);
	}
}

static void refuses_flipped_bytes_where_there_is_a_checksum(void **state)
{
	(void)state;
	FOR_EACH_FORMAT(i)
	{
		struct strbuf plain = noise(300), packed = { 0 }, out = { 0 };

		formats[i].pack(strbuf_slice(&plain), &packed);
		packed.data[packed.len / 2] ^= 0x10;
		if (formats[i].has_checksum)
			assert_int_equal(formats[i].unpack(strbuf_slice(&packed), MANY, &out, NULL),
					 -ERR_INVALID);
		strbuf_free(&plain);
		strbuf_free(&packed);
		strbuf_free(&out);
	}
}

static void joins_gzip_members_under_one_limit(void **state)
{
	struct strbuf packed = { 0 }, out = { 0 };

	(void)state;
	compress_gzip(SLICE_LITERAL("one "), 1, &packed);
	compress_gzip(SLICE_LITERAL(""), 1, &packed);
	compress_gzip(SLICE_LITERAL("two"), 9, &packed);
	assert_int_equal(compress_gunzip(strbuf_slice(&packed), 7, &out, NULL), 0);
	assert_string_equal(strbuf_text(&out), "one two");
	strbuf_clear(&out);
	assert_int_equal(compress_gunzip(strbuf_slice(&packed), 6, &out, NULL), -ERR_LIMIT);
	assert_int_equal(out.len, 0);
	strbuf_add_text(&packed, "garbage");
	assert_int_equal(compress_gunzip(strbuf_slice(&packed), 7, &out, NULL), -ERR_INVALID);
	strbuf_free(&packed);
	strbuf_free(&out);
}

static void does_not_believe_the_size_in_the_bytes(void **state)
{
	struct strbuf plain = noise(1000), packed = { 0 }, out = { 0 };

	(void)state;
	compress_gzip(strbuf_slice(&plain), 6, &packed);
	memset(packed.data + packed.len - 4, 0xff, 4);
	assert_int_equal(compress_gunzip(strbuf_slice(&packed), (size_t)1 << 30, &out, NULL),
			 -ERR_INVALID);
	assert_true(out.capacity < MANY);
	strbuf_free(&plain);
	strbuf_free(&packed);
	strbuf_free(&out);
}

static void knows_gzip_by_its_magic(void **state)
{
	(void)state;
	assert_true(compress_is_gzip(SLICE_LITERAL("\x1f\x8b\x08")));
	assert_false(compress_is_gzip(SLICE_LITERAL("\x1f")));
	assert_false(compress_is_gzip(SLICE_LITERAL("\x0a\x04")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(returns_what_was_packed),
		cmocka_unit_test(stops_a_bomb_at_the_limit),
		cmocka_unit_test(refuses_every_cut),
		cmocka_unit_test(refuses_flipped_bytes_where_there_is_a_checksum),
		cmocka_unit_test(joins_gzip_members_under_one_limit),
		cmocka_unit_test(does_not_believe_the_size_in_the_bytes),
		cmocka_unit_test(knows_gzip_by_its_magic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
