/* SPDX-License-Identifier: Apache-2.0 */
/* firn push - sends profile files to a server; says success only when all of them are durable
 * there. With --watch it goes on: what appears in a folder is sent. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/printable.h"
#include "base/whole_file.h"
#include "cli/flags/client_flags.h"
#include "cli/push/push_folder.h"
#include "cli/push/push_request.h"
#include "cli/verb.h"
#include "codec/wire/pb.h"
#include "net/http/grpc.h"
#include "server/serve/intake/write_summary.h"

#define PUSH_TIMEOUT_NS (60 * CLOCK_NS_PER_S)
#define ANSWER_BYTES_MAX ((size_t)1 << 20)
#define ATTEMPTS_MAX 5
#define RETRY_PAUSE_NS (500 * CLOCK_NS_PER_MS)
#define RETRY_PAUSE_NS_MAX (60 * CLOCK_NS_PER_S)
#define PATIENCE_NS                                                                                \
	(10 * CLOCK_NS_PER_S)	     /* the longest pause that somebody at a terminal bears        \
				      */
#define LOOK_EVERY_NS CLOCK_NS_PER_S /* at a folder */
#define STOP_WITHIN_NS (5 * CLOCK_NS_PER_S)
#define SLICE_NS (100 * CLOCK_NS_PER_MS)

struct push_verb_options {
	struct verb_common common;
	struct client_flags client;
	const char *name;
	const char *watch;
	struct option_list labels;
};

#define AT(member) offsetof(struct push_verb_options, member)

static const struct option options[] = {
	CLIENT_FLAGS_OPTIONS(struct push_verb_options),
	OPTION_AT(WATCH, AT(watch)),
	OPTION_AT(PROFILE_NAME, AT(name)),
	OPTION_AT(LABEL, AT(labels)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "push",
	.operands = "[FILE...]",
	.summary = "send profile files to a server",
	.details = "Sends all formats that `firn convert` reads: pprof, Java Flight Recorder,\n"
		   "OTLP, folded stacks, perf script, speedscope, Firefox Profiler and firn's\n"
		   "recordings, plain or compressed (gzip, zstd, LZ4). Prints the types, rows and\n"
		   "totals that the server made of each file, and what it repaired.\n"
		   "\n"
		   "Without --name, the name is process_cpu if a sample type is CPU time, memory\n"
		   "for heap types, mutex, block or goroutine for those, and the file's name for\n"
		   "others. A profile without a time gets the file's modification time.\n"
		   "\n"
		   "Exits 0 only when the server has acknowledged all files as durable. Sending a\n"
		   "file again is safe: it counts once, even if compressed differently.\n"
		   "\n"
		   "--watch DIR sends each file once, as soon as it is complete and no process\n"
		   "writes to it, and retries until the server answers.\n"
		   "\n"
		   "  firn push --label job=api --label version=1.4.2 cpu.pb.gz heap.pb.gz a.jfr\n"
		   "  firn push --watch /var/spool/profiles --label host=a",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

enum verdict { VERDICT_STORED, VERDICT_REFUSED, VERDICT_AGAIN, VERDICT_CHANGED };

struct push {
	const struct push_verb_options *values;
	struct net_client *client;
	_Atomic bool stopping;
	int64_t wait_ns; /* before the next attempt, as the server or we want it */
};

/* Waits for so long, or until there is to be an end. */
static void pause_for(const struct push *push, int64_t wait_ns)
{
	int64_t until_ns = clock_monotonic_ns() + wait_ns;

	while (!atomic_load(&push->stopping)) {
		int64_t left_ns = until_ns - clock_monotonic_ns();
		struct timespec wait = { 0, left_ns < SLICE_NS ? left_ns : SLICE_NS };

		if (left_ns <= 0)
			return;
		nanosleep(&wait, NULL);
	}
}

static bool is_again_by_status(int status)
{
	return status == 429 || (status >= 502 && status <= 504);
}

/* What another attempt may mend. Who is not let in by now may be given a token meanwhile. */
static bool may_mend(const struct push *push, const struct net_reply *reply)
{
	if (reply->status != 200)
		return is_again_by_status(reply->status) ||
		       (push->values->watch && (reply->status == 401 || reply->status == 403));
	return reply->grpc_status == GRPC_UNAVAILABLE || reply->retry_after_ns ||
	       (push->values->watch && (reply->grpc_status == GRPC_UNAUTHENTICATED ||
					reply->grpc_status == GRPC_PERMISSION_DENIED));
}

/* What the server says that it made of the file; others than ours say nothing. */
static void print_summary(const char *path, const struct push_request *request, struct slice answer)
{
	struct pb_reader in = pb_reader_of(answer);
	struct pb_field field;

	printable_print(stdout, "%s: stored", path);
	if (request->form != PROFILE_FORM_PPROF)
		printf(", from %s", profile_form_text(request->form));
	putchar('\n');
	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == WRITE_SUMMARY_FIELD)
			printable_write(stdout, field.bytes);
	if (request->timed_by_file)
		puts("  its time is that of the file: the profile says none");
	fflush(stdout);
}

static bool is_otlp(const struct push_request *request)
{
	return request->form == PROFILE_FORM_OTLP || request->form == PROFILE_FORM_RECORDING;
}

/* Of OTLP's answer: { partial_success = 1 { rejected_profiles = 1; error_message = 2 } } */
static int check_partial(const struct push_request *request, struct slice answer, struct err *err)
{
	struct pb_reader in = pb_reader_of(answer);
	struct pb_field field, inner;

	while (is_otlp(request) && pb_next(&in, &field)) {
		struct pb_reader partial = pb_reader_into(&in, field.bytes);
		struct slice message = { "", 0 };
		uint64_t rejected = 0;

		if (field.wire != PB_BYTES || field.number != 1)
			continue;
		while (pb_next(&partial, &inner)) {
			if (inner.wire == PB_VARINT && inner.number == 1)
				rejected = inner.value;
			else if (inner.wire == PB_BYTES && inner.number == 2)
				message = inner.bytes;
		}
		if (rejected || message.len)
			return err_set(err, ERR_INVALID, "the server took a part: %.*s",
				       SLICE_FMT(message));
	}
	return 0;
}

static enum verdict send_once(struct push *push, const char *path,
			      const struct push_request *request, struct err *err)
{
	struct net_reply reply = { .grpc_status = -1 };
	struct net_call call = {
		.method = "POST",
		.path = request->path,
		.content_type = "application/grpc",
		.body = strbuf_slice(&request->message),
		.headers = WRITE_SUMMARY_HEADER ": 1\r\n",
		.grpc = true,
		.compress = is_otlp(request),
		.timeout_ns = PUSH_TIMEOUT_NS,
		.body_bytes_max = ANSWER_BYTES_MAX,
	};
	enum verdict verdict = VERDICT_AGAIN;
	int rc = net_client_call(push->client, &call, &reply, err);

	push->wait_ns = reply.retry_after_ns;
	if (!rc && reply.status == 200 && reply.grpc_status == GRPC_OK) {
		print_summary(path, request, strbuf_slice(&reply.body));
		verdict = check_partial(request, strbuf_slice(&reply.body), err) ? VERDICT_REFUSED
										 : VERDICT_STORED;
	} else if (!rc) {
		verdict = may_mend(push, &reply) ? VERDICT_AGAIN : VERDICT_REFUSED;
		if (reply.status != 200)
			err_set(err, ERR_UNAVAILABLE, "the server answers HTTP %d", reply.status);
		else
			err_set(err, ERR_INVALID, "the server refuses: %s", reply.grpc_message);
	}
	strbuf_free(&reply.body);
	return verdict;
}

/*
 * A retry sends the same bytes, which count once. A server that wants a long pause, as one whose
 * disk is full does, gets no retry but in --watch.
 */
static enum verdict send_request(struct push *push, const char *path,
				 const struct push_request *request, struct err *err)
{
	int64_t pause_ns = RETRY_PAUSE_NS;

	for (int attempt = 1;; attempt++) {
		enum verdict verdict = send_once(push, path, request, err);

		if (verdict != VERDICT_AGAIN || atomic_load(&push->stopping) ||
		    (!push->values->watch && attempt == ATTEMPTS_MAX))
			return verdict;
		if (push->wait_ns > 0)
			pause_ns = push->wait_ns;
		if (pause_ns > RETRY_PAUSE_NS_MAX)
			pause_ns = RETRY_PAUSE_NS_MAX;
		if (!push->values->watch && pause_ns > PATIENCE_NS)
			return verdict;
		if (push->values->watch)
			printable_print(stderr, "firn push: %s: %s; again in %.1f s\n", path,
					err->message, (double)pause_ns / CLOCK_NS_PER_S);
		pause_for(push, pause_ns);
		pause_ns *= 2;
	}
}

/* The file's name without folders and without what follows the first dot. */
static struct slice stem_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct slice rest;

	return slice_cut(slice_of(slash ? slash + 1 : path), '.', &rest);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static enum verdict push_file(struct push *push, const char *path, struct err *err)
{
	struct push_about about = { push->values->name, &push->values->labels, stem_of(path), 0 };
	struct push_request request = { .form = PROFILE_FORM_PPROF };
	struct strbuf file = { 0 };
	struct stat before, after;
	enum verdict verdict = VERDICT_REFUSED;
	int rc = stat(path, &before) ? err_set_errno(err, errno, "read \"%s\"", path) : 0;

	if (!rc)
		rc = whole_file_read(path, PROFILE_FILE_BYTES_MAX, &file, err);
	if (!rc && !stat(path, &after) && !is_same(&before, &after))
		verdict = VERDICT_CHANGED; /* another one by now, or still being written */
	if (rc || (push->values->watch && verdict == VERDICT_CHANGED)) {
		strbuf_free(&file);
		return verdict;
	}
	about.file_time_ns = before.st_mtim.tv_sec * CLOCK_NS_PER_S + before.st_mtim.tv_nsec;
	rc = push_request_make(strbuf_slice(&file), &about, &request, err);
	strbuf_free(&file);
	verdict = rc ? VERDICT_REFUSED : send_request(push, path, &request, err);
	push_request_free(&request);
	return verdict;
}

static int push_files(struct push *push, const struct option_operands *files)
{
	int code = VERB_OK;
	struct err err;

	for (size_t i = 0; i < files->count; i++)
		if (push_file(push, files->items[i], &err) != VERDICT_STORED) {
			err_wrap(&err, "%s", files->items[i]);
			code = verb_error(&verb_push, &err);
		}
	return code;
}

/* All that is complete now. What is refused does not come again until it changes. */
static void push_new(struct push *push, struct push_folder *folder)
{
	const char *path;
	struct err err;

	while (!atomic_load(&push->stopping) && (path = push_folder_next(folder))) {
		enum verdict verdict = push_file(push, path, &err);

		if (verdict == VERDICT_AGAIN || verdict == VERDICT_CHANGED)
			return;
		if (verdict == VERDICT_REFUSED) {
			err_wrap(&err, "%s", path);
			verb_error(&verb_push, &err);
		}
		push_folder_done(folder);
	}
}

/* Takes the signal that ends; a call that is under way has a little time left then. */
static void *await_end(void *context)
{
	struct push *push = context;
	int number = 0;

	while (number != SIGINT && number != SIGTERM)
		number = verb_wait_signal(-1);
	net_client_end_by(push->client, clock_monotonic_ns() + STOP_WITHIN_NS);
	atomic_store(&push->stopping, true);
	return NULL;
}

static int watch(struct push *push, struct err *err)
{
	struct push_folder *folder;
	pthread_t thread;
	int rc = push_folder_open(push->values->watch, &folder, err);

	if (rc)
		return rc;
	verb_block_signals();
	if (pthread_create(&thread, NULL, await_end, push)) {
		push_folder_free(folder);
		return err_set(err, ERR_NO_MEMORY, "start a thread");
	}
	while (!rc && !atomic_load(&push->stopping)) {
		rc = push_folder_look(folder, err);
		if (!rc)
			push_new(push, folder);
		pause_for(push, LOOK_EVERY_NS);
	}
	if (rc)
		pthread_kill(thread, SIGTERM); /* it waits for one */
	pthread_join(thread, NULL);
	push_folder_free(folder);
	return rc;
}

static int run(int argc, char **argv)
{
	struct push_verb_options values = { 0 };
	struct option_operands operands;
	struct push push = { .values = &values };
	struct err err;
	int code = verb_parse(&verb_push, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (!operands.count == !values.watch) {
		err_set(&err, ERR_INVALID,
			"expected profile files, for example cpu.pb.gz, or --watch DIR");
		return verb_error(&verb_push, &err);
	}
	if (client_flags_open(&values.client, &push.client, &err))
		return verb_error(&verb_push, &err);
	if (values.watch)
		code = watch(&push, &err) ? verb_error(&verb_push, &err) : VERB_OK;
	else
		code = push_files(&push, &operands);
	net_client_free(push.client);
	return code;
}

const struct verb verb_push = { &spec, run, LOG_WARN };
