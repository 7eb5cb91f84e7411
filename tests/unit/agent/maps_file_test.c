/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps to sorted ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/procs/maps_file.h"
#include "base/strbuf.h"

/* A file with the text, at its start. */
static int file_of(const char *text, size_t len)
{
	int fd = memfd_create("maps", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int read_text(struct maps_file *maps, const char *text)
{
	int fd = file_of(text, strlen(text));
	int lines = maps_file_read(maps, fd, NULL);

	close(fd);
	return lines;
}

static void assert_range(const struct maps_range *range, uint64_t start, uint64_t end,
			 enum mapping_kind kind)
{
	assert_int_equal(range->start, start);
	assert_int_equal(range->end, end);
	assert_int_equal(range->kind, kind);
}

static void executable_ranges_are_kept(void **state)
{
	struct maps_file maps = { 0 };

	(void)state;
	assert_int_equal(read_text(&maps, "1000-2000 r--p 0 08:01 7 /bin/a\n"
					  "2000-4000 r-xp 1000 08:01 7 /bin/a\n"
					  "4000-5000 rw-p 3000 08:01 7 /bin/a\n"
					  "6000-7000 rwxp 0 00:00 0 \n"
					  "7000-8000 r-xp 0 00:00 0 [anon:jit]\n"
					  "8000-9000 r-xs 0 00:01 9 /dev/zero (deleted)\n"
					  "a000-b000 r-xp 0 00:00 0 [vdso]\n"
					  "nonsense\n"
					  "c000-d000 r-xp 5000 08:01 8 /lib/b\\012.so (deleted)"),
			 1);
	assert_int_equal(maps.count, 5); /* the last line has no end: not whole */
	assert_range(&maps.ranges[0], 0x2000, 0x4000, MAPPING_FILE);
	assert_range(&maps.ranges[1], 0x6000, 0x7000, MAPPING_ANONYMOUS);
	assert_range(&maps.ranges[2], 0x7000, 0x8000, MAPPING_ANONYMOUS);
	assert_range(&maps.ranges[3], 0x8000, 0x9000, MAPPING_ANONYMOUS);
	assert_range(&maps.ranges[4], 0xa000, 0xb000, MAPPING_VDSO);
	assert_int_equal(maps.ranges[0].offset, 0x1000);
	assert_int_equal(maps.ranges[0].inode, 7);
	assert_int_equal(maps.ranges[0].device, 0x8 << 20 | 1); /* as the kernel has it */
	assert_string_equal(maps.ranges[0].path, "/bin/a");
	maps_file_free(&maps);
}

static void paths_are_those_of_the_process(void **state)
{
	struct maps_file maps = { 0 };

	(void)state;
	read_text(&maps, "c000-d000 r-xp 5000 08:01 8 /lib/b\\012.so (deleted)\n"
			 "e000-f000 r-xp 0 00:01 9 /memfd:code (deleted)\n");
	assert_string_equal(maps.ranges[0].path, "/lib/b\n.so");
	assert_string_equal(maps.ranges[1].path, "/memfd:code");
	maps_file_free(&maps);
}

static void empty_file_means_that_the_process_has_ended(void **state)
{
	struct maps_file maps = { 0 };

	(void)state;
	assert_int_equal(read_text(&maps, ""), 0);
	assert_int_equal(maps.count, 0);
	maps_file_free(&maps);
}

static void disordered_and_overlapping_lines_do_no_harm(void **state)
{
	struct maps_file maps = { 0 };

	(void)state;
	read_text(&maps, "5000-6000 r-xp 0 08:01 1 /a\n"
			 "1000-2000 r-xp 0 08:01 1 /b\n"
			 "5800-7000 r-xp 0 08:01 1 /c\n");
	assert_int_equal(maps.count, 1);
	maps_file_free(&maps);
}

static void huge_files_are_cut(void **state)
{
	struct maps_file maps = { 0 };
	struct strbuf text = { 0 };
	int fd;

	(void)state;
	for (unsigned i = 1; i <= 2 * SPACE_MAPPINGS_MAX; i++)
		strbuf_addf(&text, "%x000-%x800 r-xp 0 08:01 1 /x\n", i, i);
	strbuf_add_text(&text, "fffff000-fffff800 r-xp 0 08:01 1 /");
	memset(strbuf_reserve(&text, 1 << 20), 'y', 1 << 20); /* a line without an end */
	text.len += 1 << 20;
	fd = file_of(text.data, text.len);
	assert_int_equal(maps_file_read(&maps, fd, NULL), 1);
	assert_int_equal(maps.count, SPACE_MAPPINGS_MAX);
	close(fd);
	strbuf_free(&text);
	maps_file_free(&maps);
}

static void own_code_is_found_in_its_file(void **state)
{
	uint64_t address = (uint64_t)(uintptr_t)own_code_is_found_in_its_file;
	FILE *file = fopen("/proc/self/maps", "r");
	struct maps_file maps = { 0 };
	char *self = realpath("/proc/self/exe", NULL);
	size_t at = 0;

	(void)state;
	assert_int_equal(maps_file_read(&maps, fileno(file), NULL), 1);
	while (at < maps.count && maps.ranges[at].end <= address)
		at++;
	assert_true(at < maps.count && maps.ranges[at].start <= address);
	assert_string_equal(maps.ranges[at].path, self);
	maps_file_free(&maps);
	fclose(file);
	free(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executable_ranges_are_kept),
		cmocka_unit_test(paths_are_those_of_the_process),
		cmocka_unit_test(empty_file_means_that_the_process_has_ended),
		cmocka_unit_test(disordered_and_overlapping_lines_do_no_harm),
		cmocka_unit_test(huge_files_are_cut),
		cmocka_unit_test(own_code_is_found_in_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
