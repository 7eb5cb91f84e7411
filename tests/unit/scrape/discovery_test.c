/* SPDX-License-Identifier: Apache-2.0 */
/* What a discovery publishes, and why it has failed: what stays, what goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "server/scrape/discovery.h"

static void nothing(void *context)
{
	(void)context;
}

static const struct discovery_config config = { .kind = DISCOVERY_STATIC };
static const struct found_filter filter;

static struct found *found_one(struct discovery *discovery)
{
	struct found *found = discovery_new_found(discovery);

	found_label(found, SLICE_LITERAL("__address__"), SLICE_LITERAL("a:1"));
	found_target(found, 0);
	return found;
}

static size_t count_of(struct discovery *discovery)
{
	uint64_t version;
	struct found *found = discovery_found(discovery, &version);
	size_t count = found->count;

	found_free(found);
	return count;
}

/* What it finds then is cut, and who reloads goes on with what was known. */
static void who_is_to_stop_publishes_nothing(void **state)
{
	struct discovery *discovery = discovery_start(&config, &filter, NULL, nothing, NULL);

	(void)state;
	assert_true(discovery_publish(discovery, found_one(discovery)));
	assert_int_equal(count_of(discovery), 1);
	discovery_ask_to_stop(discovery);
	assert_false(discovery_publish(discovery, found_one(discovery)));
	assert_int_equal(count_of(discovery), 1);
	discovery_stop(discovery);
	assert_int_equal(discovery_memory.used_bytes, 0);
}

static void failures_and_refusals_are_told_apart(void **state)
{
	struct discovery *discovery = discovery_start(&config, &filter, NULL, nothing, NULL);
	struct err failure, refusal, got;

	(void)state;
	err_set(&failure, ERR_IO, "nobody answers");
	err_set(&refusal, ERR_LIMIT, "too many");
	assert_false(discovery_failure(discovery, &got));
	discovery_fail(discovery, &failure);
	discovery_refuse(discovery, &refusal);
	discovery_refuse(discovery, NULL);
	assert_true(discovery_failure(discovery, &got));
	assert_string_equal(got.message, "nobody answers");
	discovery_refuse(discovery, &refusal);
	assert_true(discovery_publish(discovery, found_one(discovery)));
	assert_true(discovery_failure(discovery, &got));
	assert_non_null(strstr(got.message, "too many"));
	discovery_refuse(discovery, NULL);
	assert_false(discovery_failure(discovery, &got));
	discovery_stop(discovery);
}

static void what_has_no_memory_leaves_the_last(void **state)
{
	struct discovery *discovery = discovery_start(&config, &filter, NULL, nothing, NULL);
	int64_t rest;
	struct err got;

	(void)state;
	assert_true(discovery_publish(discovery, found_one(discovery)));
	rest = DISCOVERY_MEMORY_BYTES_MAX - discovery_memory.used_bytes;
	budget_force(&discovery_memory, (size_t)rest);
	assert_false(discovery_publish(discovery, found_one(discovery)));
	assert_int_equal(count_of(discovery), 1);
	assert_true(discovery_failure(discovery, &got));
	assert_int_equal(discovery_memory.used_bytes, DISCOVERY_MEMORY_BYTES_MAX);
	budget_give(&discovery_memory, (size_t)rest);
	assert_true(discovery_publish(discovery, found_one(discovery)));
	assert_false(discovery_failure(discovery, &got));
	discovery_stop(discovery);
	assert_int_equal(discovery_memory.used_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_to_stop_publishes_nothing),
		cmocka_unit_test(failures_and_refusals_are_told_apart),
		cmocka_unit_test(what_has_no_memory_leaves_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
