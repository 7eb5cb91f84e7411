/* SPDX-License-Identifier: Apache-2.0 */
/* The way of a query from its request to its answer, and what it leaves behind wherever it ends. */
#include "server/serve/admission/ticket.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct ticket_desk desk;

static int open_desk(void **state)
{
	(void)state;
	desk.active = active_queries_new();
	desk.admission = admission_new(1, 8);
	desk.coalesce = coalesce_new(desk.admission);
	desk.cache = answer_cache_new(1 << 20);
	return 0;
}

static int close_desk(void **state)
{
	(void)state;
	answer_cache_free(desk.cache);
	coalesce_free(desk.coalesce);
	admission_free(desk.admission);
	active_queries_free(desk.active);
	return 0;
}

static void count(void *context, const struct active_query_state *query)
{
	(void)query;
	++*(size_t *)context;
}

static size_t listed(void)
{
	size_t active = 0;

	active_queries_each(desk.active, SLICE_LITERAL(""), count, &active);
	return active;
}

static void begin(struct ticket *ticket, const char *key)
{
	const struct admission_ask ask = { .client = SLICE_LITERAL("client") };
	const struct active_query_what what = { .id = SLICE_LITERAL("id") };

	ticket_init(ticket, &desk, &ask);
	ticket->key = slice_of(key);
	ticket_list(ticket, &what);
}

static void assert_body(struct net_response *response, const char *text)
{
	assert_string_equal(strbuf_text(&response->body), text);
	strbuf_free(&response->body);
}

/* A query in a thread: waits, and takes what it gets. */
struct asker {
	struct ticket ticket;
	struct net_response response;
	const char *key;
	struct err err;
	int rc;
	pthread_t thread;
};

static void *wait(void *context)
{
	struct asker *asker = context;

	begin(&asker->ticket, asker->key);
	asker->rc = ticket_lead_or_follow(&asker->ticket, ADMISSION_SMALL, &asker->response,
					  &asker->err);
	return NULL;
}

static void start(struct asker *asker, const char *key)
{
	uint32_t before = admission_waiting(desk.admission);

	*asker = (struct asker){ .key = key };
	assert_int_equal(pthread_create(&asker->thread, NULL, wait, asker), 0);
	while (admission_waiting(desk.admission) == before)
		sched_yield();
}

static void who_finds_a_seat_computes_and_its_answer_is_kept(void **state)
{
	struct net_response response = { .status = 200 }, found = { 0 };
	struct ticket first, second;
	struct err err;

	(void)state;
	begin(&first, "key");
	assert_false(ticket_find(&first, 7, &found));
	assert_int_equal(ticket_take(&first, ADMISSION_SMALL, &err), 0);
	begin(&second, "key");
	assert_int_equal(listed(), 2);
	assert_int_equal(ticket_take(&second, ADMISSION_SMALL, &err), -ERR_BUSY);
	assert_int_equal(second.state, TICKET_LISTED);
	strbuf_add_text(&response.body, "answer");
	ticket_answer(&first, 0, 7, &response);
	assert_int_equal(first.state, TICKET_ANSWERED);
	assert_true(ticket_find(&second, 7, &found));
	assert_int_equal(second.state, TICKET_ANSWERED);
	assert_body(&found, "answer");
	ticket_end(&first);
	ticket_end(&second);
	assert_int_equal(listed(), 0);
	begin(&second, "key");
	assert_false(ticket_find(&second, 8, &found)); /* the data has changed */
	ticket_end(&second);
	strbuf_free(&response.body);
	strbuf_free(&found.body);
	strbuf_free(&found.headers);
}

static void equal_queries_that_wait_get_one_answer(void **state)
{
	struct net_response response = { .status = 200 };
	struct asker leads, follows;
	struct ticket busy;
	struct err err;

	(void)state;
	begin(&busy, "");
	assert_int_equal(ticket_take(&busy, ADMISSION_SMALL, &err), 0);
	start(&leads, "key");
	start(&follows, "key");
	ticket_answer(&busy, 0, 1, &response);
	ticket_end(&busy);
	pthread_join(leads.thread, NULL);
	assert_int_equal(leads.rc, 0);
	assert_true(ticket_is_seated(&leads.ticket));
	strbuf_add_text(&response.body, "one");
	ticket_answer(&leads.ticket, 0, 0, &response);
	pthread_join(follows.thread, NULL);
	assert_int_equal(follows.rc, 0);
	assert_int_equal(follows.ticket.state, TICKET_ANSWERED);
	assert_body(&follows.response, "one");
	ticket_end(&leads.ticket);
	ticket_end(&follows.ticket);
	strbuf_free(&response.body);
	strbuf_free(&follows.response.body);
	strbuf_free(&follows.response.headers);
}

static void who_follows_a_query_that_fails_goes_on_itself(void **state)
{
	struct net_response response = { .status = 429 };
	struct asker leads, follows;
	struct ticket busy;
	struct err err;

	(void)state;
	begin(&busy, "");
	assert_int_equal(ticket_take(&busy, ADMISSION_SMALL, &err), 0);
	start(&leads, "key");
	start(&follows, "key");
	ticket_end(&busy);
	pthread_join(leads.thread, NULL);
	ticket_answer(&leads.ticket, -ERR_NO_MEMORY, 0, &response);
	ticket_end(&leads.ticket);
	pthread_join(follows.thread, NULL);
	assert_int_equal(follows.rc, 0);
	assert_true(ticket_is_seated(&follows.ticket));
	ticket_end(&follows.ticket);
	assert_int_equal(listed(), 0);
}

static void a_seat_that_is_left_is_there_for_the_next(void **state)
{
	struct ticket first, second;
	struct err err;

	(void)state;
	begin(&first, "");
	begin(&second, "");
	assert_int_equal(ticket_take(&first, ADMISSION_SMALL, &err), 0);
	ticket_leave(&first);
	assert_int_equal(first.state, TICKET_LISTED);
	assert_int_equal(ticket_take(&second, ADMISSION_SMALL, &err), 0);
	ticket_end(&second);
	assert_int_equal(ticket_wait(&first, ADMISSION_ALONE, &err), 0);
	ticket_end(&first);
}

static void a_query_that_is_stopped_while_it_waits_leaves_nothing(void **state)
{
	struct ticket busy;
	struct asker waits;
	struct err err;

	(void)state;
	begin(&busy, "");
	assert_int_equal(ticket_take(&busy, ADMISSION_SMALL, &err), 0);
	start(&waits, "key");
	assert_int_equal(active_queries_stop(desk.active, SLICE_LITERAL(""), SLICE_LITERAL("id")),
			 2);
	pthread_join(waits.thread, NULL);
	assert_int_equal(waits.rc, -ERR_CANCELLED);
	assert_int_equal(waits.ticket.state, TICKET_LISTED);
	ticket_answer(&waits.ticket, waits.rc, 0, NULL); /* no answer: it never had a seat */
	ticket_end(&waits.ticket);
	ticket_end(&busy);
	assert_int_equal(listed(), 0);
	assert_int_equal(admission_waiting(desk.admission), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_desk, close_desk)
	const struct CMUnitTest tests[] = {
		TEST(who_finds_a_seat_computes_and_its_answer_is_kept),
		TEST(equal_queries_that_wait_get_one_answer),
		TEST(who_follows_a_query_that_fails_goes_on_itself),
		TEST(a_seat_that_is_left_is_there_for_the_next),
		TEST(a_query_that_is_stopped_while_it_waits_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
