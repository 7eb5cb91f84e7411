/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that share debug information by a bucket, each with a folder of its own: what one was
 * sent the others have when they need it, whatever call to the bucket fails; what nobody uses goes;
 * what was damaged there is not taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../persist/sim_bucket.h"
#include "base/log.h"
#include "base/mem.h"
#include "image.h"
#include "server/debuginfo/debuginfo_int.h"
#include "server/debuginfo/shared.h"
#include "server/debuginfo/source.h"

#define DAY_NS (24 * 3600 * CLOCK_NS_PER_S)
#define CALLS_MAX 100

struct server {
	char path[64];
	struct debuginfo *debuginfo;
	struct debuginfo_options options;
	int64_t now_ns;
	const char *wanted; /* a build id without names; NULL: none */
	unsigned added;
	sem_t *in_step; /* NULL: no; a step tells once that it is under way, and takes its time */
	sem_t *go_on;	/* ... or, unless NULL, waits for this */
};

static int64_t server_clock(void *context)
{
	return ((const struct server *)context)->now_ns;
}

static void each_wanted(void *context, debuginfo_want_f *want, void *want_context)
{
	struct server *server = context;

	if (server->in_step) {
		sem_post(server->in_step);
		server->in_step = NULL;
		if (server->go_on)
			sem_wait(server->go_on);
		else
			usleep(200000);
	}
	if (server->wanted)
		want(want_context, slice_of(server->wanted), 1);
}

static void note_added(void *context, struct slice build_id)
{
	(void)build_id;
	((struct server *)context)->added++;
}

static void open_server(struct server *server)
{
	struct err err;

	debuginfo_close(server->debuginfo);
	server->debuginfo = NULL;
	if (debuginfo_open(&server->options, &server->debuginfo, &err))
		fail_msg("%s", err.message);
}

static void begin(struct server *server, struct bucket **bucket)
{
	*server = (struct server){ .path = "/tmp/firn-shared-XXXXXX", .now_ns = 20000 * DAY_NS };
	assert_non_null(mkdtemp(server->path));
	server->options = (struct debuginfo_options){ .path = server->path,
						      .clock = server_clock,
						      .clock_context = server,
						      .retention_ns = 10 * DAY_NS,
						      .each_wanted = each_wanted,
						      .added = note_added,
						      .context = server,
						      .buckets = bucket,
						      .buckets_count = 1,
						      .no_shared_thread = true };
	open_server(server);
}

static void end(struct server *server)
{
	char command[128];

	debuginfo_close(server->debuginfo);
	snprintf(command, sizeof(command), "rm -r '%s'", server->path);
	assert_int_equal(system(command), 0);
}

static const char *id_of(unsigned char id)
{
	static char texts[4][41];
	char *text = texts[id % 4];

	for (int i = 0; i < 20; i++)
		snprintf(text + 2 * i, 3, "%02x", id);
	return text;
}

static int send_bytes(struct server *server, const struct debuginfo_offer *offer,
		      struct slice bytes)
{
	struct debuginfo_receiver *receiver;
	char id[DISK_UPLOAD_ID_BYTES];
	uint64_t received;
	int rc = debuginfo_begin(server->debuginfo, offer, id, &received, NULL);

	if (rc)
		return rc;
	assert_int_equal(debuginfo_receive_begin(server->debuginfo, offer->build_id, slice_of(id),
						 0, &receiver, NULL),
			 0);
	assert_int_equal(debuginfo_receive(receiver, bytes, NULL), 0);
	return debuginfo_receive_end(receiver, &received, NULL);
}

static int send_image(struct server *server, unsigned char id, enum shape shape)
{
	struct image image = make_image(id, shape);
	struct debuginfo_offer offer = { .build_id = slice_of(id_of(id)),
					 .bytes = sizeof(image),
					 .hash = slice_of(shape == DEBUG_FILE ? "a2" : "a1"),
					 .id_kind = DEBUGINFO_ID_GNU };

	return send_bytes(server, &offer, slice_from((const char *)&image, sizeof(image)));
}

static void step(struct server *server)
{
	struct err err;

	if (shared_step(server->debuginfo->shared, &err))
		fail_msg("%s", err.message);
}

/* As if the bucket was listed long ago. */
static void step_anew(struct server *server)
{
	open_server(server);
	step(server);
}

static bool has(struct server *server, unsigned char id, enum debuginfo_kind kind)
{
	bool found;

	lock_take(&server->debuginfo->lock);
	found = debuginfo_find(server->debuginfo, slice_of(id_of(id)), kind) != NULL;
	lock_give(&server->debuginfo->lock);
	return found;
}

static void others_have_what_they_need(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, other;

	(void)state;
	begin(&one, &bucket);
	begin(&other, &bucket);
	assert_int_equal(send_image(&one, 1, SYMBOLS), 0);
	assert_int_equal(send_image(&one, 2, SYMBOLS), 0);
	step(&one);
	assert_int_equal(sim_bucket_count(bucket, ".record"), 2);
	other.wanted = id_of(1);
	step(&other);
	assert_true(has(&other, 1, DEBUGINFO_BINARY));
	assert_int_equal(other.added, 1);		/* the resolver was told */
	assert_false(has(&other, 2, DEBUGINFO_BINARY)); /* nobody needs it there */
	step_anew(&other);
	assert_int_equal(sim_bucket_count(bucket, ".record"), 2);
	end(&one);
	end(&other);
	bucket->close(bucket);
}

/* A poor file is no reason to do without the good one. */
static void better_files_come_too(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, other;

	(void)state;
	begin(&one, &bucket);
	begin(&other, &bucket);
	assert_int_equal(send_image(&other, 1, STRIPPED), 0);
	assert_int_equal(send_image(&one, 1, DEBUG_FILE), 0);
	step(&one);
	step(&other);
	assert_true(has(&other, 1, DEBUGINFO_DEBUG));
	step_anew(&one);
	assert_true(has(&one, 1, DEBUGINFO_BINARY));
	end(&one);
	end(&other);
	bucket->close(bucket);
}

static void what_the_bucket_has_need_not_be_sent(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct debuginfo_offer offer = { .build_id = slice_of(id_of(1)) };
	enum debuginfo_verdict verdict;
	struct server one, other;
	char sha256[65];

	(void)state;
	begin(&one, &bucket);
	begin(&other, &bucket);
	assert_int_equal(send_image(&one, 1, SYMBOLS), 0);
	snprintf(
		sha256, sizeof(sha256), "%s",
		debuginfo_find(one.debuginfo, slice_of(id_of(1)), DEBUGINFO_BINARY)->record.sha256);
	step(&one);
	step(&other);
	offer.hash = slice_of(sha256);
	assert_int_equal(debuginfo_ask(other.debuginfo, &offer, &verdict, NULL), 0);
	assert_int_equal(verdict, DEBUGINFO_PRESENT);
	offer.hash = slice_of("b1");
	assert_int_equal(debuginfo_ask(other.debuginfo, &offer, &verdict, NULL), 0);
	assert_int_equal(verdict, DEBUGINFO_WANTED);
	end(&one);
	end(&other);
	bucket->close(bucket);
}

/* Puts an archive of sources into the bucket. */
static void share_sources(struct server *server, unsigned char id)
{
	struct debuginfo_offer offer = { .build_id = slice_of(id_of(id)),
					 .content = DEBUGINFO_ARCHIVE };
	struct strbuf archive = { 0 };
	char path[512];
	FILE *file;
	int byte;

	snprintf(path, sizeof(path), "%s/fuzz/corpus/tar/p_tar_zst", getenv("FIRN_TESTS"));
	file = fopen(path, "rb");
	assert_non_null(file);
	(void)fgetc(file); /* the fuzz target's own */
	while ((byte = fgetc(file)) != EOF)
		strbuf_add_byte(&archive, (char)byte);
	fclose(file);
	offer.bytes = archive.len;
	assert_int_equal(send_bytes(server, &offer, strbuf_slice(&archive)), 0);
	step(server);
	strbuf_free(&archive);
}

/* An archive that one has in its bucket, and the other has not seen. */
static void begin_sources(struct server *one, struct server *other, struct bucket **bucket)
{
	begin(one, bucket);
	begin(other, bucket);
	share_sources(one, 1);
	other->options.no_shared_thread = false;
}

static void ask_for_sources(struct server *server)
{
	const struct source_wanted wanted = { .build_id = slice_of(id_of(1)),
					      .path = SLICE_LITERAL("/src/app/main.c"),
					      .until_ns = INT64_MAX };
	struct strbuf text = { 0 };
	const char *from;

	(void)source_find(server->debuginfo, &wanted, &text, &from, NULL);
	strbuf_free(&text);
}

static void sources_come_when_they_are_asked_for(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, other;

	(void)state;
	begin_sources(&one, &other, &bucket);
	step(&other);
	assert_false(has(&other, 1, DEBUGINFO_SOURCES));
	open_server(&other);
	ask_for_sources(&other);
	assert_true(has(&other, 1, DEBUGINFO_SOURCES));
	end(&other); /* its thread cancels the bucket */
	end(&one);
	bucket->close(bucket);
}

/* A step that has taken up what was asked for before leaves this to the next. */
static void sources_come_when_a_step_is_under_way(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, other;
	sem_t in_step;

	(void)state;
	begin_sources(&one, &other, &bucket);
	sem_init(&in_step, 0, 0);
	other.in_step = &in_step;
	open_server(&other);
	sem_wait(&in_step);
	ask_for_sources(&other);
	assert_true(has(&other, 1, DEBUGINFO_SOURCES));
	end(&other);
	end(&one);
	sem_destroy(&in_step);
	bucket->close(bucket);
}

static void *ask(void *server)
{
	ask_for_sources(server);
	return NULL;
}

static void a_stop_does_not_wait_for_a_step(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, other;
	sem_t in_step, go_on;
	pthread_t asker;

	(void)state;
	begin_sources(&one, &other, &bucket);
	sem_init(&in_step, 0, 0);
	sem_init(&go_on, 0, 0);
	other.in_step = &in_step;
	other.go_on = &go_on;
	open_server(&other);
	sem_wait(&in_step);
	assert_int_equal(pthread_create(&asker, NULL, ask, &other), 0);
	debuginfo_end_waits(other.debuginfo);
	pthread_join(asker, NULL); /* though the step is not over */
	assert_false(has(&other, 1, DEBUGINFO_SOURCES));
	sem_post(&go_on);
	end(&other);
	end(&one);
	sem_destroy(&in_step);
	sem_destroy(&go_on);
	bucket->close(bucket);
}

/* Two archives are in the bucket; the other's thread stands in a step until end_held. */
struct held {
	struct bucket *bucket;
	struct server one, other;
	sem_t in_step, go_on;
};

static void begin_held(struct held *held)
{
	held->bucket = sim_bucket_new();
	begin_sources(&held->one, &held->other, &held->bucket);
	share_sources(&held->one, 2);
	sem_init(&held->in_step, 0, 0);
	sem_init(&held->go_on, 0, 0);
	held->other.in_step = &held->in_step;
	held->other.go_on = &held->go_on;
	open_server(&held->other);
	sem_wait(&held->in_step);
}

/* As who does not wait for the archive. */
static void want_sources(struct held *held, unsigned char id)
{
	shared_want_sources(held->other.debuginfo->shared, slice_of(id_of(id)), 0);
}

/* Whether the archive comes once the thread goes on. */
static bool comes(struct held *held, unsigned char id)
{
	int64_t until_ns = clock_monotonic_ns() + 20 * CLOCK_NS_PER_S;

	sem_post(&held->go_on);
	while (!has(&held->other, id, DEBUGINFO_SOURCES) && clock_monotonic_ns() < until_ns)
		usleep(10000);
	return has(&held->other, id, DEBUGINFO_SOURCES);
}

static void end_held(struct held *held)
{
	end(&held->other);
	end(&held->one);
	sem_destroy(&held->in_step);
	sem_destroy(&held->go_on);
	held->bucket->close(held->bucket);
}

static int (*get_any)(struct bucket *bucket, const char *key, size_t max_bytes, struct strbuf *out,
		      struct err *err);

static int get_but_the_first(struct bucket *bucket, const char *key, size_t max_bytes,
			     struct strbuf *out, struct err *err)
{
	return strstr(key, "/0101") ? err_set(err, ERR_UNAVAILABLE, "this one cannot be read")
				    : get_any(bucket, key, max_bytes, out, err);
}

static void an_archive_that_fails_does_not_cost_the_next(void **state)
{
	struct held held = { 0 };

	(void)state;
	begin_held(&held);
	want_sources(&held, 1);
	want_sources(&held, 2);
	get_any = held.bucket->get;
	held.bucket->get = get_but_the_first;
	assert_true(comes(&held, 2));
	assert_false(has(&held.other, 1, DEBUGINFO_SOURCES));
	end_held(&held);
}

static atomic_bool is_second_asked_for;

static int get_none_in_time(struct bucket *bucket, const char *key, size_t max_bytes,
			    struct strbuf *out, struct err *err)
{
	(void)bucket, (void)max_bytes, (void)out;
	if (strstr(key, "/0202"))
		atomic_store(&is_second_asked_for, true);
	return err_set(err, ERR_DEADLINE, "no answer in time");
}

/* Each would take half a minute; nobody waits so long. */
static void a_bucket_that_is_silent_is_asked_once(void **state)
{
	struct held held = { 0 };

	(void)state;
	begin_held(&held);
	want_sources(&held, 1);
	want_sources(&held, 2);
	held.bucket->get = get_none_in_time;
	sem_post(&held.go_on);
	shared_want_sources(held.other.debuginfo->shared, slice_of(id_of(1)),
			    clock_monotonic_ns() + 20 * CLOCK_NS_PER_S);
	assert_false(atomic_load(&is_second_asked_for));
	end_held(&held);
}

/* However many wait for one archive, others have room to ask for another. */
static void all_who_want_one_archive_take_one_place(void **state)
{
	struct held held = { 0 };

	(void)state;
	begin_held(&held);
	for (int i = 0; i < 100; i++)
		want_sources(&held, 1);
	want_sources(&held, 2);
	assert_true(comes(&held, 2));
	assert_true(has(&held.other, 1, DEBUGINFO_SOURCES));
	end_held(&held);
}

static void sources_that_were_removed_here_come_again(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, other;

	(void)state;
	begin_sources(&one, &other, &bucket);
	other.options.buckets_read_only = true; /* the bucket is to keep them */
	open_server(&other);
	ask_for_sources(&other);
	assert_true(has(&other, 1, DEBUGINFO_SOURCES));
	other.now_ns += 11 * DAY_NS;
	debuginfo_collect(other.debuginfo);
	assert_false(has(&other, 1, DEBUGINFO_SOURCES));
	ask_for_sources(&other);
	assert_true(has(&other, 1, DEBUGINFO_SOURCES));
	end(&other);
	end(&one);
	bucket->close(bucket);
}

/* Somebody sends them, which is cut off: whoever asks then need not wait until they are tried
 * again. */
static void sources_come_after_an_upload_that_was_cut_off(void **state)
{
	struct debuginfo_offer offer = { .build_id = slice_of(id_of(1)),
					 .content = DEBUGINFO_ARCHIVE,
					 .bytes = 1000 };
	struct bucket *bucket = sim_bucket_new();
	struct debuginfo_receiver *receiver;
	char id[DISK_UPLOAD_ID_BYTES];
	struct server one, other;
	uint64_t received;

	(void)state;
	begin_sources(&one, &other, &bucket);
	open_server(&other);
	assert_int_equal(debuginfo_begin(other.debuginfo, &offer, id, &received, NULL), 0);
	assert_int_equal(debuginfo_receive_begin(other.debuginfo, offer.build_id, slice_of(id), 0,
						 &receiver, NULL),
			 0);
	ask_for_sources(&other);
	assert_false(has(&other, 1, DEBUGINFO_SOURCES));
	debuginfo_receive_abandon(receiver);
	ask_for_sources(&other);
	assert_true(has(&other, 1, DEBUGINFO_SOURCES));
	end(&other);
	end(&one);
	bucket->close(bucket);
}

/* Every call fails in every way, once; what was sent is there in the end, as a whole. */
static void whatever_fails_it_arrives(void **state)
{
	unsigned calls = 0;

	(void)state;
	for (int fault = SIM_BUCKET_REFUSES; fault < SIM_BUCKET_FAULTS; fault++) {
		bool hit = true;

		for (unsigned at = 1; hit && at < CALLS_MAX; at++) {
			struct bucket *bucket = sim_bucket_new();
			struct server one, other;

			begin(&one, &bucket);
			begin(&other, &bucket);
			assert_int_equal(send_image(&one, 1, SYMBOLS), 0);
			assert_int_equal(send_image(&one, 1, DEBUG_FILE), 0);
			other.wanted = id_of(1);
			sim_bucket_plan(bucket, (enum sim_bucket_fault)fault, at);
			(void)shared_step(one.debuginfo->shared, NULL);
			(void)shared_step(other.debuginfo->shared, NULL);
			open_server(&one); /* it was killed there */
			(void)shared_step(one.debuginfo->shared, NULL);
			hit = sim_bucket_hit(bucket);
			calls += hit;
			sim_bucket_plan(bucket, SIM_BUCKET_WHOLE, 0);
			step_anew(&one);
			step_anew(&other);
			assert_true(has(&other, 1, DEBUGINFO_BINARY));
			assert_true(has(&other, 1, DEBUGINFO_DEBUG));
			assert_int_equal(sim_bucket_count(bucket, ".record"), 2);
			end(&one);
			end(&other);
			bucket->close(bucket);
		}
		assert_false(hit);
	}
	assert_true(calls > 20);
}

static void what_nobody_uses_goes(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, other;

	(void)state;
	begin(&one, &bucket);
	begin(&other, &bucket);
	assert_int_equal(send_image(&one, 1, SYMBOLS), 0);
	assert_int_equal(send_image(&other, 2, SYMBOLS), 0);
	step(&one);
	step(&other);
	one.now_ns += 9 * DAY_NS;
	other.now_ns = one.now_ns;
	lock_take(&other.debuginfo->lock);
	debuginfo_touch(other.debuginfo, slice_of(id_of(2)), DEBUGINFO_BINARY, other.now_ns);
	lock_give(&other.debuginfo->lock);
	step_anew(&other);
	other.now_ns += 4 * DAY_NS; /* the first was last used 13 days ago, the second 4 */
	one.now_ns = other.now_ns;
	debuginfo_collect(one.debuginfo);
	step_anew(&other);
	step_anew(&one);
	assert_int_equal(sim_bucket_count(bucket, id_of(1)), 0);
	assert_int_equal(sim_bucket_count(bucket, id_of(2)), 3); /* file, record, one use */
	end(&one);
	end(&other);
	bucket->close(bucket);
}

/* A server that only reads puts nothing and removes nothing. */
static void readers_only_read(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct server one, reader;

	(void)state;
	begin(&one, &bucket);
	begin(&reader, &bucket);
	reader.options.buckets_read_only = true;
	open_server(&reader);
	assert_int_equal(send_image(&one, 1, SYMBOLS), 0);
	step(&one);
	reader.wanted = id_of(1);
	reader.now_ns += 30 * DAY_NS;
	step(&reader);
	assert_true(has(&reader, 1, DEBUGINFO_BINARY));
	assert_int_equal(send_image(&reader, 2, SYMBOLS), 0);
	step(&reader);
	assert_int_equal(sim_bucket_count(bucket, "debuginfo/"), 3);
	end(&one);
	end(&reader);
	bucket->close(bucket);
}

struct found {
	char key[BUCKET_KEY_BYTES_MAX];
};

static int take_file(void *context, const struct bucket_entry *entry, struct err *err)
{
	struct found *found = context;

	(void)err;
	if (slice_find_byte(entry->key, '.') == SIZE_MAX)
		snprintf(found->key, sizeof(found->key), "%.*s", SLICE_FMT(entry->key));
	return 0;
}

static void other_bytes_are_not_taken(void **state)
{
	struct bucket *bucket = sim_bucket_new();
	struct strbuf bytes = { 0 };
	struct found found = { "" };
	struct server one, other;

	(void)state;
	begin(&one, &bucket);
	begin(&other, &bucket);
	assert_int_equal(send_image(&one, 1, SYMBOLS), 0);
	step(&one);
	assert_int_equal(bucket->list(bucket, "debuginfo/", NULL, false, take_file, &found, NULL),
			 0);
	assert_int_equal(bucket->get(bucket, found.key, 1 << 20, &bytes, NULL), 0);
	bytes.data[bytes.len - 1] ^= 1;
	assert_int_equal(bucket->put(bucket, found.key, strbuf_slice(&bytes), false, NULL), 0);
	/* Names of another shape are passed over. */
	assert_int_equal(
		bucket->put(bucket, "debuginfo/0101/binary", (struct slice){ "", 0 }, false, NULL),
		0);
	other.wanted = id_of(1);
	step(&other);
	assert_false(has(&other, 1, DEBUGINFO_BINARY));
	strbuf_free(&bytes);
	end(&one);
	end(&other);
	bucket->close(bucket);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_have_what_they_need),
		cmocka_unit_test(better_files_come_too),
		cmocka_unit_test(what_the_bucket_has_need_not_be_sent),
		cmocka_unit_test(sources_come_when_they_are_asked_for),
		cmocka_unit_test(sources_come_when_a_step_is_under_way),
		cmocka_unit_test(a_stop_does_not_wait_for_a_step),
		cmocka_unit_test(an_archive_that_fails_does_not_cost_the_next),
		cmocka_unit_test(a_bucket_that_is_silent_is_asked_once),
		cmocka_unit_test(all_who_want_one_archive_take_one_place),
		cmocka_unit_test(sources_that_were_removed_here_come_again),
		cmocka_unit_test(sources_come_after_an_upload_that_was_cut_off),
		cmocka_unit_test(whatever_fails_it_arrives),
		cmocka_unit_test(what_nobody_uses_goes),
		cmocka_unit_test(readers_only_read),
		cmocka_unit_test(other_bytes_are_not_taken),
	};

	log_set(LOG_ERROR, LOG_LOGFMT);
	return cmocka_run_group_tests_name("debuginfo_shared", tests, NULL, NULL);
}
