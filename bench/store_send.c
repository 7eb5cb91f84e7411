/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_send - sends a file of requests (bench/requests.h) to a server, as many agents would.
 *
 *     store_send ADDRESS otlp|pprof FILE [CONNECTIONS [ROWS_PER_SECOND]]
 *
 * Each connection is a thread that sends one request after the other (gRPC); with a rate, a request
 * is due when the rows before it are, and its delay counts from then. Asked to wait, it waits and
 * sends again. Prints JSON: rows, seconds, milliseconds to the acknowledgement, refusals.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "bench/requests.h"
#include "net/client/client.h"

#define CONNECTIONS_MAX 64
#define ATTEMPTS_MAX 200
#define GRPC_RESOURCE_EXHAUSTED 8
#define GRPC_UNAVAILABLE 14

static const char *const paths[] = {
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	"/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
};

struct sending {
	const char *address, *path;
	FILE *file;
	double rows_per_s;
	int64_t begun_ns;
	pthread_mutex_t lock; /* guards the file, and what is below */
	uint64_t rows, requests, bytes, refused;
	double *delays_ms;
	size_t delays_count, delays_capacity;
};

static void sleep_until(int64_t at_ns)
{
	int64_t wait_ns = at_ns - clock_monotonic_ns();
	struct timespec wait = { wait_ns / CLOCK_NS_PER_S, wait_ns % CLOCK_NS_PER_S };

	if (wait_ns > 0)
		nanosleep(&wait, NULL);
}

/* Returns how often it was told to come again. */
static unsigned deliver(struct net_client *client, const struct sending *sending, struct slice body)
{
	const struct net_call call = { .method = "POST",
				       .path = sending->path,
				       .content_type = "application/grpc",
				       .body = body,
				       .grpc = true,
				       .timeout_ns = 120 * CLOCK_NS_PER_S,
				       .body_bytes_max = 1 << 20 };

	for (unsigned attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
		struct net_reply reply = { .grpc_status = -1 };
		struct err err = { 0 };
		int rc = net_client_call(client, &call, &reply, &err);

		if (!rc && reply.grpc_status == 0 && reply.body.len) {
			fprintf(stderr, "store_send: only a part of a request was taken: %s\n",
				strbuf_text(&reply.body));
			exit(2);
		}
		strbuf_free(&reply.body);
		if (!rc && reply.grpc_status == 0)
			return attempt;
		if (!rc && reply.grpc_status != GRPC_RESOURCE_EXHAUSTED &&
		    reply.grpc_status != GRPC_UNAVAILABLE) {
			fprintf(stderr, "store_send: %s\n", reply.grpc_message);
			exit(2);
		}
		if (rc && attempt > 20) {
			fprintf(stderr, "store_send: %s\n", err.message);
			exit(2);
		}
		sleep_until(clock_monotonic_ns() +
			    (reply.retry_after_ns ? reply.retry_after_ns : 50 * CLOCK_NS_PER_MS));
	}
	fprintf(stderr, "store_send: refused too often\n");
	exit(2);
}

static void *run(void *context)
{
	struct sending *sending = context;
	struct strbuf buffer = { 0 };
	struct net_client *client;
	struct requests_item item;
	struct err err;

	if (net_client_new(sending->address, NULL, &client, &err))
		exit(2);
	for (;;) {
		int64_t due_ns;
		unsigned refused;
		bool more;

		pthread_mutex_lock(&sending->lock);
		more = requests_read(sending->file, &buffer, &item);
		due_ns = clock_monotonic_ns();
		if (more && sending->rows_per_s > 0)
			due_ns = sending->begun_ns +
				 (int64_t)((double)sending->rows / sending->rows_per_s * 1e9);
		sending->rows += more ? item.rows : 0;
		pthread_mutex_unlock(&sending->lock);
		if (!more)
			break;
		sleep_until(due_ns);
		refused = deliver(client, sending, item.body);
		pthread_mutex_lock(&sending->lock);
		mem_grow(sending->delays_ms, sending->delays_count, sending->delays_capacity);
		sending->delays_ms[sending->delays_count++] =
			(double)(clock_monotonic_ns() - due_ns) / 1e6;
		sending->requests++;
		sending->bytes += item.body.len;
		sending->refused += refused;
		pthread_mutex_unlock(&sending->lock);
	}
	net_client_free(client);
	strbuf_free(&buffer);
	return NULL;
}

static int order(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double percentile(const struct sending *sending, double share)
{
	size_t at = (size_t)((double)sending->delays_count * share);

	return sending->delays_count ? sending->delays_ms[at] : 0;
}

int main(int argc, char **argv)
{
	unsigned connections = argc > 4 ? (unsigned)atoi(argv[4]) : 4;
	struct sending sending = { .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[CONNECTIONS_MAX];
	double seconds;

	if (argc < 4 || !connections || connections > CONNECTIONS_MAX) {
		fprintf(stderr,
			"usage: store_send ADDRESS otlp|pprof FILE [CONNECTIONS [ROWS/s]]\n");
		return 2;
	}
	sending.address = argv[1];
	sending.path = paths[!strcmp(argv[2], "pprof")];
	sending.file = fopen(argv[3], "rb");
	sending.rows_per_s = argc > 5 ? atof(argv[5]) : 0;
	if (!sending.file) {
		perror("store_send: open the requests");
		return 2;
	}
	sending.begun_ns = clock_monotonic_ns();
	for (unsigned i = 0; i < connections; i++)
		if (pthread_create(&threads[i], NULL, run, &sending))
			return 2;
	for (unsigned i = 0; i < connections; i++)
		pthread_join(threads[i], NULL);
	seconds = (double)(clock_monotonic_ns() - sending.begun_ns) / 1e9;
	qsort(sending.delays_ms, sending.delays_count, sizeof(double), order);
	printf("{\"rows\": %llu, \"requests\": %llu, \"bytes\": %llu, \"seconds\": %.3f, "
	       "\"p50_ms\": %.2f, \"p99_ms\": %.2f, \"max_ms\": %.2f, \"refused\": %llu}\n",
	       (unsigned long long)sending.rows, (unsigned long long)sending.requests,
	       (unsigned long long)sending.bytes, seconds, percentile(&sending, 0.5),
	       percentile(&sending, 0.99),
	       sending.delays_count ? sending.delays_ms[sending.delays_count - 1] : 0,
	       (unsigned long long)sending.refused);
	fclose(sending.file);
	free(sending.delays_ms);
	return 0;
}
