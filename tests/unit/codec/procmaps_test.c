/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/PID/maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "codec/process/procmaps.h"

static const struct {
	const char *line;
	struct procmaps_line want;
	const char *path;
} good[] = {
	{ "55ebc9c91000-55ebc9c95000 r-xp 00002000 fe:00 332383                     /usr/bin/ls",
	  { .start = 0x55ebc9c91000,
	    .end = 0x55ebc9c95000,
	    .offset = 0x2000,
	    .inode = 332383,
	    .dev_major = 0xfe,
	    .readable = true,
	    .executable = true },
	  "/usr/bin/ls" },
	{ "7fff04153000-7fff04174000 rw-p 00000000 00:00 0                          [stack]",
	  { .start = 0x7fff04153000, .end = 0x7fff04174000, .readable = true, .writable = true },
	  "[stack]" },
	{ "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 ",
	  { .start = 0x7f0000000000,
	    .end = 0x7f0000001000,
	    .readable = true,
	    .writable = true,
	    .executable = true },
	  "" },
	{ "7f0000000000-7f0000001000 ---s 00000000 00:00 0",
	  { .start = 0x7f0000000000, .end = 0x7f0000001000, .shared = true },
	  "" },
	{ "7f0000000000-7f0000001000 r-xp 00000000 08:01 12    /tmp/a b\\012c (deleted)",
	  { .start = 0x7f0000000000,
	    .end = 0x7f0000001000,
	    .inode = 12,
	    .dev_major = 8,
	    .dev_minor = 1,
	    .readable = true,
	    .executable = true,
	    .deleted = true },
	  "/tmp/a b\\012c" },
	{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
	  { .start = 0xffffffffff600000, .end = 0xffffffffff601000, .executable = true },
	  "[vsyscall]" },
	{ "0-ffffffffffffffff ---p ffffffffffffffff ffffffff:ffffffff 18446744073709551615 /x",
	  { .end = UINT64_MAX,
	    .offset = UINT64_MAX,
	    .inode = UINT64_MAX,
	    .dev_major = UINT32_MAX,
	    .dev_minor = UINT32_MAX },
	  "/x" },
};

static const char *const bad[] = {
	"",
	"7f00",
	"7f00-",
	"7f00-7e00 r-xp 0 0:0 0",			    /* ends before it starts */
	"7f00-7f00 r-xp 0 0:0 0",			    /* empty */
	"7f00-8f00 r-x 0 0:0 0",			    /* three permissions */
	"7f00-8f00 rqxp 0 0:0 0",			    /* no such permission */
	"7f00-8f00 r-xp 0 0:0",				    /* no inode */
	"7f00-8f00 r-xp 0 0:0 12a",			    /* inode is decimal */
	"7f00-8f00 r-xp 0 1ffffffff:0 0",		    /* device number over 32 bits */
	"17f0000000000000f-17f00000000000fff r-xp 0 0:0 0", /* over 64 bits */
	"7F00-8F00 r-xp 0 0:0 0",			    /* the kernel writes lower case */
	" 7f00-8f00 r-xp 0 0:0 0",
	"-8f00 r-xp 0 0:0 0",
};

static void lines_of_the_kernel_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct procmaps_line want = good[i].want, got;
		struct err err;

		if (procmaps_parse_line(slice_of(good[i].line), &got, &err))
			fail_msg("%s", err.message);
		assert_int_equal(got.start, want.start);
		assert_int_equal(got.end, want.end);
		assert_int_equal(got.offset, want.offset);
		assert_int_equal(got.inode, want.inode);
		assert_int_equal(got.dev_major, want.dev_major);
		assert_int_equal(got.dev_minor, want.dev_minor);
		assert_int_equal(got.readable, want.readable);
		assert_int_equal(got.writable, want.writable);
		assert_int_equal(got.executable, want.executable);
		assert_int_equal(got.shared, want.shared);
		assert_int_equal(got.deleted, want.deleted);
		assert_true(slice_is(got.path, good[i].path));
	}
}

static void malformed_lines_are_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct procmaps_line got = { .inode = 77 };
		struct err err;

		if (procmaps_parse_line(slice_of(bad[i]), &got, &err) != -ERR_INVALID)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(got.inode, 77); /* untouched */
		assert_non_null(strstr(err.message, bad[i]));
	}
}

static void newlines_in_paths_come_back(void **state)
{
	struct strbuf out = { 0 };

	(void)state;
	procmaps_add_path(&out, SLICE_LITERAL("/a\\012b\\0123\\01"));
	assert_string_equal(strbuf_text(&out), "/a\nb\n3\\01");
	strbuf_free(&out);
}

static void own_maps_are_read_whole(void **state)
{
	FILE *file = fopen("/proc/self/maps", "r");
	uint64_t end = 0;
	char line[8192];
	size_t lines = 0;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		struct procmaps_line got;

		assert_int_equal(
			procmaps_parse_line(slice_from(line, strlen(line) - 1), &got, NULL), 0);
		assert_true(got.start >= end);
		end = got.end;
		lines++;
	}
	fclose(file);
	assert_true(lines > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_the_kernel_are_read),
		cmocka_unit_test(malformed_lines_are_refused_by_name),
		cmocka_unit_test(newlines_in_paths_come_back),
		cmocka_unit_test(own_maps_are_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
