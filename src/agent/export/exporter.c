/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/export/exporter.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/export/encode_otlp.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "codec/wire/pb.h"
#include "net/client/client.h"

#define EXPORT_PATH "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define QUEUE_BYTES_DEFAULT ((uint64_t)64 << 20)
#define CALL_TIMEOUT_NS (30 * CLOCK_NS_PER_S)
#define ANSWER_BYTES_MAX ((size_t)64 * 1024)
#define BACKOFF_MIN_NS (1 * CLOCK_NS_PER_S)
#define BACKOFF_MAX_NS (60 * CLOCK_NS_PER_S)
#define BACKOFF_STOPPING_NS (100 * CLOCK_NS_PER_MS)
#define NICE 5

/* ExportProfilesServiceResponse.partial_success, ExportProfilesPartialSuccess.* */
#define FIELD_PARTIAL_SUCCESS 1
#define FIELD_REJECTED 1
#define FIELD_MESSAGE 2

struct parcel {
	struct parcel *next;
	struct strbuf bytes;
};

enum outcome { OUTCOME_DONE, OUTCOME_RETRY, OUTCOME_REFUSED };

struct exporter {
	struct net_client *client; /* of the export thread */
	pthread_t thread;
	uint64_t queue_bytes_max;
	uint64_t (*lost)(void);
	int64_t backoff_ns; /* of the next failure; 0 = the last call went well */

	struct lock lock; /* guards what follows */
	struct lock_condition changed;
	struct parcel *first, *last; /* waiting, oldest first */
	uint64_t queue_bytes;	     /* of these */
	bool stopping;
	int64_t stop_by_ns; /* monotonic */
};

static METRIC_COUNTER(exports_total, "firn_agent_exports_total", "",
		      "Batches that the server acknowledged.");
static METRIC_COUNTER(export_bytes, "firn_agent_export_bytes_total", "",
		      "Bytes of acknowledged batches, before compression.");
static METRIC_COUNTER(retries, "firn_agent_export_retries_total", "",
		      "Calls that failed and are tried again.");
static METRIC_GAUGE(queue_bytes, "firn_agent_export_queue_bytes", "", "Bytes waiting to be sent.");
static METRIC_COUNTER(dropped_full, "firn_agent_export_dropped_batches_total",
		      "{reason=\"queue_full\"}", "Batches dropped.");
static METRIC_COUNTER(dropped_refused, "firn_agent_export_dropped_batches_total",
		      "{reason=\"refused\"}", "Batches dropped.");
static METRIC_COUNTER(dropped_stopped, "firn_agent_export_dropped_batches_total",
		      "{reason=\"stopped\"}", "Batches dropped.");
static METRIC_COUNTER(rejected_profiles, "firn_agent_export_rejected_profiles_total", "",
		      "Profiles that the server left out of batches it took.");

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &exports_total,   &export_bytes,
						  &retries,	    &queue_bytes,
						  &dropped_full,    &dropped_refused,
						  &dropped_stopped, &rejected_profiles };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

static void parcel_free(struct parcel *parcel)
{
	strbuf_free(&parcel->bytes);
	free(parcel);
}

static struct parcel *pop_locked(struct exporter *exporter)
{
	struct parcel *parcel = exporter->first;

	exporter->first = parcel->next;
	if (!exporter->first)
		exporter->last = NULL;
	exporter->queue_bytes -= parcel->bytes.len;
	return parcel;
}

static void push_locked(struct exporter *exporter, struct parcel *parcel)
{
	if (exporter->last)
		exporter->last->next = parcel;
	else
		exporter->first = parcel;
	exporter->last = parcel;
	exporter->queue_bytes += parcel->bytes.len;
	while (exporter->queue_bytes > exporter->queue_bytes_max) {
		parcel_free(pop_locked(exporter));
		metric_add(&dropped_full, 1);
	}
	metric_set(&queue_bytes, (int64_t)exporter->queue_bytes);
}

void exporter_deliver(void *data, const struct tables_view *batch)
{
	struct exporter *exporter = data;
	struct parcel *parcel = mem_new(struct parcel);

	encode_otlp(batch, &parcel->bytes);
	lock_take(&exporter->lock);
	push_locked(exporter, parcel);
	lock_broadcast(&exporter->changed);
	lock_give(&exporter->lock);
}

/* gRPC statuses that OTLP calls retryable (opentelemetry.io/docs/specs/otlp, "Failures"). */
static bool is_retryable_grpc(const struct net_reply *reply)
{
	switch (reply->grpc_status) {
	case 1:	 /* CANCELLED */
	case 4:	 /* DEADLINE_EXCEEDED */
	case 10: /* ABORTED */
	case 11: /* OUT_OF_RANGE */
	case 14: /* UNAVAILABLE */
	case 15: /* DATA_LOSS */
		return true;
	case 8: /* RESOURCE_EXHAUSTED: only when the server says when to come back */
		return reply->retry_after_ns > 0;
	default:
		return false;
	}
}

/* An answer without a gRPC status comes from something on the way. */
static bool is_retryable_http(int status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static enum outcome outcome_of(const struct net_reply *reply)
{
	if (reply->grpc_status == 0)
		return OUTCOME_DONE;
	if (reply->grpc_status > 0 ? is_retryable_grpc(reply) : is_retryable_http(reply->status))
		return OUTCOME_RETRY;
	return OUTCOME_REFUSED;
}

/* The server took the batch; it may have left parts out. */
static void note_partial_success(struct slice answer)
{
	struct pb_reader outer = pb_reader_of(answer), inner;
	struct pb_field field;
	struct slice message = { 0 };
	uint64_t rejected = 0;

	while (pb_next(&outer, &field)) {
		if (field.number != FIELD_PARTIAL_SUCCESS || field.wire != PB_BYTES)
			continue;
		inner = pb_reader_into(&outer, field.bytes);
		while (pb_next(&inner, &field)) {
			if (field.number == FIELD_REJECTED && field.wire == PB_VARINT)
				rejected = field.value;
			else if (field.number == FIELD_MESSAGE && field.wire == PB_BYTES)
				message = field.bytes;
		}
	}
	if (!rejected)
		return;
	metric_add(&rejected_profiles, rejected < INT32_MAX ? (int64_t)rejected : INT32_MAX);
	log_warn("export", "the server rejected some profiles of a batch",
		 "count=%llu reason=\"%.*s\"", (unsigned long long)rejected, SLICE_FMT(message));
}

static void note_trouble(const struct exporter *exporter, enum outcome outcome, const char *reason)
{
	if (outcome == OUTCOME_REFUSED)
		log_warn("export", "the server refused a batch; it is dropped", "reason=\"%s\"",
			 reason);
	else if (!exporter->backoff_ns) /* once, not at every try */
		log_warn("export", "the server is unreachable; batches wait in memory",
			 "reason=\"%s\"", reason);
}

static int64_t call_timeout_ns(struct exporter *exporter)
{
	int64_t timeout_ns = CALL_TIMEOUT_NS;

	lock_take(&exporter->lock);
	if (exporter->stopping) {
		int64_t left_ns = exporter->stop_by_ns - clock_monotonic_ns();

		timeout_ns = left_ns < timeout_ns ? left_ns : timeout_ns;
	}
	lock_give(&exporter->lock);
	return timeout_ns > CLOCK_NS_PER_MS ? timeout_ns : CLOCK_NS_PER_MS;
}

static enum outcome send_parcel(struct exporter *exporter, const struct parcel *parcel,
				int64_t *ret_retry_after_ns)
{
	struct net_call call = {
		.method = "POST",
		.path = EXPORT_PATH,
		.content_type = "application/grpc+proto",
		.body = strbuf_slice(&parcel->bytes),
		.grpc = true,
		.compress = true,
		.timeout_ns = call_timeout_ns(exporter),
		.body_bytes_max = ANSWER_BYTES_MAX,
	};
	struct net_reply reply = { .grpc_status = -1 };
	enum outcome outcome = OUTCOME_RETRY;
	char headers[64] = "";
	char reason[ERR_MESSAGE_BYTES];
	struct err err;

	if (exporter->lost && exporter->lost()) {
		snprintf(headers, sizeof(headers), "firn-lost-samples: %" PRIu64 "\r\n",
			 exporter->lost());
		call.headers = headers;
	}
	if (net_client_call(exporter->client, &call, &reply, &err)) {
		snprintf(reason, sizeof(reason), "%s", err.message);
	} else {
		outcome = outcome_of(&reply);
		*ret_retry_after_ns = reply.retry_after_ns;
		if (reply.grpc_status >= 0)
			snprintf(reason, sizeof(reason), "%s", reply.grpc_message);
		else
			snprintf(reason, sizeof(reason), "HTTP status %d", reply.status);
	}
	if (outcome == OUTCOME_DONE)
		note_partial_success(strbuf_slice(&reply.body));
	else
		note_trouble(exporter, outcome, reason);
	strbuf_free(&reply.body);
	return outcome;
}

/* Doubles the wait, of which a random half is taken off so that agents do not come all at once. */
static int64_t next_wait_ns(struct exporter *exporter, int64_t retry_after_ns)
{
	uint64_t random = 0;
	int64_t wait_ns;

	exporter->backoff_ns = exporter->backoff_ns ? 2 * exporter->backoff_ns : BACKOFF_MIN_NS;
	if (exporter->backoff_ns > BACKOFF_MAX_NS)
		exporter->backoff_ns = BACKOFF_MAX_NS;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint64_t)clock_monotonic_ns();
	wait_ns = exporter->backoff_ns - (int64_t)(random % (uint64_t)(exporter->backoff_ns / 2));
	return retry_after_ns > wait_ns ? retry_after_ns : wait_ns;
}

static void wait_until_locked(struct exporter *exporter, int64_t at_ns)
{
	lock_wait_until(&exporter->changed, &exporter->lock, at_ns);
}

static bool is_out_of_time_locked(const struct exporter *exporter)
{
	return exporter->stopping && clock_monotonic_ns() >= exporter->stop_by_ns;
}

/* Sleeps between tries, but not for long when a stop is due. False when time is up. */
static bool pause_between_tries(struct exporter *exporter, int64_t wait_ns)
{
	bool was_stopping, go_on;
	int64_t until_ns;

	lock_take(&exporter->lock);
	was_stopping = exporter->stopping;
	if (was_stopping && wait_ns > BACKOFF_STOPPING_NS)
		wait_ns = BACKOFF_STOPPING_NS;
	until_ns = clock_monotonic_ns() + wait_ns;
	while (clock_monotonic_ns() < until_ns && exporter->stopping == was_stopping)
		wait_until_locked(exporter, until_ns);
	go_on = !is_out_of_time_locked(exporter);
	lock_give(&exporter->lock);
	return go_on;
}

/* Tries until the server answers for good. False when it was given up because of the stop. */
static bool deliver_parcel(struct exporter *exporter, const struct parcel *parcel)
{
	for (;;) {
		int64_t retry_after_ns = 0;
		enum outcome outcome = send_parcel(exporter, parcel, &retry_after_ns);

		if (outcome == OUTCOME_DONE && exporter->backoff_ns)
			log_info("export", "the server accepts batches again", NULL);
		if (outcome == OUTCOME_DONE) {
			metric_add(&exports_total, 1);
			metric_add(&export_bytes, (int64_t)parcel->bytes.len);
		} else if (outcome == OUTCOME_REFUSED) {
			metric_add(&dropped_refused, 1);
		}
		if (outcome != OUTCOME_RETRY) {
			exporter->backoff_ns = 0;
			return true;
		}
		metric_add(&retries, 1);
		if (!pause_between_tries(exporter, next_wait_ns(exporter, retry_after_ns))) {
			metric_add(&dropped_stopped, 1);
			return false;
		}
	}
}

/* The oldest batch; NULL when it is time to end. */
static struct parcel *wait_parcel(struct exporter *exporter)
{
	struct parcel *parcel = NULL;

	lock_take(&exporter->lock);
	while (!exporter->first && !exporter->stopping)
		lock_wait(&exporter->changed, &exporter->lock);
	if (exporter->first && !is_out_of_time_locked(exporter))
		parcel = pop_locked(exporter);
	metric_set(&queue_bytes, (int64_t)exporter->queue_bytes);
	lock_give(&exporter->lock);
	return parcel;
}

static void *run_export(void *data)
{
	struct exporter *exporter = data;
	struct parcel *parcel;
	bool go_on = true;

	setpriority(PRIO_PROCESS, 0, NICE); /* on Linux, of this thread */
	while (go_on && (parcel = wait_parcel(exporter))) {
		go_on = deliver_parcel(exporter, parcel);
		parcel_free(parcel);
	}
	return NULL;
}

int exporter_new(const struct exporter_options *options, struct exporter **ret, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct exporter *exporter = mem_new(struct exporter);
	int code = net_client_new(options->address, options->access, &exporter->client, err);

	if (code) {
		free(exporter);
		return code;
	}
	pthread_once(&once, register_metrics);
	exporter->queue_bytes_max =
		options->queue_bytes_max ? options->queue_bytes_max : QUEUE_BYTES_DEFAULT;
	lock_init(&exporter->lock, "exporter", LOCK_AGENT + 4);
	lock_condition_init(&exporter->changed);
	code = pthread_create(&exporter->thread, NULL, run_export, exporter);
	if (code) {
		net_client_free(exporter->client);
		free(exporter);
		return err_set_errno(err, code, "start the export thread");
	}
	pthread_setname_np(exporter->thread, "firn-export");
	*ret = exporter;
	return 0;
}

void exporter_free(struct exporter *exporter, int64_t grace_ns)
{
	if (!exporter)
		return;
	lock_take(&exporter->lock);
	exporter->stopping = true;
	exporter->stop_by_ns = clock_monotonic_ns() + grace_ns;
	net_client_end_by(exporter->client, exporter->stop_by_ns);
	lock_broadcast(&exporter->changed);
	lock_give(&exporter->lock);
	pthread_join(exporter->thread, NULL);
	while (exporter->first) {
		parcel_free(pop_locked(exporter));
		metric_add(&dropped_stopped, 1);
	}
	metric_set(&queue_bytes, 0);
	net_client_free(exporter->client);
	lock_condition_free(&exporter->changed);
	lock_free(&exporter->lock);
	free(exporter);
}
