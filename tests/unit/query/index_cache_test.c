/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes of segments: when one is made, what is kept within the budget, and who may use it. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coded.h"
#include "server/query/index/index_cache.h"
#include "server/query/render/render.h"

#define BYTES ((size_t)1000)
#define THREADS 4
#define ROUNDS 60

/* Nothing but its size, and segments from `first` on. */
static struct function_index *index_of(size_t bytes, uint64_t first, uint32_t count)
{
	uint32_t place = 0;
	struct function_index made = { .members_count = count, .item_places = &place };
	struct function_index_member *members = mem_new_array(struct function_index_member, count);
	struct function_index *index;

	for (uint32_t i = 0; i < count; i++)
		members[i].segment = first + i;
	made.members = members;
	index = function_index_pack(&made);
	index->memory_bytes = bytes - sizeof(*index);
	free(members);
	return index;
}

/* One query about one segment, which makes an index where that is worth it. */
static bool ask(struct index_cache *cache, uint64_t segment, uint64_t version)
{
	const struct index_cache_key key = { .segment = segment, .version = version };
	uint64_t query = index_cache_begin(cache);
	struct index_cache_found found = index_cache_get(cache, query, &key);
	bool has_found = found.index;

	if (found.due && index_cache_make_room(cache, query, BYTES)) {
		struct function_index *made = index_of(BYTES, segment, 1);

		index_cache_put(cache, query, &key, made);
		found.index = made;
	}
	if (found.index)
		index_cache_release(cache, found.index);
	return has_found;
}

static void segments_are_indexed_that_are_asked_about_again(void **state)
{
	struct index_cache *cache = index_cache_new(10 * BYTES);

	(void)state;
	assert_false(ask(cache, 1, 1));
	assert_int_equal(index_cache_bytes(cache), 0);
	assert_false(ask(cache, 1, 1)); /* now it is made */
	assert_int_equal(index_cache_bytes(cache), BYTES);
	assert_true(ask(cache, 1, 1));
	assert_false(ask(cache, 2, 1));
	/* Other symbols: it is of no use any more. */
	assert_false(ask(cache, 1, 2));
	assert_int_equal(index_cache_bytes(cache), 0);
	assert_false(ask(cache, 1, 2));
	assert_true(ask(cache, 1, 2));
	index_cache_free(cache);
}

static void memory_stays_within_the_budget(void **state)
{
	struct index_cache *cache = index_cache_new(4 * BYTES);
	size_t found = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		for (uint64_t segment = 1; segment <= 100; segment++) {
			found += ask(cache, segment, 1);
			assert_in_range(index_cache_bytes(cache), 0, 4 * BYTES);
		}
	}
	/* Going round and round, each would be given up before it is asked for again. */
	assert_in_range(index_cache_bytes(cache), BYTES, 4 * BYTES);
	for (int round = 0; round < 40; round++)
		found += ask(cache, 1000, 1);
	assert_in_range(found, 20, 4000);
	index_cache_free(cache);
}

/* What one query about a segment finds; NULL: nothing. */
static const struct function_index *look_up(struct index_cache *cache, uint64_t segment,
					    uint64_t version, uint32_t *ret_member)
{
	const struct index_cache_key key = { .segment = segment, .version = version };
	struct index_cache_found found = index_cache_get(cache, index_cache_begin(cache), &key);

	*ret_member = found.member;
	if (found.index)
		index_cache_release(cache, found.index);
	return found.index;
}

/* Each was promised room before the other had taken it. */
static void two_queries_at_once_may_make_more_than_fits(void **state)
{
	struct index_cache *cache = index_cache_new(2 * BYTES);
	const struct index_cache_key small = { .segment = 1, .version = 1 },
				     large = { .segment = 2, .version = 1 };
	uint64_t first = index_cache_begin(cache), second = index_cache_begin(cache);
	struct function_index *one = index_of(BYTES, 1, 1), *other = index_of(2 * BYTES, 2, 1);

	(void)state;
	assert_true(index_cache_make_room(cache, first, BYTES));
	assert_true(index_cache_make_room(cache, second, 2 * BYTES));
	index_cache_put(cache, first, &small, one);
	index_cache_put(cache, second, &large, other);
	index_cache_release(cache, other);
	assert_int_equal(index_cache_bytes(cache), BYTES);
	index_cache_release(cache, one);
	index_cache_free(cache);
}

static void segments_share_an_index(void **state)
{
	const struct index_cache_key key = { .version = 1 };
	struct index_cache *cache = index_cache_new(10 * BYTES);
	struct function_index *three = index_of(2 * BYTES, 1, 3), *five = index_of(BYTES, 1, 5);
	uint32_t member;

	(void)state;
	index_cache_put(cache, index_cache_begin(cache), &key, three);
	index_cache_release(cache, three);
	for (uint64_t segment = 1; segment <= 3; segment++) {
		assert_ptr_equal(look_up(cache, segment, 1, &member), three);
		assert_int_equal(member, segment - 1);
	}
	assert_null(look_up(cache, 4, 1, &member));
	/* A larger one takes its place. */
	index_cache_put(cache, index_cache_begin(cache), &key, five);
	assert_int_equal(index_cache_bytes(cache), BYTES);
	index_cache_release(cache, five);
	assert_ptr_equal(look_up(cache, 5, 1, &member), five);
	assert_ptr_equal(look_up(cache, 2, 1, &member), five);
	/* When it is of no use for one of its segments, it is for none. */
	assert_null(look_up(cache, 3, 2, &member));
	assert_int_equal(index_cache_bytes(cache), 0);
	assert_null(look_up(cache, 1, 1, &member));
	index_cache_free(cache);
}

static void what_is_in_use_outlives_its_entry(void **state)
{
	const struct index_cache_key key = { .segment = 1, .version = 1 };
	struct index_cache *cache = index_cache_new(10 * BYTES);
	const struct function_index *index;

	(void)state;
	ask(cache, 1, 1);
	ask(cache, 1, 1);
	index = index_cache_get(cache, index_cache_begin(cache), &key).index;
	assert_non_null(index);
	assert_false(ask(cache, 1, 2));
	assert_int_equal(index->memory_bytes, BYTES - sizeof(*index));
	assert_int_equal(index_cache_bytes(cache), BYTES); /* until nobody uses it */
	index_cache_release(cache, index);
	assert_int_equal(index_cache_bytes(cache), 0);
	index_cache_free(cache);
}

struct asking {
	const struct query_source *source;
	const struct selector *selector;
	const char *expected; /* NULL: make it */
	char *table;
	pthread_t thread;
};

static char *table_of(const struct asking *asking)
{
	struct query_source source = *asking->source;
	const struct query_params params = { .selector = asking->selector,
					     .to_ns = 1000,
					     .rows_only = true,
					     .rows_limit = 3,
					     .limits = { .threads_max = 2 } };
	struct strbuf text = { 0 };
	struct tree *tree;

	source.segments = mem_new_array(struct segment, source.segments_count);
	memcpy(source.segments, asking->source->segments,
	       source.segments_count * sizeof(*source.segments));
	assert_int_equal(query_tree(&source, &params, &tree, NULL), 0);
	render_top(tree, 3, &text);
	strbuf_reserve(&text, 1)[0] = '\0';
	tree_free(tree);
	free(source.segments);
	return text.data;
}

static void *ask_often(void *context)
{
	struct asking *asking = context;

	for (int i = 0; i < ROUNDS; i++) {
		free(asking->table);
		asking->table = table_of(asking);
		if (strcmp(asking->table, asking->expected) != 0)
			break;
	}
	return NULL;
}

static void fill(struct world *world)
{
	world_init(world, 1);
	for (uint32_t report = 0; report < 40; report++) {
		char labels[32];

		snprintf(labels, sizeof(labels), "comm=c%u", report % 8);
		world_report(&world->tables[0],
			     world_series(&world->tables[0], WORLD_ON_CPU, 1, labels), report * 10,
			     10);
		for (uint32_t row = 0; row < 12; row++) {
			char stack[48];

			snprintf(stack, sizeof(stack), "main;f%u;g%u", (report + row) % 7, row % 5);
			world_row(&world->tables[0], stack, "", (int64_t)(row + 1));
		}
	}
}

/* With a budget for a few of the segments, so that indexes come and go meanwhile. */
static void threads_share_indexes(void **state)
{
	struct asking asking[THREADS];
	struct query_source source;
	struct selector selector;
	struct coded *coded;
	struct world world;
	char *expected;

	(void)state;
	fill(&world);
	coded = coded_new(&world, "comm");
	source = coded_source(coded, &(struct coded_wanted){ 0, 1000, false, false });
	assert_int_equal(selector_parse(slice_of(WORLD_ON_CPU), &selector, NULL), 0);
	expected = table_of(&(struct asking){ .source = &source, .selector = &selector });
	source.indexes = index_cache_new(6 * BYTES);
	for (int i = 0; i < THREADS; i++) {
		asking[i] = (struct asking){ .source = &source,
					     .selector = &selector,
					     .expected = expected };
		assert_int_equal(pthread_create(&asking[i].thread, NULL, ask_often, &asking[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(asking[i].thread, NULL);
		assert_string_equal(asking[i].table, expected);
		free(asking[i].table);
	}
	assert_in_range(index_cache_bytes(source.indexes), 1, 6 * BYTES);
	index_cache_free(source.indexes);
	free(expected);
	selector_free(&selector);
	coded_free(coded);
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_indexed_that_are_asked_about_again),
		cmocka_unit_test(memory_stays_within_the_budget),
		cmocka_unit_test(two_queries_at_once_may_make_more_than_fits),
		cmocka_unit_test(segments_share_an_index),
		cmocka_unit_test(what_is_in_use_outlives_its_entry),
		cmocka_unit_test(threads_share_indexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
