/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_process - the server of `firn up` as a process of its own, which belongs to a user without
 * privileges: `firn` where there is one, else `nobody`, or the one that --user names.
 *
 * The storage folder becomes that user's: a folder that an earlier version left to root is handed
 * over once. The server gets the folder open, so that it need not reach it from above.
 */
#ifndef FIRN_CLI_SERVER_PROCESS_H
#define FIRN_CLI_SERVER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "server/server.h"

struct server_process {
	pid_t pid; /* 0 = it has ended */
	unsigned port;
	bool has_tls;
};

/*
 * Forks; to be called before any thread is started, with signals blocked (verb_block_signals).
 * `user` may be NULL; without root the server is who we are. `lent` is the server's end of a
 * binary_channel and becomes its own. Returns when the server listens, or why it does not.
 */
int server_process_start(const struct server_options *options, const char *user, int lent,
			 struct server_process *ret, struct err *err);

/*
 * Confines this process, which is to be a server, for good. Started as root it becomes `user`, who
 * gets the storage folder, or stays root without root's other rights where `user` is NULL. Called
 * before any thread is started. `options` is changed: paths become absolute.
 */
int server_process_confine(struct server_options *options, const char *user, struct err *err);

/* Handles SIGHUP in the server's process: reloads --config-file, or logs why it cannot. */
void server_process_reload(struct server *server);

/* Asks it to end and waits for that. */
void server_process_stop(struct server_process *process);

#endif
