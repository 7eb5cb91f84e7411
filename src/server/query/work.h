/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work - what one query may use: memory, time, and whether somebody still waits for the answer.
 *
 * Everything temporary lives in `arena` (or in an idmap made known here) and goes with work_end.
 * Half of the query's memory budget is for this, the other half for the answer. Long loops call
 * work_tick, which looks at the clock and the cancel flag every few thousand steps. One thread;
 * when a query has several (team.h), each has a work of its own, and all share one budget.
 */
#ifndef FIRN_SERVER_QUERY_WORK_H
#define FIRN_SERVER_QUERY_WORK_H

#include "base/arena.h"
#include "base/err.h"
#include "base/idmap.h"
#include "model/segment.h"
#include "server/query/query.h"

#define WORK_MEMORY_BYTES_DEFAULT ((size_t)2 << 30)
#define WORK_TICKS_PER_CHECK 8192u
#define WORK_MAPS_MAX 16

struct work_shared { /* by all threads of a query */
	_Atomic size_t used_bytes;
	_Atomic bool failed; /* some thread did: the others need not go on */
	_Atomic bool lost;   /* some segment turned out to be unreadable */
	size_t limit_bytes;
	struct query_pool *pool; /* may be NULL */
	_Atomic bool *crowded;
	const _Atomic bool *cancelled, *stopped;
	int64_t deadline_at_ns, names_until_ns, names_give_up_at_ns;
	bool (*leave_names)(void *context);
	void *leave_context;
	uint32_t threads_max;
	struct query_progress *progress;
	bool announced; /* progress->..._all are known: what is read from now on is progress */
	/* For who runs out of memory: how much of the work was done by then, and of which range. */
	uint64_t cost_all; /* of summing and merging; 0 = not known yet */
	_Atomic uint64_t cost_done;
	int64_t range_ns; /* that the reports take; 0 = not known yet */
};

struct work {
	struct arena arena;
	struct idmap *maps[WORK_MAPS_MAX]; /* counted, and freed at the end */
	size_t maps_count;
	size_t other_bytes; /* memory held outside the arena and the maps */
	size_t limit_bytes;
	size_t counted_bytes;	    /* in shared->used_bytes */
	size_t pooled_bytes;	    /* in the pool */
	const struct arena *answer; /* counts in the pool too; may be NULL */
	int64_t step_since_ns;
	uint32_t ticks;
	struct segment_buffer buffer; /* for work_read */
	struct query_stats stats;     /* of this thread; added up in work_end_crew */
	struct work_shared *shared, own_shared;
	struct work *crew; /* of the other threads: their memory lives as long as this one's */
	size_t crew_count;
};

void work_begin(struct work *work, const struct query_limits *limits);
void work_end(struct work *work);

/* The other threads' works, made once: later calls change nothing. All end with this one. */
void work_begin_crew(struct work *work, size_t count);

/* Books the time since the last call, or since work_begin, under a step. */
void work_step_done(struct work *work, enum query_step step);

/* The counts of all threads. */
struct query_stats work_stats(const struct work *work);

/*
 * Reads a block into the thread's buffer and counts it. If the segment's owner cannot read it, the
 * segment is marked as unreadable (-ERR_CORRUPT): query.c runs the query again without it.
 */
int work_read(struct work *work, struct segment *segment, uint32_t block, enum segment_want want,
	      struct segment_block *ret, struct err *err);

/* The same, of what reports say without their rows. */
int work_read_heads(struct work *work, struct segment *segment, uint32_t block,
		    struct segment_heads *ret, struct err *err);

/* Once per segment; counted until work_drop_stacks, or to the end. */
int work_load_stacks(struct work *work, struct segment *segment, struct err *err);
void work_drop_stacks(struct work *work, struct segment *segment);

/*
 * `rc`, but 0 if only that segment failed: then work_lost fails after all segments had their turn.
 */
int work_spare(const struct segment *segment, int rc);
int work_lost(const struct work *work, struct err *err);

/*
 * True if a query that returned `rc` is to run again, because more partitions of the source turned
 * out to be unreadable than `*unreadable` (at first 0), which is updated.
 */
bool work_again(const struct query_source *source, int rc, size_t *unreadable);

/* Counts the map's memory, and frees it in work_end, or sooner when it is dropped (last first). */
void work_add_map(struct work *work, struct idmap *map);
void work_drop_map(struct work *work, struct idmap *map);

/* ERR_NO_MEMORY, ERR_DEADLINE or ERR_CANCELLED. */
int work_check(struct work *work, struct err *err);

/* True if a cancel flag or a deadline can end it. */
bool work_may_end(const struct work *work);

/* The error of work_check about memory; for failed allocations. */
int work_over_budget(const struct work *work, struct err *err);

/* Counts steps where failing is not possible: the next work_tick checks. */
static inline void work_note(struct work *work, uint32_t steps)
{
	if (__builtin_add_overflow(work->ticks, steps, &work->ticks))
		work->ticks = UINT32_MAX;
}

static inline int work_tick(struct work *work, uint32_t steps, struct err *err)
{
	work_note(work, steps);
	if (work->ticks < WORK_TICKS_PER_CHECK)
		return 0;
	work->ticks = 0;
	return work_check(work, err);
}

/* A larger copy of an array in the arena, doubled; NULL when over budget. The old one is left. */
void *work_grown(struct arena *arena, const void *old, size_t element_bytes, size_t count,
		 size_t *capacity);

/* Makes room for one more in a (pointer, count, capacity) triple; false when over budget. */
#define WORK_GROW(arena, pointer, count, capacity)                                                 \
	((count) < (capacity) ||                                                                   \
	 ((pointer) = work_grown((arena), (pointer), sizeof(*(pointer)), (count), &(capacity))))

/* The same of an array into which nothing points: the old one is dropped. */
#define WORK_REGROW(arena, pointer, count, capacity)                                               \
	((count) < (capacity) ||                                                                   \
	 ((pointer) = work_regrown((arena), (pointer), sizeof(*(pointer)), (count), &(capacity))))
void *work_regrown(struct arena *arena, void *old, size_t element_bytes, size_t count,
		   size_t *capacity);

/* Arithmetic that stops at the ends of int64. */
static inline int64_t work_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

static inline int64_t work_multiply(int64_t a, int64_t b)
{
	int64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
	return product;
}

#endif
