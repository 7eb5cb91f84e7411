/* SPDX-License-Identifier: Apache-2.0 */
/* compact_int - a compaction while it runs; only for compact*.c. */
#ifndef FIRN_SERVER_PERSIST_COMPACT_COMPACT_INT_H
#define FIRN_SERVER_PERSIST_COMPACT_COMPACT_INT_H

#include "server/persist/compact/compact.h"
#include "server/persist/part/decode/part_reader.h"
#include "server/persist/part/part_writer.h"

struct compaction {
	const struct compact_job *job;
	struct part_reader **readers; /* by input */
	struct part_writer *writer;
	uint32_t partitions_written;
	uint64_t rows_total, rows_done, rows_told; /* of raw reports, when they are written */
	uint64_t reports_deleted;
	size_t failed; /* the input that the last error came from; inputs_count: another place */
};

struct compact_source { /* one partition of one input */
	uint32_t input, partition;
};

/* compact_partition.c: merges these partitions, of one key and group, into one of the result. */
MUST_USE int compact_partition(struct compaction *compaction, const struct compact_source *sources,
			       size_t sources_count, struct err *err);

/* Reports progress: `rows` more rows have been written. */
void compaction_tell(struct compaction *compaction, uint64_t rows);

#endif
