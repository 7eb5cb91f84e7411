/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls return to in optimized code, what is checked around an instruction, and what is
 * inlined there. Tables are bytes out of Deno 2.9.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/v8/v8_exits.h"
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
	assert_int_equal(table.count, 8);
	assert_true(v8_safepoints_get(&table, entries, 2, &point));
	assert_int_equal(point.place, 860);
	assert_int_equal(point.exit, 10);
	assert_int_equal(point.exit_at, 2265);
	assert_true(v8_safepoints_get(&table, entries, 6, &point));
	assert_int_equal(point.place, 0x864);
	assert_int_equal(point.exit, 12);
	assert_false(v8_safepoints_get(&table, entries, 4, &point)); /* without an exit */
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

/* ---- exits ---- */

#define NUMBER(value) ((uint64_t)(uint32_t)(value) << 32)
#define HEAD_WORDS 2
#define FIRST_EXIT 6 /* among the elements */
#define CODE_AT 0x1c0u

/* An array: the code of the exits is behind the code; three are of checks, two of calls. */
static uint64_t deoptimization[] = {
	0,
	NUMBER(21), /* elements */
	0,
	0,
	0,
	NUMBER(CODE_AT),
	NUMBER(3),
	NUMBER(2), /* ... the exits: */
	NUMBER(1),
	NUMBER(10),
	NUMBER(-1), /* */
	NUMBER(1),
	NUMBER(11),
	NUMBER(-1), /* */
	NUMBER(1),
	NUMBER(12),
	NUMBER(-1), /* */
	NUMBER(1),
	NUMBER(20),
	NUMBER(0x150), /* */
	NUMBER(1),
	NUMBER(21),
	NUMBER(0x170), /* */
};

static const struct v8_layout layout = { .data_inlinings = 2 };
static uint8_t code[0x1d4 + V8_SAFEPOINTS_HEAD_BYTES];

static bool read_own(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	memcpy(to, (const void *)(uintptr_t)address, len);
	return true;
}

static const struct memory_reader own_memory = { .read = read_own };

static struct v8_exits_source source_of_exits(void)
{
	return (struct v8_exits_source){ .memory = &own_memory,
					 .layout = &layout,
					 .data = (uint64_t)(uintptr_t)deoptimization + 1,
					 .start = (uint64_t)(uintptr_t)code,
					 .size = 0x1d4 };
}

static void jump(size_t at, uint8_t condition, size_t target)
{
	size_t bytes = condition ? 6 : 5;
	int32_t distance = (int32_t)(target - (at + bytes));

	code[at] = condition ? 0x0f : 0xe9;
	if (condition)
		code[at + 1] = condition;
	memcpy(code + at + bytes - 4, &distance, 4);
}

static void make_code(void)
{
	memset(code, 0x90, sizeof(code));
	jump(0x10, 0x80, CODE_AT);     /* the first exit */
	jump(0x18, 0x80, CODE_AT + 2); /* none: in the middle of one */
	jump(0x60, 0x84, 0x40);	       /* a loop, of which each turn looks ... */
	jump(0x66, 0, 0x140);	       /* ... whether it is interrupted */
	jump(0x158, 0, 0x40);	       /* the slow part goes on with it */
	jump(0x90, 0x8f, CODE_AT + 4);
	jump(0xa0, 0x86, 0x160); /* a slow part of another form */
	jump(0x174, 0, 0xa6);
	jump(0xb0, 0x84, 0x180); /* no slow part: nothing is called there */
	jump(0x190, 0, 0xb6);
}

static void calls_have_exits_where_they_return_to(void **state)
{
	struct v8_exits_source source = source_of_exits();
	struct v8_exits exits;
	uint32_t translation;

	(void)state;
	make_code();
	assert_true(v8_exits_read(&source, &exits));
	assert_true(v8_exits_find_call(&exits, 0x150, &translation));
	assert_int_equal(translation, 20);
	assert_true(v8_exits_find_call(&exits, 0x16f, &translation));
	assert_int_equal(translation, 21);
	assert_false(v8_exits_find_call(&exits, 0x151, &translation));
	assert_false(v8_exits_find_call(&exits, UINT64_MAX, &translation));
	v8_exits_free(&exits);
}

static void an_instruction_is_between_two_checks_of_its_loop(void **state)
{
	static const struct {
		size_t at, count;
		uint32_t translations[V8_CHECKS_NEAR];
	} wanted[] = {
		{ 0x00, 1, { 10 } },	 /* nothing is before it */
		{ 0x10, 1, { 10 } },	 /* the check itself comes */
		{ 0x20, 2, { 20, 10 } }, /* the next one is that of the loop */
		{ 0x40, 1, { 20 } },	 /* in the loop, in which there is one alone */
		{ 0x5c, 1, { 20 } },	 /* */
		{ 0x66, 1, { 20 } },	 /* */
		{ 0x70, 2, { 11, 20 } }, /* */
		{ 0x98, 2, { 21, 11 } }, /* */
		{ 0xc0, 1, { 21 } },	 /* none comes */
		{ sizeof(code), 0, { 0 } },
	};
	struct v8_exits_source source = source_of_exits();
	uint32_t found[V8_CHECKS_NEAR];
	struct v8_exits exits;

	(void)state;
	make_code();
	assert_true(v8_exits_read(&source, &exits));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		size_t len = i + 1 < sizeof(wanted) / sizeof(wanted[0]) ? source.size : 0;

		assert_int_equal(v8_exits_find_checks(&exits, code, len, wanted[i].at, found),
				 wanted[i].count);
		for (size_t k = 0; k < wanted[i].count; k++)
			assert_int_equal(found[k], wanted[i].translations[k]);
	}
	v8_exits_free(&exits);
}

/* The inner loop counts, though the outer one's check is next in memory. */
static void of_loops_in_loops_the_inner_one_counts(void **state)
{
	struct v8_exits_source source = source_of_exits();
	uint32_t found[V8_CHECKS_NEAR];
	struct v8_exits exits;

	(void)state;
	make_code();
	jump(0x70, 0, 0x160); /* the outer loop begins before the other, and ends behind it */
	jump(0x174, 0, 0x14);
	assert_true(v8_exits_read(&source, &exits));
	assert_int_equal(v8_exits_find_checks(&exits, code, source.size, 0x50, found), 1);
	assert_int_equal(found[0], 20);
	assert_int_equal(v8_exits_find_checks(&exits, code, source.size, 0x30, found), 1);
	assert_int_equal(found[0], 20); /* in the outer one: the next is that of the inner */
	assert_int_equal(v8_exits_find_checks(&exits, code, source.size, 0x6c, found), 2);
	assert_int_equal(found[0], 21);
	assert_int_equal(found[1], 20);
	v8_exits_free(&exits);
}

static void data_that_do_not_fit_have_no_exits(void **state)
{
	static const struct {
		size_t element;
		uint64_t value;
	} wrong[] = {
		{ 3, NUMBER(0x1000) }, /* behind the code */
		{ 4, NUMBER(6) },      /* more checks than exits */
		{ 4, NUMBER(-1) },
		{ 4, 3 }, /* no number */
	};
	struct v8_exits_source source = source_of_exits();
	struct v8_exits exits;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t *element = &deoptimization[HEAD_WORDS + wrong[i].element], was = *element;

		*element = wrong[i].value;
		assert_false(v8_exits_read(&source, &exits));
		*element = was;
	}
	deoptimization[1] = NUMBER(FIRST_EXIT + 2); /* not even one */
	assert_false(v8_exits_read(&source, &exits));
	deoptimization[1] = NUMBER(INT32_MAX);
	assert_false(v8_exits_read(&source, &exits));
	deoptimization[1] = NUMBER(21);
	assert_true(v8_exits_read(&source, &exits));
	v8_exits_free(&exits);
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
		cmocka_unit_test(calls_have_exits_where_they_return_to),
		cmocka_unit_test(an_instruction_is_between_two_checks_of_its_loop),
		cmocka_unit_test(of_loops_in_loops_the_inner_one_counts),
		cmocka_unit_test(data_that_do_not_fit_have_no_exits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
