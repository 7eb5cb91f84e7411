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

#include "base/budget.h"
#include "net/server.h"

/* A thread that takes a turn; what it got is read after it was joined. */
struct asker {
	struct admission *admission;
	struct admission_ask ask;
	struct admission_seat *seat;
	_Atomic bool is_served;
	struct err err;
	int rc;
	pthread_t thread;
};

static void *take(void *context)
{
	struct asker *asker = context;

	asker->rc = admission_take(asker->admission, &asker->ask, &asker->seat, &asker->err);
	atomic_store(&asker->is_served, true);
	return NULL;
}

/* Returns when it waits: those that are started one by one wait in this order. */
static void start(struct asker *asker, struct admission *admission, const char *client,
		  enum admission_size size)
{
	uint32_t before = admission_waiting(admission);

	asker->admission = admission;
	asker->ask.client = slice_of(client);
	asker->ask.size = size;
	assert_int_equal(pthread_create(&asker->thread, NULL, take, asker), 0);
	while (admission_waiting(admission) == before)
		sched_yield();
}

static void join(struct asker *asker)
{
	assert_int_equal(pthread_join(asker->thread, NULL), 0);
}

static struct admission_seat *take_now(struct admission *admission, const char *client,
				       enum admission_size size)
{
	const struct admission_ask ask = { .client = slice_of(client),
					   .size = size,
					   .at_once = true };
	struct admission_seat *seat = NULL;
	struct err err;

	return admission_take(admission, &ask, &seat, &err) ? NULL : seat;
}

static void clients_take_turns_in_a_round(void **state)
{
	struct admission *admission = admission_new(1, 8);
	struct admission_seat *first = take_now(admission, "a", ADMISSION_SMALL);
	struct asker askers[4] = { 0 };

	(void)state;
	start(&askers[0], admission, "a", ADMISSION_SMALL);
	start(&askers[1], admission, "a", ADMISSION_SMALL);
	start(&askers[2], admission, "b", ADMISSION_SMALL);
	start(&askers[3], admission, "c", ADMISSION_SMALL);
	assert_null(take_now(admission, "d", ADMISSION_SMALL));
	admission_give(admission, first);
	/* b and c had none yet, then a's in their order. */
	for (int i = 0; i < 4; i++) {
		static const int order[] = { 2, 3, 0, 1 };
		struct asker *next = &askers[order[i]];

		join(next);
		assert_int_equal(next->rc, 0);
		for (int later = i + 1; later < 4; later++)
			assert_false(atomic_load(&askers[order[later]].is_served));
		admission_give(admission, next->seat);
	}
	admission_free(admission);
}

static void small_queries_do_not_wait_for_large_ones(void **state)
{
	struct admission *admission = admission_new(4, 8);
	struct admission_seat *large[2] = { take_now(admission, "a", ADMISSION_LARGE),
					    take_now(admission, "a", ADMISSION_LARGE) };
	struct admission_seat *small[2];
	struct asker third = { 0 };

	(void)state;
	assert_non_null(large[0]);
	assert_non_null(large[1]);
	start(&third, admission, "b", ADMISSION_LARGE);
	small[0] = take_now(admission, "a", ADMISSION_SMALL);
	small[1] = take_now(admission, "a", ADMISSION_SMALL);
	assert_non_null(small[0]);
	assert_non_null(small[1]);
	assert_null(take_now(admission, "c", ADMISSION_SMALL));
	admission_give(admission, small[0]); /* which is not for another large one */
	assert_int_equal(admission_waiting(admission), 1);
	admission_give(admission, large[0]);
	join(&third);
	assert_int_equal(third.rc, 0);
	admission_give(admission, large[1]);
	admission_give(admission, small[1]);
	admission_give(admission, third.seat);
	admission_free(admission);
}

static void middle_ones_are_large_while_answers_are_unread(void **state)
{
	struct budget answers = { .max_bytes = 100 };
	const struct net_request request = { .answers = &answers };
	struct admission_ask ask = { .request = &request,
				     .client = SLICE_LITERAL("a"),
				     .size = ADMISSION_MIDDLE,
				     .at_once = true };
	struct admission *admission = admission_new(4, 8);
	struct admission_seat *seats[4] = { 0 };
	struct asker waiting = { .ask = { .request = &request } };
	struct err err;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(admission_take(admission, &ask, &seats[i], &err), 0);
	budget_force(&answers, 60);
	assert_int_equal(admission_take(admission, &ask, &seats[3], &err), -ERR_BUSY);
	start(&waiting, admission, "b", ADMISSION_MIDDLE);
	admission_give(admission, seats[0]); /* two are left, which is enough */
	assert_int_equal(admission_waiting(admission), 1);
	seats[0] = take_now(admission, "c", ADMISSION_SMALL);
	assert_non_null(seats[0]);
	budget_give(&answers, 60);
	assert_int_equal(admission_take(admission, &ask, &seats[3], &err), 0);
	admission_give(admission, seats[1]);
	join(&waiting);
	assert_int_equal(waiting.rc, 0);
	admission_give(admission, seats[0]);
	admission_give(admission, seats[2]);
	admission_give(admission, seats[3]);
	admission_give(admission, waiting.seat);
	admission_free(admission);
}

static void who_asks_to_be_alone_gets_it_next(void **state)
{
	struct admission *admission = admission_new(4, 8);
	struct admission_seat *active = take_now(admission, "a", ADMISSION_SMALL);
	struct asker alone = { 0 }, other = { 0 };

	(void)state;
	start(&alone, admission, "a", ADMISSION_ALONE);
	assert_null(take_now(admission, "b", ADMISSION_SMALL));
	start(&other, admission, "b", ADMISSION_SMALL);
	admission_give(admission, active);
	join(&alone);
	assert_int_equal(alone.rc, 0);
	assert_int_equal(admission_waiting(admission), 1);
	admission_give(admission, alone.seat);
	join(&other);
	assert_int_equal(other.rc, 0);
	admission_give(admission, other.seat);
	admission_free(admission);
}

static void queue_is_bounded(void **state)
{
	struct admission *admission = admission_new(1, 1);
	struct admission_seat *active = take_now(admission, "a", ADMISSION_SMALL);
	const struct admission_ask ask = { .client = SLICE_LITERAL("b") };
	struct asker waiting = { 0 };
	struct admission_seat *seat;
	struct err err;

	(void)state;
	start(&waiting, admission, "a", ADMISSION_SMALL);
	assert_int_equal(admission_take(admission, &ask, &seat, &err), -ERR_NO_MEMORY);
	assert_non_null(strstr(err.message, "ask again"));
	admission_give(admission, active);
	join(&waiting);
	admission_give(admission, waiting.seat);
	admission_free(admission);
}

static void start_of(struct asker *asker, struct admission *admission, const char *tenant,
		     const char *client)
{
	asker->ask.has_tenant = true;
	asker->ask.tenant = slice_of(tenant);
	start(asker, admission, client, ADMISSION_SMALL);
}

static struct admission_seat *take_now_of(struct admission *admission, const char *tenant)
{
	const struct admission_ask ask = { .client = SLICE_LITERAL("c"),
					   .has_tenant = true,
					   .tenant = slice_of(tenant),
					   .at_once = true };
	struct admission_seat *seat = NULL;
	struct err err;

	return admission_take(admission, &ask, &seat, &err) ? NULL : seat;
}

static void a_tenant_leaves_a_seat_to_others(void **state)
{
	struct admission *admission = admission_new(3, 8);
	struct admission_seat *seats[3];

	(void)state;
	seats[0] = take_now_of(admission, "noisy");
	seats[1] = take_now_of(admission, "noisy");
	assert_null(take_now_of(admission, "noisy"));
	seats[2] = take_now_of(admission, "");
	assert_non_null(seats[2]);
	for (int i = 0; i < 3; i++)
		admission_give(admission, seats[i]);
	admission_free(admission);
}

/* However many clients a tenant has, it is one among tenants. */
static void tenants_take_turns_before_clients(void **state)
{
	struct admission *admission = admission_new(2, 8);
	struct admission_seat *first = take_now_of(admission, "noisy");
	struct admission_seat *second = take_now_of(admission, "third");
	struct asker noisy[2] = { 0 }, quiet = { 0 };

	(void)state;
	start_of(&noisy[0], admission, "noisy", "a");
	start_of(&noisy[1], admission, "noisy", "b");
	start_of(&quiet, admission, "quiet", "c");
	admission_give(admission, second);
	join(&quiet);
	assert_int_equal(quiet.rc, 0);
	assert_false(atomic_load(&noisy[0].is_served));
	admission_give(admission, first);
	join(&noisy[0]);
	assert_false(atomic_load(&noisy[1].is_served));
	admission_give(admission, noisy[0].seat);
	join(&noisy[1]);
	admission_give(admission, noisy[1].seat);
	admission_give(admission, quiet.seat);
	admission_free(admission);
}

static void a_full_queue_makes_room_for_who_has_less_of_it(void **state)
{
	struct admission *admission = admission_new(2, 4);
	struct admission_seat *seats[2] = { take_now_of(admission, "noisy"),
					    take_now_of(admission, "third") };
	struct asker noisy[4] = { 0 }, others[2] = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++)
		start_of(&noisy[i], admission, "noisy", "a");
	noisy[3].admission = admission;
	noisy[3].ask = noisy[0].ask;
	take(&noisy[3]);
	assert_int_equal(noisy[3].rc, -ERR_NO_MEMORY); /* it has three quarters */
	start_of(&others[0], admission, "quiet", "b");
	others[1].admission = admission;
	others[1].ask = others[0].ask;
	others[1].ask.tenant = SLICE_LITERAL("fourth");
	assert_int_equal(pthread_create(&others[1].thread, NULL, take, &others[1]), 0);
	join(&noisy[2]);
	assert_int_equal(noisy[2].rc, -ERR_NO_MEMORY);
	admission_give(admission, seats[1]);
	join(&others[0]);
	admission_give(admission, others[0].seat);
	join(&others[1]);
	assert_int_equal(others[0].rc | others[1].rc, 0);
	admission_give(admission, others[1].seat);
	admission_give(admission, seats[0]);
	for (int i = 0; i < 2; i++) {
		join(&noisy[i]);
		assert_int_equal(noisy[i].rc, 0);
		admission_give(admission, noisy[i].seat);
	}
	admission_free(admission);
}

static void who_waits_can_leave(void **state)
{
	struct admission *admission = admission_new(1, 8);
	struct admission_seat *active = take_now(admission, "a", ADMISSION_SMALL);
	struct asker gone = { 0 }, stopped = { 0 }, late = { 0 }, alone = { 0 };
	_Atomic bool flag = false, other_flag = false, alone_flag = false;
	struct admission_seat *next;

	(void)state;
	gone.ask.cancelled = &flag;
	stopped.ask.stopped = &other_flag;
	late.ask.deadline_at_ns = clock_monotonic_ns() + CLOCK_NS_PER_S / 5;
	alone.ask.cancelled = &alone_flag;
	start(&gone, admission, "b", ADMISSION_SMALL);
	start(&stopped, admission, "b", ADMISSION_SMALL);
	start(&alone, admission, "b", ADMISSION_ALONE);
	atomic_store(&flag, true);
	atomic_store(&other_flag, true);
	join(&gone);
	join(&stopped);
	assert_int_equal(gone.rc, -ERR_CANCELLED);
	assert_int_equal(stopped.rc, -ERR_CANCELLED);
	late.admission = admission;
	take(&late);
	assert_int_equal(late.rc, -ERR_DEADLINE);
	assert_int_equal(admission_waiting(admission), 1);
	/* Who is gone is in nobody's way. */
	atomic_store(&alone_flag, true);
	join(&alone);
	assert_int_equal(admission_waiting(admission), 0);
	admission_give(admission, active);
	next = take_now(admission, "b", ADMISSION_SMALL);
	assert_non_null(next);
	admission_give(admission, next);
	admission_free(admission);
}

#define CROWD 16
#define ROUNDS 200

struct crowd {
	struct admission *admission;
	_Atomic int active;
	_Atomic int number;
};

static void *ask_often(void *context)
{
	struct crowd *crowd = context;
	int number = atomic_fetch_add(&crowd->number, 1);
	struct budget unread = { .used_bytes = number % 8 < 4 ? 100 : 0, .max_bytes = 100 };
	const struct net_request request = { .answers = &unread };
	const struct admission_ask ask = { .request = &request,
					   .client = slice_from(&"abcd"[number % 4], 1),
					   .size = (enum admission_size)(number % 4) };

	for (int i = 0; i < ROUNDS; i++) {
		struct admission_seat *seat;
		struct err err;
		int active;

		if (admission_take(crowd->admission, &ask, &seat, &err))
			return context;
		active = atomic_fetch_add(&crowd->active, 1) + 1;
		if (active > 4 || (ask.size == ADMISSION_ALONE && active > 1))
			return context;
		sched_yield();
		atomic_fetch_sub(&crowd->active, 1);
		admission_give(crowd->admission, seat);
	}
	return NULL;
}

static void a_crowd_keeps_to_the_rules(void **state)
{
	struct crowd crowd = { .admission = admission_new(4, CROWD) };
	pthread_t threads[CROWD];

	(void)state;
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &crowd), 0);
	for (int i = 0; i < CROWD; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(admission_waiting(crowd.admission), 0);
	admission_free(crowd.admission);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_take_turns_in_a_round),
		cmocka_unit_test(small_queries_do_not_wait_for_large_ones),
		cmocka_unit_test(middle_ones_are_large_while_answers_are_unread),
		cmocka_unit_test(who_asks_to_be_alone_gets_it_next),
		cmocka_unit_test(queue_is_bounded),
		cmocka_unit_test(a_tenant_leaves_a_seat_to_others),
		cmocka_unit_test(tenants_take_turns_before_clients),
		cmocka_unit_test(a_full_queue_makes_room_for_who_has_less_of_it),
		cmocka_unit_test(who_waits_can_leave),
		cmocka_unit_test(a_crowd_keeps_to_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
