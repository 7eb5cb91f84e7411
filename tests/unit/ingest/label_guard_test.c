/* SPDX-License-Identifier: Apache-2.0 */
/* Which series are too many, over hours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "server/ingest/label_guard.h"

#define MOST 100u
#define HOUR_NS LABEL_GUARD_SPAN_NS
#define NOBODY SLICE_LITERAL("")

/* A series of a pod and a value of `name`; true if it is taken. */
static bool take(struct label_guard *guard, struct slice tenant, const char *name, unsigned value,
		 int64_t at_ns, struct err *err)
{
	char text[16];
	const struct label_guard_pair pairs[] = { { SLICE_LITERAL("job"), SLICE_LITERAL("a") },
						  { slice_of(name), { text, 0 } } };
	struct label_guard_pair own[2] = { pairs[0], pairs[1] };

	own[1].value.len = (size_t)snprintf(text, sizeof(text), "%u", value);
	return !label_guard_check(guard, tenant, own, 2, at_ns, err);
}

static void values_that_never_repeat_are_refused_by_name(void **state)
{
	struct label_guard *guard = label_guard_new(MOST);
	struct err err;

	(void)state;
	for (unsigned i = 0; i < MOST; i++)
		assert_true(take(guard, NOBODY, "request", i, 0, &err));
	assert_false(take(guard, NOBODY, "request", MOST, 1, &err));
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.message, "\"request\""));
	assert_non_null(strstr(err.message, "--series-label-values"));
	for (unsigned i = 0; i < MOST; i++) /* what is known goes on */
		assert_true(take(guard, NOBODY, "request", i, 2, &err));
	assert_true(take(guard, NOBODY, "pod", 7, 2, &err));
	assert_true(take(guard, SLICE_LITERAL("acme"), "request", MOST, 2, &err));
	label_guard_free(guard);
}

/* A series that is refused for one label leaves none of its others behind. */
static void what_is_refused_counts_for_nothing(void **state)
{
	struct label_guard *guard = label_guard_new(1);
	const struct label_guard_pair first = { SLICE_LITERAL("a"), SLICE_LITERAL("1") };
	const struct label_guard_pair bad[] = { { SLICE_LITERAL("b"), SLICE_LITERAL("1") },
						{ SLICE_LITERAL("a"), SLICE_LITERAL("2") } };
	const struct label_guard_pair good = { SLICE_LITERAL("b"), SLICE_LITERAL("2") };

	(void)state;
	assert_int_equal(label_guard_check(guard, NOBODY, &first, 1, 0, NULL), 0);
	assert_int_equal(label_guard_check(guard, NOBODY, bad, 2, 0, NULL), -ERR_INVALID);
	assert_int_equal(label_guard_check(guard, NOBODY, &good, 1, 0, NULL), 0);
	label_guard_free(guard);
}

static void a_steady_fleet_passes_for_ever(void **state)
{
	struct label_guard *guard = label_guard_new(MOST);

	(void)state;
	for (int64_t at_ns = 0; at_ns < 20 * HOUR_NS; at_ns += HOUR_NS / 4)
		for (unsigned i = 0; i < MOST; i++)
			assert_true(take(guard, NOBODY, "pod", i, at_ns, NULL));
	label_guard_free(guard);
}

static void each_hour_brings_new_room(void **state)
{
	struct label_guard *guard = label_guard_new(MOST);
	unsigned taken = 0;

	(void)state;
	for (unsigned i = 0; i < 5 * 3600; i++) /* a request per second */
		taken += take(guard, NOBODY, "request", i, i * CLOCK_NS_PER_S, NULL);
	assert_int_equal(taken, 5 * MOST);
	assert_true(take(guard, NOBODY, "request", 1u << 30, 100 * HOUR_NS, NULL));
	label_guard_free(guard);
}

static void names_are_bounded_too(void **state)
{
	struct label_guard *guard = label_guard_new(MOST);
	struct err err;
	char name[16];

	(void)state;
	for (unsigned i = 0; i + 1 < LABEL_GUARD_NAMES_MAX; i++) { /* and "job" */
		snprintf(name, sizeof(name), "n%u", i);
		assert_true(take(guard, NOBODY, name, 1, 0, &err));
	}
	assert_false(take(guard, NOBODY, "another", 1, 0, &err));
	assert_non_null(strstr(err.message, "\"another\""));
	assert_true(take(guard, NOBODY, "n7", 2, 0, &err));
	label_guard_free(guard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_that_never_repeat_are_refused_by_name),
		cmocka_unit_test(what_is_refused_counts_for_nothing),
		cmocka_unit_test(a_steady_fleet_passes_for_ever),
		cmocka_unit_test(each_hour_brings_new_room),
		cmocka_unit_test(names_are_bounded_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
