/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/store_plan.h"

#include <assert.h>

#include "base/clock.h"
#include "model/service.h"

#define HOUR_NS (3600 * CLOCK_NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define TEN_NS (HOUR_NS / 6)
#define TIME_NS_MAX (INT64_MAX / 2) /* no report of this world starts beyond */

struct range {
	int64_t from_ns, to_ns;
};

/* INT64_MIN where there is none. */
static int64_t whole_before(int64_t at_ns, int64_t grain_ns)
{
	int64_t rest = at_ns % grain_ns, before;

	assert(grain_ns > 0);
	if (rest < 0)
		rest += grain_ns;
	return __builtin_sub_overflow(at_ns, rest, &before) ? INT64_MIN : before;
}

/* INT64_MAX where there is none. */
static int64_t whole_after(int64_t at_ns, int64_t grain_ns)
{
	int64_t before = whole_before(at_ns, grain_ns), after;

	if (before == at_ns)
		return at_ns;
	return __builtin_add_overflow(before, grain_ns, &after) ? INT64_MAX : after;
}

static const struct grain {
	int64_t ns;
	enum segment_level by_series, of_all;
} grains[] = { { DAY_NS, SEGMENT_DAY_SERIES, SEGMENT_DAY_ALL },
	       { HOUR_NS, SEGMENT_HOUR_SERIES, SEGMENT_HOUR_ALL },
	       { TEN_NS, SEGMENT_TEN_SERIES, SEGMENT_TEN_ALL } };

#define GRAINS (sizeof(grains) / sizeof(grains[0]))

/* The level of that grain which may answer, or SEGMENT_LEVELS. Steps below an hour tell reports. */
static enum segment_level level_of(const struct store_query *query,
				   const struct store_plan_partition *partition,
				   const struct grain *grain)
{
	int64_t whole_ns = grain->ns > HOUR_NS ? grain->ns : HOUR_NS;
	bool whole_steps = query->step_ns > 0 && query->step_ns % whole_ns == 0;

	if (partition->raw_only || partition->start_min_ns < -TIME_NS_MAX ||
	    partition->start_max_ns > TIME_NS_MAX || (!query->sums_only && !whole_steps))
		return SEGMENT_LEVELS;
	if (partition->alike && !query->by_series && partition->levels >> grain->of_all & 1)
		return grain->of_all;
	return partition->levels >> grain->by_series & 1 ? grain->by_series : SEGMENT_LEVELS;
}

/*
 * What whole grains cover of a range. Beyond the partition's first and last report there is
 * nothing to be exact about.
 */
static struct range inside(const struct store_plan_partition *partition, struct range range,
			   int64_t grain_ns)
{
	int64_t last_ns = partition->start_max_ns;
	struct range whole;

	whole.from_ns = range.from_ns <= partition->start_min_ns
				? whole_before(partition->start_min_ns, grain_ns)
				: whole_after(range.from_ns, grain_ns);
	whole.to_ns = range.to_ns > last_ns
			      ? whole_after(last_ns < INT64_MAX ? last_ns + 1 : last_ns, grain_ns)
			      : whole_before(range.to_ns, grain_ns);
	return whole;
}

static bool is_empty(const struct store_plan_partition *partition, struct range range)
{
	return range.from_ns >= range.to_ns || range.to_ns <= partition->start_min_ns ||
	       range.from_ns > partition->start_max_ns;
}

/* What lies before what is inside is added first, then what lies behind: one piece per level. */
static size_t add_piece(struct store_plan_piece *pieces, size_t count, enum segment_level level,
			struct range range)
{
	assert(level < SEGMENT_LEVELS && range.from_ns < range.to_ns);
	for (size_t i = 0; i < count; i++) {
		struct store_plan_piece *piece = &pieces[i];

		if (piece->level != level)
			continue;
		assert(piece->hole.from_ns == piece->hole.to_ns && piece->to_ns < range.from_ns);
		piece->hole = (struct segment_hole){ piece->to_ns, range.from_ns };
		piece->to_ns = range.to_ns;
		return count;
	}
	assert(count < STORE_PLAN_PIECES_MAX);
	pieces[count] = (struct store_plan_piece){ .level = level,
						   .from_ns = range.from_ns,
						   .to_ns = range.to_ns };
	return count + 1;
}

/* Whole grains inside, finer ones at the edges. Levels that are not there are passed over. */
static size_t plan_from(const struct store_query *query,
			const struct store_plan_partition *partition, struct range range,
			size_t grain, struct store_plan_piece *pieces, size_t count)
{
	struct range whole = range;
	enum segment_level level = SEGMENT_LEVELS;

	if (is_empty(partition, range))
		return count;
	for (; grain < GRAINS; grain++) {
		level = level_of(query, partition, &grains[grain]);
		whole = inside(partition, range, grains[grain].ns);
		if (level != SEGMENT_LEVELS && !is_empty(partition, whole))
			break;
	}
	if (grain == GRAINS)
		return add_piece(pieces, count, SEGMENT_RAW, range);
	count = add_piece(pieces, count, level, whole);
	count = plan_from(query, partition, (struct range){ range.from_ns, whole.from_ns },
			  grain + 1, pieces, count);
	return plan_from(query, partition, (struct range){ whole.to_ns, range.to_ns }, grain + 1,
			 pieces, count);
}

size_t store_plan(const struct store_query *query, const struct store_plan_partition *partition,
		  struct store_plan_piece pieces[static STORE_PLAN_PIECES_MAX])
{
	return plan_from(query, partition, (struct range){ query->from_ns, query->to_ns }, 0,
			 pieces, 0);
}

/* The label names of a query, matchers first. */
static size_t names_of(const struct store_query *query)
{
	size_t count = query->names_count;

	return query->selector ? count + query->selector->matchers_count : count;
}

static struct slice name_at(const struct store_query *query, size_t i)
{
	size_t matchers = query->selector ? query->selector->matchers_count : 0;

	return i < matchers ? query->selector->matchers[i].name : query->names[i - matchers];
}

bool store_plan_names(const struct store_query *query, const struct slice *names,
		      size_t names_count)
{
	for (size_t i = 0; i < names_of(query); i++)
		for (size_t at = 0; at < names_count; at++)
			if (slice_equal(name_at(query, i), names[at]))
				return true;
	return false;
}

bool store_plan_alike(const struct store_query *query, const struct tables_view *series)
{
	for (size_t i = 0; i < names_of(query); i++) {
		struct slice name = name_at(query, i), first = { 0 };

		for (uint32_t at = 0; at < series->series_count; at++) {
			struct slice value =
				service_label_value(series, series->series[at].label_set, name);

			if (!at)
				first = value;
			else if (!slice_equal(value, first))
				return false;
		}
	}
	return true;
}
