/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent may call works, what is refused fails with a reason, and nobody is killed. */
#include "base/confine/privilege_filter.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NUMBERS 700 /* more than any kernel has */

/* What a call was answered; 0 for success. It is made with arguments that do nothing. */
static int try_call(long number)
{
	return syscall(number, -1, -1, -1, -1, -1, -1) < 0 ? errno : 0;
}

/* Of a child under the agent's filter: the exit code of `body`; 255 when it was killed. */
static int in_agent(int (*body)(void))
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    privilege_filter_calls(PRIVILEGE_NO_SYSTEM | PRIVILEGE_NO_MOUNT |
					   PRIVILEGE_NO_IDENTITY | PRIVILEGE_NO_EXEC |
					   PRIVILEGE_ONLY_AGENT))
			_exit(254);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int refuses_what_is_known(void)
{
	static const int refused[] = { SYS_ptrace,	SYS_mount,
				       SYS_setns,	SYS_unshare,
				       SYS_execve,	SYS_execveat,
				       SYS_setuid,	SYS_setresuid,
				       SYS_chroot,	SYS_kexec_load,
				       SYS_init_module, SYS_io_uring_setup,
				       SYS_reboot,	SYS_process_vm_writev };

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (try_call(refused[i]) != EPERM)
			return 1 + (int)i;
	return 0;
}

/* Calls that later kernels have, and those that no list names. */
static int knows_no_others(void)
{
	for (long number = 470; number < NUMBERS; number++)
		if (try_call(number) != ENOSYS)
			return 1;
	if (try_call(SYS_name_to_handle_at) != ENOSYS || try_call(SYS_vmsplice) != ENOSYS)
		return 2;
	return 0;
}

static int lets_work(void)
{
	char text[8];
	int ends[2];
	pid_t pid;

	if (pipe2(ends, 0) || write(ends[1], "hello", 5) != 5 || read(ends[0], text, 5) != 5)
		return 1;
	pid = fork();
	if (!pid)
		raise(SIGKILL);
	if (waitpid(pid, NULL, 0) != pid)
		return 2;
	return try_call(SYS_bpf) == ENOSYS || try_call(SYS_perf_event_open) == ENOSYS ? 3 : 0;
}

static void a_refused_call_fails_with_eperm(void **state)
{
	(void)state;
	assert_int_equal(in_agent(refuses_what_is_known), 0);
}

static void an_unknown_call_is_not_there(void **state)
{
	(void)state;
	assert_int_equal(in_agent(knows_no_others), 0);
}

static void what_an_agent_needs_works(void **state)
{
	(void)state;
	assert_int_equal(in_agent(lets_work), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_call_fails_with_eperm),
		cmocka_unit_test(an_unknown_call_is_not_there),
		cmocka_unit_test(what_an_agent_needs_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
