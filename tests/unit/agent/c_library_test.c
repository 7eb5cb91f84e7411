/* SPDX-License-Identifier: Apache-2.0 */
/* musl is known by its code: small files that have it, and hostile code. */
#include "agent/runtime/c_library.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/procs/space.h"
#include "base/mem.h"

static uint16_t read_file(const char *name)
{
	struct elf_info info;
	char path[4096];
	uint16_t keys_at;
	int fd;

	snprintf(path, sizeof(path), "%s/fuzz/corpus/runtime_file/%s", getenv("FIRN_TESTS"), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_read_info(fd, name, &info, NULL), 0);
	keys_at = c_library_read(fd, &info);
	close(fd);
	return keys_at;
}

static void musl_is_known_by_its_entry_and_what_it_exports(void **state)
{
	(void)state;
	assert_int_equal(read_file("musl_12"), 0x90);	 /* as its code says */
	assert_int_equal(read_file("musl_other"), 0x80); /* of code that is not known */
	assert_int_equal(read_file("python_313"), 0);
}

#define THREAD_AX 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0
#define THREAD_DX 0x64, 0x48, 0x8b, 0x14, 0x25, 0, 0, 0, 0

static void all_forms_of_the_code_are_read(void **state)
{
	static const struct {
		uint8_t code[40];
		uint16_t keys_at;
	} cases[] = {
		/* musl 1.2.3 of Debian 12 */
		{ { THREAD_AX, 0x48, 0x8b, 0x80, 0x80, 0, 0, 0, 0x89, 0xff, 0x48, 0x8b, 0x04, 0xf8,
		    0xc3 },
		  0x80 },
		/* the key first, in another register, a near offset */
		{ { 0x89, 0xf9, THREAD_DX, 0x48, 0x8b, 0x42, 0x78, 0x48, 0x8b, 0x04, 0xc8, 0xc3 },
		  0x78 },
		{ { 0x8b, 0xcf, THREAD_DX, 0x48, 0x8b, 0x42, 0x78, 0x48, 0x8b, 0x04, 0xc8, 0xc3 },
		  0x78 },
		/* with a landing pad and a frame pointer */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, THREAD_AX, 0x48, 0x8b, 0x80,
		    0x88, 0,	0,    0,    0x89, 0xff, 0x5d, 0x48, 0x8b,      0x04, 0xf8, 0xc3 },
		  0x88 },
		/* an offset that is none */
		{ { THREAD_AX, 0x48, 0x8b, 0x80, 0x81, 0, 0, 0, 0x48, 0x8b, 0x04, 0xf8 }, 0 },
		{ { THREAD_AX, 0x48, 0x8b, 0x80, 0x80, 0, 1, 0, 0x48, 0x8b, 0x04, 0xf8 }, 0 },
		{ { THREAD_AX, 0x48, 0x8b, 0x80, 0xf8, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x04, 0xf8 },
		  0 },
		/* the values of something else, or none */
		{ { THREAD_AX, 0x48, 0x8b, 0x81, 0x80, 0, 0, 0, 0x48, 0x8b, 0x04, 0xf8 }, 0 },
		{ { THREAD_AX, 0x48, 0x8b, 0x80, 0x80, 0, 0, 0, 0x48, 0x8b, 0x04, 0xf9 }, 0 },
		{ { 0x48, 0x8b, 0x04, 0xf8 }, 0 },
		/* glibc 2.36 */
		{ { 0x83, 0xff, 0x1f, 0x77, 0x3b, 0x89, 0xf8, 0x48, 0x83, 0xc0, 0x31 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(c_library_parse_keys(cases[i].code, sizeof(cases[i].code)),
				 cases[i].keys_at);
}

/* Exactly as much memory as is said to be there. */
static void code_that_is_cut_says_nothing(void **state)
{
	static const uint8_t code[] = { THREAD_AX, 0x48, 0x8b, 0x80, 0x80, 0,	 0,
					0,	   0x89, 0xff, 0x48, 0x8b, 0x04, 0xf8 };
	static const uint8_t nothing[] = { 0x55, 0x55, 0x55, 0x55 };

	(void)state;
	for (size_t len = 0; len <= sizeof(code); len++) {
		uint8_t *cut = mem_calloc(1, len + 1);

		memcpy(cut + 1, code, len);
		assert_int_equal(c_library_parse_keys(cut + 1, len),
				 len == sizeof(code) ? 0x80 : 0);
		free(cut);
	}
	assert_int_equal(c_library_parse_keys(nothing, sizeof(nothing)), 0);
}

static void a_process_has_what_its_files_are(void **state)
{
	struct binary program = { .opened = true }, library = { .opened = false };
	struct space *space = mem_calloc(1, sizeof(*space) + 3 * sizeof(struct mapping));
	uint16_t keys_at = 1;

	(void)state;
	assert_true(c_library_of(space, &keys_at));
	assert_int_equal(keys_at, 0);
	space->count = 3;
	space->mappings[0] = (struct mapping){ 0x1000, 0x2000, 0, &program, MAPPING_FILE };
	space->mappings[1] = (struct mapping){ 0x3000, 0x4000, 0, &library, MAPPING_FILE };
	space->mappings[2] = (struct mapping){ 0x5000, 0x6000, 0, NULL, MAPPING_ANONYMOUS };
	assert_false(c_library_of(space, &keys_at)); /* it may still turn out */
	assert_int_equal(keys_at, 0);
	library.opened = true;
	assert_true(c_library_of(space, &keys_at));
	assert_int_equal(keys_at, 0);
	library.musl_keys_at = 0x80;
	assert_true(c_library_of(space, &keys_at));
	assert_int_equal(keys_at, 0x80);
	free(space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(musl_is_known_by_its_entry_and_what_it_exports),
		cmocka_unit_test(all_forms_of_the_code_are_read),
		cmocka_unit_test(code_that_is_cut_says_nothing),
		cmocka_unit_test(a_process_has_what_its_files_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
