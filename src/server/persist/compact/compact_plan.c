/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/compact/compact_plan.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

int64_t compact_window(int64_t at_ns, int64_t window_ns)
{
	int64_t rest = at_ns % window_ns;

	assert(window_ns > 0);
	rest += rest < 0 ? window_ns : 0;
	return at_ns < INT64_MIN + rest ? INT64_MIN : at_ns - rest;
}

static int part_order(const void *left, const void *right)
{
	const struct part_info *a = *(const struct part_info *const *)left;
	const struct part_info *b = *(const struct part_info *const *)right;

	if (a->max_start_ns != b->max_start_ns)
		return a->max_start_ns < b->max_start_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* Parts of one window, in the order of their last reports. */
struct window {
	const struct part_info **parts;
	size_t count;
	uint64_t bytes_max; /* of what parts become */
};

static bool is_over(int64_t begin_ns, int64_t window_ns, int64_t grace_ns, int64_t now_ns)
{
	return now_ns == INT64_MAX || begin_ns < now_ns - window_ns - grace_ns;
}

static void take(struct compact_plan *plan, const struct part_info *part)
{
	assert(plan->parts_count < COMPACT_INPUTS_MAX && !part->damaged);
	plan->parts[plan->parts_count++] = part->number;
	plan->bytes += part->bytes;
}

/* Takes those of tiers [from, to] as long as the limits allow. */
static void take_tiers(const struct window *window, enum part_tier from, enum part_tier to,
		       struct compact_plan *plan)
{
	for (size_t i = 0; i < window->count; i++) {
		const struct part_info *part = window->parts[i];

		if (part->tier < from || part->tier > to)
			continue;
		if (plan->parts_count == COMPACT_INPUTS_MAX ||
		    (plan->parts_count && plan->bytes + part->bytes > window->bytes_max))
			return;
		take(plan, part);
	}
}

static uint64_t bytes_of(const struct window *window, enum part_tier from, enum part_tier to)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < window->count; i++)
		if (window->parts[i]->tier >= from && window->parts[i]->tier <= to)
			bytes += window->parts[i]->bytes;
	return bytes;
}

static int size_order(const void *left, const void *right)
{
	const struct part_info *a = *(const struct part_info *const *)left;
	const struct part_info *b = *(const struct part_info *const *)right;

	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* The small ones, smallest first, as long as none outweighs those before it. */
static void take_similar(const struct window *window, enum part_tier below,
			 struct compact_plan *plan)
{
	const struct part_info **parts = mem_new_array(const struct part_info *, window->count);
	size_t count = 0;

	for (size_t i = 0; i < window->count; i++)
		if (window->parts[i]->tier < below)
			parts[count++] = window->parts[i];
	if (count)
		qsort(parts, count, sizeof(*parts), size_order);
	for (size_t i = 0; i < count && plan->parts_count < COMPACT_INPUTS_MAX; i++) {
		if (i >= COMPACT_LATE_MIN && parts[i]->bytes > plan->bytes)
			break;
		if (plan->parts_count && plan->bytes + parts[i]->bytes > window->bytes_max)
			break;
		take(plan, parts[i]);
	}
	free(parts);
}

/* The window is over: its parts below `tier` become one of it. */
static bool plan_closed(const struct window *window, enum part_tier tier, struct compact_plan *plan)
{
	uint64_t late = bytes_of(window, PART_SEALED, tier - 1),
		 there = bytes_of(window, tier, tier);
	bool fits = there + late <= window->bytes_max;

	assert(window->count && tier > PART_SEALED);
	*plan = (struct compact_plan){ .tier = tier };
	if (!late)
		return false;
	if (!there || late >= there / 2 || (!fits && late >= window->bytes_max / 8)) {
		bool all = there && fits;

		take_tiers(window, PART_SEALED, all ? tier : tier - 1, plan);
		return true; /* what is beyond the limits is late then */
	}
	plan->tier = tier - 1; /* few bytes: they wait for more */
	take_similar(window, tier, plan);
	return plan->parts_count >= COMPACT_LATE_MIN;
}

static bool plan_open(const struct window *window, struct compact_plan *plan)
{
	*plan = (struct compact_plan){ .tier = PART_GATHERED };
	take_tiers(window, PART_SEALED, PART_SEALED, plan);
	return plan->parts_count >= COMPACT_GATHER_MIN;
}

/* The parts from `at` on that lie in the same window. */
static struct window window_at(const struct window *among, size_t at, int64_t window_ns)
{
	const struct part_info **parts = among->parts;
	size_t count = among->count;
	int64_t begin = compact_window(parts[at]->max_start_ns, window_ns);
	struct window window = { parts + at, 0, among->bytes_max };

	assert(at < count);
	while (at + window.count < count &&
	       compact_window(parts[at + window.count]->max_start_ns, window_ns) == begin)
		window.count++;
	return window;
}

static bool plan_hours(const struct window *day, int64_t now_ns, struct compact_plan *plan)
{
	for (size_t i = 0; i < day->count;) {
		struct window hours = window_at(day, i, COMPACT_HOURS_NS);
		int64_t begin = compact_window(hours.parts[0]->max_start_ns, COMPACT_HOURS_NS);

		if (is_over(begin, COMPACT_HOURS_NS, COMPACT_HOURS_GRACE_NS, now_ns)
			    ? plan_closed(&hours, PART_HOURS, plan)
			    : plan_open(&hours, plan))
			return true;
		i += hours.count;
	}
	return false;
}

bool compact_plan_next(const struct part_info *parts, size_t count, uint64_t bytes_max,
		       int64_t now_ns, struct compact_plan *ret)
{
	struct window all = { mem_new_array(const struct part_info *, count), 0, bytes_max };
	bool found = false;

	assert(bytes_max);
	for (size_t i = 0; i < count; i++)
		if (!parts[i].damaged)
			all.parts[all.count++] = &parts[i];
	if (all.count)
		qsort(all.parts, all.count, sizeof(*all.parts), part_order);
	for (size_t i = 0; i < all.count && !found;) {
		struct window day = window_at(&all, i, COMPACT_DAY_NS);
		int64_t begin = compact_window(day.parts[0]->max_start_ns, COMPACT_DAY_NS);

		found = is_over(begin, COMPACT_DAY_NS, COMPACT_DAY_GRACE_NS, now_ns)
				? plan_closed(&day, PART_DAY, ret)
				: plan_hours(&day, now_ns, ret);
		i += day.count;
	}
	assert(!found || ret->parts_count);
	free(all.parts);
	return found;
}
