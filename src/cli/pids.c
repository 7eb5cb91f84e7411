/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pids.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>

int pids_parse(const char *text, pid_t pids[static PIDS_MAX], size_t *count, struct err *err)
{
	struct slice rest = slice_of(text);

	*count = 0;
	while (rest.len) {
		struct slice one = slice_cut(rest, ',', &rest);
		uint64_t pid;

		if (!slice_parse_u64(one, &pid) || !pid || pid > INT_MAX)
			return err_set(err, ERR_INVALID, "--pid: \"%.*s\" is not a process id",
				       SLICE_FMT(one));
		if (*count == PIDS_MAX)
			return err_set(err, ERR_LIMIT, "--pid: more than %d", PIDS_MAX);
		if (kill((pid_t)pid, 0) && errno == ESRCH)
			return err_set(err, ERR_NOT_FOUND, "--pid: no process %d", (int)pid);
		pids[(*count)++] = (pid_t)pid;
	}
	return *count ? 0 : err_set(err, ERR_INVALID, "--pid: no process id given");
}
