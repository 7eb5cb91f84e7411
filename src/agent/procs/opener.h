/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opener - opens the file behind a mapping of another process.
 *
 * First through /proc/PID/map_files, which is the kernel's own link to that file: it cannot be
 * redirected, and reaches deleted files, memfds and other mount namespaces. Where that is not
 * allowed, by path, below the process's root without leaving it (RESOLVE_IN_ROOT). What is opened
 * is checked to be the regular file that was asked for: processes may end or be replaced at any
 * time, and a wrong answer is never given for that reason.
 *
 * A file system may keep its caller waiting. Those of ordinary users (FUSE) refuse root instead,
 * unless the administrator has allowed `allow_other`.
 */
#ifndef FIRN_AGENT_PROCS_OPENER_H
#define FIRN_AGENT_PROCS_OPENER_H

#include "agent/bpf/table.h"
#include "agent/procs/maps_file.h"
#include "base/strbuf.h"

#define OPENER_PIDS_MAX 3

/* Where to look: any of these processes or threads has the file mapped there. */
struct opener_place {
	uint32_t pids[OPENER_PIDS_MAX];
	size_t pids_count;
	uint64_t start, end; /* of the whole mapping */
};

/*
 * The file of this key, opened for reading; -1 when it cannot be had. `ret_path` gets its path, as
 * the process sees it and without " (deleted)".
 */
int opener_open(const struct opener_place *place, const struct file_key *key,
		struct strbuf *ret_path);

/*
 * The key of a line of /proc/PID/maps; without a time of change when the file cannot be reached.
 */
struct file_key opener_key(const struct opener_place *place, const struct maps_range *range);

#endif
