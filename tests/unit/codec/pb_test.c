/* SPDX-License-Identifier: Apache-2.0 */
/* pb: what the writer writes the reader reads; bad bytes stop the reader with a reason and an
 * offset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codec/wire/pb.h"

static void numbers_of_every_size_come_back(void **state)
{
	struct strbuf out = { 0 };
	struct pb_reader in;
	struct pb_field field;

	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		pb_put_varint(&out, 1, UINT64_C(1) << bit);
		pb_put_varint(&out, 200, (UINT64_C(1) << bit) - 1);
		pb_put_fixed64(&out, 3, UINT64_C(1) << bit);
	}
	in = pb_reader_of(strbuf_slice(&out));
	for (int bit = 0; bit < 64; bit++) {
		assert_true(pb_next(&in, &field) && field.number == 1 && field.wire == PB_VARINT);
		assert_true(field.value == UINT64_C(1) << bit);
		if (bit) { /* 0 is not written */
			assert_true(pb_next(&in, &field) && field.number == 200);
			assert_true(field.value == (UINT64_C(1) << bit) - 1);
		}
		assert_true(pb_next(&in, &field) && field.wire == PB_FIXED64);
		assert_true(field.value == UINT64_C(1) << bit);
	}
	assert_false(pb_next(&in, &field));
	assert_null(in.problem);
	strbuf_free(&out);
}

/* Lengths around those where the length itself takes another byte. */
static void nested_messages_of_every_length_come_back(void **state)
{
	static const size_t lengths[] = { 0, 1, 127, 128, 16383, 16384, 2097151, 2097152 };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char *bytes = calloc(lengths[i] + 1, 1);
		struct strbuf out = { 0 };
		struct pb_reader in;
		struct pb_field field;
		size_t begun;

		memset(bytes, 'x', lengths[i]);
		begun = pb_begin(&out, 7);
		strbuf_add(&out, bytes, lengths[i]);
		pb_end(&out, begun);
		pb_put_varint(&out, 1, 5);
		in = pb_reader_of(strbuf_slice(&out));
		assert_true(pb_next(&in, &field) && field.number == 7);
		assert_int_equal(field.bytes.len, lengths[i]);
		assert_memory_equal(field.bytes.data, bytes, lengths[i]);
		assert_true(pb_next(&in, &field) && field.value == 5);
		assert_false(pb_next(&in, &field));
		assert_null(in.problem);
		strbuf_free(&out);
		free(bytes);
	}
}

static void packed_numbers_come_back_in_runs_of_any_length(void **state)
{
	static uint64_t numbers[300], found[4096];

	(void)state;
	for (size_t count = 0; count < 300; count++) {
		struct strbuf out = { 0 };
		struct pb_reader in;
		struct pb_field field;
		bool whole;

		for (size_t i = 0; i < count; i++)
			numbers[i] = i / 20 % 2 ? i % 128 : UINT64_MAX >> (i * 7 % 64);
		pb_put_packed(&out, 4, numbers, count);
		in = pb_reader_of(strbuf_slice(&out));
		if (!count) {
			assert_false(pb_next(&in, &field));
			continue;
		}
		assert_true(pb_next(&in, &field));
		assert_int_equal(pb_varints(field.bytes, found, &whole), count);
		assert_true(whole);
		assert_memory_equal(found, numbers, count * sizeof(*numbers));
		found[0] = pb_varints(slice_from(field.bytes.data, field.bytes.len - 1), found,
				      &whole);
		assert_int_equal(found[0], count - 1);
		assert_int_equal(whole, numbers[count - 1] < 128);
		strbuf_free(&out);
	}
}

static void bad_bytes_are_named_with_their_place(void **state)
{
	static const struct {
		struct slice bytes;
		const char *message;
	} cases[] = {
		{ SLICE_LITERAL("\x08"), "decode M: truncated varint in field 1 at offset 1" },
		{ SLICE_LITERAL("\x08\x80"), "decode M: truncated varint in field 1 at offset 1" },
		{ SLICE_LITERAL("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		  "decode M: varint longer than 10 bytes in field 1 at offset 1" },
		{ SLICE_LITERAL("\x08\x01\x12\x05zz"),
		  "decode M: length runs past the end of the message in field 2 at offset 4" },
		{ SLICE_LITERAL("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		  "decode M: length runs past the end of the message in field 2 at offset 11" },
		{ SLICE_LITERAL("\x12"), "decode M: truncated length in field 2 at offset 1" },
		{ SLICE_LITERAL("\x09zzzz"),
		  "decode M: truncated fixed-size number in field 1 at offset 1" },
		{ SLICE_LITERAL("\x0dzz"),
		  "decode M: truncated fixed-size number in field 1 at offset 1" },
		{ SLICE_LITERAL("\x0b"), "decode M: unknown wire type in field 1 at offset 1" },
		{ SLICE_LITERAL("\x00\x01"),
		  "decode M: field number out of range in field 0 at offset 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pb_reader in = pb_reader_of(cases[i].bytes);
		struct pb_field field;
		struct err err;

		while (pb_next(&in, &field))
			;
		assert_non_null(in.problem);
		assert_int_equal(pb_fail(&in, "M", &err), -ERR_INVALID);
		assert_string_equal(err.message, cases[i].message);
	}
}

static void shapes_skip_the_unknown_and_refuse_the_misshapen(void **state)
{
	static const struct pb_shape shape = { .name = "M",
					       .varints = PB_BIT(1),
					       .bytes = PB_BITS(2, 3) };
	/* field 9 of every wire type, field 1 = 5, field 2 as a number */
	struct pb_reader in = pb_reader_of(
		SLICE_LITERAL("\x48\x01\x49zzzzzzzz\x4dzzzz\x4a\x01z\x08\x05\x10\x01"));
	struct pb_field field;

	(void)state;
	assert_true(pb_next_known(&in, &shape, &field));
	assert_int_equal(field.number, 1);
	assert_int_equal(field.value, 5);
	assert_false(pb_next_known(&in, &shape, &field));
	assert_string_equal(in.problem, "unexpected wire type");
}

static void offsets_count_from_the_outermost_message(void **state)
{
	struct pb_reader in = pb_reader_of(SLICE_LITERAL("\x08\x01\x12\x02\x08\x80"));
	struct pb_field field;
	struct pb_reader inner;
	struct err err;

	(void)state;
	pb_next(&in, &field);
	pb_next(&in, &field);
	inner = pb_reader_into(&in, field.bytes);
	assert_false(pb_next(&inner, &field));
	pb_fail(&inner, "Inner", &err);
	assert_string_equal(err.message, "decode Inner: truncated varint in field 1 at offset 5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_every_size_come_back),
		cmocka_unit_test(nested_messages_of_every_length_come_back),
		cmocka_unit_test(packed_numbers_come_back_in_runs_of_any_length),
		cmocka_unit_test(bad_bytes_are_named_with_their_place),
		cmocka_unit_test(shapes_skip_the_unknown_and_refuse_the_misshapen),
		cmocka_unit_test(offsets_count_from_the_outermost_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
