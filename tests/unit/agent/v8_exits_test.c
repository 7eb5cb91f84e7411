/* SPDX-License-Identifier: Apache-2.0 */
/* Where calls return to in optimized code, and what is inlined there: bytes out of Deno 2.9. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/v8/v8_safepoints.h"
#include "agent/runtime/v8/v8_translation.h"

#define CODES V8_TRANSLATION_CODES

/* The second is as the first but for where it is, the third has another function within. */
static const uint8_t translations[] = {
	0x0e, 0x00, 0x02, 0x02, 0x01, 0x08, 0x02, 0x00, 0x04, 0x26, 0x04, 0x28, 0x03, 0x28, 0x05,
	0x26, 0x06, 0x25, 0x25, 0x27, 0x01, 0x25, 0x25, 0x0e, 0x17, 0x02, 0x02, 0x37, 0x0e, 0x1c,
	0x04, 0x04, 0x01, 0x12, 0x02, 0x00, 0x04, 0x33, 0x25, 0x2f, 0x01, 0x12, 0x00, 0x02, 0x04,
	0x26, 0x08, 0x27, 0x01, 0x26, 0x0a, 0x25, 0x25, 0x27, 0x02, 0x26, 0x0c, 0x25,
};

/* Of workerd's V8, which has two kinds of instructions more. */
static const uint8_t later[] = {
	0x0e, 0x00, 0x02, 0x02, 0x01, 0x04, 0x00, 0x00, 0x02, 0x2a, 0x06, 0x2a, 0x03, 0x29,
	0x01, 0x2a, 0x0c, 0x28, 0x02, 0x27, 0x27, 0x0e, 0x15, 0x02, 0x02, 0x37, 0x0e, 0x1a,
	0x02, 0x02, 0x01, 0x03, 0x00, 0x00, 0x02, 0x31, 0x2a, 0x05, 0x30, 0x27, 0x31,
};

static void functions_of_a_translation_are_its_frames(void **state)
{
	uint32_t found[4];

	(void)state;
	assert_int_equal(
		v8_translation_read(translations, sizeof(translations), 0, CODES, found, 4), 1);
	assert_int_equal(found[0], 1);
	assert_int_equal(
		v8_translation_read(translations, sizeof(translations), 28, CODES, found, 4), 2);
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 0);
}

static void what_is_left_out_is_in_the_basis(void **state)
{
	uint32_t found[4] = { 7 };

	(void)state;
	assert_int_equal(
		v8_translation_read(translations, sizeof(translations), 23, CODES, found, 4), 1);
	assert_int_equal(found[0], 1);
}

static void other_versions_have_more_kinds_of_instructions(void **state)
{
	uint32_t found[4];

	(void)state;
	assert_int_equal(v8_translation_read(later, sizeof(later), 0, CODES + 2, found, 4), 1);
	assert_int_equal(found[0], 0);
	assert_int_equal(v8_translation_read(later, sizeof(later), 21, CODES + 2, found, 4), 1);
	assert_int_equal(v8_translation_read(later, sizeof(later), 21, CODES, found, 4), 0);
}

/* V8 sorts in a frame of its own, whose literal is the caller's. */
static void frames_of_builtins_are_no_functions(void **state)
{
	static const uint8_t bytes[] = {
		0x0e, 0x00, 0x06, 0x06,	      /* three frames */
		0x01, 0x08, 0x04, 0x00, 0x00, /* literal 2 */
		0x02, 0x08, 0x04, 0x02,	      /* a builtin's */
		0x25,			      /* a value of it */
		0x01, 0x08, 0x0a, 0x00, 0x00, /* literal 5 */
	};
	uint32_t found[4];

	(void)state;
	assert_int_equal(v8_translation_read(bytes, sizeof(bytes), 0, CODES, found, 4), 2);
	assert_int_equal(found[0], 2);
	assert_int_equal(found[1], 5);
	assert_int_equal(v8_translation_read(bytes, sizeof(bytes), 0, CODES, found, 1), 0);
}

/* A third operand came to it, and V8's version does not say when. */
static void extra_arguments_have_two_operands_or_three(void **state)
{
	static const uint8_t of_two[] = { 0x0e, 0x00, 0x04, 0x02, 0x01, 0x08, 0x04,
					  0x00, 0x00, 0x0a, 0x02, 0x06, 0x25 };
	static const uint8_t of_three[] = { 0x0e, 0x00, 0x04, 0x02, 0x01, 0x08, 0x04,
					    0x00, 0x00, 0x0a, 0x02, 0x03, 0x02 };
	uint32_t found[4];

	(void)state;
	assert_int_equal(v8_translation_read(of_two, sizeof(of_two), 0, CODES, found, 4), 1);
	assert_int_equal(v8_translation_read(of_three, sizeof(of_three), 0, CODES, found, 4), 1);
	assert_int_equal(found[0], 2);
}

static void what_is_no_translation_has_no_functions(void **state)
{
	uint8_t bytes[sizeof(translations)];
	uint32_t found[4];

	(void)state;
	assert_int_equal(
		v8_translation_read(translations, sizeof(translations), 5, CODES, found, 4), 0);
	assert_int_equal(v8_translation_read(translations, sizeof(translations),
					     sizeof(translations), CODES, found, 4),
			 0);
	/* Cut in a frame. */
	assert_int_equal(v8_translation_read(translations, 43, 28, CODES, found, 4), 0);
	memcpy(bytes, translations, sizeof(bytes));
	bytes[30] = bytes[31] = 6; /* frames that are not there */
	assert_int_equal(v8_translation_read(bytes, sizeof(bytes), 28, CODES, found, 4), 0);
	bytes[30] = bytes[31] = 4;
	bytes[29] = 0x7f; /* a basis before the first byte */
	assert_int_equal(v8_translation_read(bytes, sizeof(bytes), 28, CODES, found, 4), 0);
	bytes[29] = 5; /* a basis in the middle of another */
	assert_int_equal(v8_translation_read(bytes, sizeof(bytes), 28, CODES, found, 4), 0);
}

/* A number, eight entries, what fields take, slots; then {place, exit + 1, exit's place + 1, ...}.
 */
static const uint8_t points[] = {
	0x10, 0,    0,	  0,	0x08, 0,    0,	  0,	0xa5, 0,    0,	  0,	0x0b, 0,
	0,    0,    0x2d, 0x00, 0x09, 0xd2, 0x08, 0x00, 0x00, 0x00, 0x84, 0x02, 0x0a, 0xd6,
	0x08, 0x00, 0x00, 0x00, 0x5c, 0x03, 0x0b, 0xda, 0x08, 0x00, 0x00, 0x00, 0x94, 0x03,
	0x0c, 0xde, 0x08, 0x00, 0x00, 0x00, 0xb0, 0x06, 0x00, 0x00, 0x00, 0x01, 0x01, 0x00,
	0xee, 0x06, 0x00, 0x00, 0x00, 0x06, 0x3f, 0x00, 0x64, 0x08, 0x0d, 0xe2, 0x08, 0x09,
	0xff, 0x01, 0x9f, 0x08, 0x00, 0x00, 0x00, 0x09, 0xff, 0x01,
};

static void exits_are_those_of_the_places_that_calls_return_to(void **state)
{
	const uint8_t *entries = points + V8_SAFEPOINTS_HEAD_BYTES;
	struct v8_safepoints table;
	struct v8_safepoint point;

	(void)state;
	assert_false(v8_safepoints_open(points, 0, &table));
	assert_true(v8_safepoints_open(points, 1, &table));
	assert_int_equal(v8_safepoints_bytes(&table), sizeof(points) - V8_SAFEPOINTS_HEAD_BYTES);
	assert_true(v8_safepoints_find(&table, entries, 860, &point));
	assert_int_equal(point.exit, 10);
	assert_int_equal(point.exit_at, 2265);
	assert_true(v8_safepoints_find(&table, entries, 0x864, &point));
	assert_int_equal(point.exit, 12);
	assert_false(v8_safepoints_find(&table, entries, 861, &point));
	assert_false(v8_safepoints_find(&table, entries, 0x6b0, &point)); /* without an exit */
	/* The form without the first number. */
	assert_true(v8_safepoints_open(points + 4, 0, &table));
}

static void tables_of_another_form_are_refused(void **state)
{
	uint8_t head[V8_SAFEPOINTS_HEAD_BYTES];
	struct v8_safepoints table;

	(void)state;
	memcpy(head, points, sizeof(head));
	head[7] = 0x7f; /* more than fit */
	assert_false(v8_safepoints_open(head, 1, &table));
	head[7] = 0;
	head[8] &= 0xfe; /* no exits */
	assert_false(v8_safepoints_open(head, 1, &table));
	head[8] = points[8];
	head[11] = 0x80;
	assert_false(v8_safepoints_open(head, 1, &table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_a_translation_are_its_frames),
		cmocka_unit_test(what_is_left_out_is_in_the_basis),
		cmocka_unit_test(other_versions_have_more_kinds_of_instructions),
		cmocka_unit_test(frames_of_builtins_are_no_functions),
		cmocka_unit_test(extra_arguments_have_two_operands_or_three),
		cmocka_unit_test(what_is_no_translation_has_no_functions),
		cmocka_unit_test(exits_are_those_of_the_places_that_calls_return_to),
		cmocka_unit_test(tables_of_another_form_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
