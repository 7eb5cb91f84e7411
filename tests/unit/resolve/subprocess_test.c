/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that reads hostile bytes may still do: this program again, which tries. */
#include "server/resolve/worker/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define VERB "confined"
#define MIB ((uint64_t)1 << 20)

enum { WORKS, REFUSED, NOT_TRIED };

#define HAS_FILTER (!BUILT_WITH_ASAN && !BUILT_WITH_TSAN)

static int verdict(bool works)
{
	return works ? WORKS : errno == EACCES ? REFUSED : NOT_TRIED;
}

static bool maps(int protection)
{
	return mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

/* What an attacker would want, and what reading needs. */
static int attempt(const char *what)
{
	char name[] = "true", *args[] = { name, NULL };

	if (!strcmp(what, "memory"))
		return verdict(maps(PROT_READ | PROT_WRITE) && malloc(8 * MIB));
	if (!strcmp(what, "scratch"))
		return verdict(memfd_create("scratch", MFD_CLOEXEC) >= 0);
	if (!strcmp(what, "nameless"))
		return verdict(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) >= 0);
	if (!strcmp(what, "read"))
		return verdict(open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0);
	if (!strcmp(what, "write"))
		return verdict(open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0);
	if (!strcmp(what, "create"))
		return verdict(open("/tmp", O_RDONLY | O_CREAT, 0600) >= 0);
	if (!strcmp(what, "look"))
		return verdict(!access("/etc", R_OK));
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "socket"))
		return verdict(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	if (!strcmp(what, "fork"))
		return verdict(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0);
	if (!strcmp(what, "execute"))
		return verdict(!execv("/bin/true", args));
	if (!strcmp(what, "signal"))
		return verdict(!kill(getppid(), 0));
	if (!strcmp(what, "remove"))
		return verdict(!unlink("/tmp/firn-no-such-file"));
	return verdict(maps(PROT_READ | PROT_EXEC)); /* "code" */
}

static int run_confined(char **argv)
{
	const struct subprocess_limits limits = {
		.name = "firn-test",
		.cpu_seconds = 10,
		.file_bytes = MIB,
		.data_bytes = 256 * MIB,
		.mapped_bytes = 4096 * MIB,
		.files = (enum syscall_filter_files)atoi(argv[2]),
	};

	subprocess_confine(&limits);
	return attempt(argv[3]);
}

static int status_of(enum syscall_filter_files files, const char *what)
{
	char name[] = "test", verb[] = VERB, number[16], attempted[16];
	char *args[] = { name, verb, number, attempted, NULL };
	struct subprocess process;

	snprintf(number, sizeof(number), "%d", (int)files);
	snprintf(attempted, sizeof(attempted), "%s", what);
	assert_int_equal(subprocess_start(NULL, 0, args, &process), 0);
	return subprocess_reap(&process, false);
}

static void expect_exit(enum syscall_filter_files files, const char *what, int code)
{
	int status = status_of(files, what);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
		fail_msg("%s: wait status %#x, expected exit code %d", what, status, code);
}

static void need_filter(void)
{
	if (!HAS_FILTER) {
		printf("# skip: sanitizers need system calls of their own\n");
		skip();
	}
}

static void reading_has_what_it_needs(void **state)
{
	(void)state;
	need_filter();
	expect_exit(SYSCALL_FILTER_NO_FILES, "memory", WORKS);
	expect_exit(SYSCALL_FILTER_NO_FILES, "scratch", WORKS);
	expect_exit(SYSCALL_FILTER_READ_FILES, "scratch", WORKS);
	expect_exit(SYSCALL_FILTER_READ_FILES, "read", WORKS);
	/* Over the memory limit: still told from other deaths. */
	assert_int_equal(WTERMSIG(status_of(SYSCALL_FILTER_NO_FILES, "abort")), SIGABRT);
}

static void other_files_are_refused(void **state)
{
	(void)state;
	need_filter();
	expect_exit(SYSCALL_FILTER_NO_FILES, "read", REFUSED);
	expect_exit(SYSCALL_FILTER_READ_FILES, "write", REFUSED);
	expect_exit(SYSCALL_FILTER_READ_FILES, "create", REFUSED);
	expect_exit(SYSCALL_FILTER_READ_FILES, "nameless", REFUSED);
	expect_exit(SYSCALL_FILTER_READ_FILES, "look", REFUSED);
}

static void anything_else_ends_it(void **state)
{
	static const char *const attempts[] = { "socket", "fork",   "execute",
						"signal", "remove", "code" };

	(void)state;
	need_filter();
	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		int status = status_of(SYSCALL_FILTER_READ_FILES, attempts[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("%s: wait status %#x, expected SIGSYS", attempts[i], status);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_has_what_it_needs),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(anything_else_ends_it),
	};

	if (argc == 4 && !strcmp(argv[1], VERB))
		return run_confined(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
