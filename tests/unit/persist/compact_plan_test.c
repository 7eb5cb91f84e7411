/* SPDX-License-Identifier: Apache-2.0 */
/* The planner, by simulation: parts arrive, its plans are carried out on what the manifest knows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "server/persist/compact/compact_plan.h"

#define SECOND_NS ((int64_t)1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS (60 * MINUTE_NS)
#define BEGIN_NS (19000 * COMPACT_DAY_NS)

struct world {
	struct part_info *parts;
	size_t count, capacity;
	uint64_t number;
	uint64_t bytes_in, bytes_written; /* written: what was sealed, and every result */
	size_t inputs_max, open_max;
	uint64_t bytes_max; /* 0: what is usual */
};

static uint64_t bytes_max(const struct world *world)
{
	return world->bytes_max ? world->bytes_max : COMPACT_BYTES_MAX;
}

static void add(struct world *world, int64_t min_ns, int64_t max_ns, uint64_t bytes,
		enum part_tier tier)
{
	mem_grow(world->parts, world->count, world->capacity);
	world->parts[world->count++] = (struct part_info){
		.number = ++world->number,
		.bytes = bytes,
		.min_start_ns = min_ns,
		.max_start_ns = max_ns,
		.tier = tier,
	};
	world->bytes_written += bytes;
}

static void seal(struct world *world, int64_t from_ns, int64_t to_ns, uint64_t bytes)
{
	add(world, from_ns, to_ns - 1, bytes, PART_SEALED);
	world->bytes_in += bytes;
}

static void carry_out(struct world *world, const struct compact_plan *plan)
{
	int64_t min_ns = INT64_MAX, max_ns = INT64_MIN;
	uint64_t bytes = 0;

	for (size_t i = 0; i < plan->parts_count; i++) {
		size_t at = 0;

		while (at < world->count && world->parts[at].number != plan->parts[i])
			at++;
		assert_true(at < world->count); /* each once, and it exists */
		bytes += world->parts[at].bytes;
		if (world->parts[at].min_start_ns < min_ns)
			min_ns = world->parts[at].min_start_ns;
		if (world->parts[at].max_start_ns > max_ns)
			max_ns = world->parts[at].max_start_ns;
		world->parts[at] = world->parts[--world->count];
	}
	assert_int_equal(bytes, plan->bytes);
	assert_true(plan->parts_count == 1 || bytes <= bytes_max(world));
	if (plan->parts_count > world->inputs_max)
		world->inputs_max = plan->parts_count;
	add(world, min_ns, max_ns, bytes, plan->tier);
}

static void compact(struct world *world, int64_t now_ns)
{
	struct compact_plan plan;
	int rounds = 0;

	while (compact_plan_next(world->parts, world->count, bytes_max(world), now_ns, &plan)) {
		carry_out(world, &plan);
		assert_true(++rounds < 1000); /* it comes to an end */
	}
	if (world->count > world->open_max)
		world->open_max = world->count;
}

static double amplification(const struct world *world)
{
	return (double)world->bytes_written / (double)world->bytes_in;
}

static size_t count_tier(const struct world *world, enum part_tier tier)
{
	size_t count = 0;

	for (size_t i = 0; i < world->count; i++)
		count += world->parts[i].tier == tier;
	return count;
}

static void a_quiet_server_has_a_part_per_day(void **state)
{
	struct world world = { 0 };

	(void)state;
	for (int64_t at = BEGIN_NS; at < BEGIN_NS + 10 * COMPACT_DAY_NS; at += 10 * MINUTE_NS) {
		seal(&world, at, at + 10 * MINUTE_NS, 1 << 20);
		compact(&world, at + 10 * MINUTE_NS);
	}
	assert_int_equal(count_tier(&world, PART_DAY), 9);
	assert_true(world.open_max < 9 + 12 + 2 + 28); /* of today: two-hour parts and the newest */
	print_message("# written %.2f times\n", amplification(&world));
	assert_true(amplification(&world) <= 3.01);
	free(world.parts);
}

static void a_busy_server_keeps_few_parts_in_an_open_window(void **state)
{
	struct world world = { 0 };

	(void)state;
	for (int64_t at = BEGIN_NS; at < BEGIN_NS + 2 * COMPACT_DAY_NS; at += 8 * SECOND_NS) {
		seal(&world, at, at + 8 * SECOND_NS, 100 << 10);
		compact(&world, at + 8 * SECOND_NS);
	}
	print_message("# written %.2f times, %zu parts at most\n", amplification(&world),
		      world.open_max);
	assert_true(amplification(&world) <= 4.01);
	assert_true(world.open_max < 120);
	assert_true(world.inputs_max <= COMPACT_INPUTS_MAX);
	free(world.parts);
}

/* One part in ten holds reports of up to two days ago. */
static void late_parts_join_without_much_writing(void **state)
{
	struct world world = { 0 };
	uint64_t dice = 7;

	(void)state;
	for (int64_t at = BEGIN_NS; at < BEGIN_NS + 6 * COMPACT_DAY_NS; at += 10 * MINUTE_NS) {
		seal(&world, at, at + 10 * MINUTE_NS, 1 << 20);
		dice = dice * 6364136223846793005u + 1442695040888963407u;
		if ((dice >> 33) % 10 == 0) {
			int64_t late = at - (int64_t)((dice >> 40) % 48) * HOUR_NS;

			seal(&world, late, late + 5 * MINUTE_NS, 100 << 10);
		}
		compact(&world, at + 10 * MINUTE_NS);
	}
	print_message("# written %.2f times, %zu parts\n", amplification(&world), world.count);
	assert_true(amplification(&world) <= 4);
	assert_true(world.open_max < 110);
	free(world.parts);
}

static void large_days_are_several_parts_within_the_limit(void **state)
{
	struct world world = { 0 };

	(void)state;
	for (int64_t at = BEGIN_NS; at < BEGIN_NS + 2 * COMPACT_DAY_NS; at += MINUTE_NS) {
		seal(&world, at, at + MINUTE_NS, 5 << 20);
		compact(&world, at + MINUTE_NS);
	}
	compact(&world, INT64_MAX);
	print_message("# written %.2f times, %zu parts\n", amplification(&world), world.count);
	for (size_t i = 0; i < world.count; i++)
		assert_true(world.parts[i].bytes <= COMPACT_BYTES_MAX);
	assert_int_equal(count_tier(&world, PART_DAY), world.count);
	assert_true(world.count <= 10);
	assert_true(amplification(&world) <= 4.5);
	free(world.parts);
}

/* Behind one another in time, so that the oldest can go before the others. */
static void a_lower_limit_makes_more_parts(void **state)
{
	struct world world = { .bytes_max = 100 << 20 };

	(void)state;
	for (int64_t at = BEGIN_NS; at < BEGIN_NS + COMPACT_DAY_NS; at += MINUTE_NS) {
		seal(&world, at, at + MINUTE_NS, 1 << 20);
		compact(&world, at + MINUTE_NS);
	}
	compact(&world, INT64_MAX);
	assert_int_equal(count_tier(&world, PART_DAY), world.count);
	assert_in_range(world.count, 15, 29); /* 1440 MiB, each half full at least */
	for (size_t i = 0; i < world.count; i++)
		for (size_t k = 0; k < world.count; k++)
			assert_true(i == k ||
				    world.parts[i].min_start_ns > world.parts[k].max_start_ns ||
				    world.parts[k].min_start_ns > world.parts[i].max_start_ns);
	assert_true(amplification(&world) <= 4.5);
	free(world.parts);
}

static void all_windows_are_over_when_asked_for(void **state)
{
	struct world world = { 0 };

	(void)state;
	seal(&world, BEGIN_NS, BEGIN_NS + MINUTE_NS, 1000);
	compact(&world, BEGIN_NS + MINUTE_NS);
	assert_int_equal(count_tier(&world, PART_SEALED), 1);
	compact(&world, INT64_MAX);
	assert_int_equal(count_tier(&world, PART_DAY), 1);
	seal(&world, -5, -1, 1000); /* before the epoch is a day too */
	seal(&world, INT64_MIN, INT64_MIN + 1, 1000);
	seal(&world, INT64_MAX - 1, INT64_MAX, 1000);
	compact(&world, INT64_MAX);
	assert_int_equal(count_tier(&world, PART_DAY), 4);
	free(world.parts);
}

static void damaged_parts_are_left_alone(void **state)
{
	struct world world = { 0 };
	struct compact_plan plan;

	(void)state;
	seal(&world, BEGIN_NS, BEGIN_NS + MINUTE_NS, 1000);
	world.parts[0].damaged = true;
	assert_false(
		compact_plan_next(world.parts, world.count, COMPACT_BYTES_MAX, INT64_MAX, &plan));
	free(world.parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quiet_server_has_a_part_per_day),
		cmocka_unit_test(a_busy_server_keeps_few_parts_in_an_open_window),
		cmocka_unit_test(late_parts_join_without_much_writing),
		cmocka_unit_test(large_days_are_several_parts_within_the_limit),
		cmocka_unit_test(a_lower_limit_makes_more_parts),
		cmocka_unit_test(all_windows_are_over_when_asked_for),
		cmocka_unit_test(damaged_parts_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
