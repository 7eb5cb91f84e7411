/* SPDX-License-Identifier: Apache-2.0 */
/* Files are opened by other processes, which may come to an end over them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files/lender.h"
#include "agent/files/near_file.h"

#define WAIT_NS (60 * CLOCK_NS_PER_S)
#define MANY 300

static int setup(void **state)
{
	struct lender *lender = NULL;

	assert_int_equal(lender_new(&lender, NULL), 0);
	*state = lender;
	return 0;
}

static int teardown(void **state)
{
	lender_free(*state);
	return 0;
}

static struct lender_answer answer_of(struct lender *lender)
{
	struct lender_answer answer;

	assert_true(lender_wait(lender, WAIT_NS));
	assert_true(lender_take(lender, &answer));
	return answer;
}

static void program_is_lent_with_what_its_headers_say(void **state)
{
	const struct lender_request request = { .wish = LENDER_PROGRAM,
						.path = "/proc/self/exe",
						.mark = 7 };
	struct lender_answer answer;
	struct elf_info elf;
	struct stat stat_of;

	assert_true(lender_ask(*state, &request));
	answer = answer_of(*state);
	assert_true(answer.is_done && answer.fd >= 0);
	assert_int_equal(answer.request.mark, 7);
	assert_int_equal(elf_read_info(answer.fd, "lent", &elf, NULL), 0);
	assert_string_equal(answer.elf->build_id, elf.build_id);
	assert_int_equal(stat("/proc/self/exe", &stat_of), 0);
	assert_int_equal(answer.key.inode, stat_of.st_ino);
	lender_answer_free(&answer);
}

static void what_is_no_regular_file_is_not_lent(void **state)
{
	static const char *const paths[] = { "/dev/zero", "/proc", "/nowhere/at/all" };

	for (size_t i = 0; i < 3; i++) {
		const struct lender_request request = { .wish = LENDER_PROGRAM, .path = paths[i] };
		struct lender_answer answer;

		assert_true(lender_ask(*state, &request));
		answer = answer_of(*state);
		assert_false(answer.is_done);
		assert_int_equal(answer.fd, -1);
		lender_answer_free(&answer);
	}
}

static void every_request_has_its_answer(void **state)
{
	bool seen[MANY] = { false };

	for (size_t i = 0; i < MANY; i++) {
		const struct lender_request request = {
			.wish = LENDER_PROGRAM,
			.path = i % 2 ? "/proc/self/exe" : "/nowhere",
			.mark = i,
		};

		assert_true(lender_ask(*state, &request));
	}
	for (size_t i = 0; i < MANY; i++) {
		struct lender_answer answer = answer_of(*state);

		assert_int_equal(answer.is_done, answer.request.mark % 2);
		assert_false(seen[answer.request.mark]);
		seen[answer.request.mark] = true;
		lender_answer_free(&answer);
	}
}

static void count_piece(void *context)
{
	++*(int *)context;
}

static void copy_is_whole_and_cannot_be_changed(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), pieces = 0, copy;
	char wanted[4096], got[4096];
	struct stat stat_of, stat_copy;

	(void)state;
	assert_int_equal(fstat(fd, &stat_of), 0);
	copy = near_file_copy(fd, UINT64_MAX, count_piece, &pieces);
	assert_true(copy >= 0 && pieces > 0);
	assert_int_equal(fstat(copy, &stat_copy), 0);
	assert_int_equal(stat_copy.st_size, stat_of.st_size);
	for (off_t at = 0; at < stat_of.st_size; at += (off_t)sizeof(got)) {
		ssize_t len = pread(copy, got, sizeof(got), at);

		assert_int_equal(pread(fd, wanted, sizeof(wanted), at), len);
		assert_memory_equal(got, wanted, (size_t)len);
	}
	assert_int_equal(pwrite(copy, "x", 1, 0), -1);
	assert_int_equal(ftruncate(copy, 0), -1);
	close(copy);
	assert_int_equal(near_file_copy(fd, 16, count_piece, &pieces), -1);
	assert_int_equal(errno, EFBIG);
	close(fd);
}

static void memory_is_near_and_proc_is_far(void **state)
{
	int memory = memfd_create("memory", MFD_CLOEXEC);
	int proc = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(near_file_is(memory, 0));
	assert_false(near_file_is(proc, 0));
	close(memory);
	close(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(program_is_lent_with_what_its_headers_say, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_no_regular_file_is_not_lent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(every_request_has_its_answer, setup, teardown),
		cmocka_unit_test(copy_is_whole_and_cannot_be_changed),
		cmocka_unit_test(memory_is_near_and_proc_is_far),
	};

	return cmocka_run_group_tests_name("agent_lender", tests, NULL, NULL);
}
