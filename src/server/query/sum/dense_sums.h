/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dense_sums - the counters of the threads that summed pieces of a segment, and their list of sums.
 *
 * A piece has dense counters by slot, of the kinds that its values need, or sparse ones if dense
 * ones would take too much memory. Pieces of one segment add up exactly, whatever their kinds.
 * Memory is the piece's own until dense_sums_drop.
 */
#ifndef FIRN_SERVER_QUERY_SUM_DENSE_SUMS_H
#define FIRN_SERVER_QUERY_SUM_DENSE_SUMS_H

#include "server/query/sum/accumulate.h"
#include "server/query/sum/sparse.h"

/* The kinds of counters, by group; NULL until the group occurs. */
struct dense_sums_counters {
	struct arena arena;
	uint32_t **ones;
	int64_t **plain;
	mean_wide **wide;
	size_t groups_capacity;
	uint32_t slots_count;
};

/* One thread's share of a segment: some of its blocks. */
struct dense_sums_piece {
	size_t block_first, block_end; /* of in->blocks */
	struct dense_sums_counters counters;
	uint64_t rows;
	struct sparse sparse; /* instead of the counters */
	bool overflowed;      /* 64 bits did not do */
	bool is_sparse;
	bool too_many; /* counters: it has to be sparse */
};

/* Forgets what was counted. */
void dense_sums_drop(struct dense_sums_piece *piece);
size_t dense_sums_bytes(const struct dense_sums_piece *piece);

/*
 * The sums that are not zero, times `weight`, in `into`; temporary memory is at most `limit_bytes`.
 * False when over budget.
 */
bool dense_sums_collect(struct dense_sums_piece *pieces, size_t pieces_count, int64_t weight,
			size_t limit_bytes, struct arena *into, struct accumulate_sums *ret);

#endif
