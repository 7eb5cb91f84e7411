/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from the unwind information of .NET, for code as its compiler makes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/dotnet/unwind_info.h"

/* The CFA is so many words above the stack pointer, or the frame pointer; fp lies below the CFA. */
#define BY_SP(words, fp) ((uint32_t)(words) << 1 | (uint32_t)(fp) << 11)
#define BY_FP(words, fp) (1u | (uint32_t)(words) << 1 | (uint32_t)(fp) << 11)
#define LEN(string) (sizeof(string) - 1)

static struct code_row rows[UNWIND_INFO_ROWS_MAX];
static size_t count;

static void read_info(const char *info, size_t info_len, const char *code, size_t code_len)
{
	count = unwind_info_rows((const uint8_t *)info, info_len, (const uint8_t *)code, code_len,
				 rows);
}

static uint32_t rule_at(uint32_t offset)
{
	uint32_t rule = 0;

	for (size_t i = 0; i < count && rows[i].offset <= offset; i++)
		rule = rows[i].rule;
	return rule;
}

/* push %rax; call; add $8,%rsp; ret */
static void a_small_method_is_left_by_the_stack_pointer(void **state)
{
	static const char info[] = "\x01\x01\x01\x00\x01\x02";
	static const char code[] = "\x50\xe8\0\0\0\0\x48\x83\xc4\x08\xc3";

	(void)state;
	read_info(info, LEN(info), code, LEN(code));
	assert_int_equal(rule_at(0), BY_SP(1, 0));
	assert_int_equal(rule_at(1), BY_SP(2, 0));
	assert_int_equal(rule_at(6), BY_SP(2, 0));
	assert_int_equal(rule_at(10), BY_SP(1, 0));
}

/* push %rbp; push %rbx; sub $0x18,%rsp; lea 0x20(%rsp),%rbp; nop; add $0x18,%rsp; pop; pop; ret */
static void a_frame_pointer_is_followed_once_it_is_set(void **state)
{
	static const char info[] = "\x01\x0b\x05\x45\x0b\x03\x06\x22\x02\x30\x01\x50\0\0";
	static const char info_right[] = "\x01\x0b\x04\x25\x0b\x03\x06\x22\x02\x30\x01\x50";
	static const char code[] = "\x55\x53\x48\x83\xec\x18\x48\x8d\x6c\x24\x20\x90"
				   "\x48\x83\xc4\x18\x5b\x5d\xc3";

	(void)state;
	read_info(info_right, LEN(info_right), code, LEN(code));
	assert_int_equal(rule_at(0), BY_SP(1, 0));
	assert_int_equal(rule_at(1), BY_SP(2, 1));
	assert_int_equal(rule_at(2), BY_SP(3, 1));
	assert_int_equal(rule_at(6), BY_SP(6, 1));
	assert_int_equal(rule_at(11), BY_FP(2, 1)); /* 0x28 - 0x20 up to the return address */
	assert_int_equal(rule_at(15), BY_FP(2, 1));
	assert_int_equal(rule_at(16), BY_SP(3, 1));
	assert_int_equal(rule_at(17), BY_SP(2, 1));
	assert_int_equal(rule_at(18), BY_SP(1, 0));
	read_info(info, LEN(info), code, LEN(code));
	assert_int_equal(count, 0); /* a frame pointer outside of the frame */
}

/* push %rbp; sub $0x10,%rsp; lea 0x10(%rsp),%rbp; nop; lea 0(%rbp),%rsp; pop %rbp; ret; int3 */
static void an_end_that_sets_the_stack_pointer_is_found(void **state)
{
	static const char info[] = "\x01\x0a\x03\x15\x0a\x03\x05\x12\x01\x50";
	static const char code[] = "\x55\x48\x83\xec\x10\x48\x8d\x6c\x24\x10\x90"
				   "\x48\x8d\x65\x00\x5d\xc3\xcc";

	(void)state;
	read_info(info, LEN(info), code, LEN(code));
	assert_int_equal(rule_at(10), BY_FP(2, 1));
	assert_int_equal(rule_at(15), BY_SP(2, 1)); /* at pop */
	assert_int_equal(rule_at(16), BY_SP(1, 0)); /* at ret */
	assert_int_equal(rule_at(17), BY_FP(2, 1)); /* behind it */
}

/* A jump away ends a function as a return does; one within it does not. */
static void a_jump_out_of_the_function_is_an_end(void **state)
{
	static const char info[] = "\x01\x04\x01\x00\x04\x42"; /* sub $0x28,%rsp */
	static const char away[] = "\x48\x83\xec\x28\x90\x48\x83\xc4\x28\xe9\x00\x10\0\0";
	static const char within[] = "\x48\x83\xec\x28\x90\x48\x83\xc4\x28\xe9\xf2\xff\xff\xff";

	(void)state;
	read_info(info, LEN(info), away, LEN(away));
	assert_int_equal(rule_at(4), BY_SP(6, 0));
	assert_int_equal(rule_at(9), BY_SP(1, 0));
	read_info(info, LEN(info), within, LEN(within));
	assert_int_equal(rule_at(9), BY_SP(6, 0));
}

/* mov $0xc358...: a `pop; ret` that does not take down what the function has pushed. */
static void what_only_looks_like_an_end_is_none(void **state)
{
	static const char info[] = "\x01\x04\x01\x00\x04\x42";
	static const char code[] = "\x48\x83\xec\x28\xb8\x58\xc3\0\0\x90";

	(void)state;
	read_info(info, LEN(info), code, LEN(code));
	for (uint32_t i = 4; i < LEN(code); i++)
		assert_int_equal(rule_at(i), BY_SP(6, 0));
}

static void what_is_not_understood_has_no_rows(void **state)
{
	static const char code[] = "\x50\xc3";
	static const struct {
		const char *info;
		size_t len;
	} wrong[] = {
		{ "\x02\x01\x01\x00\x01\x02", 6 },	   /* version 2 */
		{ "\x21\x01\x01\x00\x01\x02", 6 },	   /* chained */
		{ "\x01\x01\x01\x00\x01\x0a", 6 },	   /* an operation that there is none of */
		{ "\x01\x01\x01\x00\x01\x01", 6 },	   /* a word is missing */
		{ "\x01\x02\x02\x00\x01\x02\x02\x02", 8 }, /* not from the last to the first */
		{ "\x01\x01\xff\x00\x01\x02", 6 },	   /* fewer codes than it says */
		{ "\x01\x01", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		read_info(wrong[i].info, wrong[i].len, code, LEN(code));
		assert_int_equal(count, 0);
	}
}

/* 8 MB: more than a row can say. */
static void a_frame_that_is_too_large_is_not_known(void **state)
{
	static const char info[] = "\x01\x07\x03\x00\x07\x11\0\0\x80\0";

	(void)state;
	read_info(info, LEN(info), "", 0);
	assert_int_equal(rule_at(0), BY_SP(1, 0));
	assert_int_equal(rule_at(7), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_method_is_left_by_the_stack_pointer),
		cmocka_unit_test(a_frame_pointer_is_followed_once_it_is_set),
		cmocka_unit_test(an_end_that_sets_the_stack_pointer_is_found),
		cmocka_unit_test(a_jump_out_of_the_function_is_an_end),
		cmocka_unit_test(what_only_looks_like_an_end_is_none),
		cmocka_unit_test(what_is_not_understood_has_no_rows),
		cmocka_unit_test(a_frame_that_is_too_large_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
