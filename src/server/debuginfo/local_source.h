/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_source - source files of this host, read by a process that has the rights of the user who
 * started firn and no others: the kernel decides what it may open. The server sends it paths over a
 * channel (SOCK_SEQPACKET), and it sends their text in pieces.
 *
 *     request:  number u64, path            the numbers grow; pieces of an earlier request,
 *     piece:    number u64, code i32, text  which was given up, are thrown away
 *
 * A code is 0 (more comes), 1 (this is the last piece) or a negative errno.
 *
 * The caller checks who asks: the process at the other end of the connection must belong to the
 * same user (net/peer_user.h), because others may not read his files.
 */
#ifndef FIRN_SERVER_DEBUGINFO_LOCAL_SOURCE_H
#define FIRN_SERVER_DEBUGINFO_LOCAL_SOURCE_H

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

struct local_source;

/* `fd` is the server's end of the channel; it stays the caller's. */
struct local_source *local_source_new(int fd);
void local_source_free(struct local_source *source); /* accepts NULL */

/*
 * The file's text into `out`, and true; or false, with the reason appended to `why`. Waits until
 * until_ns (monotonic) for a reader that hangs on a file. Any thread; one at a time.
 */
bool local_source_read(struct local_source *source, struct slice path, int64_t until_ns,
		       struct strbuf *out, struct strbuf *why);

/* The other end: answers until the server's end is closed. For a process of its own. */
void local_source_serve(int fd);

#endif
