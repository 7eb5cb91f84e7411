/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/launch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <unistd.h>

#define FD_HIGH 64 /* where descriptors wait until each is at its place */

static void set_files(posix_spawn_file_actions_t *actions, const int *fds, int count)
{
	posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
	if (!LAUNCH_HAS_SHADOW)
		posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
	for (int i = 0; i < count; i++)
		posix_spawn_file_actions_adddup2(actions, fds[i], LAUNCH_FD_FIRST + i);
	posix_spawn_file_actions_addclosefrom_np(actions, LAUNCH_FD_FIRST + count);
}

/* Nothing is blocked, ignored or caught. */
static void set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(attributes, &none);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* High copies of the descriptors, so that none is overwritten before it is at its place. */
int launch(const int *fds, int count, char **args, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int high[LAUNCH_FDS_MAX], status = 0;
	char *nothing[] = { NULL };

	assert(count <= LAUNCH_FDS_MAX);
	for (int i = 0; i < count; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_HIGH);
		if (high[i] < 0)
			status = errno;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	set_signals(&attributes);
	set_files(&actions, high, count);
	if (!status)
		status = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, args,
				     LAUNCH_HAS_SHADOW ? environ : nothing);
	for (int i = 0; i < count; i++)
		if (high[i] >= 0)
			close(high[i]);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return status;
}
