/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawner - a process that starts the processes which read hostile bytes, as a user of their own.
 *
 * A confined server cannot change its user, nor can its children. So root forks this process before
 * the server gives up its privileges and before it has read any data: it becomes another user for
 * good (base/privilege.h, privilege_find_worker), and starts processes at the server's request.
 * They are its children: it waits for them, kills them if the server asks, and kills them and ends
 * when the server's end of the channel closes.
 *
 * If the server cannot change to another user (not root, or a user namespace without that user),
 * there is no spawner, and the server starts its processes itself. One per server; any thread may
 * call.
 */
#ifndef FIRN_SERVER_RESOLVE_WORKER_SPAWNER_H
#define FIRN_SERVER_RESOLVE_WORKER_SPAWNER_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Starts the spawner; call it once, before other threads start and before privileges are given up.
 * With `may_read_any` its children may read any file.
 */
MUST_USE int spawner_begin(bool may_read_any, struct err *err);

bool spawner_is_there(void);

/*
 * Has a process started as launch() does (launch.h); 0 or an errno. *ret_line is to be given to
 * spawner_wait.
 */
int spawner_start(const int *fds, int count, char **args, int *ret_line);

/* Waits for its end, `grace_ms` at most, and kills it then. Returns the wait status. */
int spawner_wait(int line, int grace_ms);

#endif
