/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparse - counters for (group, slot) pairs if few of all pairs occur: about 50 bytes for each pair
 * that occurs, while a dense array takes 4 to 16 for every possible pair. Exact. One thread; memory
 * is from the heap, counted by sparse_bytes. Zeroed is empty.
 */
#ifndef FIRN_SERVER_QUERY_SUM_SPARSE_H
#define FIRN_SERVER_QUERY_SUM_SPARSE_H

#include "server/query/sum/accumulate.h"

#define SPARSE_PAIR_BYTES 48u /* about */

struct sparse {
	struct accumulate_sum *sums;
	size_t count, capacity;
	struct idmap map;
};

void sparse_free(struct sparse *sparse);
size_t sparse_bytes(const struct sparse *sparse);

/* False when there are too many pairs. */
bool sparse_add(struct sparse *sparse, uint32_t group, uint32_t slot, mean_wide value);

/* Brings the sums into the order of groups, then slots. Nothing can be added afterwards. */
void sparse_sort(struct sparse *sparse);

#endif
