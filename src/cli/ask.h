/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask - sends a query to a server from the command line; a terminal shows the progress, and Ctrl-C
 * stops the query on the server.
 */
#ifndef FIRN_CLI_ASK_H
#define FIRN_CLI_ASK_H

#include "cli/flags/client_flags.h"

#define ASK_INTERRUPTED 130 /* exit code, as shells have it */

/* Appends "?name=value" or "&name=value", percent-encoded; nothing when value is NULL. */
void ask_add_parameter(struct strbuf *path, const char *name, const char *value);

/*
 * GET of the path; an answer of any status is a success of the call. On Ctrl-C the process ends
 * with ASK_INTERRUPTED.
 */
int ask(const struct client_flags *flags, const char *path, struct net_reply *reply,
	struct err *err);

/*
 * *ret is the selector with its whole type (short_type.h), by the types that the server has between
 * from and to (NULL = its defaults). The server is asked only where the type is not whole. Free
 * *ret.
 */
MUST_USE int ask_complete_type(const struct client_flags *flags, const char *selector,
			       const char *from, const char *to, char **ret, struct err *err);

/*
 * Prints the body of a 200 to standard output, a text up to its last form feed; *ret_notes are the
 * notes after it, and point into the reply. Other statuses go to standard error. Returns the exit
 * code.
 */
int ask_print(const struct verb *verb, const struct net_reply *reply, bool is_text,
	      struct slice *ret_notes);

#endif
