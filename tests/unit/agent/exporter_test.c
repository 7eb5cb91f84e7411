/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter against a server made of paper: net_client_* and encode_otlp are defined here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/export/encode_otlp.h"
#include "agent/export/exporter.h"
#include "base/metrics.h"
#include "net/client/client.h"

#define CALLS_MAX 64
#define STOP_GRACE_NS (3 * CLOCK_NS_PER_S)

/* What the server answers to each call in turn, the last one from then on. */
struct answer {
	int code; /* of net_client_call */
	int grpc_status, http_status;
	int64_t retry_after_ns;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct answer *answers;
	size_t answers_count;
	size_t calls;
	char bodies[CALLS_MAX][32];
	bool closed; /* calls wait until it is opened */
	int64_t end_by_ns;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int batch_number;

void encode_otlp(const struct tables_view *view, struct strbuf *out)
{
	(void)view;
	strbuf_addf(out, "batch-%d", batch_number);
}

int net_client_new(const char *address, const struct net_access *access, struct net_client **ret,
		   struct err *err)
{
	(void)access;
	if (!strchr(address, ':'))
		return err_set(err, ERR_INVALID, "address \"%s\": no port", address);
	*ret = (struct net_client *)&server;
	return 0;
}

void net_client_end_by(struct net_client *client, int64_t at_ns)
{
	assert_ptr_equal(client, &server);
	server.end_by_ns = at_ns;
}

void net_client_free(struct net_client *client)
{
	assert_ptr_equal(client, &server);
}

int net_client_call(struct net_client *client, const struct net_call *call, struct net_reply *ret,
		    struct err *err)
{
	struct answer answer;

	assert_ptr_equal(client, &server);
	pthread_mutex_lock(&server.lock);
	while (server.closed)
		pthread_cond_wait(&server.changed, &server.lock);
	answer = server.answers[server.calls < server.answers_count ? server.calls
								    : server.answers_count - 1];
	if (server.calls < CALLS_MAX)
		snprintf(server.bodies[server.calls], sizeof(server.bodies[0]), "%.*s",
			 SLICE_FMT(call->body));
	server.calls++;
	pthread_cond_broadcast(&server.changed);
	pthread_mutex_unlock(&server.lock);
	if (answer.code)
		return err_set(err, (enum err_code) - answer.code, "connect: refused");
	*ret = (struct net_reply){ .status = answer.http_status ? answer.http_status : 200,
				   .grpc_status = answer.grpc_status,
				   .retry_after_ns = answer.retry_after_ns };
	return 0;
}

static void serve(const struct answer *answers, size_t count)
{
	server.answers = answers;
	server.answers_count = count;
	server.calls = 0;
	server.closed = false;
}

static void set_closed(bool closed)
{
	pthread_mutex_lock(&server.lock);
	server.closed = closed;
	pthread_cond_broadcast(&server.changed);
	pthread_mutex_unlock(&server.lock);
}

static void wait_calls(size_t calls)
{
	pthread_mutex_lock(&server.lock);
	while (server.calls < calls)
		pthread_cond_wait(&server.changed, &server.lock);
	pthread_mutex_unlock(&server.lock);
}

static struct exporter *start(uint64_t queue_bytes_max)
{
	struct exporter_options options = { "127.0.0.1:7070", NULL, queue_bytes_max, NULL };
	struct exporter *exporter = NULL;

	assert_int_equal(exporter_new(&options, &exporter, NULL), 0);
	return exporter;
}

static void deliver(struct exporter *exporter, int number)
{
	struct tables_view view = { 0 };

	batch_number = number;
	exporter_deliver(exporter, &view);
}

static long counter(const char *line_start)
{
	struct strbuf out = { 0 };
	const char *at;
	long value;

	metrics_render(&out);
	at = strstr(strbuf_text(&out), line_start);
	assert_non_null(at);
	value = strtol(at + strlen(line_start), NULL, 10);
	strbuf_free(&out);
	return value;
}

static void batches_arrive_in_order(void **state)
{
	static const struct answer answers[] = { { 0, 0, 0, 0 } };
	struct exporter *exporter;

	(void)state;
	serve(answers, 1);
	exporter = start(0);
	for (int i = 0; i < 3; i++)
		deliver(exporter, i);
	exporter_free(exporter, 10 * CLOCK_NS_PER_S);
	assert_int_equal(server.calls, 3);
	assert_string_equal(server.bodies[0], "batch-0");
	assert_string_equal(server.bodies[2], "batch-2");
}

static void retries_send_the_same_bytes(void **state)
{
	static const struct answer answers[] = { { -ERR_UNAVAILABLE, 0, 0, 0 },
						 { 0, 14, 0, 0 },
						 { 0, 0, 0, 0 } };
	struct exporter *exporter;

	(void)state;
	serve(answers, 3);
	exporter = start(0);
	deliver(exporter, 7);
	deliver(exporter, 8);
	wait_calls(4);
	exporter_free(exporter, 10 * CLOCK_NS_PER_S);
	assert_int_equal(server.calls, 4);
	assert_string_equal(server.bodies[0], "batch-7");
	assert_string_equal(server.bodies[1], "batch-7");
	assert_string_equal(server.bodies[2], "batch-7");
	assert_string_equal(server.bodies[3], "batch-8");
}

static void refused_batches_are_dropped_and_counted(void **state)
{
	/* INVALID_ARGUMENT, RESOURCE_EXHAUSTED without a time, HTTP 400 */
	static const struct answer answers[] = {
		{ 0, 3, 0, 0 }, { 0, 8, 0, 0 }, { 0, -1, 400, 0 }, { 0, 0, 0, 0 }
	};
	const char *dropped = "\nfirn_agent_export_dropped_batches_total{reason=\"refused\"} ";
	struct exporter *exporter;
	long before;

	(void)state;
	serve(answers, 4);
	exporter = start(0);
	before = counter(dropped);
	for (int i = 0; i < 4; i++)
		deliver(exporter, i);
	exporter_free(exporter, 10 * CLOCK_NS_PER_S);
	assert_int_equal(server.calls, 4);
	assert_int_equal(counter(dropped) - before, 3);
}

static void full_queue_drops_the_oldest(void **state)
{
	static const struct answer answers[] = { { 0, 0, 0, 0 } };
	const char *dropped = "\nfirn_agent_export_dropped_batches_total{reason=\"queue_full\"} ";
	struct exporter *exporter;
	long before;

	(void)state;
	serve(answers, 1);
	server.closed = true;
	exporter = start(2 * strlen("batch-0"));
	before = counter(dropped);
	for (int i = 0; i < 6; i++)
		deliver(exporter, i);
	set_closed(false);
	exporter_free(exporter, 10 * CLOCK_NS_PER_S);
	/* The first may have been on its way already; then it arrives as well. */
	assert_int_equal((long)server.calls + counter(dropped) - before, 6);
	assert_in_range(server.calls, 2, 3);
	assert_string_equal(server.bodies[server.calls - 2], "batch-4");
	assert_string_equal(server.bodies[server.calls - 1], "batch-5");
}

static void stop_gives_up_after_the_grace(void **state)
{
	/* Come back in an hour: only the stop brings another try. */
	static const struct answer answers[] = { { 0, 14, 0, 3600 * CLOCK_NS_PER_S } };
	const char *dropped = "\nfirn_agent_export_dropped_batches_total{reason=\"stopped\"} ";
	struct exporter *exporter;
	int64_t stopped_ns;
	long before;

	(void)state;
	serve(answers, 1);
	exporter = start(0);
	before = counter(dropped);
	deliver(exporter, 0);
	deliver(exporter, 1);
	wait_calls(1);
	stopped_ns = clock_monotonic_ns();
	exporter_free(exporter, STOP_GRACE_NS);
	assert_true(server.end_by_ns >= stopped_ns + STOP_GRACE_NS &&
		    server.end_by_ns <= clock_monotonic_ns() + STOP_GRACE_NS);
	assert_true(server.calls >= 2); /* the stop brought one more try */
	assert_int_equal(counter(dropped) - before, 2);
	assert_true(clock_monotonic_ns() - stopped_ns < STOP_GRACE_NS + 5 * CLOCK_NS_PER_S);
}

static void bad_address_is_refused(void **state)
{
	struct exporter_options options = { "nonsense", NULL, 0, NULL };
	struct exporter *exporter = NULL;
	struct err err;

	(void)state;
	assert_int_equal(exporter_new(&options, &exporter, &err), -ERR_INVALID);
	assert_null(exporter);
	exporter_free(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_arrive_in_order),
		cmocka_unit_test(retries_send_the_same_bytes),
		cmocka_unit_test(refused_batches_are_dropped_and_counted),
		cmocka_unit_test(full_queue_drops_the_oldest),
		cmocka_unit_test(stop_gives_up_after_the_grace),
		cmocka_unit_test(bad_address_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
