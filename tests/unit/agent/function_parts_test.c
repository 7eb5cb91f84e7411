/* SPDX-License-Identifier: Apache-2.0 */
/* A function in two places is found in a program without its symbols' help: in this one. */
#include "agent/runtime/function_parts.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PARTS_MAX 4

/* As compilers lay it out: the part begins with the frame that the function has built. */
__asm__(".text\n"
	".globl two_places, two_places_end, its_part, its_part_end, neighbour\n"
	"two_places: .cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	test %edi, %edi\n"
	"	je its_part + 1\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	test %esi, %esi\n"
	"	.byte 0x0f, 0x84\n" /* je neighbour, which is no part */
	"	.long neighbour - . - 4\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"two_places_end:\n"
	".p2align 8\n"
	"neighbour: .cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".p2align 8\n"
	"its_part: .cfi_startproc\n"
	"	.cfi_def_cfa_offset 16\n"
	"	nop\n"
	"	nop\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"its_part_end:\n");

extern const uint8_t two_places[], two_places_end[], its_part[], its_part_end[], neighbour[];
extern const uint8_t __executable_start[];

static const char *const words[] = { "first", "second" };

struct program {
	struct elf_info info;
	struct elf_exports symbols;
	int fd;
};

static int open_program(void **state)
{
	static struct program program;
	struct err err = { 0 };

	program.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(program.fd >= 0);
	assert_int_equal(elf_read_info(program.fd, "this program", &program.info, &err), 0);
	assert_true(elf_exports_open(&program.symbols, program.fd, &program.info));
	*state = &program;
	return 0;
}

static int close_program(void **state)
{
	return close(((struct program *)*state)->fd);
}

/* What the file says where this process has it. */
static uint64_t address_of(const struct program *program, const void *at)
{
	return (uint64_t)((const uint8_t *)at - __executable_start) +
	       program->info.segments[0].address;
}

static void test_the_part_is_found(void **state)
{
	const struct program *program = *state;
	const struct elf_export function = {
		address_of(program, two_places),
		(uint64_t)(two_places_end - two_places),
	};
	struct elf_export parts[PARTS_MAX];

	assert_int_equal(function_parts_find(&program->symbols, &function, parts, PARTS_MAX), 1);
	assert_int_equal(parts[0].address, address_of(program, its_part));
	assert_int_equal(parts[0].bytes, its_part_end - its_part);
}

static void test_extents_begin_where_functions_do(void **state)
{
	const struct program *program = *state;
	uint64_t at = address_of(program, two_places);
	struct elf_export found;

	assert_true(function_extent_find(&program->symbols, at, &found));
	assert_int_equal(found.bytes, two_places_end - two_places);
	assert_false(function_extent_find(&program->symbols, at + 1, &found));
}

static void test_pointers_are_as_loaded(void **state)
{
	const struct program *program = *state;
	uint64_t found[2] = { 0 };
	char text[sizeof("second")] = "";

	elf_exports_pointers(&program->symbols, address_of(program, words), found, 2);
	assert_true(elf_exports_read(&program->symbols, found[1], text, sizeof(text)));
	assert_string_equal(text, words[1]);
	elf_exports_pointers(&program->symbols, UINT64_MAX - 8, found, 2);
	assert_int_equal(found[0], 0);
}

int main(void)
{
#ifndef __x86_64__
	return 77;
#else
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_part_is_found, open_program,
						close_program),
		cmocka_unit_test_setup_teardown(test_extents_begin_where_functions_do, open_program,
						close_program),
		cmocka_unit_test_setup_teardown(test_pointers_are_as_loaded, open_program,
						close_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
