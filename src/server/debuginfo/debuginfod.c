/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/debuginfod.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/debuginfo/debuginfod_int.h"

#define POLL_NS (CLOCK_NS_PER_S)
#define RECENT_NS (30 * CLOCK_NS_PER_S)	 /* a file that was used so shortly ago is wanted better */
#define NO_BETTER_NS (24 * NOT_THERE_NS) /* finding that out can cost the whole file */
#define FAILED_NS (300 * CLOCK_NS_PER_S)
#define DOWN_NS (60 * CLOCK_NS_PER_S) /* a server that cannot be reached is left alone */
#define BUSY_NS (10 * CLOCK_NS_PER_S) /* somebody else is sending it */
#define TIMEOUT_DEFAULT_NS (300 * CLOCK_NS_PER_S)
#define BYTES_MAX_DEFAULT ((uint64_t)2 << 30)
#define ASKED_MAX 16384u
#define WHY_BYTES 256

METRIC_COUNTER(debuginfod_fetched, "firn_debuginfod_requests_total", "{result=\"found\"}",
	       "Requests to debuginfod servers.");
METRIC_COUNTER(debuginfod_not_there, "firn_debuginfod_requests_total", "{result=\"not_there\"}",
	       "Requests to debuginfod servers.");
METRIC_COUNTER(debuginfod_failed, "firn_debuginfod_requests_total", "{result=\"failed\"}",
	       "Requests to debuginfod servers.");

enum asked_state { WAITING, FETCHING, HERE, NOT_THERE, FAILED };

struct asked {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	enum asked_state state;
	uint64_t cost;
	int64_t at_ns;	  /* wall clock */
	int64_t again_ns; /* NOT_THERE, FAILED, HERE: not before this */
	char why[WHY_BYTES];
	uint64_t received, bytes; /* of what is fetched */
};

static uint64_t hash_of(struct slice text)
{
	return hash_bytes(text.data, text.len);
}

static bool asked_equal(const void *context, uint32_t id, const void *key)
{
	const struct asked *asked = context;

	return slice_is(*(const struct slice *)key, asked[id].build_id);
}

static struct asked *find(struct debuginfod *debuginfod, struct slice build_id)
{
	uint32_t id = idmap_find(&debuginfod->map, hash_of(build_id), asked_equal,
				 debuginfod->asked, &build_id);

	return id == IDMAP_NONE ? NULL : &debuginfod->asked[id];
}

static void settle(struct debuginfod *debuginfod, struct asked *asked, enum asked_state state,
		   int64_t pause_ns, const char *why)
{
	asked->state = state;
	asked->at_ns = debuginfo_now_ns(debuginfod->store);
	asked->again_ns = asked->at_ns + pause_ns;
	snprintf(asked->why, sizeof(asked->why), "%.255s", why);
}

/* With the lock held. */
static void want(struct debuginfod *debuginfod, struct slice build_id, uint64_t cost)
{
	char normal[ELF_BUILD_ID_TEXT_BYTES];
	struct asked *asked;
	int64_t missed_at_ns;

	if (!debuginfo_normalise_id(build_id, normal))
		return;
	build_id = slice_of(normal);
	asked = find(debuginfod, build_id);
	if (!asked && debuginfod->asked_count == ASKED_MAX) {
		idmap_clear(&debuginfod->map); /* what is settled is found on disk or asked again */
		debuginfod->asked_count = 0;
	}
	if (!asked) {
		mem_grow(debuginfod->asked, debuginfod->asked_count, debuginfod->asked_capacity);
		idmap_add(&debuginfod->map, hash_of(build_id), (uint32_t)debuginfod->asked_count);
		asked = &debuginfod->asked[debuginfod->asked_count++];
		*asked = (struct asked){ .state = WAITING };
		memcpy(asked->build_id, normal, sizeof(normal));
		missed_at_ns = debuginfod_read_miss(debuginfod, normal);
		if (missed_at_ns) {
			settle(debuginfod, asked, NOT_THERE, 0, "no server has it");
			asked->at_ns = missed_at_ns;
			asked->again_ns = missed_at_ns + NOT_THERE_NS;
		}
	}
	if (cost)
		asked->cost = cost;
	if (asked->state == FETCHING ||
	    (asked->state > FETCHING && debuginfo_now_ns(debuginfod->store) < asked->again_ns))
		return;
	if (asked->state != WAITING)
		settle(debuginfod, asked, WAITING, 0, "");
	lock_signal(&debuginfod->wake);
}

static void want_missing(void *context, struct slice build_id, uint64_t cost)
{
	want(context, build_id, cost);
}

static enum elf_quality best_quality(struct debuginfo *store, struct slice build_id)
{
	const struct entry *binary = debuginfo_find(store, build_id, DEBUGINFO_BINARY);
	const struct entry *debug = debuginfo_find(store, build_id, DEBUGINFO_DEBUG);
	enum elf_quality quality = binary ? binary->record.quality : ELF_QUALITY_NOTHING;

	return debug && debug->record.quality > quality ? debug->record.quality : quality;
}

/* Files that are looked up although they are poor, and those that others of them refer to. */
static void want_better(struct debuginfod *debuginfod)
{
	struct debuginfo *store = debuginfod->store;
	int64_t since_ns;

	lock_take(&store->lock);
	debuginfo_note_uses(store);
	since_ns = debuginfo_now_ns(store) - RECENT_NS;
	for (size_t i = 0; i < store->count; i++) {
		const struct entry *entry = &store->entries[i];
		struct slice alternate = slice_of(entry->record.alternate);

		if (entry->used_at_ns < since_ns || entry->kind >= DEBUGINFO_SOURCES)
			continue;
		if (best_quality(store, slice_of(entry->build_id)) < ELF_QUALITY_DEBUG_INFO)
			want(debuginfod, slice_of(entry->build_id), 0);
		if (alternate.len && !debuginfo_find(store, alternate, DEBUGINFO_DEBUG))
			want(debuginfod, alternate, 0);
	}
	lock_give(&store->lock);
}

static void poll_wanted(struct debuginfod *debuginfod)
{
	const struct debuginfo_options *options = &debuginfod->store->options;
	int64_t now_ns = clock_monotonic_ns();

	if (now_ns - debuginfod->polled_at_ns < POLL_NS)
		return;
	debuginfod->polled_at_ns = now_ns;
	if (options->each_wanted)
		options->each_wanted(options->context, want_missing, debuginfod);
	want_better(debuginfod);
}

/* A download on its way into the store. */
struct download {
	struct debuginfod *debuginfod;
	const char *build_id;
	struct slice server;
	struct debuginfo_receiver *receiver;
};

/* Another server's answer may have begun before. */
static void note_progress(const struct download *download, uint64_t bytes, uint64_t received)
{
	struct debuginfod *debuginfod = download->debuginfod;
	struct asked *asked;

	lock_take(&debuginfod->lock);
	asked = find(debuginfod, slice_of(download->build_id));
	if (asked) {
		asked->bytes = received ? asked->bytes : bytes;
		asked->received = received ? asked->received + received : 0;
	}
	lock_give(&debuginfod->lock);
}

static int begin_download(void *context, uint64_t bytes, struct err *err)
{
	struct download *download = context;
	struct debuginfo *store = download->debuginfod->store;
	struct debuginfo_offer offer = { .build_id = slice_of(download->build_id),
					 .bytes = bytes,
					 .name = download->server,
					 .origin = DEBUGINFO_FROM_DEBUGINFOD };
	char id[DISK_UPLOAD_ID_BYTES];
	uint64_t received;
	int rc;

	note_progress(download, bytes, 0);
	if (!bytes) {
		offer.bytes = store->options.debuginfod_bytes_max;
		offer.is_open_ended = true;
	}
	rc = debuginfo_begin(store, &offer, id, &received, err);
	if (rc)
		return rc;
	return debuginfo_receive_begin(store, offer.build_id, slice_of(id), 0, &download->receiver,
				       err);
}

static int take_download(void *context, struct slice bytes, struct err *err)
{
	struct download *download = context;

	note_progress(download, 0, bytes.len);
	return debuginfo_receive(download->receiver, bytes, err);
}

int debuginfod_check_up(const struct debuginfod *debuginfod, size_t index, struct err *err)
{
	int64_t left_ns = atomic_load(&debuginfod->down_until_ns[index]) - clock_monotonic_ns();

	if (left_ns <= 0)
		return 0;
	return err_set(
		err, ERR_UNAVAILABLE, "\"%s\" could not be reached; it is asked again in %lld s",
		strbuf_text(&debuginfod->urls[index]), (long long)(left_ns / CLOCK_NS_PER_S + 1));
}

void debuginfod_note_reached(struct debuginfod *debuginfod, size_t index, int rc, int status)
{
	bool is_down = !status && (rc == -ERR_UNAVAILABLE || rc == -ERR_DEADLINE);
	int64_t until_ns = is_down ? clock_monotonic_ns() + DOWN_NS : 0;

	if (is_down && !atomic_load(&debuginfod->down_until_ns[index]))
		log_info("debuginfod", "a server cannot be reached", "server=\"%s\"",
			 strbuf_text(&debuginfod->urls[index]));
	if (rc != -ERR_CANCELLED)
		atomic_store(&debuginfod->down_until_ns[index], until_ns);
}

/* 1 when it is kept; 0 when the server does not have it. */
static int fetch_from(struct debuginfod *debuginfod, size_t index, const char *build_id,
		      int64_t deadline_at_ns, struct err *err)
{
	const struct strbuf *server = &debuginfod->urls[index];
	const struct debuginfo_options *options = &debuginfod->store->options;
	struct download download = { .debuginfod = debuginfod,
				     .build_id = build_id,
				     .server = strbuf_slice(server) };
	struct strbuf url = { 0 };
	struct fetch fetch = { .tls = debuginfod->tls,
			       .deadline_at_ns = deadline_at_ns,
			       .body_bytes_max = options->debuginfod_bytes_max,
			       .begin = begin_download,
			       .take = take_download,
			       .context = &download,
			       .cancelled = &debuginfod->idle };
	uint64_t bytes;
	int status = 0, rc = debuginfod_check_up(debuginfod, index, err);

	if (rc)
		return rc;

	strbuf_addf(&url, "%s/buildid/%s/debuginfo", strbuf_text(server), build_id);
	fetch.url = strbuf_text(&url);
	rc = fetch_get(&fetch, &status, err);
	strbuf_free(&url);
	debuginfod_note_reached(debuginfod, index, rc, status);
	if (download.receiver && rc)
		debuginfo_receive_abandon(download.receiver);
	else if (download.receiver)
		rc = debuginfo_receive_end(download.receiver, &bytes, err);
	else if (!rc && status == 200)
		rc = err_set(err, ERR_UNAVAILABLE, "an empty answer");
	if (rc)
		return err_wrap(err, "\"%s\"", strbuf_text(server));
	if (status == 200)
		return FOUND;
	return status == 404 ? 0
			     : err_set(err, ERR_UNAVAILABLE, "\"%s\" answers HTTP %d",
				       strbuf_text(server), status);
}

/* What is not worth asking again for soon. */
static bool is_final(int rc)
{
	return rc == -ERR_INVALID || rc == -ERR_LIMIT;
}

/* Asks all servers, without a lock. */
static int fetch_from_all(struct debuginfod *debuginfod, const char *build_id, struct err *err)
{
	int64_t deadline_at_ns =
		clock_monotonic_ns() + debuginfod->store->options.debuginfod_timeout_ns;
	int worst = 0;

	for (size_t i = 0; i < debuginfod->urls_count; i++) {
		struct err one = { .code = ERR_NONE };
		int rc;

		if (atomic_load(&debuginfod->idle)) /* no answer, above all not "not there" */
			return err_set(err, ERR_CANCELLED, "no server is asked any more");
		rc = fetch_from(debuginfod, i, build_id,
				debuginfod_share(debuginfod, i, deadline_at_ns), &one);
		metric_add(rc > 0    ? &debuginfod_fetched
			   : rc == 0 ? &debuginfod_not_there
				     : &debuginfod_failed,
			   1);
		if (rc > 0 || rc == -ERR_EXISTS || rc == -ERR_BUSY) {
			*err = one;
			return rc;
		}
		if (rc && (!worst || is_final(worst))) {
			*err = one;
			worst = rc;
		}
	}
	return worst;
}

/* Called and returns with the lock held. */
static void fetch_one(struct debuginfod *debuginfod, size_t index)
{
	struct asked *asked = &debuginfod->asked[index];
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	struct err err;
	int rc;

	settle(debuginfod, asked, FETCHING, 0, "");
	asked->received = asked->bytes = 0;
	memcpy(build_id, asked->build_id, sizeof(build_id));
	lock_give(&debuginfod->lock);
	rc = fetch_from_all(debuginfod, build_id, &err);
	if (!rc)
		debuginfod_write_miss(debuginfod, build_id);
	if (rc < 0 && rc != -ERR_EXISTS && rc != -ERR_BUSY && rc != -ERR_CANCELLED)
		log_info("debuginfod", "not fetched", "build_id=%s cause=\"%s\"", build_id,
			 err.message);
	lock_take(&debuginfod->lock);
	asked = find(debuginfod, slice_of(build_id));
	if (!asked) /* forgotten meanwhile */
		return;
	if (rc == -ERR_CANCELLED)
		settle(debuginfod, asked, WAITING, 0, "");
	else if (rc > 0)
		settle(debuginfod, asked, HERE, NOT_THERE_NS, "");
	else if (rc == 0)
		settle(debuginfod, asked, NOT_THERE, NOT_THERE_NS, "no server has it");
	else if (rc == -ERR_EXISTS)
		settle(debuginfod, asked, HERE, NO_BETTER_NS, "what is here is as good");
	else
		settle(debuginfod, asked, FAILED,
		       is_final(rc)	 ? NOT_THERE_NS
		       : rc == -ERR_BUSY ? BUSY_NS
					 : FAILED_NS,
		       err.message);
}

/* The costliest of those that wait, and of as costly ones the first. */
static size_t next_waiting(const struct debuginfod *debuginfod)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < debuginfod->asked_count; i++) {
		const struct asked *asked = &debuginfod->asked[i];

		if (asked->state == WAITING &&
		    (best == SIZE_MAX || asked->cost > debuginfod->asked[best].cost))
			best = i;
	}
	return best;
}

static void *run(void *data)
{
	struct debuginfod *debuginfod = data;

	lock_take(&debuginfod->lock);
	while (!atomic_load(&debuginfod->stopping)) {
		int64_t until_ns = clock_monotonic_ns() + POLL_NS;
		size_t next;

		poll_wanted(debuginfod);
		next = atomic_load(&debuginfod->paused) ? SIZE_MAX : next_waiting(debuginfod);
		if (next != SIZE_MAX)
			fetch_one(debuginfod, next);
		else
			lock_wait_until(&debuginfod->wake, &debuginfod->lock, until_ns);
	}
	lock_give(&debuginfod->lock);
	return NULL;
}

static int start_threads(struct debuginfod *debuginfod, struct err *err)
{
	sigset_t all, old;
	int code = 0;

	sigfillset(&all);
	sigdelset(&all, SIGPROF); /* asks what a thread does */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (!code && debuginfod->threads_count < DEBUGINFOD_THREADS) {
		code = pthread_create(&debuginfod->threads[debuginfod->threads_count], NULL, run,
				      debuginfod);
		if (!code)
			pthread_setname_np(debuginfod->threads[debuginfod->threads_count++],
					   "firn-debuginfod");
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return code ? err_set_errno(err, code, "start a thread that asks debuginfod servers") : 0;
}

static int add_servers(struct debuginfod *debuginfod, struct err *err)
{
	const struct debuginfo_options *options = &debuginfod->store->options;
	const struct tls_client_options tls = { .http1_only = true };

	debuginfod->urls = mem_new_array(struct strbuf, options->debuginfod_urls_count);
	debuginfod->down_until_ns = mem_new_array(_Atomic int64_t, options->debuginfod_urls_count);
	for (size_t i = 0; i < options->debuginfod_urls_count; i++) {
		struct slice url = slice_of(options->debuginfod_urls[i]);
		struct strbuf *copy = &debuginfod->urls[debuginfod->urls_count++];

		if (fetch_check_url(url.data, err))
			return err_wrap(err, "debuginfod server");
		while (url.len && url.data[url.len - 1] == '/')
			url.len--;
		strbuf_add_slice(copy, url);
		strbuf_addf(&debuginfod->servers, "%.*s\n", SLICE_FMT(url));
		if (slice_starts_with(url, SLICE_LITERAL("https:")) && !debuginfod->tls &&
		    tls_client_new(&tls, &debuginfod->tls, err))
			return -(int)err->code;
	}
	return 0;
}

static void register_metrics(void)
{
	static struct metric *const metrics[] = { &debuginfod_fetched, &debuginfod_not_there,
						  &debuginfod_failed };

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
}

void debuginfod_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_metrics);
}

int debuginfod_start(struct debuginfo *debuginfo, struct debuginfod **ret, struct err *err)
{
	struct debuginfod *debuginfod = mem_new(struct debuginfod);
	int rc;

	debuginfod->store = debuginfo;
	if (!debuginfo->options.debuginfod_timeout_ns)
		debuginfo->options.debuginfod_timeout_ns = TIMEOUT_DEFAULT_NS;
	if (!debuginfo->options.debuginfod_bytes_max)
		debuginfo->options.debuginfod_bytes_max = BYTES_MAX_DEFAULT;
	lock_init(&debuginfod->lock, "debuginfod", LOCK_DEBUGINFO);
	lock_condition_init(&debuginfod->wake);
	strbuf_addf(&debuginfod->folder, "%s/debuginfod", debuginfo->path);
	rc = add_servers(debuginfod, err);
	if (!rc && mkdir(strbuf_text(&debuginfod->folder), 0750) && errno != EEXIST)
		rc = err_set_errno(err, errno, "create folder \"%s\"",
				   strbuf_text(&debuginfod->folder));
	if (!rc) {
		debuginfod_collect(debuginfod);
		rc = start_threads(debuginfod, err);
	}
	if (rc) {
		debuginfod_stop(debuginfod);
		return rc;
	}
	log_info("debuginfod", "requested missing symbols", "servers=%zu first=\"%s\"",
		 debuginfod->urls_count, strbuf_text(&debuginfod->urls[0]));
	*ret = debuginfod;
	return 0;
}

/* Servers that could not be reached, and files that could not be fetched, are asked for again. */
static void forget_failures(struct debuginfod *debuginfod)
{
	for (size_t i = 0; i < debuginfod->urls_count; i++)
		atomic_store(&debuginfod->down_until_ns[i], 0);
	for (size_t i = 0; i < debuginfod->asked_count; i++)
		if (debuginfod->asked[i].state == FAILED)
			debuginfod->asked[i].again_ns = 0;
}

void debuginfod_pause(struct debuginfod *debuginfod, bool paused)
{
	lock_take(&debuginfod->lock);
	if (!paused)
		forget_failures(debuginfod);
	atomic_store(&debuginfod->paused, paused);
	atomic_store(&debuginfod->idle, paused);
	lock_broadcast(&debuginfod->wake);
	lock_give(&debuginfod->lock);
}

void debuginfod_end_waits(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	lock_take(&debuginfod->lock);
	atomic_store(&debuginfod->stopping, true);
	atomic_store(&debuginfod->idle, true);
	lock_broadcast(&debuginfod->wake);
	lock_give(&debuginfod->lock);
}

void debuginfod_stop(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	debuginfod_end_waits(debuginfod);
	for (size_t i = 0; i < debuginfod->threads_count; i++)
		pthread_join(debuginfod->threads[i], NULL);
	for (size_t i = 0; i < debuginfod->urls_count; i++)
		strbuf_free(&debuginfod->urls[i]);
	free(debuginfod->urls);
	free(debuginfod->down_until_ns);
	free(debuginfod->asked);
	idmap_free(&debuginfod->map);
	tls_unref(debuginfod->tls);
	strbuf_free(&debuginfod->folder);
	strbuf_free(&debuginfod->servers);
	lock_condition_free(&debuginfod->wake);
	lock_free(&debuginfod->lock);
	free(debuginfod);
}

void debuginfod_each(struct debuginfod *debuginfod, struct slice build_id, debuginfo_asked_f *visit,
		     void *context)
{
	static const char *const states[] = {
		[WAITING] = "waiting",	   [FETCHING] = "fetching", [HERE] = "here",
		[NOT_THERE] = "not there", [FAILED] = "failed",
	};

	lock_take(&debuginfod->lock);
	for (size_t i = 0; i < debuginfod->asked_count; i++) {
		const struct asked *asked = &debuginfod->asked[i];

		if (!build_id.len || slice_is(build_id, asked->build_id))
			visit(context, &(struct debuginfo_asked){
					       slice_of(asked->build_id), states[asked->state],
					       slice_of(asked->why), asked->at_ns, asked->received,
					       asked->bytes });
	}
	lock_give(&debuginfod->lock);
}
