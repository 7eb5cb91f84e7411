/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters of a request mean, and what is refused by name. */
#include "server/serve/api/parameters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOW_NS (1700000000 * CLOCK_NS_PER_S)
#define MS(ms) ((ms)*CLOCK_NS_PER_MS)
#define TYPE "on_cpu:samples:count:cpu:nanoseconds:delta"

static int read(struct parameters *asked, const char *query, struct err *err)
{
	const struct net_request request = { .query = slice_of(query) };

	parameters_init(asked);
	return parameters_read(asked, &request, PARAMETERS_TYPE_NEEDED, NOW_NS, err);
}

static void assert_refused(const char *query, int rc, const char *says)
{
	struct parameters asked;
	struct err err;

	assert_int_equal(read(&asked, query, &err), -rc);
	if (!strstr(err.message, says))
		fail_msg("\"%s\" does not say \"%s\"", err.message, says);
	parameters_free(&asked);
}

static void the_last_hour_is_what_is_asked_without_times(void **state)
{
	struct parameters asked;
	struct err err;

	(void)state;
	assert_int_equal(read(&asked, "query=" TYPE, &err), 0);
	assert_int_equal(asked.params.to_ns, NOW_NS);
	assert_int_equal(asked.params.from_ns, NOW_NS - 3600 * CLOCK_NS_PER_S);
	assert_false(asked.params.at_moment);
	assert_false(asked.params.by_times);
	assert_ptr_equal(asked.params.selector, &asked.selector);
	assert_int_equal(asked.id.len, 0);
	parameters_free(&asked);
}

static void a_moment_looks_as_far_back_as_ahead(void **state)
{
	struct parameters asked;
	struct err err;

	(void)state;
	assert_int_equal(read(&asked, "query=" TYPE "&at=1699999000000&times=1&from=5", &err), 0);
	assert_true(asked.params.at_moment);
	assert_false(asked.params.by_times);
	assert_int_equal(asked.params.moment_ns, 1699999000 * CLOCK_NS_PER_S);
	assert_int_equal(asked.params.moment_ns - asked.params.from_ns,
			 PARAMETERS_MOMENT_WINDOW_NS);
	assert_int_equal(asked.params.to_ns - asked.params.moment_ns, PARAMETERS_MOMENT_WINDOW_NS);
	parameters_free(&asked);
}

static void cells_are_sorted_and_those_that_touch_are_one(void **state)
{
	struct parameters asked;
	struct err err;

	(void)state;
	assert_int_equal(read(&asked, "query=" TYPE "&cells=50-60,10-20,20-30,12-14,40-45", &err),
			 0);
	assert_int_equal(asked.params.spans_count, 3);
	assert_int_equal(asked.params.spans[0].from_ns, MS(10));
	assert_int_equal(asked.params.spans[0].to_ns, MS(30));
	assert_int_equal(asked.params.spans[1].from_ns, MS(40));
	assert_int_equal(asked.params.spans[2].to_ns, MS(60));
	assert_true(asked.params.by_times);
	parameters_free(&asked);
}

static void samples_count_at_their_own_times_below_ten_seconds(void **state)
{
	const struct net_request plain = { .query = SLICE_LITERAL("a=1") };
	const struct net_request no = { .query = SLICE_LITERAL("times=0") };
	const struct net_request yes = { .query = SLICE_LITERAL("times=1") };
	struct parameters asked;

	(void)state;
	parameters_init(&asked);
	parameters_times(&asked, &plain, PARAMETERS_TIMES_BELOW_NS - 1);
	assert_true(asked.params.by_times);
	parameters_times(&asked, &plain, PARAMETERS_TIMES_BELOW_NS);
	assert_false(asked.params.by_times);
	parameters_times(&asked, &yes, PARAMETERS_TIMES_BELOW_NS);
	assert_true(asked.params.by_times);
	parameters_times(&asked, &no, 1);
	assert_false(asked.params.by_times);
	parameters_free(&asked);
}

static void labels_and_filters_add_up(void **state)
{
	struct parameters asked;
	struct err err;

	(void)state;
	assert_int_equal(read(&asked,
			      "query=" TYPE "%7Bcomm%3D%22nginx%22%7D&group_by=host,,pod&id=me"
			      "&filter=hide-frame+kind%3Dkernel&filter=show-stack+function%3Dmain",
			      &err),
			 0);
	assert_int_equal(asked.selector.matchers_count, 1);
	assert_int_equal(asked.params.group_by_count, 2);
	assert_true(slice_is(asked.params.group_by[1], "pod"));
	assert_int_equal(asked.params.filters->count, 2);
	assert_true(slice_is(asked.id, "me"));
	parameters_free(&asked);
}

static void a_base_is_the_query_unless_it_has_its_own(void **state)
{
	const struct net_request same = { .query = SLICE_LITERAL("query=" TYPE
								 "&base_from=100&base_to=200") };
	const struct net_request other = { .query = SLICE_LITERAL(
						   "query=" TYPE "&base_query=" TYPE
						   "%7Ba%3D%22b%22%7D&base_from=200&base_to=100") };
	struct parameters asked;
	struct err err;

	(void)state;
	parameters_init(&asked);
	assert_int_equal(parameters_read_base(&asked, &same, NOW_NS, &err), 0);
	assert_int_equal(asked.selector.matchers_count, 0);
	assert_int_equal(asked.params.from_ns, MS(100));
	parameters_free(&asked);
	parameters_init(&asked);
	assert_int_equal(parameters_read_base(&asked, &other, NOW_NS, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "base_from"));
	assert_int_equal(asked.selector.matchers_count, 1);
	parameters_free(&asked);
}

static void names_are_waited_for_as_long_as_is_said(void **state)
{
	struct parameters asked;
	struct err err;

	(void)state;
	assert_int_equal(read(&asked, "query=" TYPE, &err), 0);
	assert_int_equal(asked.names_wait_ns, 0); /* not said */
	parameters_free(&asked);
	assert_int_equal(read(&asked, "query=" TYPE "&names_wait=2s", &err), 0);
	assert_int_equal(asked.names_wait_ns, 2 * CLOCK_NS_PER_S);
	parameters_free(&asked);
	/* Not at all is not the same as not said. */
	assert_int_equal(read(&asked, "query=" TYPE "&names_wait=0s", &err), 0);
	assert_int_equal(asked.names_wait_ns, 1);
	parameters_free(&asked);
	assert_refused("query=" TYPE "&names_wait=soon", ERR_INVALID, "names_wait");
}

static void refusals_name_the_parameter(void **state)
{
	char cells[8192] = "query=" TYPE "&cells=1-2";

	(void)state;
	assert_refused("from=now", ERR_INVALID, "profile type");
	assert_refused("query=" TYPE "&from=never", ERR_INVALID, "\"from\"");
	assert_refused("query=" TYPE "&at=never", ERR_INVALID, "\"at\"");
	assert_refused("query=" TYPE "&from=200&to=100", ERR_INVALID, "later than \"to\"");
	assert_refused("query=" TYPE "&demangle=some", ERR_INVALID, "\"demangle\": \"some\"");
	assert_refused("query=" TYPE "&cells=9-3", ERR_INVALID, "\"cells\": \"9-3\"");
	assert_refused("query=" TYPE "&group_by=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
		       ERR_LIMIT, "group by");
	assert_refused("query=" TYPE "&id=0123456789012345678901234567890123456789012345678901234"
		       "5678901234",
		       ERR_INVALID, "\"id\"");
	for (int i = 0; i < PARAMETERS_CELLS_MAX; i++)
		strcat(cells, ",1-2");
	assert_refused(cells, ERR_LIMIT, "\"cells\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_hour_is_what_is_asked_without_times),
		cmocka_unit_test(a_moment_looks_as_far_back_as_ahead),
		cmocka_unit_test(cells_are_sorted_and_those_that_touch_are_one),
		cmocka_unit_test(samples_count_at_their_own_times_below_ten_seconds),
		cmocka_unit_test(labels_and_filters_add_up),
		cmocka_unit_test(a_base_is_the_query_unless_it_has_its_own),
		cmocka_unit_test(names_are_waited_for_as_long_as_is_said),
		cmocka_unit_test(refusals_name_the_parameter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
