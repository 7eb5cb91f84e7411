/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is extracted of a program says the same as the program to binutils (nm, readelf,
 * addr2line), and is smaller.
 */
#include "codec/elf/elf_extract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "codec/elf/elf.h"

#define BALLAST_BYTES 300000u
#define ROOM ((uint64_t)64 << 20)

static char folder[64];

static bool run(const char *command)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd %s && { %s; } >log 2>&1", folder, command);
	return !system(line);
}

static int set_up(void **state)
{
	char path[96];
	FILE *file;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/firn-extract-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.c", folder);
	file = fopen(path, "w");
	if (!file)
		return -1;
	fprintf(file,
		"char ballast[%u] = { 1 };\n"
		"static inline __attribute__((always_inline)) int inner(int x) { return x * 3; }\n"
		"__attribute__((noinline)) int outer(int x)\n{\n\treturn inner(x) + 1;\n}\n"
		"int main(int argc, char **argv) { return outer(argc) + ballast[argc]; }\n",
		BALLAST_BYTES);
	return fclose(file);
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static int open_in(const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	return fd;
}

/* Reads in steps that fit nothing, and writes to the file "extract". */
static uint64_t extract(const char *name)
{
	struct elf_extract *plan;
	int from = open_in(name, O_RDONLY), to = open_in("extract", O_CREAT | O_TRUNC | O_WRONLY);
	uint64_t bytes;
	struct err err;

	if (elf_extract_open(from, name, ROOM, &plan, &err))
		fail_msg("%s", err.message);
	bytes = elf_extract_bytes(plan);
	for (uint64_t at = 0; at < bytes;) {
		char piece[1237];
		size_t len = bytes - at < sizeof(piece) ? (size_t)(bytes - at) : sizeof(piece);

		assert_int_equal(elf_extract_read(plan, at, piece, len, &err), 0);
		assert_int_equal(write(to, piece, len), len);
		at += len;
	}
	elf_extract_close(plan);
	close(from);
	close(to);
	return bytes;
}

static void says_the_same(const char *name)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "for f in %s extract; do { readelf -nW $f | grep 'Build ID'; { nm $f; nm -D "
		 "--without-symbol-versions $f; } | cut -d' ' -f1,3-; "
		 "readelf -lW $f | grep LOAD; "
		 "addr2line -ife $f $(nm %s | sed -n 's/ T outer//p'); } >said.$f 2>/dev/null; "
		 "done; "
		 "test -s said.extract && cmp said.%s said.extract",
		 name, name, name);
	if (!run(command)) {
		run("diff said.* | head -20");
		snprintf(command, sizeof(command), "cat %s/log", folder);
		(void)!system(command);
		fail_msg("%s", name);
	}
}

static void says_the_same_as_the_program(void **state)
{
	static const char *const flags[] = {
		"-g",		"-g -O2 -gz", "-g -static-pie",
		"-g -gdwarf-4", "-O2 -s",     "-g -no-pie -Wl,-z,noseparate-code",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		struct elf_info whole, part;
		char command[160];
		struct stat status;
		uint64_t bytes;
		int fd;

		snprintf(command, sizeof(command), "cc -w %s -Wl,--build-id=sha1 -o program a.c",
			 flags[i]);
		assert_true(run(command));
		bytes = extract("program");
		says_the_same("program");
		fd = open_in("program", O_RDONLY);
		assert_int_equal(elf_read_info(fd, "program", &whole, NULL), 0);
		assert_int_equal(fstat(fd, &status), 0);
		close(fd);
		assert_true(bytes + BALLAST_BYTES <= (uint64_t)status.st_size);
		fd = open_in("extract", O_RDONLY);
		assert_int_equal(elf_read_info(fd, "extract", &part, NULL), 0);
		close(fd);
		assert_string_equal(whole.build_id, part.build_id);
		assert_int_equal(whole.segments_count, part.segments_count);
		assert_memory_equal(whole.segments, part.segments,
				    whole.segments_count * sizeof(whole.segments[0]));
	}
}

static void separate_debug_files_stay_whole(void **state)
{
	struct stat status;
	uint64_t bytes;
	int fd;

	(void)state;
	assert_true(run("cc -g -O2 -Wl,--build-id=sha1 -o program a.c && "
			"objcopy --only-keep-debug program debug"));
	bytes = extract("debug");
	says_the_same("debug");
	fd = open_in("debug", O_RDONLY);
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	assert_true(bytes > (uint64_t)status.st_size * 9 / 10);
}

/* Where variables are, macros, and indexes of names; in both versions of DWARF. */
static void what_only_debuggers_read_is_left_out(void **state)
{
	static const char *const versions[] = { "4", "5" };

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		char command[256];

		snprintf(command, sizeof(command),
			 "cc -g3 -gdwarf-%s -O2 -gpubnames -o program a.c", versions[i]);
		assert_true(run(command));
		extract("program");
		says_the_same("program");
		assert_true(run("readelf -SW program | "
				"grep -E 'debug_(loc|loclists|macro) +PROGBITS' >had; "
				"test $(wc -l <had) -ge 2 && "
				"readelf -SW program | grep -E 'pubnames +PROGBITS'"));
		assert_false(run("readelf -SW extract | grep -E "
				 "'debug_(loc|loclists|macro|gnu_pubnames|pubnames) +PROGBITS'"));
	}
}

/* Twice the same, and the same of a copy. */
static void same_file_gives_same_bytes(void **state)
{
	(void)state;
	assert_true(run("cc -g -o program a.c && cp program copy"));
	extract("program");
	assert_true(run("mv extract first"));
	extract("copy");
	assert_true(run("cmp first extract"));
}

static uint64_t fingerprint_of(const char *name)
{
	struct elf_extract *plan;
	uint64_t fingerprint;
	int fd = open_in(name, O_RDONLY);

	assert_int_equal(elf_extract_open(fd, name, ROOM, &plan, NULL), 0);
	fingerprint = elf_extract_fingerprint(plan);
	elf_extract_close(plan);
	close(fd);
	return fingerprint;
}

static void fingerprint_tells_a_stripped_file_from_the_whole_one(void **state)
{
	(void)state;
	assert_true(run("cc -g -o program a.c && cp program copy && strip -o stripped program"));
	assert_int_equal(fingerprint_of("program"), fingerprint_of("copy"));
	assert_int_not_equal(fingerprint_of("program"), fingerprint_of("stripped"));
}

/* Reads into a buffer that is not clean, from each place, in pieces of odd sizes. */
static void pieces_are_the_whole(void **state)
{
	struct elf_extract *plan;
	char *whole, *pieces;
	size_t bytes;
	int fd;

	(void)state;
	assert_true(run("cc -g -o program a.c"));
	fd = open_in("program", O_RDONLY);
	assert_int_equal(elf_extract_open(fd, "program", ROOM, &plan, NULL), 0);
	bytes = elf_extract_bytes(plan);
	whole = mem_calloc(1, bytes);
	pieces = mem_calloc(1, bytes);
	memset(whole, 0xaa, bytes);
	memset(pieces, 0x55, bytes);
	assert_int_equal(elf_extract_read(plan, 0, whole, bytes, NULL), 0);
	for (size_t at = 0, len; at < bytes; at += len) {
		len = bytes - at < 13 ? bytes - at : 13;
		assert_int_equal(elf_extract_read(plan, at, pieces + at, len, NULL), 0);
	}
	assert_memory_equal(whole, pieces, bytes);
	free(whole);
	free(pieces);
	elf_extract_close(plan);
	close(fd);
}

static void bounds_and_damage_are_errors(void **state)
{
	struct elf_extract *plan;
	struct err err;
	int fd;

	(void)state;
	assert_true(run("cc -g -o program a.c && head -c 20000 program >short && : >empty && "
			"cp a.c text"));
	fd = open_in("program", O_RDONLY);
	assert_int_equal(elf_extract_open(fd, "program", 1000, &plan, &err), -ERR_LIMIT);
	close(fd);
	fd = open_in("empty", O_RDONLY);
	assert_int_equal(elf_extract_open(fd, "empty", ROOM, &plan, &err), -ERR_INVALID);
	close(fd);
	fd = open_in("text", O_RDONLY);
	assert_int_equal(elf_extract_open(fd, "text", ROOM, &plan, &err), -ERR_INVALID);
	close(fd);
	fd = open_in("short", O_RDONLY);
	assert_int_not_equal(elf_extract_open(fd, "short", ROOM, &plan, &err), 0);
	close(fd);
}

/* The file is cut while it is being sent. */
static void shorter_file_is_an_error(void **state)
{
	struct elf_extract *plan;
	char last;
	struct err err;
	int fd;

	(void)state;
	assert_true(run("cc -g -o program a.c"));
	fd = open_in("program", O_RDWR);
	assert_int_equal(elf_extract_open(fd, "program", ROOM, &plan, &err), 0);
	assert_int_equal(ftruncate(fd, 100), 0);
	for (uint64_t at = elf_extract_bytes(plan) / 2;; at++)
		if (elf_extract_read(plan, at, &last, 1, &err))
			break;
	assert_int_equal(err.code, ERR_IO);
	elf_extract_close(plan);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_the_same_as_the_program),
		cmocka_unit_test(separate_debug_files_stay_whole),
		cmocka_unit_test(what_only_debuggers_read_is_left_out),
		cmocka_unit_test(same_file_gives_same_bytes),
		cmocka_unit_test(fingerprint_tells_a_stripped_file_from_the_whole_one),
		cmocka_unit_test(pieces_are_the_whole),
		cmocka_unit_test(bounds_and_damage_are_errors),
		cmocka_unit_test(shorter_file_is_an_error),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
