/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children - processes that live for some milliseconds: by vfork (on the parent's stack, before an
 * exec), by fork without exec, and by exec of this program anew (argv[1] = "child").
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

static const char *self;

KEEP static void spin_ten(void)
{
	for (int i = 0; i < 10; i++) {
		spin();
		NO_TAIL_CALL;
	}
}

KEEP static void vforked(void)
{
	spin_ten();
	_exit(0);
}

KEEP static void by_vfork(void)
{
	pid_t child = vfork();

	if (!child)
		vforked();
	waitpid(child, NULL, 0);
	NO_TAIL_CALL;
}

KEEP static void forked(void)
{
	spin_ten();
	_exit(0);
}

KEEP static void by_fork(void)
{
	pid_t child = fork();

	if (!child)
		forked();
	waitpid(child, NULL, 0);
	NO_TAIL_CALL;
}

KEEP static void executed(void)
{
	spin_ten();
	NO_TAIL_CALL;
}

KEEP static void by_exec(void)
{
	pid_t child = vfork();

	if (!child) {
		execl(self, self, "child", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	NO_TAIL_CALL;
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "child")) {
		executed();
		return 0;
	}
	/* Three children of about five milliseconds each in a round. */
	for (int i = 0, rounds = (argc > 1 ? atoi(argv[1]) : 2000) / 15; i < rounds; i++) {
		by_vfork();
		by_fork();
		by_exec();
	}
	return 0;
}
