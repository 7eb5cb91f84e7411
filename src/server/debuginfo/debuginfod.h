/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfod - fetches files that nobody has sent from debuginfod servers (elfutils' protocol: GET
 * /buildid/ID/debuginfo and /buildid/ID/source/PATH).
 *
 * About once a second threads look which build ids lack names, or have poor ones and are used, and
 * ask the servers one after the other, for a bounded time. A file that comes is treated like an
 * upload: checked, kept if it is better, announced to the resolver. "Not found" is remembered on
 * disk for an hour, for these servers, at most MISSES_MAX times; failures for five minutes in
 * memory. Sources are kept on disk up to SOURCES_BYTES_MAX.
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

/*
 * While it is paused no server is asked, and running requests are aborted. Without a pause,
 * failures are forgotten, too: whoever says so wants the files now.
 */
void debuginfod_pause(struct debuginfod *debuginfod, bool paused);

/* Aborts running requests. Accepts NULL. */
void debuginfod_stop(struct debuginfod *debuginfod);

/* The stop is near: what is being fetched ends without an answer. Any thread; accepts NULL. */
void debuginfod_end_waits(struct debuginfod *debuginfod);

/* Removes files that are too old, and the oldest over the bound. */
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
