/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_file - finds the separate debug file of a binary, where its process sees it: below the
 * root directory of that process, without leaving it, so that containers bring their own.
 *
 * By build id in /usr/lib/debug/.build-id, then by the binary's .gnu_debuglink beside it, in
 * .debug/ there and below /usr/lib/debug; likewise the file that dwz has moved common parts to
 * (.gnu_debugaltlink). A file counts only when it is regular and its build id is the wanted one;
 * without one, when the link's checksum fits.
 *
 * Helper processes open them (files/root_files.h): a file system that hangs costs the caller a
 * second; a remote file comes as a copy in memory, LENDER_COPY_BYTES_MAX at most.
 */
#ifndef FIRN_AGENT_EXPORT_DEBUG_FILE_H
#define FIRN_AGENT_EXPORT_DEBUG_FILE_H

#include "agent/files/root_files.h"
#include "base/strbuf.h"

/* Where one looks. */
struct debug_file_place {
	struct root_files *files;
	uint32_t pid;  /* whose binary it is; may have ended */
	int root_fd;   /* debug_file_root; -1: who opens its files looks for the root itself */
	bool is_stuck; /* set: something was not found since its file system does not answer */
};

/*
 * The root directory of a process; this one's when it has gone. Never waits: -1 where that could be
 * (a root on the network), and when there are no descriptors left.
 */
int debug_file_root(int pid);

/*
 * The debug file of the binary `fd`, whose path inside is `path`; -1 when there is none. `ret_path`
 * gets its path, as the process would see it.
 */
int debug_file_find(struct debug_file_place *place, int fd, struct slice path, const char *build_id,
		    struct strbuf *ret_path);

/* The alternate debug file that the debug file (or binary) `fd` at `path` names. */
int debug_file_find_alternate(struct debug_file_place *place, int fd, struct slice path,
			      struct strbuf *ret_path);

#endif
