/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/work.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/resolve/resolver.h"

#define GROW_FROM 64u
#define TRIM_BYTES ((size_t)16 << 20)  /* queries that had more leave no holes behind */
#define LOOK_NS (50 * CLOCK_NS_PER_MS) /* how often who waits looks whether to go on */

void work_begin(struct work *work, const struct query_limits *limits)
{
	size_t memory_bytes =
		limits->memory_bytes ? limits->memory_bytes : WORK_MEMORY_BYTES_DEFAULT;

	*work = (struct work){ .limit_bytes = memory_bytes / 2 + 1,
			       .step_since_ns = clock_monotonic_ns() };
	work->own_shared.limit_bytes = work->limit_bytes;
	work->own_shared.pool = limits->pool;
	work->own_shared.crowded = limits->crowded;
	work->own_shared.cancelled = limits->cancelled;
	work->own_shared.stopped = limits->stopped;
	work->own_shared.deadline_at_ns = limits->deadline_at_ns;
	work->own_shared.names_until_ns = limits->names_until_ns;
	work->own_shared.names_give_up_at_ns = limits->names_give_up_at_ns;
	work->own_shared.leave_names = limits->leave_names;
	work->own_shared.leave_context = limits->leave_context;
	work->own_shared.threads_max = limits->threads_max;
	work->own_shared.progress = limits->progress;
	work->shared = &work->own_shared;
	arena_init(&work->arena, work->limit_bytes);
}

void work_begin_crew(struct work *work, size_t count)
{
	assert(count > 0);
	assert(work->shared == &work->own_shared);
	if (work->crew)
		return;
	work->crew = mem_new_array(struct work, count);
	work->crew_count = count;
	for (size_t i = 0; i < count; i++) {
		work->crew[i].limit_bytes = work->limit_bytes;
		work->crew[i].shared = work->shared;
		arena_init(&work->crew[i].arena, work->limit_bytes);
	}
}

void work_end(struct work *work)
{
	size_t used;

	assert(work->shared);
	assert(work->maps_count <= WORK_MAPS_MAX);
	assert(!work->crew_count || work->crew);
	for (size_t i = 0; i < work->crew_count; i++)
		work_end(&work->crew[i]);
	if (work->shared->pool)
		atomic_fetch_sub(&work->shared->pool->used_bytes, work->pooled_bytes);
	work->pooled_bytes = 0;
	used = atomic_load(&work->shared->used_bytes);
	free(work->crew);
	work->crew = NULL;
	work->crew_count = 0;
	arena_free(&work->arena);
	segment_buffer_free(&work->buffer);
	for (size_t i = 0; i < work->maps_count; i++)
		idmap_free(work->maps[i]);
	work->maps_count = 0;
	if (work->shared == &work->own_shared && used > TRIM_BYTES)
		mem_trim();
}

/* With one level of a partition the others go: what the query says of it must hang together. */
static void mark_kindred(const struct query_source *source, const struct segment *lost)
{
	for (size_t i = 0; lost->id && i < source->segments_count; i++)
		if (source->segments[i].id == lost->id)
			atomic_store(&source->segments[i].unreadable, true);
}

static bool is_first_of_its_id(const struct query_source *source, size_t at)
{
	for (size_t i = 0; source->segments[at].id && i < at; i++)
		if (source->segments[i].id == source->segments[at].id)
			return false;
	return true;
}

bool work_again(const struct query_source *source, int rc, size_t *unreadable)
{
	size_t count = 0;

	assert(source->segments || !source->segments_count);
	for (size_t i = 0; i < source->segments_count; i++) {
		if (!atomic_load(&source->segments[i].unreadable))
			continue;
		mark_kindred(source, &source->segments[i]);
		count += is_first_of_its_id(source, i);
	}
	if (count == *unreadable)
		return false;
	*unreadable = count;
	return rc != 0;
}

static void add_stats(struct query_stats *to, const struct query_stats *from)
{
	to->reports_read += from->reports_read;
	to->blocks_read += from->blocks_read;
	to->headers_read += from->headers_read;
	to->rows_read += from->rows_read;
	to->bytes_read += from->bytes_read;
	to->nodes_merged += from->nodes_merged;
	to->indexes_used += from->indexes_used;
	to->indexes_made += from->indexes_made;
	to->blocks += from->blocks;
	to->blocks_bytes += from->blocks_bytes;
	to->blocks_touched += from->blocks_touched;
}

void work_step_done(struct work *work, enum query_step step)
{
	int64_t now_ns = clock_monotonic_ns();

	work->stats.took_ns[step] += now_ns - work->step_since_ns;
	work->step_since_ns = now_ns;
}

struct query_stats work_stats(const struct work *work)
{
	struct query_stats stats = work->stats;

	assert(!work->crew_count || work->crew);
	stats.threads = (uint32_t)work->crew_count + 1;
	for (size_t i = 0; i < work->crew_count; i++)
		add_stats(&stats, &work->crew[i].stats);
	return stats;
}

/* An error of the disk or of a decoder affects only its segment; others end the query. */
static int mark_unreadable(struct work *work, struct segment *segment, int rc, struct err *err)
{
	if (rc != -ERR_CORRUPT && rc != -ERR_IO)
		return rc;
	atomic_store(&segment->unreadable, true);
	atomic_store(&work->shared->lost, true);
	if (err)
		err->code = ERR_CORRUPT;
	return -ERR_CORRUPT;
}

static void note_progress(struct work *work, const struct segment *segment, uint32_t block)
{
	struct query_progress *progress = work->shared->progress;

	if (!progress || !work->shared->announced)
		return;
	atomic_fetch_add(&progress->blocks_done, 1);
	atomic_fetch_add(&progress->bytes_done, segment_zone(segment, block).bytes);
}

int work_read(struct work *work, struct segment *segment, uint32_t block, enum segment_want want,
	      struct segment_block *ret, struct err *err)
{
	int rc = segment_read(segment, block, want, &work->buffer, ret, err);

	assert(block < segment->blocks_count);
	assert(work->shared);
	if (rc)
		return mark_unreadable(work, segment, rc, err);
	note_progress(work, segment, block);
	if (want >= SEGMENT_ROWS) {
		work->stats.blocks_read++;
		work->stats.bytes_read += segment_zone(segment, block).bytes;
	} else {
		work->stats.headers_read++;
		work->stats.reports_read += ret->reports_count;
	}
	return 0;
}

int work_read_heads(struct work *work, struct segment *segment, uint32_t block,
		    struct segment_heads *ret, struct err *err)
{
	int rc = segment_read_heads(segment, block, &work->buffer, ret, err);

	assert(block < segment->blocks_count);
	assert(work->shared);
	if (rc)
		return mark_unreadable(work, segment, rc, err);
	note_progress(work, segment, block);
	work->stats.headers_read++;
	work->stats.reports_read += ret->reports_count;
	return 0;
}

int work_load_stacks(struct work *work, struct segment *segment, struct err *err)
{
	int rc;

	work->other_bytes += segment->stacks_bytes;
	rc = work_check(work, err); /* before they take the room */
	if (!rc)
		rc = segment_load_stacks(segment, err);
	return rc ? mark_unreadable(work, segment, rc, err) : 0;
}

void work_drop_stacks(struct work *work, struct segment *segment)
{
	work->other_bytes -= segment->stacks_bytes;
	segment_drop_stacks(segment);
}

int work_spare(const struct segment *segment, int rc)
{
	return rc == -ERR_CORRUPT && atomic_load(&segment->unreadable) ? 0 : rc;
}

int work_lost(const struct work *work, struct err *err)
{
	if (!atomic_load(&work->shared->lost))
		return 0;
	return err_set(err, ERR_CORRUPT, "query: a part of the store cannot be read");
}

void work_add_map(struct work *work, struct idmap *map)
{
	assert(work->maps_count < WORK_MAPS_MAX && !map->slots);
	work->maps[work->maps_count++] = map;
}

void work_drop_map(struct work *work, struct idmap *map)
{
	assert(work->maps_count && work->maps[work->maps_count - 1] == map);
	idmap_free(map);
	work->maps_count--;
}

static size_t used_bytes(const struct work *work)
{
	size_t bytes = work->arena.used_bytes + work->other_bytes;

	for (size_t i = 0; i < work->maps_count; i++)
		if (work->maps[i]->slots)
			bytes += ((size_t)work->maps[i]->mask + 1) * sizeof(uint64_t);
	return bytes;
}

#define DURATION_BYTES 32
#define FITS 0.8 /* of what had room: what was done is an estimate */

/* The done share of the work that takes the memory; 0 if that is unknown. */
static double share_done(const struct work_shared *shared)
{
	uint64_t done = atomic_load_explicit(&shared->cost_done, memory_order_relaxed);

	return shared->cost_all ? (double)done / (double)shared->cost_all : 0;
}

static void put_duration(double ns, char ret[static DURATION_BYTES])
{
	double minutes = ns / (60.0 * CLOCK_NS_PER_S);

	if (minutes >= 48 * 60)
		snprintf(ret, DURATION_BYTES, "%.0f days", minutes / (24 * 60));
	else if (minutes >= 120)
		snprintf(ret, DURATION_BYTES, "%.0f hours", minutes / 60);
	else
		snprintf(ret, DURATION_BYTES, "%.0f minutes", minutes < 1 ? 1 : minutes);
}

/*
 * What a query that ran out of memory is told: how much it needs, by the share of the work that
 * was done within its limit, and what would fit: memory grows with the range and with the series.
 */
static int say_too_much(const struct work_shared *shared, size_t limit_bytes, const char *who,
			const char *option, struct err *err)
{
	double done = share_done(shared);
	char fits[DURATION_BYTES], asked[DURATION_BYTES];

	if (!(done > 0.001 && done < 0.95) || !shared->range_ns)
		return err_set(err, ERR_NO_MEMORY,
			       "query: needs more than the %zu MiB of memory that %s%s; narrow the "
			       "time range or the matchers, or group by fewer labels",
			       limit_bytes >> 20, who, option);
	put_duration((double)shared->range_ns * done * FITS, fits);
	put_duration((double)shared->range_ns, asked);
	return err_set(err, ERR_NO_MEMORY,
		       "query: needs about %.0f MiB of memory or more, and %s %zu MiB%s; narrow it "
		       "to about %s instead of %s, or by matchers to %.0f %% of the series, or "
		       "group by fewer labels",
		       (double)(limit_bytes >> 20) / done, who, limit_bytes >> 20, option, fits,
		       asked, 100 * done * FITS < 1 ? 1 : 100 * done * FITS);
}

int work_over_budget(const struct work *work, struct err *err)
{
	return say_too_much(work->shared, 2 * work->limit_bytes, "a query may use", "", err);
}

/* Brings this thread's share of the common counts up to date; the memory of all threads. */
static size_t count_bytes(struct work *work)
{
	size_t used = used_bytes(work), before = work->counted_bytes;
	struct query_pool *pool = work->shared->pool;

	if (pool) {
		size_t pooled = used + (work->answer ? work->answer->used_bytes : 0);

		atomic_fetch_add_explicit(&pool->used_bytes, pooled - work->pooled_bytes,
					  memory_order_relaxed);
		work->pooled_bytes = pooled;
	}
	work->counted_bytes = used;
	return atomic_fetch_add_explicit(&work->shared->used_bytes, used - before,
					 memory_order_relaxed) +
	       used - before;
}

/* All queries together are over their budget: whoever notices gives way. */
static int pool_is_empty(const struct work *work, const struct query_pool *pool, struct err *err)
{
	size_t own = atomic_load(&work->shared->used_bytes);

	if (own > pool->limit_bytes / 2)
		return say_too_much(work->shared, pool->limit_bytes, "queries may use",
				    " (--query-memory)", err);
	if (work->shared->crowded)
		atomic_store(work->shared->crowded, true);
	return err_set(err, ERR_NO_MEMORY,
		       "query: those that run now use all of their %zu MiB of memory "
		       "(--query-memory); ask again in a second",
		       pool->limit_bytes >> 20);
}

static bool is_set(const _Atomic bool *flag)
{
	return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

bool work_may_end(const struct work *work)
{
	const struct work_shared *shared = work->shared;

	return shared->cancelled || shared->stopped || shared->deadline_at_ns;
}

static int out_of_time(int64_t deadline_at_ns, struct err *err)
{
	if (!deadline_at_ns || clock_monotonic_ns() < deadline_at_ns)
		return 0;
	return err_set(err, ERR_DEADLINE,
		       "query: out of time; narrow the time range or the matchers");
}

int query_limits_check(const struct query_limits *limits, struct err *err)
{
	if (is_set(limits->cancelled) || is_set(limits->stopped))
		return err_set(err, ERR_CANCELLED, "query: cancelled");
	return out_of_time(limits->deadline_at_ns, err);
}

int query_open_symbols(struct resolver *resolver, const struct query_symbols_of *of,
		       const struct query_limits *limits, struct resolver_symbols *ret,
		       struct err *err)
{
	for (;;) {
		int64_t until_ns = clock_monotonic_ns() + LOOK_NS;
		bool is_last = !limits || until_ns >= of->until_ns;
		int rc;

		until_ns = is_last ? of->until_ns : until_ns;
		if (of->wants_best)
			resolver_open_best(resolver, of->build_id, of->mapping, of->by_offset,
					   until_ns, ret);
		else
			resolver_open(resolver, of->build_id, of->mapping, of->by_offset, until_ns,
				      ret);
		if (is_last ||
		    (ret->reason != RESOLVE_PENDING && !(of->wants_best && ret->is_provisional)))
			return 0;
		rc = query_limits_check(limits, err);
		if (rc)
			return rc;
		resolver_close(resolver, ret);
	}
}

int work_check(struct work *work, struct err *err)
{
	const struct work_shared *shared = work->shared;

	assert(work->shared && work->limit_bytes);
	if (work->arena.over_budget || count_bytes(work) > shared->limit_bytes)
		return work_over_budget(work, err);
	if (shared->pool && atomic_load_explicit(&shared->pool->used_bytes, memory_order_relaxed) >
				    shared->pool->limit_bytes)
		return pool_is_empty(work, shared->pool, err);
	if (is_set(shared->cancelled) || is_set(shared->stopped))
		return err_set(err, ERR_CANCELLED, "query: cancelled");
	if (atomic_load_explicit(&shared->failed, memory_order_relaxed))
		return err_set(err, ERR_CANCELLED, "query: another thread of it failed");
	return out_of_time(shared->deadline_at_ns, err);
}

void *work_grown(struct arena *arena, const void *old, size_t element_bytes, size_t count,
		 size_t *capacity)
{
	size_t wanted = *capacity ? 2 * *capacity : GROW_FROM;
	void *grown = arena_alloc_array(arena, wanted, element_bytes);

	assert(element_bytes && count <= *capacity);
	if (!grown)
		return NULL;
	if (count)
		memcpy(grown, old, count * element_bytes);
	*capacity = wanted;
	return grown;
}

void *work_regrown(struct arena *arena, void *old, size_t element_bytes, size_t count,
		   size_t *capacity)
{
	size_t old_bytes = *capacity * element_bytes;
	void *grown = work_grown(arena, old, element_bytes, count, capacity);

	if (grown && old)
		arena_drop(arena, old, old_bytes);
	return grown;
}
