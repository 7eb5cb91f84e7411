/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that are the same: who leads, who gets whose answer, who asks again. */
#include "server/serve/admission/coalesce.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct slice same = SLICE_LITERAL("same");

/* A thread that asks; what it got is read after it was joined, or `is_served`. */
struct asker {
	struct coalesce *coalesce;
	struct admission_ask ask;
	struct net_response response;
	struct coalesce_lead *lead;
	_Atomic bool is_served;
	struct err err;
	int rc;
	pthread_t thread;
};

static void *enter(void *context)
{
	struct asker *asker = context;

	asker->rc = coalesce_enter(asker->coalesce, same, &asker->ask, &asker->response,
				   &asker->lead, &asker->err);
	atomic_store(&asker->is_served, true);
	return NULL;
}

/* Returns when it has joined another. */
static void start(struct asker *asker, struct admission *admission, struct coalesce *coalesce)
{
	uint32_t before = admission_waiting(admission);

	asker->coalesce = coalesce;
	assert_int_equal(pthread_create(&asker->thread, NULL, enter, asker), 0);
	while (admission_waiting(admission) == before)
		sched_yield();
}

static void join(struct asker *asker)
{
	assert_int_equal(pthread_join(asker->thread, NULL), 0);
}

static struct coalesce_lead *lead_now(struct coalesce *coalesce)
{
	const struct admission_ask ask = { 0 };
	struct net_response response = { 0 };
	struct coalesce_lead *lead;
	struct err err;

	assert_int_equal(coalesce_enter(coalesce, same, &ask, &response, &lead, &err), 0);
	assert_non_null(lead);
	return lead;
}

static void finish(struct coalesce *coalesce, struct coalesce_lead *lead, int status,
		   const char *text)
{
	struct net_response response = { .status = status, .content_type = "text/plain" };

	strbuf_add_text(&response.body, text);
	coalesce_finish(coalesce, lead, &response);
	strbuf_free(&response.body);
}

static void assert_answer(struct asker *asker, int status, const char *text)
{
	assert_int_equal(asker->rc, 0);
	assert_null(asker->lead);
	assert_int_equal(asker->response.status, status);
	assert_string_equal(asker->response.content_type, "text/plain");
	assert_string_equal(strbuf_text(&asker->response.body), text);
	strbuf_free(&asker->response.body);
	strbuf_free(&asker->response.headers);
}

static void all_who_joined_get_the_answer(void **state)
{
	struct admission *admission = admission_new(1, 8);
	struct coalesce *coalesce = coalesce_new(admission);
	struct coalesce_lead *lead = lead_now(coalesce);
	struct asker askers[3] = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++)
		start(&askers[i], admission, coalesce);
	coalesce_close(coalesce, lead);
	finish(coalesce, lead, 404, "nothing");
	for (int i = 0; i < 3; i++) {
		join(&askers[i]);
		assert_answer(&askers[i], 404, "nothing");
	}
	assert_int_equal(admission_waiting(admission), 0);
	coalesce_free(coalesce);
	admission_free(admission);
}

/* Its snapshot may have been taken before. */
static void nobody_joins_what_is_computed(void **state)
{
	struct admission *admission = admission_new(1, 8);
	struct coalesce *coalesce = coalesce_new(admission);
	struct coalesce_lead *lead = lead_now(coalesce), *next;
	struct asker asker = { 0 };

	(void)state;
	coalesce_close(coalesce, lead);
	next = lead_now(coalesce);
	start(&asker, admission, coalesce);
	finish(coalesce, lead, 200, "old");
	assert_false(atomic_load(&asker.is_served));
	finish(coalesce, next, 200, "new");
	join(&asker);
	assert_answer(&asker, 200, "new");
	coalesce_free(coalesce);
	admission_free(admission);
}

/* True when it leads: then it answers. */
static bool take_answer(struct coalesce *coalesce, struct asker *asker, const char *text)
{
	join(asker);
	assert_int_equal(asker->rc, 0);
	if (asker->lead)
		finish(coalesce, asker->lead, 200, text);
	else
		assert_answer(asker, 200, text);
	return asker->lead != NULL;
}

static void when_the_leader_leaves_another_leads(void **state)
{
	struct admission *admission = admission_new(1, 8);
	struct coalesce *coalesce = coalesce_new(admission);
	struct coalesce_lead *lead = lead_now(coalesce);
	struct asker askers[3] = { 0 };
	int led = 0;
	bool is_told[3] = { false };

	(void)state;
	for (int i = 0; i < 3; i++)
		start(&askers[i], admission, coalesce);
	coalesce_close(coalesce, lead); /* it goes while it computes */
	coalesce_finish(coalesce, lead, NULL);
	/* One leads now; the others join it, or are too late and lead after it. */
	for (int told = 0; told < 3; sched_yield()) {
		for (int i = 0; i < 3; i++) {
			if (is_told[i] || !atomic_load(&askers[i].is_served))
				continue;
			is_told[i] = true;
			led += take_answer(coalesce, &askers[i], "again");
			told++;
		}
	}
	assert_true(led > 0);
	assert_int_equal(admission_waiting(admission), 0);
	coalesce_free(coalesce);
	admission_free(admission);
}

static void who_joined_can_leave(void **state)
{
	struct admission *admission = admission_new(1, 8);
	struct coalesce *coalesce = coalesce_new(admission);
	struct coalesce_lead *lead = lead_now(coalesce);
	struct asker gone = { 0 }, stopped = { 0 }, late = { 0 }, stays = { 0 };
	_Atomic bool flag = false, other_flag = false;

	(void)state;
	gone.ask.cancelled = &flag;
	stopped.ask.stopped = &other_flag;
	late.ask.deadline_at_ns = clock_monotonic_ns() + CLOCK_NS_PER_S / 5;
	late.coalesce = coalesce;
	start(&gone, admission, coalesce);
	start(&stays, admission, coalesce);
	start(&stopped, admission, coalesce);
	atomic_store(&flag, true);
	atomic_store(&other_flag, true);
	join(&gone);
	join(&stopped);
	enter(&late);
	assert_int_equal(gone.rc, -ERR_CANCELLED);
	assert_int_equal(stopped.rc, -ERR_CANCELLED);
	assert_int_equal(late.rc, -ERR_DEADLINE);
	assert_int_equal(admission_waiting(admission), 1);
	finish(coalesce, lead, 200, "here");
	join(&stays);
	assert_answer(&stays, 200, "here");
	coalesce_free(coalesce);
	admission_free(admission);
}

static void who_joins_is_one_that_waits(void **state)
{
	struct admission *admission = admission_new(1, 1);
	struct coalesce *coalesce = coalesce_new(admission);
	struct coalesce_lead *lead = lead_now(coalesce);
	struct asker first = { 0 }, second = { .coalesce = coalesce };

	(void)state;
	start(&first, admission, coalesce);
	enter(&second);
	assert_int_equal(second.rc, -ERR_NO_MEMORY);
	assert_non_null(strstr(second.err.message, "ask again"));
	finish(coalesce, lead, 200, "one");
	join(&first);
	assert_answer(&first, 200, "one");
	coalesce_free(coalesce);
	admission_free(admission);
}

static void copies_are_bounded(void **state)
{
	struct admission *admission = admission_new(1, 8);
	struct coalesce *coalesce = coalesce_new(admission);
	struct coalesce_lead *lead = lead_now(coalesce);
	struct net_response large = { .status = 200 };
	struct asker asker = { 0 };

	(void)state;
	start(&asker, admission, coalesce);
	memset(strbuf_reserve(&large.body, COALESCE_BYTES_MAX + 1), 'x', COALESCE_BYTES_MAX + 1);
	large.body.len = COALESCE_BYTES_MAX + 1;
	coalesce_finish(coalesce, lead, &large);
	strbuf_free(&large.body);
	join(&asker);
	assert_int_equal(asker.rc, 0);
	assert_non_null(asker.lead);
	assert_int_equal(asker.response.body.len, 0);
	coalesce_finish(coalesce, asker.lead, NULL);
	coalesce_free(coalesce);
	admission_free(admission);
}

static void assert_keys(const struct net_request *a, const struct net_request *b,
			const char *b_tenant, const char *b_times, bool are_same)
{
	struct strbuf first = { 0 }, second = { 0 };

	assert_true(coalesce_key(a, slice_of("t"), slice_of("1 2"), &first));
	assert_true(coalesce_key(b, slice_of(b_tenant), slice_of(b_times), &second));
	assert_int_equal(slice_equal(strbuf_slice(&first), strbuf_slice(&second)), are_same);
	strbuf_free(&first);
	strbuf_free(&second);
}

static struct net_request get(const char *path, const char *query)
{
	return (struct net_request){ .method = SLICE_LITERAL("GET"),
				     .path = slice_of(path),
				     .query = slice_of(query) };
}

static void key_is_what_makes_the_answer(void **state)
{
	static const struct {
		const char *query;
		bool is_same;
	} cases[] = {
		{ "filter=x&width=9&query=a%7Bb%7D&filter=y&id=2&from=4&to=5", true },
		{ "query=a{b}&filter=y&filter=x&width=9", false },
		{ "query=a{b}&filter=x&filter=y&width=8", false },
		{ "query=a{b}&filter=x&filter=y", false },
		{ "query=a{b}&filter=x&filter=y&width=9&notes=1", false },
		{ "query=a{b}&filter=x&filter=ywidth=9", false },
	};
	const struct net_request first =
		get("/api/v1/query", "query=a{b}&filter=x&filter=y&width=9&id=1");
	struct net_request other;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		other = get("/api/v1/query", cases[i].query);
		assert_keys(&first, &other, "t", "1 2", cases[i].is_same);
	}
	assert_keys(&first, &first, "t", "1 2", true);
	assert_keys(&first, &first, "u", "1 2", false);
	assert_keys(&first, &first, "t", "1 3", false);
	other = get("/api/v1/series", "query=a{b}&filter=x&filter=y&width=9&id=1");
	assert_keys(&first, &other, "t", "1 2", false);
	other = first;
	other.method = slice_of("HEAD");
	assert_keys(&first, &other, "t", "1 2", false);
}

static void some_queries_are_shared_with_nobody(void **state)
{
	struct strbuf many = { 0 }, key = { 0 };
	struct net_request request = get("/api/v1/query", "query=%zz");

	(void)state;
	assert_false(coalesce_key(&request, slice_of(""), slice_of(""), &key));
	for (int i = 0; i <= COALESCE_PARAMETERS_MAX; i++)
		strbuf_add_text(&many, "filter=x&");
	request.query = strbuf_slice(&many);
	assert_false(coalesce_key(&request, slice_of(""), slice_of(""), &key));
	request = get("/api/v1/query", "");
	request.body = slice_of("x");
	assert_false(coalesce_key(&request, slice_of(""), slice_of(""), &key));
	strbuf_free(&many);
	strbuf_free(&key);
}

#define CROWD 16
#define ROUNDS 200

struct crowd {
	struct admission *admission;
	struct coalesce *coalesce;
	_Atomic unsigned written;
	_Atomic int number;
};

/* Each writes, asks, and has what it wrote in its answer, whoever computed that; some leave. */
static void *write_and_ask(void *context)
{
	struct crowd *crowd = context;
	bool leaves = atomic_fetch_add(&crowd->number, 1) % 4 == 0;
	const struct admission_ask ask = { .client = SLICE_LITERAL("a") };

	for (int i = 0; i < ROUNDS; i++) {
		unsigned mine = atomic_fetch_add(&crowd->written, 1) + 1, seen;
		struct net_response response = { 0 };
		struct coalesce_lead *lead;
		struct admission_seat *seat;
		struct err err;

		if (coalesce_enter(crowd->coalesce, same, &ask, &response, &lead, &err))
			return context;
		if (lead) {
			if (admission_take(crowd->admission, &ask, &seat, &err))
				return context;
			coalesce_close(crowd->coalesce, lead);
			strbuf_addf(&response.body, "%u", atomic_load(&crowd->written));
			coalesce_finish(crowd->coalesce, lead, leaves ? NULL : &response);
			admission_give(crowd->admission, seat);
		}
		if (sscanf(strbuf_text(&response.body), "%u", &seen) != 1 || seen < mine)
			return context;
		strbuf_free(&response.body);
		strbuf_free(&response.headers);
	}
	return NULL;
}

static void a_crowd_reads_what_it_wrote(void **state)
{
	struct crowd crowd = { .admission = admission_new(1, 2 * CROWD) };
	pthread_t threads[CROWD];

	(void)state;
	crowd.coalesce = coalesce_new(crowd.admission);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_and_ask, &crowd), 0);
	for (int i = 0; i < CROWD; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(admission_waiting(crowd.admission), 0);
	coalesce_free(crowd.coalesce);
	admission_free(crowd.admission);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_who_joined_get_the_answer),
		cmocka_unit_test(nobody_joins_what_is_computed),
		cmocka_unit_test(when_the_leader_leaves_another_leads),
		cmocka_unit_test(who_joined_can_leave),
		cmocka_unit_test(who_joins_is_one_that_waits),
		cmocka_unit_test(copies_are_bounded),
		cmocka_unit_test(key_is_what_makes_the_answer),
		cmocka_unit_test(some_queries_are_shared_with_nobody),
		cmocka_unit_test(a_crowd_reads_what_it_wrote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
