/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Background work within a budget: whoever wakes it is not forgotten because it was at work just
 * then, does not make it exceed the budget, and a stop ends every wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/persist/disk/throttle.h"

#define LONG_NS (3600 * CLOCK_NS_PER_S)

static void a_wake_ends_the_next_sleep(void **state)
{
	struct throttle throttle;
	int64_t began_ns;

	(void)state;
	throttle_init(&throttle, 0, 0);
	throttle_wake(&throttle); /* it is at work, and looks when it is done */
	assert_false(throttle_sleep(&throttle, LONG_NS));
	began_ns = clock_monotonic_ns();
	assert_false(throttle_sleep(&throttle, CLOCK_NS_PER_S / 20)); /* once */
	assert_true(clock_monotonic_ns() - began_ns >= CLOCK_NS_PER_S / 20);
	throttle_fini(&throttle);
}

static void a_pause_leaves_the_wake_to_the_sleep(void **state)
{
	struct throttle throttle;
	int64_t began_ns;

	(void)state;
	throttle_init(&throttle, 1000, 0);
	began_ns = clock_monotonic_ns();
	throttle_begin(&throttle);
	throttle_wake(&throttle);
	assert_int_equal(throttle_pause(&throttle, 100, NULL), 0); /* a tenth of a second */
	assert_true(clock_monotonic_ns() - began_ns >= CLOCK_NS_PER_S / 10);
	assert_false(throttle_sleep(&throttle, LONG_NS));
	throttle_fini(&throttle);
}

static void a_stop_ends_every_wait(void **state)
{
	struct throttle throttle;

	(void)state;
	throttle_init(&throttle, 1, 0);
	throttle_begin(&throttle);
	throttle_stop(&throttle);
	assert_true(throttle_sleep(&throttle, LONG_NS));
	assert_int_equal(throttle_pause(&throttle, 1000000, NULL), -ERR_CANCELLED);
	throttle_fini(&throttle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wake_ends_the_next_sleep),
		cmocka_unit_test(a_pause_leaves_the_wake_to_the_sleep),
		cmocka_unit_test(a_stop_ends_every_wait),
	};

	return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
