/* SPDX-License-Identifier: Apache-2.0 */
/* Places of frames: what is found is what was put for exactly that place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "agent/describe/recent_frames.h"
#include "base/mem.h"

#define OWNERS 3u
#define VALUES 7u /* of each word */
#define PLACES (OWNERS * VALUES * VALUES * VALUES)
#define STEPS 20000u

static const char owners[OWNERS];

static int setup(void **state)
{
	*state = mem_new(struct recent_frames);
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct recent_place place_of(uint32_t number)
{
	return (struct recent_place){ &owners[number % OWNERS],
				      { number / OWNERS % VALUES, 0,
					number / OWNERS / VALUES % VALUES,
					number / OWNERS / VALUES / VALUES } };
}

static bool find(const struct recent_frames *frames, uint32_t number, uint32_t *ret)
{
	const struct recent_place place = place_of(number);
	bool is_loop;

	if (!recent_frames_find(frames, &place, ret, &is_loop))
		return false;
	assert_int_equal(is_loop, *ret % 2);
	return true;
}

static void an_empty_one_has_nothing(void **state)
{
	const struct recent_frames *frames = *state;
	const struct recent_place nothing = { 0 };
	uint32_t frame;
	bool is_loop;

	assert_false(recent_frames_find(frames, &nothing, &frame, &is_loop));
	for (uint32_t i = 0; i < PLACES; i++)
		assert_false(find(frames, i, &frame));
}

/* Places that differ in one word, or in their owner alone, share slots now and then. */
static void what_is_found_is_of_that_place(void **state)
{
	static uint32_t put[PLACES];
	struct recent_frames *frames = *state;
	uint32_t frame, found = 0;
	uint64_t random = 1;

	for (uint32_t step = 1; step <= STEPS; step++) {
		uint32_t one, other;
		struct recent_place place;

		random = random * 6364136223846793005u + 1442695040888963407u;
		one = (uint32_t)(random >> 33) % PLACES;
		other = (uint32_t)(random >> 40) % PLACES;
		place = place_of(one);
		recent_frames_put(frames, &place, step, step % 2);
		put[one] = step;
		assert_true(find(frames, one, &frame));
		assert_int_equal(frame, step);
		if (find(frames, other, &frame)) {
			assert_int_equal(frame, put[other]);
			found++;
		}
	}
	assert_true(found > STEPS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_empty_one_has_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_found_is_of_that_place, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
