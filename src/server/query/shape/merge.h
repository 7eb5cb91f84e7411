/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - the sums of all segments as tries of frames with one value per (stack, group).
 *
 * Segments are ordered by partition key and divided into units of bounded cost, which several
 * threads merge. A unit of one segment is that segment's own trie; several segments are merged into
 * a new trie (trie.h), which stays in the CPU's cache. With MERGE_AS_ONE the units are merged in
 * their order; else each unit stays a trie, and equal stacks may be in several: collapse, trim and
 * table merge them by function.
 *
 * Segments whose functions are indexed (indexed.h) are summed by themselves and have no trie.
 *
 * Means of gauges stay exact, times a denominator, and always in one trie: rounding.h makes whole
 * numbers of them.
 */
#ifndef FIRN_SERVER_QUERY_SHAPE_MERGE_H
#define FIRN_SERVER_QUERY_SHAPE_MERGE_H

#include "server/query/index/indexed.h"
#include "server/query/sum/merge_trie.h"

struct merge {
	struct merge_trie *tries; /* in the work's arena; none when nothing is selected */
	size_t tries_count;
	const struct indexed_sums *indexed; /* of segments in no trie; the caller's */
	size_t indexed_count;
	uint64_t rows;
	bool is_exact; /* values are means, in the trie's `exact`, times ... */
	int64_t denominator;
	int64_t base_denominator; /* ... or, of the base of a diff, that */
};

enum merge_how {
	MERGE_BY_PARTITION_KEY, /* segments of one partition key meet */
	MERGE_AS_ONE,		/* at most one trie */
	MERGE_APART, /* each segment's own trie, as long as all fit into memory at once */
};

/* merge_free is due in any case. */
int merge_segments(struct selection *selection, enum merge_how how, struct merge *ret,
		   struct err *err);
void merge_free(struct merge *merge);

#endif
