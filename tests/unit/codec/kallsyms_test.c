/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/kallsyms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "codec/process/kallsyms.h"

static const struct {
	const char *line;
	uint64_t address;
	char type;
	const char *name, *module;
} good[] = {
	{ "ffffffff81000000 T _text", 0xffffffff81000000, 'T', "_text", "" },
	{ "ffffffffc0401000 t ext4_readdir\t[ext4]", 0xffffffffc0401000, 't', "ext4_readdir",
	  "ext4" },
	{ "0000000000000000 A fixed_percpu_data", 0, 'A', "fixed_percpu_data", "" },
	{ "ffffffffc0000000 t bpf_prog_6deef7357e7b4530\t[bpf]", 0xffffffffc0000000, 't',
	  "bpf_prog_6deef7357e7b4530", "bpf" },
	{ "ffff t _RNvCs with blank.llvm.123", 0xffff, 't', "_RNvCs with blank.llvm.123", "" },
};

static const char *const bad[] = {
	"",
	"ffff",
	"ffff T",
	"ffff T ",
	"ffff TT name",
	" ffff T name",
	"xfff T name",
	"FFFF T name",
	"1ffffffffffffffff T name",
	"ffff T name\text4",
	"ffff T name\t[]",
	"ffff T name\t[ext4",
	"ffff T \t[ext4]",
};

static void lines_of_the_kernel_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct kallsyms_line got;

		assert_int_equal(kallsyms_parse_line(slice_of(good[i].line), &got, NULL), 0);
		assert_int_equal(got.address, good[i].address);
		assert_int_equal(got.type, good[i].type);
		assert_true(slice_is(got.name, good[i].name));
		assert_true(slice_is(got.module, good[i].module));
	}
}

static void malformed_lines_are_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kallsyms_line got = { .address = 77 };
		struct err err;

		if (kallsyms_parse_line(slice_of(bad[i]), &got, &err) != -ERR_INVALID)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(got.address, 77); /* untouched */
		assert_non_null(strstr(err.message, bad[i]));
	}
}

static void only_text_is_code(void **state)
{
	(void)state;
	assert_true(kallsyms_is_code('t') && kallsyms_is_code('T') && kallsyms_is_code('W'));
	assert_false(kallsyms_is_code('d') || kallsyms_is_code('A') || kallsyms_is_code('R'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_the_kernel_are_read),
		cmocka_unit_test(malformed_lines_are_refused_by_name),
		cmocka_unit_test(only_text_is_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
