/* SPDX-License-Identifier: Apache-2.0 */
/* Kept answers: for which questions, how long, and how many. */
#include "server/serve/admission/answer_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void put(struct kept *kept, const char *key, uint64_t version, int64_t now_ns,
		const char *text)
{
	struct net_response response = { .status = 200, .content_type = "text/plain" };

	strbuf_add_text(&response.body, text);
	strbuf_add_text(&response.headers, "a: b\r\n");
	kept_put(kept, slice_of(key), version, now_ns, &response);
	strbuf_free(&response.body);
	strbuf_free(&response.headers);
}

/* NULL: it has none. */
static void assert_found(struct kept *kept, const char *key, uint64_t version, int64_t now_ns,
			 const char *text)
{
	struct net_response response = { 0 };
	bool found = kept_find(kept, slice_of(key), version, now_ns, &response);

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

static void answers_are_of_one_question_and_version(void **state)
{
	struct kept *kept = kept_new(1 << 20);

	(void)state;
	assert_found(kept, "a", 1, 0, NULL);
	put(kept, "a", 1, 0, "one");
	put(kept, "b", 1, 0, "two");
	assert_found(kept, "a", 1, 0, "one");
	assert_found(kept, "b", 1, 0, "two");
	put(kept, "a", 2, 0, "three");
	assert_found(kept, "a", 2, 0, "three");
	assert_found(kept, "b", 2, 0, NULL);
	assert_found(kept, "b", 1, 0, NULL); /* what is of another version is of no use any more */
	kept_free(kept);
}

static void answers_grow_old(void **state)
{
	struct kept *kept = kept_new(1 << 20);

	(void)state;
	put(kept, "a", 1, 5, "one");
	assert_found(kept, "a", 1, 5 + KEPT_NS, "one");
	assert_found(kept, "a", 1, 6 + KEPT_NS, NULL);
	assert_found(kept, "a", 1, 5, NULL);
	kept_free(kept);
}

static void the_least_recently_used_goes_first(void **state)
{
	struct kept *kept = kept_new(100);

	(void)state;
	for (int i = 0; i < 4; i++)
		put(kept, (const char *[]){ "a", "b", "c", "d" }[i], 1, 0, "fifteen bytes..");
	assert_found(kept, "a", 1, 0, "fifteen bytes..");
	put(kept, "e", 1, 0, "fifteen bytes.."); /* 22 each, with key and headers */
	assert_found(kept, "b", 1, 0, NULL);
	for (int i = 0; i < 4; i++)
		assert_found(kept, (const char *[]){ "a", "c", "d", "e" }[i], 1, 0,
			     "fifteen bytes..");
	put(kept, "f", 1, 0, "nineteen bytes.....");
	assert_found(kept, "f", 1, 0, NULL); /* more than a quarter */
	kept_free(kept);
}

static void their_number_is_bounded(void **state)
{
	struct kept *kept = kept_new(1 << 20);
	char key[16];

	(void)state;
	for (unsigned i = 0; i <= KEPT_ANSWERS_MAX; i++) {
		snprintf(key, sizeof(key), "%u", i);
		put(kept, key, 1, 0, key);
	}
	assert_found(kept, "0", 1, 0, NULL);
	assert_found(kept, "1", 1, 0, "1");
	assert_found(kept, key, 1, 0, key);
	kept_free(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_of_one_question_and_version),
		cmocka_unit_test(answers_grow_old),
		cmocka_unit_test(the_least_recently_used_goes_first),
		cmocka_unit_test(their_number_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
