/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/source_process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privilege.h"
#include "base/slice.h"
#include "cli/verb.h"
#include "server/debuginfo/local_source.h"

#define CHANNEL_FD 3 /* in the process itself, which has no others but the standard ones */

static bool number_of(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && slice_parse_u64(slice_of(text), ret) && *ret <= UINT32_MAX - 1;
}

/* Root's environment says for whom it works; false when that is root himself. */
static bool find_starter(struct privilege_user *ret)
{
	uint64_t uid, gid;

	if (geteuid())
		return false;
	if (number_of("SUDO_UID", &uid) && number_of("SUDO_GID", &gid)) {
		*ret = (struct privilege_user){ (uid_t)uid, (gid_t)gid };
		return uid;
	}
	return number_of("PKEXEC_UID", &uid) && uid && privilege_find_uid((uid_t)uid, ret);
}

static _Noreturn void run_child(int channel, const struct privilege_user *user, pid_t parent)
{
	struct err err;

	prctl(PR_SET_NAME, "firn-sources");
	if (dup2(channel, CHANNEL_FD) != CHANNEL_FD || close_range(CHANNEL_FD + 1, ~0u, 0) ||
	    privilege_enter(PRIVILEGE_SOURCES, user, &err))
		_exit(VERB_ERROR);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which forgets it */
	if (getppid() != parent)
		_exit(VERB_ERROR);
	local_source_serve(CHANNEL_FD);
	_exit(VERB_OK);
}

int source_process_start(struct source_process *ret, struct err *err)
{
	struct privilege_user user = { geteuid(), getegid() };
	bool is_other = find_starter(&user);
	pid_t parent = getpid();
	int ends[2];

	*ret = (struct source_process){ .uid = user.uid };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set_errno(err, errno, "open a channel to the reader of sources");
	ret->pid = fork();
	if (!ret->pid)
		run_child(ends[1], is_other ? &user : NULL, parent);
	close(ends[1]);
	if (ret->pid < 0) {
		close(ends[0]);
		*ret = (struct source_process){ 0 };
		return err_set_errno(err, errno, "start the reader of sources");
	}
	ret->channel = ends[0];
	return 0;
}

void source_process_leave(struct source_process *process)
{
	if (process->pid)
		close(process->channel);
	process->channel = 0;
}

void source_process_stop(struct source_process *process)
{
	if (!process->pid)
		return;
	kill(process->pid, SIGKILL);
	waitpid(process->pid, NULL, 0);
	process->pid = 0;
}
