/* SPDX-License-Identifier: Apache-2.0 */
/* String buffers: growth, termination, formatting, binary encodings. */
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void an_empty_buffer_is_an_empty_string(void **state)
{
	struct strbuf buf = { 0 };

	(void)state;
	assert_string_equal(strbuf_text(&buf), "");
	assert_int_equal(strbuf_slice(&buf).len, 0);
	strbuf_clear(&buf);
	strbuf_reserve(&buf, 1000);
	assert_string_equal(strbuf_text(&buf), "");
	strbuf_free(&buf);
	strbuf_free(&buf);
}

static void bytes_stay_terminated_while_growing(void **state)
{
	struct strbuf buf = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		strbuf_add_byte(&buf, 'x');
		assert_int_equal(buf.len, i + 1);
		assert_int_equal(buf.data[buf.len], '\0');
	}
	strbuf_clear(&buf);
	assert_string_equal(strbuf_text(&buf), "");
	strbuf_add_slice(&buf, SLICE_LITERAL("ab"));
	strbuf_add_text(&buf, "cd");
	strbuf_add(&buf, NULL, 0);
	assert_string_equal(strbuf_text(&buf), "abcd");
	strbuf_free(&buf);
}

static void reserved_room_is_written_in_place(void **state)
{
	struct strbuf buf = { 0 };

	(void)state;
	strbuf_add_text(&buf, "head");
	memcpy(strbuf_reserve(&buf, 4), "tail", 4);
	assert_int_equal(buf.len, 4);
	buf.len += 4;
	assert_true(slice_is(strbuf_slice(&buf), "headtail"));
	strbuf_free(&buf);
}

/* Every length around the room that is left, so that both ways of formatting meet their edges. */
static void formatting_fits_at_every_length(void **state)
{
	(void)state;
	for (int before = 0; before < 70; before++) {
		for (int len = 0; len < 200; len += 7) {
			struct strbuf buf = { 0 };

			for (int i = 0; i < before; i++)
				strbuf_add_byte(&buf, '-');
			strbuf_addf(&buf, "%0*d", len, 0);
			assert_int_equal(buf.len, before + (len ? len : 1));
			assert_int_equal(strlen(buf.data), buf.len);
			assert_true(buf.len < buf.capacity);
			strbuf_free(&buf);
		}
	}
}

static void formatting_nothing_adds_nothing(void **state)
{
	struct strbuf buf = { 0 };

	(void)state;
	strbuf_addf(&buf, "%s", "");
	assert_string_equal(strbuf_text(&buf), "");
	strbuf_add_text(&buf, "a");
	strbuf_addf(&buf, "%s", "");
	assert_string_equal(strbuf_text(&buf), "a");
	strbuf_free(&buf);
}

static void integers_are_little_endian(void **state)
{
	struct strbuf buf = { 0 };

	(void)state;
	strbuf_add_u32(&buf, 0x01020304u);
	strbuf_add_u64(&buf, 0x1112131415161718ull);
	assert_int_equal(buf.len, 12);
	assert_memory_equal(buf.data, "\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11", 12);
	strbuf_free(&buf);
}

static void varints_are_leb128(void **state)
{
	static const struct {
		uint64_t value;
		size_t len;
		const char *bytes;
	} cases[] = {
		{ 0, 1, "\x00" },
		{ 127, 1, "\x7f" },
		{ 128, 2, "\x80\x01" },
		{ 300, 2, "\xac\x02" },
		{ UINT64_MAX, 10, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf buf = { 0 };

		strbuf_add_varint(&buf, cases[i].value);
		assert_int_equal(buf.len, cases[i].len);
		assert_memory_equal(buf.data, cases[i].bytes, buf.len);
		strbuf_free(&buf);
	}
}

static void zigzag_interleaves_the_signs(void **state)
{
	static const struct {
		int64_t value;
		uint64_t coded;
	} cases[] = { { 0, 0 },
		      { -1, 1 },
		      { 1, 2 },
		      { -2, 3 },
		      { INT64_MAX, UINT64_MAX - 1 },
		      { INT64_MIN, UINT64_MAX } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct strbuf got = { 0 }, want = { 0 };

		strbuf_add_zigzag(&got, cases[i].value);
		strbuf_add_varint(&want, cases[i].coded);
		assert_true(slice_equal(strbuf_slice(&got), strbuf_slice(&want)));
		strbuf_free(&got);
		strbuf_free(&want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_is_an_empty_string),
		cmocka_unit_test(bytes_stay_terminated_while_growing),
		cmocka_unit_test(reserved_room_is_written_in_place),
		cmocka_unit_test(formatting_fits_at_every_length),
		cmocka_unit_test(formatting_nothing_adds_nothing),
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(varints_are_leb128),
		cmocka_unit_test(zigzag_interleaves_the_signs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
