/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_ahead - says which bytes of parts a query will read, to a vfs that fetches them from afar
 * (vfs.h, will_read): so they come together, and not each when the one before has come.
 *
 * Hints only: nothing fails, and nothing is read here. No-ops on a local disk. Any thread.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_AHEAD_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_AHEAD_H

#include "server/persist/part/decode/part_reader.h"

/* part_reader_open will be called. */
void part_ahead_open(const struct vfs *vfs, const char *dir, const struct part_info *info);

/* A segment of the partition will be made. */
void part_ahead_series(struct part_reader *reader, uint32_t partition);

/*
 * The segment's stacks will be loaded, and its blocks read that may have reports of its time;
 * `headers_only`: of these no more than that, and no stacks.
 */
void part_ahead_blocks(const struct segment *segment, bool headers_only);

#endif
