/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact - several parts become one, without what was deleted.
 *
 * For each partition: count the rows of each input, merge the dictionaries, rank stacks by
 * frequency, then read, map and write blocks in (series, start) order, and after them sums of ten
 * minutes, hours and days. Invariant: every report of the inputs that no tombstone deletes is in
 * the result once. The result has a temporary name until all of it is on disk.
 *
 * Memory: the dictionaries of one partition, of one input and merged, maps between them, and one
 * stripe per input, within the job's limit; counters of its stacks; the writer's block index. One
 * input alone is beyond the limit only if what made it was. Blocking; one thread per job.
 */
#ifndef FIRN_SERVER_PERSIST_COMPACT_COMPACT_H
#define FIRN_SERVER_PERSIST_COMPACT_COMPACT_H

#include "server/persist/part/part.h"
#include "server/persist/disk/throttle.h"
#include "server/persist/manifest/tombstones.h"

#define COMPACT_MEMORY_BYTES_DEFAULT ((size_t)256 << 20)

typedef void compact_progress_f(void *context, uint64_t rows_done, uint64_t rows_total);

struct compact_job {
	const struct vfs *vfs;
	const char *dir;
	const struct part_info *inputs;
	size_t inputs_count;
	size_t memory_bytes;		     /* 0 = COMPACT_MEMORY_BYTES_DEFAULT */
	uint64_t number;		     /* of the result */
	enum part_tier tier;		     /* likewise; decides on roll-ups */
	const struct tombstones *tombstones; /* with numbers below `number`; may be NULL */
	int64_t moments_from_ns; /* times of samples are kept of reports that start then or later */
	struct throttle *throttle;    /* may be NULL */
	compact_progress_f *progress; /* may be NULL */
	void *progress_context;
};

struct compact_result {
	struct part_info part; /* number 0: everything was deleted, there is no part */
	uint64_t reports_deleted;
	uint64_t damaged; /* after ERR_CORRUPT and ERR_NOT_FOUND: the input, 0 = of none of them */
};

/*
 * ERR_CORRUPT, ERR_IO, ERR_NO_SPACE, ERR_CANCELLED, ERR_LIMIT (too much for one part, or for the
 * memory: fewer inputs may do).
 */
MUST_USE int compact_run(const struct compact_job *job, struct compact_result *ret,
			 struct err *err);

/*
 * 1 if the tombstones delete something of the part, so that it must be rewritten; 0; or an error.
 */
MUST_USE int compact_is_deleted(const struct vfs *vfs, const char *dir,
				const struct part_info *part, const struct tombstones *tombstones,
				struct err *err);

#endif
