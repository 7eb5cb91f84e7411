/* SPDX-License-Identifier: Apache-2.0 */
/* Releases and compilers that ELF files tell of. */
#include "codec/elf/elf_origin.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static void modules_tell_version_and_revision(void **state)
{
	struct elf_origin origin = { 0 };

	(void)state;
	elf_origin_take_modules(
		&origin,
		SLICE_LITERAL("path\texample.org/shop/cmd\nmod\texample.org/shop\tv1.4.2\th1:x=\n"
			      "dep\tgolang.org/x/net\tv0.1.0\th1:y=\nbuild\tvcs=git\n"
			      "build\tvcs.revision=a4e2e5f9\nbuild\tvcs.modified=false\n"));
	assert_string_equal(origin.version, "v1.4.2");
	assert_string_equal(origin.revision, "a4e2e5f9");
	elf_origin_free(&origin);
	elf_origin_take_modules(&origin, SLICE_LITERAL("mod\texample.org/shop\t(devel)\t\n"
						       "build\tvcs.revision=a4e2\n"
						       "build\tvcs.modified=true"));
	assert_null(origin.version);
	assert_string_equal(origin.revision, "a4e2+dirty");
	elf_origin_free(&origin);
}

static void what_is_no_text_is_left_out(void **state)
{
	struct elf_origin origin = { 0 };

	(void)state;
	elf_origin_take_modules(&origin, SLICE_LITERAL("mod\tx\tv\x1b[31m\nmod\nbuild\t\nbuild\n"));
	assert_null(origin.version);
	assert_null(origin.revision);
	elf_origin_free(&origin);
}

static void this_program_tells_its_compiler(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_origin origin;
	struct elf_info info;

	(void)state;
	assert_int_equal(elf_read_info(fd, "self", &info, NULL), 0);
	elf_origin_read(fd, "self", &info, &origin);
	assert_non_null(origin.compiler);
	assert_true(!strncmp(origin.compiler, "GCC 1", 5) ||
		    !strncmp(origin.compiler, "Clang 1", 7));
	assert_false(origin.is_stripped);
	elf_origin_free(&origin);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_tell_version_and_revision),
		cmocka_unit_test(what_is_no_text_is_left_out),
		cmocka_unit_test(this_program_tells_its_compiler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
