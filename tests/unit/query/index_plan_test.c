/* SPDX-License-Identifier: Apache-2.0 */
/* Which segments are indexed together, and which indexes join in. */
#include "server/query/index/index_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SEGMENTS_MAX 64
#define SLOTS 1000u

/* Segments of one key, by id; `sizes` of the indexes that the first of them have. */
struct query {
	struct segment segments[SEGMENTS_MAX];
	struct select_segment ins[SEGMENTS_MAX];
	struct index_candidate candidates[SEGMENTS_MAX];
	struct function_index indexes[SEGMENTS_MAX];
	size_t count, indexes_count;
	struct arena arena;
};

static struct index_candidate *add(struct query *query, uint64_t kin, size_t stacks_bytes)
{
	size_t at = query->count++;

	query->segments[at] = (struct segment){ .id = at + 1,
						.partition_key_hash = kin,
						.slots_count = SLOTS,
						.stacks_bytes = stacks_bytes };
	query->ins[at] = (struct select_segment){ .segment = &query->segments[at] };
	query->candidates[at] = (struct index_candidate){ .in = &query->ins[at] };
	return &query->candidates[at];
}

static void add_due(struct query *query, size_t count)
{
	while (count--)
		add(query, 1, 100)->due = true;
}

/* An index of `count` segments, of which `met` are asked about. */
static void add_indexed(struct query *query, size_t met, uint32_t count)
{
	struct function_index *index = &query->indexes[query->indexes_count++];

	index->members_count = count;
	for (uint32_t i = 0; i < met; i++) {
		struct index_candidate *candidate = add(query, 1, 100);

		candidate->index = index;
		candidate->member = i;
	}
}

static struct index_plan plan(struct query *query)
{
	struct index_plan plan = { .candidates = query->candidates };

	arena_init(&query->arena, 0);
	index_plan_sort(plan.candidates, query->count);
	plan.candidates_count = index_plan_partition(plan.candidates, query->count);
	assert_true(index_plan_make(&plan, &query->arena));
	return plan;
}

static void what_is_due_is_indexed_together(void **state)
{
	struct query query = { 0 };
	struct index_plan made;

	(void)state;
	add_due(&query, 30);
	made = plan(&query);
	assert_int_equal(made.due_count, 30);
	assert_int_equal(made.count, 30);
	assert_int_equal(made.olds_count, 0);
	arena_free(&query.arena);
}

static void keys_are_apart(void **state)
{
	struct query query = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 6; i++)
		add(&query, i % 2 + 1, 100);
	add(&query, 0, 100); /* it is not known of these that they resemble each other */
	add(&query, 0, 100);
	index_plan_sort(query.candidates, query.count);
	assert_int_equal(index_plan_partition(query.candidates, 8), 1);
	assert_int_equal(index_plan_partition(query.candidates + 1, 7), 1);
	assert_int_equal(index_plan_partition(query.candidates + 2, 6), 3);
	assert_int_equal(index_plan_partition(query.candidates + 5, 3), 3);
}

static void indexes_join_what_outweighs_them(void **state)
{
	struct query query = { 0 };
	struct index_plan made;

	(void)state;
	add_due(&query, 15);
	add_indexed(&query, 15, 15);
	made = plan(&query);
	assert_int_equal(made.olds_count, 1);
	assert_int_equal(made.count, 30);
	assert_int_equal(made.segments[0]->id, 1); /* those that are due come first */
	assert_int_equal(made.segments[15]->id, 16);
	arena_free(&query.arena);
}

static void large_indexes_stay_as_they_are(void **state)
{
	struct query query = { 0 };
	struct index_plan made;

	(void)state;
	add_due(&query, 1);
	add_indexed(&query, 2, 2);
	add_indexed(&query, 30, 30);
	made = plan(&query);
	assert_int_equal(made.olds_count, 0);
	assert_int_equal(made.count, 1);
	arena_free(&query.arena);
	/* Many small ones become one, beside the large one. */
	add_indexed(&query, 1, 1);
	add_indexed(&query, 1, 1);
	made = plan(&query);
	assert_int_equal(made.olds_count, 3);
	assert_int_equal(made.count, 5);
	arena_free(&query.arena);
}

static void an_index_joins_with_all_its_segments_or_not(void **state)
{
	struct query query = { 0 };
	struct index_plan made;

	(void)state;
	add_due(&query, 4);
	add_indexed(&query, 2, 3);
	made = plan(&query);
	assert_int_equal(made.olds_count, 0);
	assert_int_equal(made.count, 4);
	arena_free(&query.arena);
}

static void levels_of_a_partition_are_one_segment(void **state)
{
	struct query query = { 0 };
	struct index_plan made;

	(void)state;
	add_due(&query, 2);
	add(&query, 1, 100);
	query.segments[2].id = 1; /* the cache tells one of them that it is due */
	add_indexed(&query, 2, 1);
	query.segments[4].id = query.segments[3].id;
	made = plan(&query);
	assert_int_equal(made.due_count, 2);
	assert_int_equal(made.olds_count, 1);
	assert_int_equal(made.count, 3);
	arena_free(&query.arena);
}

static void only_so_many_stacks_are_joined(void **state)
{
	struct query query = { 0 };
	struct index_plan made;

	(void)state;
	add_due(&query, 4);
	add_indexed(&query, 4, 4);
	query.segments[6].stacks_bytes = INDEX_PLAN_BYTES_MAX;
	made = plan(&query);
	assert_int_equal(made.olds_count, 0);
	assert_int_equal(made.count, 4);
	arena_free(&query.arena);
}

static void nothing_is_made_when_nothing_is_due(void **state)
{
	struct query query = { 0 };
	struct index_plan made;

	(void)state;
	for (int i = 0; i < 8; i++)
		add_indexed(&query, 1, 1);
	made = plan(&query);
	assert_int_equal(made.count, 0);
	assert_int_equal(made.olds_count, 0);
	arena_free(&query.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_due_is_indexed_together),
		cmocka_unit_test(keys_are_apart),
		cmocka_unit_test(indexes_join_what_outweighs_them),
		cmocka_unit_test(large_indexes_stay_as_they_are),
		cmocka_unit_test(an_index_joins_with_all_its_segments_or_not),
		cmocka_unit_test(levels_of_a_partition_are_one_segment),
		cmocka_unit_test(only_so_many_stacks_are_joined),
		cmocka_unit_test(nothing_is_made_when_nothing_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
