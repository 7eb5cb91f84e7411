/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats - what an answer cost: for `firn query --explain`, and for watching a query that runs.
 */
#ifndef FIRN_SERVER_QUERY_STATS_H
#define FIRN_SERVER_QUERY_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "model/segment.h"

enum query_step {
	QUERY_STEP_SELECT, /* series by labels, reports by time */
	QUERY_STEP_SUM,	   /* rows per stack, segments as one trie */
	QUERY_STEP_NAME,   /* frames to functions, functions to a tree */
	QUERY_STEP_STACKS, /* full detail, for pprof */
	QUERY_STEPS
};

struct query_stats {
	uint64_t segments[SEGMENT_LEVELS];	/* asked */
	uint64_t segments_used[SEGMENT_LEVELS]; /* that had something to say */
	uint64_t partitions_used;
	uint64_t blocks, blocks_bytes;	    /* of all segments */
	uint64_t blocks_touched;	    /* of these, not ruled out by their zone map */
	uint64_t blocks_read, headers_read; /* with rows; headers alone */
	uint64_t bytes_read;		    /* stored size of blocks whose rows were read */
	uint64_t rows_read, reports_read;   /* rows summed; headers looked at */
	uint64_t nodes_merged;		    /* of the segments' tries */
	uint64_t indexes_used, indexes_made; /* segments whose tries were not needed */
	int64_t took_ns[QUERY_STEPS];
	uint32_t threads;
	bool kept; /* set by who asks: the same query is then answered by this one's answer */
};

/* May be read by another thread while the query runs; both only grow, `all` first. */
struct query_progress {
	_Atomic uint64_t blocks_done, blocks_all;
	_Atomic uint64_t bytes_done, bytes_all; /* as stored; 0 for what is in memory */
};

#endif
