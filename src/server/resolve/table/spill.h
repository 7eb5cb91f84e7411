/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spill - an append-only buffer in an unnamed file instead of memory, which is read when it is
 * complete.
 *
 * Without a file (fd -1) it is in memory. One thread. spill_finish reports errors of the disk.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SPILL_H
#define FIRN_SERVER_RESOLVE_TABLE_SPILL_H

#include "base/err.h"
#include "base/strbuf.h"

struct spill {
	int fd;		       /* -1: all stays in `pending`; not owned */
	struct strbuf pending; /* not yet in the file */
	uint64_t written;      /* in the file */
	const uint8_t *mapped; /* once complete, when there is a file */
	bool has_failed;
};

/* An empty file without a name in a directory, or in memory: a descriptor, or a negative code. */
int spill_file(const char *directory, struct err *err);

void spill_init(struct spill *spill, int fd);
void spill_free(struct spill *spill);

/* Bytes added so far: where the next one goes. */
static inline uint64_t spill_len(const struct spill *spill)
{
	return spill->written + spill->pending.len;
}

/* Where to add bytes to; call spill_added after them. */
static inline struct strbuf *spill_open(struct spill *spill)
{
	return &spill->pending;
}
void spill_added(struct spill *spill);

/* Makes all bytes readable: their first one, or NULL when there are none. Nothing is added after.
 */
int spill_finish(struct spill *spill, const uint8_t **ret, struct err *err);

#endif
