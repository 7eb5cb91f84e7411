/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of queries: who waits, who goes on, who is refused. */
#include "server/serve/admission/admission.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A thread that takes a turn; what it got is read after it was joined. */
struct asker {
	struct turns *turns;
	struct turns_ask ask;
	struct turn *turn;
	_Atomic bool is_served;
	struct err err;
	int rc;
	pthread_t thread;
};

static void *take(void *context)
{
	struct asker *asker = context;

	asker->rc = turns_take(asker->turns, &asker->ask, &asker->turn, &asker->err);
	atomic_store(&asker->is_served, true);
	return NULL;
}

/* Returns when it waits: those that are started one by one wait in this order. */
static void start(struct asker *asker, struct turns *turns, const char *client,
		  enum turns_size size)
{
	uint32_t before = turns_waiting(turns);

	asker->turns = turns;
	asker->ask.client = slice_of(client);
	asker->ask.size = size;
	assert_int_equal(pthread_create(&asker->thread, NULL, take, asker), 0);
	while (turns_waiting(turns) == before)
		sched_yield();
}

static void join(struct asker *asker)
{
	assert_int_equal(pthread_join(asker->thread, NULL), 0);
}

static struct turn *take_now(struct turns *turns, const char *client, enum turns_size size)
{
	const struct turns_ask ask = { .client = slice_of(client), .size = size, .at_once = true };
	struct turn *turn = NULL;
	struct err err;

	return turns_take(turns, &ask, &turn, &err) ? NULL : turn;
}

static void clients_take_turns_in_a_round(void **state)
{
	struct turns *turns = turns_new(1, 8);
	struct turn *first = take_now(turns, "a", TURNS_SMALL);
	struct asker askers[4] = { 0 };

	(void)state;
	start(&askers[0], turns, "a", TURNS_SMALL);
	start(&askers[1], turns, "a", TURNS_SMALL);
	start(&askers[2], turns, "b", TURNS_SMALL);
	start(&askers[3], turns, "c", TURNS_SMALL);
	assert_null(take_now(turns, "d", TURNS_SMALL));
	turns_give(turns, first);
	/* b and c had none yet, then a's in their order. */
	for (int i = 0; i < 4; i++) {
		static const int order[] = { 2, 3, 0, 1 };
		struct asker *next = &askers[order[i]];

		join(next);
		assert_int_equal(next->rc, 0);
		for (int later = i + 1; later < 4; later++)
			assert_false(atomic_load(&askers[order[later]].is_served));
		turns_give(turns, next->turn);
	}
	turns_free(turns);
}

static void small_questions_do_not_wait_for_large_ones(void **state)
{
	struct turns *turns = turns_new(4, 8);
	struct turn *large[2] = { take_now(turns, "a", TURNS_LARGE),
				  take_now(turns, "a", TURNS_LARGE) };
	struct turn *small[2];
	struct asker third = { 0 };

	(void)state;
	assert_non_null(large[0]);
	assert_non_null(large[1]);
	start(&third, turns, "b", TURNS_LARGE);
	small[0] = take_now(turns, "a", TURNS_SMALL);
	small[1] = take_now(turns, "a", TURNS_SMALL);
	assert_non_null(small[0]);
	assert_non_null(small[1]);
	assert_null(take_now(turns, "c", TURNS_SMALL));
	turns_give(turns, small[0]); /* which is not for another large one */
	assert_int_equal(turns_waiting(turns), 1);
	turns_give(turns, large[0]);
	join(&third);
	assert_int_equal(third.rc, 0);
	turns_give(turns, large[1]);
	turns_give(turns, small[1]);
	turns_give(turns, third.turn);
	turns_free(turns);
}

static void who_asks_to_be_alone_gets_it_next(void **state)
{
	struct turns *turns = turns_new(4, 8);
	struct turn *running = take_now(turns, "a", TURNS_SMALL);
	struct asker alone = { 0 }, other = { 0 };

	(void)state;
	start(&alone, turns, "a", TURNS_ALONE);
	assert_null(take_now(turns, "b", TURNS_SMALL));
	start(&other, turns, "b", TURNS_SMALL);
	turns_give(turns, running);
	join(&alone);
	assert_int_equal(alone.rc, 0);
	assert_int_equal(turns_waiting(turns), 1);
	turns_give(turns, alone.turn);
	join(&other);
	assert_int_equal(other.rc, 0);
	turns_give(turns, other.turn);
	turns_free(turns);
}

static void queue_is_bounded(void **state)
{
	struct turns *turns = turns_new(1, 1);
	struct turn *running = take_now(turns, "a", TURNS_SMALL);
	const struct turns_ask ask = { .client = SLICE_LITERAL("b") };
	struct asker waiting = { 0 };
	struct turn *turn;
	struct err err;

	(void)state;
	start(&waiting, turns, "a", TURNS_SMALL);
	assert_int_equal(turns_take(turns, &ask, &turn, &err), -ERR_NO_MEMORY);
	assert_non_null(strstr(err.message, "ask again"));
	turns_give(turns, running);
	join(&waiting);
	turns_give(turns, waiting.turn);
	turns_free(turns);
}

static void who_waits_can_leave(void **state)
{
	struct turns *turns = turns_new(1, 8);
	struct turn *running = take_now(turns, "a", TURNS_SMALL);
	struct asker gone = { 0 }, stopped = { 0 }, late = { 0 }, alone = { 0 };
	_Atomic bool flag = false, other_flag = false, alone_flag = false;
	struct turn *next;

	(void)state;
	gone.ask.cancelled = &flag;
	stopped.ask.stopped = &other_flag;
	late.ask.deadline_at_ns = clock_monotonic_ns() + CLOCK_NS_PER_S / 5;
	alone.ask.cancelled = &alone_flag;
	start(&gone, turns, "b", TURNS_SMALL);
	start(&stopped, turns, "b", TURNS_SMALL);
	start(&alone, turns, "b", TURNS_ALONE);
	atomic_store(&flag, true);
	atomic_store(&other_flag, true);
	join(&gone);
	join(&stopped);
	assert_int_equal(gone.rc, -ERR_CANCELLED);
	assert_int_equal(stopped.rc, -ERR_CANCELLED);
	late.turns = turns;
	take(&late);
	assert_int_equal(late.rc, -ERR_DEADLINE);
	assert_int_equal(turns_waiting(turns), 1);
	/* Who is gone is in nobody's way. */
	atomic_store(&alone_flag, true);
	join(&alone);
	assert_int_equal(turns_waiting(turns), 0);
	turns_give(turns, running);
	next = take_now(turns, "b", TURNS_SMALL);
	assert_non_null(next);
	turns_give(turns, next);
	turns_free(turns);
}

#define CROWD 16
#define ROUNDS 200

struct crowd {
	struct turns *turns;
	_Atomic int running;
	_Atomic int number;
};

static void *ask_often(void *context)
{
	struct crowd *crowd = context;
	int number = atomic_fetch_add(&crowd->number, 1);
	const struct turns_ask ask = { .client = slice_from(&"abcd"[number % 4], 1),
				       .size = (enum turns_size)(number % 3) };

	for (int i = 0; i < ROUNDS; i++) {
		struct turn *turn;
		struct err err;
		int running;

		if (turns_take(crowd->turns, &ask, &turn, &err))
			return context;
		running = atomic_fetch_add(&crowd->running, 1) + 1;
		if (running > 4 || (ask.size == TURNS_ALONE && running > 1))
			return context;
		sched_yield();
		atomic_fetch_sub(&crowd->running, 1);
		turns_give(crowd->turns, turn);
	}
	return NULL;
}

static void a_crowd_keeps_to_the_rules(void **state)
{
	struct crowd crowd = { .turns = turns_new(4, CROWD) };
	pthread_t threads[CROWD];

	(void)state;
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &crowd), 0);
	for (int i = 0; i < CROWD; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(turns_waiting(crowd.turns), 0);
	turns_free(crowd.turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_take_turns_in_a_round),
		cmocka_unit_test(small_questions_do_not_wait_for_large_ones),
		cmocka_unit_test(who_asks_to_be_alone_gets_it_next),
		cmocka_unit_test(queue_is_bounded),
		cmocka_unit_test(who_waits_can_leave),
		cmocka_unit_test(a_crowd_keeps_to_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
