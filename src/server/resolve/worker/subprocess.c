/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privilege.h"

#define END_MS 2000 /* between the last word and the end */
#define NICENESS 10
#define CPU_KILL_SECONDS 5 /* after the signal that says whose fault it is */
#define OOM_SCORE "800"
#define BIT_READ_ANY (UINT64_C(1) << CAP_DAC_READ_SEARCH) /* where root reads for others */
#define FD_HIGH 64 /* where descriptors wait until each is at its place */

/* Sanitizers of addresses and threads reserve far more memory than they use. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW true
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW false
#endif

/* High copies of the descriptors, so that none is overwritten before it is at its place. */
int subprocess_start(const int *fds, int count, char **args, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int high[SUBPROCESS_FDS_MAX], status = 0;
	char *nothing[] = { NULL };
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (!HAS_SHADOW) /* whose findings stand there */
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	for (int i = 0; i < count; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_HIGH);
		if (high[i] < 0)
			status = errno;
		posix_spawn_file_actions_adddup2(&actions, high[i], SUBPROCESS_FD_FIRST + i);
	}
	posix_spawn_file_actions_addclosefrom_np(&actions, SUBPROCESS_FD_FIRST + count);
	if (!status)
		status = posix_spawn(ret, "/proc/self/exe", &actions, &attributes, args,
				     HAS_SHADOW ? environ : nothing);
	for (int i = 0; i < count; i++)
		if (high[i] >= 0)
			close(high[i]);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return status;
}

int subprocess_reap(pid_t pid, bool is_late)
{
	int status = 0;

	for (int waited = 0; !is_late && waited < END_MS; waited += SUBPROCESS_POLL_MS) {
		pid_t done = waitpid(pid, &status, WNOHANG);

		if (done == pid || (done < 0 && errno != EINTR))
			return status;
		poll(NULL, 0, waited ? SUBPROCESS_POLL_MS : 1);
	}
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void set_limit(int resource, uint64_t value)
{
	const struct rlimit limit = { value, value };

	setrlimit(resource, &limit);
}

bool subprocess_confine(const struct subprocess_limits *limits)
{
	int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (oom >= 0) {
		if (write(oom, OOM_SCORE, strlen(OOM_SCORE)) < 0)
			errno = 0; /* it is a kindness to others, not a condition */
		close(oom);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!privilege_keep(limits->files == SYSCALL_FILTER_READ_FILES ? BIT_READ_ANY : 0))
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	prctl(PR_SET_NAME, limits->name);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	set_limit(RLIMIT_CORE, 0);
	setrlimit(RLIMIT_CPU,
		  &(struct rlimit){ limits->cpu_seconds, limits->cpu_seconds + CPU_KILL_SECONDS });
	set_limit(RLIMIT_FSIZE, limits->file_bytes);
	if (HAS_SHADOW)
		return true;
	set_limit(RLIMIT_DATA, limits->data_bytes);
	set_limit(RLIMIT_AS, limits->mapped_bytes);
	return syscall_filter_apply(limits->files);
}
