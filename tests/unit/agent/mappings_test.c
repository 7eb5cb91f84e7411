/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps to sorted ranges, and their merging. */
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

#include "agent/procs/mappings.h"

/* A file with the text, at its start. */
static int file_of(const char *text, size_t len)
{
	int fd = memfd_create("maps", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int read_text(struct mappings *mappings, const char *text)
{
	int fd = file_of(text, strlen(text));
	int lines = mappings_read(mappings, fd, 0, NULL);

	close(fd);
	return lines;
}

static void assert_at(const struct mappings *mappings, uint64_t address, uint64_t start,
		      enum mapping_kind kind)
{
	const struct mapping *mapping = mappings_find(mappings, address);

	assert_non_null(mapping);
	assert_int_equal(mapping->start, start);
	assert_int_equal(mapping->kind, kind);
}

static void executable_ranges_are_found_by_address(void **state)
{
	struct mappings mappings = { 0 };

	(void)state;
	assert_int_equal(read_text(&mappings,
				   "1000-2000 r--p 0 08:01 7 /bin/a\n"
				   "2000-4000 r-xp 1000 08:01 7 /bin/a\n"
				   "4000-5000 rw-p 3000 08:01 7 /bin/a\n"
				   "6000-7000 rwxp 0 00:00 0 \n"
				   "7000-8000 r-xp 0 00:00 0 [anon:jit]\n"
				   "8000-9000 r-xs 0 00:01 9 /dev/zero (deleted)\n"
				   "a000-b000 r-xp 0 00:00 0 [vdso]\n"
				   "nonsense\n"
				   "c000-d000 r-xp 5000 08:01 8 /lib/b\\012.so (deleted)"),
			 1);
	assert_int_equal(mappings.count, 5); /* the last line has no end: not whole */
	assert_null(mappings_find(&mappings, 0x1fff));
	assert_at(&mappings, 0x2000, 0x2000, MAPPING_FILE);
	assert_at(&mappings, 0x3fff, 0x2000, MAPPING_FILE);
	assert_null(mappings_find(&mappings, 0x4000));
	assert_at(&mappings, 0x6000, 0x6000, MAPPING_ANONYMOUS);
	assert_at(&mappings, 0x7000, 0x7000, MAPPING_ANONYMOUS);
	assert_at(&mappings, 0x8000, 0x8000, MAPPING_ANONYMOUS);
	assert_at(&mappings, 0xa123, 0xa000, MAPPING_VDSO);
	assert_null(mappings_find(&mappings, 0));
	assert_null(mappings_find(&mappings, UINT64_MAX));
	assert_int_equal(mappings_find(&mappings, 0x2000)->offset, 0x1000);
	assert_string_equal(mappings_find(&mappings, 0x2000)->path, "/bin/a");
	mappings_free(&mappings, 0);
}

static void newer_readings_win_and_old_ranges_stay(void **state)
{
	struct mappings mappings = { 0 };

	(void)state;
	read_text(&mappings, "1000-2000 r-xp 0 08:01 1 /a\n"
			     "3000-5000 r-xp 0 08:01 2 /b\n"
			     "6000-7000 r-xp 0 08:01 3 /c\n"
			     "f000-f100 r-xp 0 08:01 4 /d\n");
	mappings_find(&mappings, 0x6000)->opened = true;
	mappings_find(&mappings, 0x3000)->opened = true;
	read_text(&mappings, "2000-3000 r-xp 0 08:01 5 /new\n"
			     "4000-5800 r-xp 0 08:01 6 /over-b\n"
			     "6000-7000 r-xp 0 08:01 3 /c\n");
	assert_string_equal(mappings_find(&mappings, 0x1000)->path, "/a"); /* gone, but kept */
	assert_string_equal(mappings_find(&mappings, 0x2000)->path, "/new");
	assert_null(mappings_find(&mappings, 0x3000)); /* /b was overlapped */
	assert_string_equal(mappings_find(&mappings, 0x5000)->path, "/over-b");
	assert_false(mappings_find(&mappings, 0x5000)->opened);
	assert_true(mappings_find(&mappings, 0x6000)->opened); /* the same one as before */
	assert_string_equal(mappings_find(&mappings, 0xf000)->path, "/d");
	for (size_t i = 1; i < mappings.count; i++)
		assert_true(mappings.items[i - 1].end <= mappings.items[i].start);
	mappings_free(&mappings, 0);
}

static void empty_file_keeps_what_is_known(void **state)
{
	struct mappings mappings = { 0 };

	(void)state;
	read_text(&mappings, "1000-2000 r-xp 0 08:01 1 /a\n");
	assert_int_equal(read_text(&mappings, ""), 0); /* of a process that has ended */
	assert_non_null(mappings_find(&mappings, 0x1000));
	mappings_free(&mappings, 0);
}

static void disordered_and_overlapping_lines_do_no_harm(void **state)
{
	struct mappings mappings = { 0 };

	(void)state;
	read_text(&mappings, "5000-6000 r-xp 0 08:01 1 /a\n"
			     "1000-2000 r-xp 0 08:01 1 /b\n"
			     "5800-7000 r-xp 0 08:01 1 /c\n");
	assert_int_equal(mappings.count, 1);
	mappings_free(&mappings, 0);
}

/* Random readings merged into one another stay sorted and without overlaps. */
static void merging_keeps_order(void **state)
{
	struct mappings mappings = { 0 };

	(void)state;
	srand(1);
	for (int round = 0; round < 300; round++) {
		struct strbuf text = { 0 };
		unsigned at = 0;

		for (int i = 0; i < 20; i++) {
			unsigned start = at + (unsigned)rand() % 5;

			at = start + 1 + (unsigned)rand() % 5;
			strbuf_addf(&text, "%x000-%x000 r-xp 0 08:01 %d /x\n", start, at,
				    1 + rand() % 3);
		}
		read_text(&mappings, strbuf_text(&text));
		strbuf_free(&text);
		assert_in_range(mappings.count, 20, MAPPINGS_MAX);
		for (size_t i = 0; i < mappings.count; i++) {
			assert_true(mappings.items[i].start < mappings.items[i].end);
			assert_true(!i || mappings.items[i - 1].end <= mappings.items[i].start);
		}
	}
	mappings_free(&mappings, 0);
}

static void huge_files_are_cut(void **state)
{
	struct mappings mappings = { 0 };
	struct strbuf text = { 0 };
	int fd;

	(void)state;
	for (unsigned i = 1; i <= 2 * MAPPINGS_MAX; i++)
		strbuf_addf(&text, "%x000-%x800 r-xp 0 08:01 1 /x\n", i, i);
	strbuf_add_text(&text, "fffff000-fffff800 r-xp 0 08:01 1 /");
	memset(strbuf_reserve(&text, 1 << 20), 'y', 1 << 20); /* a line without an end */
	text.len += 1 << 20;
	fd = file_of(text.data, text.len);
	assert_int_equal(mappings_read(&mappings, fd, 0, NULL), 1);
	assert_int_equal(mappings.count, MAPPINGS_MAX);
	close(fd);
	strbuf_free(&text);
	mappings_free(&mappings, 0);
}

static void own_code_is_found_in_its_binary(void **state)
{
	uint64_t address = (uint64_t)(uintptr_t)own_code_is_found_in_its_binary;
	FILE *maps = fopen("/proc/self/maps", "r");
	struct mappings mappings = { 0 };
	char *self = realpath("/proc/self/exe", NULL);

	(void)state;
	assert_int_equal(mappings_read(&mappings, fileno(maps), 0, NULL), 1);
	assert_string_equal(mappings_find(&mappings, address)->path, self);
	mappings_free(&mappings, 0);
	fclose(maps);
	free(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executable_ranges_are_found_by_address),
		cmocka_unit_test(newer_readings_win_and_old_ranges_stay),
		cmocka_unit_test(empty_file_keeps_what_is_known),
		cmocka_unit_test(disordered_and_overlapping_lines_do_no_harm),
		cmocka_unit_test(merging_keeps_order),
		cmocka_unit_test(huge_files_are_cut),
		cmocka_unit_test(own_code_is_found_in_its_binary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
