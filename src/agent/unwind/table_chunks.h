/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_chunks - room for segments in the memory that the BPF unwinder reads (bpf/table.h).
 *
 * A chunk is a BPF array of one element of TABLE_CHUNK_BYTES, in the outer map `chunks`. Each of
 * its pages belongs to an owner or to none. Chunks are made when they are needed, up to a number
 * given at the start, and stay until the end. They are mapped only while they are written: mapped
 * memory would count as ours for as long.
 *
 * Owned by one thread.
 */
#ifndef FIRN_AGENT_UNWIND_TABLE_CHUNKS_H
#define FIRN_AGENT_UNWIND_TABLE_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/bpf/table.h"
#include "base/err.h"
#include "base/slice.h"

#define TABLE_PAGE_BYTES 4096u
#define TABLE_CHUNK_PAGES (TABLE_CHUNK_BYTES / TABLE_PAGE_BYTES)
#define TABLE_OWNER_NONE 0u

struct table_chunk {
	int fd;
	uint32_t owners[TABLE_CHUNK_PAGES];
};

struct table_chunks {
	int outer_fd, first_fd; /* borrowed */
	uint32_t count, max;
	struct table_chunk *chunks[TABLE_CHUNKS_MAX];
};

struct table_place {
	uint32_t chunk, page, pages;
};

/*
 * `first_fd` is the chunk that the program reads as the first one, whatever the outer map says; -1:
 * none is there. Asking the kernel for it by its id would take CAP_SYS_ADMIN.
 */
void table_chunks_init(struct table_chunks *chunks, int outer_fd, int first_fd, uint64_t max_bytes);
void table_chunks_fini(struct table_chunks *chunks); /* the outer map keeps the chunks */

/* A new, empty chunk. ERR_LIMIT when there may be no more. Takes tens of milliseconds. */
int table_chunks_add(struct table_chunks *chunks, struct err *err);

/* The first free pages of the first chunk that has so many in a row. */
bool table_chunks_find_free(const struct table_chunks *chunks, uint32_t pages,
			    struct table_place *ret);

/*
 * The pages whose owners were used longest ago: used_at_ns[owner], where INT64_MAX means that the
 * owner must stay. False if no range is free of such owners.
 */
bool table_chunks_find_used(const struct table_chunks *chunks, uint32_t pages,
			    const int64_t *used_at_ns, struct table_place *ret);

/*
 * How many pages are free, or belong to owners that need not stay, in all chunks that may be made.
 * NULL: all must stay.
 */
uint64_t table_chunks_pages_to_be_had(const struct table_chunks *chunks, const int64_t *used_at_ns);

void table_chunks_take(struct table_chunks *chunks, const struct table_place *place,
		       uint32_t owner);
uint32_t table_chunks_owner(const struct table_chunks *chunks, const struct table_place *place,
			    uint32_t page);				/* page < place->pages */
void table_chunks_release(struct table_chunks *chunks, uint32_t owner); /* all of its pages */

int table_chunks_write(struct table_chunks *chunks, const struct table_place *place,
		       struct slice bytes, struct err *err);

/* Returns when no BPF program runs any more that was running at the call: tens of milliseconds. */
int table_chunks_wait_readers(struct table_chunks *chunks, struct err *err);

#endif
