/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_placer - puts tables into the maps of the BPF unwinder (`chunks` and `tables` of
 * bpf/table.h) and removes them, in an order in which a running program never reads a table that is
 * being replaced.
 *
 * It takes free pages, else a new chunk, else pages of the least recently used tables; the owner
 * says when tables were used.
 *
 * Owned by one thread.
 */
#ifndef FIRN_AGENT_UNWIND_TABLE_PLACER_H
#define FIRN_AGENT_UNWIND_TABLE_PLACER_H

#include "agent/unwind/table_chunks.h"
#include "agent/unwind/table_file.h"

struct table_placer {
	int tables_fd; /* borrowed */
	struct table_chunks chunks;
	uint32_t *space_versions; /* see struct unwind_loader_options; may be NULL */
	bool readers_may_remain;  /* a table was removed, and a walk may still be reading it */

	/* By owner: when each was last used, INT64_MAX = has to stay (table_chunks.h). */
	const int64_t *(*last_uses)(void *context);
	void (*evict)(void *context, uint32_t owner); /* calls table_placer_remove */
	void *context;
};

/*
 * Places a checked table with at least one segment. ERR_NO_MEMORY when all tables that stand in
 * the way have to stay; ERR_LIMIT when it is larger than all chunks.
 */
int table_placer_put(struct table_placer *placer, const struct file_key *key, uint32_t owner,
		     const struct table_file *file, struct err *err);

/* An entry that says why there is none. */
int table_placer_put_missing(struct table_placer *placer, const struct file_key *key,
			     enum table_missing missing, struct err *err);

void table_placer_remove(struct table_placer *placer, const struct file_key *key, uint32_t owner);

/* When the unwinder last used the table, CLOCK_MONOTONIC; 0 = never, or there is none. */
int64_t table_placer_used_at_ns(const struct table_placer *placer, const struct file_key *key);

uint64_t table_placer_bytes(const struct table_file *file); /* that a table takes */

#endif
