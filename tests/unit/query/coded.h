/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coded - the tables of a world as the store would have them after compaction: partitions with
 * dictionaries of their own, small blocks behind segment_ops, slots that are no nodes, values left
 * out where all are 1, and roll-ups. For tests of the engine without the store.
 *
 * An "hour" here is CODED_GRAIN_NS: the engine does not know how long one is.
 */
#ifndef TESTS_UNIT_QUERY_CODED_H
#define TESTS_UNIT_QUERY_CODED_H

#include "model/segment.h"
#include "world.h"

#define CODED_GRAIN_NS 20

struct coded; /* all partitions of a world */

/* Partitions are told apart by group and the label `key`. Copies; the world may go. */
struct coded *coded_new(const struct world *world, const char *key);
void coded_free(struct coded *coded);

/* What segments are to be made of. */
struct coded_wanted {
	int64_t from_ns, to_ns;
	bool rolled_up; /* whole hours inside the range by series, */
	bool all;	/* or of the whole partition for delta types; raw reports at the edges */
};

/* The source lives until the next call, or coded_free. */
struct query_source coded_source(struct coded *coded, const struct coded_wanted *wanted);

size_t coded_count(const struct coded *coded);

/* From now on, reading rows fails in that partition, which is told. */
struct coded_broken {
	uint32_t view; /* of the world */
	bool one_delta_column;
	struct slice key;
};
struct coded_broken coded_break(struct coded *coded, size_t partition);

#endif
