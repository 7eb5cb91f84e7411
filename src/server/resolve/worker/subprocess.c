/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/worker/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privilege.h"
#include "server/resolve/worker/spawner.h"

#define END_MS 2000	   /* between the last word and the end */
#define NICENESS 5	   /* as the agent's threads: whoever asks for names waits for it */
#define CPU_KILL_SECONDS 5 /* after the signal that says whose fault it is */
#define OOM_SCORE "800"
#define BIT_READ_ANY (UINT64_C(1) << CAP_DAC_READ_SEARCH) /* where root reads for others */

int subprocess_start(const int *fds, int count, char **args, struct subprocess *ret)
{
	*ret = (struct subprocess){ .line = -1 };
	if (spawner_is_there())
		return spawner_start(fds, count, args, &ret->line);
	return launch(fds, count, args, &ret->pid);
}

int subprocess_reap(const struct subprocess *process, bool is_late)
{
	pid_t pid = process->pid;
	int status = 0;

	if (process->line >= 0)
		return spawner_wait(process->line, is_late ? 0 : END_MS);
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
	struct privilege_user user;
	int oom = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (oom >= 0) {
		if (write(oom, OOM_SCORE, strlen(OOM_SCORE)) < 0)
			errno = 0; /* it is a kindness to others, not a condition */
		close(oom);
	}
	if (!privilege_keep(limits->files == SYSCALL_FILTER_READ_FILES ? BIT_READ_ANY : 0,
			    privilege_find_worker(&user) ? &user : NULL))
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which forgets it */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return false;
	prctl(PR_SET_NAME, limits->name);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	set_limit(RLIMIT_CORE, 0);
	setrlimit(RLIMIT_CPU,
		  &(struct rlimit){ limits->cpu_seconds, limits->cpu_seconds + CPU_KILL_SECONDS });
	set_limit(RLIMIT_FSIZE, limits->file_bytes);
	if (LAUNCH_HAS_SHADOW)
		return true;
	set_limit(RLIMIT_DATA, limits->data_bytes);
	set_limit(RLIMIT_AS, limits->mapped_bytes);
	return syscall_filter_apply(limits->files);
}
