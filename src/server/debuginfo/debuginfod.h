/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfod - asks debuginfod servers (elfutils' protocol: GET /buildid/ID/debuginfo and
 * /buildid/ID/source/PATH) for what nobody has sent.
 *
 * Threads look about once a second which build ids names are missing of, or are poor although they
 * are looked up, and ask the servers one after the other, for at most a given time. What comes goes
 * the way of an upload: it is checked, kept if it is better, told to the resolver. Answers that
 * there is nothing are remembered on disk for an hour, for these servers, up to MISSES_MAX of them;
 * failures for five minutes in memory. Sources are kept on disk up to SOURCES_BYTES_MAX.
 *
 *     <folder>/debuginfod/<build id>         the servers do not have it; its age is its mtime
 *     <folder>/debuginfod/source-<sha256>    a source file, of "build id, blank, path"
 *     <folder>/debuginfod/source-<sha256>.none
 */
#ifndef FIRN_SERVER_DEBUGINFO_DEBUGINFOD_H
#define FIRN_SERVER_DEBUGINFO_DEBUGINFOD_H

#include "base/strbuf.h"
#include "server/debuginfo/debuginfo.h"

struct debuginfod;

/* Its metrics, once, without a lock held: before debuginfod_start. */
void debuginfod_register(void);

/* Takes what it needs from the store's options and starts the threads. */
int debuginfod_start(struct debuginfo *debuginfo, struct debuginfod **ret, struct err *err);

/* While it is paused no server is asked for anything, and what is under way is broken off. */
void debuginfod_pause(struct debuginfod *debuginfod, bool paused);

/* Breaks off what is under way. Accepts NULL. */
void debuginfod_stop(struct debuginfod *debuginfod);

/* Removes what is too old or too much on disk. */
void debuginfod_collect(struct debuginfod *debuginfod);

/*
 * The text of a source file into `out`: 1; 0 when no server has it, and the reason into `why`; or a
 * negative code. Waits at most until until_ns.
 */
int debuginfod_source(struct debuginfod *debuginfod, struct slice build_id, struct slice path,
		      int64_t until_ns, struct strbuf *out, struct strbuf *why, struct err *err);

void debuginfod_each(struct debuginfod *debuginfod, struct slice build_id, debuginfo_asked_f *visit,
		     void *context);

#endif
