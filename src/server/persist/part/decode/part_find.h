/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_find - finds the partitions of one service by bisection.
 *
 * Partitions of one type and tenant are sorted by service (part_key.h). A run is a sorted sequence
 * of partitions whose service comes from the same label, which no row carries: a matcher on that
 * label is bisected; all other partitions are looked at one by one. The order is not trusted: runs
 * are found in the directory as it is. Pure functions.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_FIND_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_FIND_H

#include "model/selector.h"
#include "server/persist/part/decode/part_directory.h"

/* Indexed by partition: the end of its run. The caller frees it. */
uint32_t *part_find_runs(const struct part_directory *directory);

/*
 * The first partition from `from` on whose service may match; partitions_count: none. All others
 * are still to be told by part_key_may_match. `selector` may be NULL.
 */
uint32_t part_find_next(const struct part_directory *directory, const uint32_t *runs, uint32_t from,
			const struct selector *selector);

#endif
