/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch - starts this program again as a child with no environment, /dev/null as its standard
 * streams, and only the given descriptors.
 */
#ifndef FIRN_SERVER_RESOLVE_WORKER_LAUNCH_H
#define FIRN_SERVER_RESOLVE_WORKER_LAUNCH_H

#include <sys/types.h>

#define LAUNCH_FD_FIRST 3 /* the descriptors stand there, in their order */
#define LAUNCH_FDS_MAX 24

/* Sanitizers of addresses and threads reserve far more memory than they use. */
#define LAUNCH_HAS_SHADOW (BUILT_WITH_ASAN || BUILT_WITH_TSAN)

/*
 * Starts /proc/self/exe with arguments (NULL at the end); 0 or an errno. Under sanitizers it keeps
 * environment and standard error, where their options and findings are.
 */
int launch(const int *fds, int count, char **args, pid_t *ret);

#endif
