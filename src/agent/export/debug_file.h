/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_file - finds the separate debug file of a binary, where its process sees it: below the
 * root directory of that process, without leaving it, so that containers bring their own.
 *
 * By build id in /usr/lib/debug/.build-id, then by the binary's .gnu_debuglink beside it, in
 * .debug/ there and below /usr/lib/debug; likewise the file that dwz has moved common parts to
 * (.gnu_debugaltlink). A file counts only when it is regular and its build id is the wanted one;
 * without one, when the link's checksum fits. Blocks, as file systems do.
 */
#ifndef FIRN_AGENT_EXPORT_DEBUG_FILE_H
#define FIRN_AGENT_EXPORT_DEBUG_FILE_H

#include "base/strbuf.h"

/* The root directory of a process; this one's when it has gone. -1 when there is neither. */
int debug_file_root(int pid);

/*
 * The debug file of the binary `fd`, whose path inside is `path`; -1 when there is none. `ret_path`
 * gets its path, as the process would see it.
 */
int debug_file_find(int root_fd, int fd, struct slice path, const char *build_id,
		    struct strbuf *ret_path);

/* The alternate debug file that the debug file (or binary) `fd` at `path` names. */
int debug_file_find_alternate(int root_fd, int fd, struct slice path, struct strbuf *ret_path);

#endif
