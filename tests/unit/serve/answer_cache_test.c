/* SPDX-License-Identifier: Apache-2.0 */
/* Kept answers: for which queries, how long, and how many. */
#include "server/serve/admission/answer_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void put(struct answer_cache *cache, const char *key, uint64_t version, int64_t now_ns,
		const char *text)
{
	struct net_response response = { .status = 200, .content_type = "text/plain" };

	strbuf_add_text(&response.body, text);
	strbuf_add_text(&response.headers, "a: b\r\n");
	answer_cache_put(cache, slice_of(key), version, now_ns, &response);
	strbuf_free(&response.body);
	strbuf_free(&response.headers);
}

/* NULL: it has none. */
static void assert_found(struct answer_cache *cache, const char *key, uint64_t version,
			 int64_t now_ns, const char *text)
{
	struct net_response response = { 0 };
	bool found = answer_cache_find(cache, slice_of(key), version, now_ns, &response);

	assert_int_equal(found, text != NULL);
	if (text) {
		assert_int_equal(response.status, 200);
		assert_string_equal(response.content_type, "text/plain");
		assert_string_equal(strbuf_text(&response.headers), "a: b\r\n");
		assert_string_equal(strbuf_text(&response.body), text);
	}
	strbuf_free(&response.body);
	strbuf_free(&response.headers);
}

static void answers_are_of_one_query_and_version(void **state)
{
	struct answer_cache *cache = answer_cache_new(1 << 20);

	(void)state;
	assert_found(cache, "a", 1, 0, NULL);
	put(cache, "a", 1, 0, "one");
	put(cache, "b", 1, 0, "two");
	assert_found(cache, "a", 1, 0, "one");
	assert_found(cache, "b", 1, 0, "two");
	put(cache, "a", 2, 0, "three");
	assert_found(cache, "a", 2, 0, "three");
	assert_found(cache, "b", 2, 0, NULL);
	assert_found(cache, "b", 1, 0, NULL); /* what is of another version is of no use any more */
	answer_cache_free(cache);
}

static void answers_grow_old(void **state)
{
	struct answer_cache *cache = answer_cache_new(1 << 20);

	(void)state;
	put(cache, "a", 1, 5, "one");
	assert_found(cache, "a", 1, 5 + ANSWER_CACHE_NS, "one");
	assert_found(cache, "a", 1, 6 + ANSWER_CACHE_NS, NULL);
	assert_found(cache, "a", 1, 5, NULL);
	put(cache, "b", 1, 5, "two");
	answer_cache_age(cache, 5 + ANSWER_CACHE_NS);
	assert_found(cache, "b", 1, 5, "two");
	answer_cache_age(cache, 6 + ANSWER_CACHE_NS);
	assert_found(cache, "b", 1, 5, NULL);
	answer_cache_free(cache);
}

static void the_least_recently_used_goes_first(void **state)
{
	struct answer_cache *cache = answer_cache_new(100);

	(void)state;
	for (int i = 0; i < 4; i++)
		put(cache, (const char *[]){ "a", "b", "c", "d" }[i], 1, 0, "fifteen bytes..");
	assert_found(cache, "a", 1, 0, "fifteen bytes..");
	put(cache, "e", 1, 0, "fifteen bytes.."); /* 22 each, with key and headers */
	assert_found(cache, "b", 1, 0, NULL);
	for (int i = 0; i < 4; i++)
		assert_found(cache, (const char *[]){ "a", "c", "d", "e" }[i], 1, 0,
			     "fifteen bytes..");
	put(cache, "f", 1, 0, "nineteen bytes.....");
	assert_found(cache, "f", 1, 0, NULL); /* more than a quarter */
	answer_cache_free(cache);
}

static void their_number_is_bounded(void **state)
{
	struct answer_cache *cache = answer_cache_new(1 << 20);
	char key[16];

	(void)state;
	for (unsigned i = 0; i <= ANSWER_CACHE_COUNT_MAX; i++) {
		snprintf(key, sizeof(key), "%u", i);
		put(cache, key, 1, 0, key);
	}
	assert_found(cache, "0", 1, 0, NULL);
	assert_found(cache, "1", 1, 0, "1");
	assert_found(cache, key, 1, 0, key);
	answer_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_of_one_query_and_version),
		cmocka_unit_test(answers_grow_old),
		cmocka_unit_test(the_least_recently_used_goes_first),
		cmocka_unit_test(their_number_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
