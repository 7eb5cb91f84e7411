/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared - debug information and sources in a bucket: what one server was sent, all servers that
 * share the bucket have. docs/formats/bucket.md describes the objects:
 *
 *     debuginfo/<build id>/<kind>-<sha256>             a file; never changes
 *     debuginfo/<build id>/<kind>-<sha256>.record      record.h; put last: the file is whole
 *     debuginfo/<build id>/<kind>-<sha256>.used-<day>  a server used it on that day since 1970
 *
 * A thread puts what this server was sent and the bucket lacks, and gets what the bucket has of
 * build ids that lack names, or of which this server has other files; archives of sources when
 * somebody asks for one. A file that comes is checked as an upload is, and the local folder stays
 * the place that everybody else reads. Files that no server used for the retention time go. Of a
 * bucket that is only read, nothing is put and nothing goes.
 *
 * Crash safety: a file without its record is not there. Its sender puts it again; else it is
 * removed a day later. Several servers may put the same file at once: equal names have equal bytes.
 */
#ifndef FIRN_SERVER_DEBUGINFO_SHARED_H
#define FIRN_SERVER_DEBUGINFO_SHARED_H

#include "server/debuginfo/debuginfo.h"

struct shared_files;

/* Its metrics, once, without a lock held: before shared_start. */
void shared_register(void);

/* Of options.buckets; with options.no_shared_thread the caller does the steps. */
int shared_start(struct debuginfo *debuginfo, struct shared_files **ret, struct err *err);
void shared_stop(struct shared_files *shared); /* accepts NULL */

/* The stop is near: nobody waits any more in shared_want_sources. Any thread; accepts NULL. */
void shared_end_waits(struct shared_files *shared);

/* Lists, puts and gets what is due, once. By one thread at a time. The first error. */
int shared_step(struct shared_files *shared, struct err *err);

/* True if some bucket had this file when it was listed last. Under the debuginfo's lock or none. */
bool shared_has(struct shared_files *shared, struct slice build_id, struct slice sha256);

/* Has the archive of sources fetched, if there is one, and waits for it until then (monotonic). */
void shared_want_sources(struct shared_files *shared, struct slice build_id, int64_t until_ns);

#endif
