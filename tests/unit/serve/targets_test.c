/* SPDX-License-Identifier: Apache-2.0 */
/* targets: rates and losses of senders. */
#include "server/serve/api/targets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"

#define WRITES 200

static void note(struct targets *targets, uint64_t samples, uint64_t lost)
{
	const struct targets_write write = { .peer = slice_of("10.0.0.1:5000"),
					     .sender = slice_of("firn-agent"),
					     .samples = samples,
					     .lost = lost };

	targets_note(targets, &write);
}

static struct target only(struct targets *targets)
{
	struct target *list, found;
	size_t count;

	list = targets_list(targets, slice_of(""), &count);
	assert_int_equal(count, 1);
	found = list[0];
	free(list);
	return found;
}

static void rate_is_of_all_the_time_that_is_known(void **state)
{
	struct targets *targets = targets_new();
	struct target target;
	double seconds;

	(void)state;
	for (int i = 0; i < WRITES; i++)
		note(targets, 1000, 0);
	target = only(targets);
	seconds = (double)(target.last_at_ns - target.first_at_ns) / CLOCK_NS_PER_S;
	assert_true(seconds > 0 && seconds < 60);
	assert_float_equal(target.samples_per_s * seconds, (WRITES - 1) * 1000.0, 1);
	targets_free(targets);
}

static void losses_after_a_restart_are_new_ones(void **state)
{
	struct targets *targets = targets_new();
	struct target target;

	(void)state;
	note(targets, 1, 10);
	note(targets, 1, 10);
	target = only(targets);
	assert_int_equal(target.lost_at_ns, target.first_at_ns);
	note(targets, 1, 3);
	target = only(targets);
	assert_int_equal(target.lost, 3);
	assert_int_equal(target.lost_at_ns, target.last_at_ns);
	targets_free(targets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_is_of_all_the_time_that_is_known),
		cmocka_unit_test(losses_after_a_restart_are_new_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
