/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawner - a process that starts the processes which read hostile bytes, as a user of their own.
 *
 * A server may not change who it is, nor may what it starts. So root forks this process before the
 * server gives up its privileges: it becomes another user for good (base/privilege.h,
 * privilege_find_worker), keeps nothing of the server's memory that matters, since there is none
 * yet, and starts what the server asks for. What it starts is its child: it waits for it, kills it
 * when the server wants that, and ends it with itself when the server's end of the channel closes.
 *
 * Where nobody can become another user (not root, a user namespace without that user) there is
 * none, and the server starts its processes itself. One for each server; its functions may be
 * called by any thread.
 */
#ifndef FIRN_SERVER_RESOLVE_WORKER_SPAWNER_H
#define FIRN_SERVER_RESOLVE_WORKER_SPAWNER_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Starts the process, from the one thread that there is, before privileges are given up. What it
 * starts may read any file where `may_read_any`. Not to be called twice.
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
