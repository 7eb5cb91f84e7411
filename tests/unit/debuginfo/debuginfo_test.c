/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo: who may send, what is taken and kept, and what a restart finds, on a real folder with
 * a wall clock that tests move; sources. Files are small ELF images made here, and archives that
 * are the tar fuzz target's seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "codec/wire/sha256.h"
#include "server/debuginfo/debuginfod_int.h"
#include "server/debuginfo/source.h"
#include "image.h"

#define DAY_NS (24 * 3600 * CLOCK_NS_PER_S)
#define THREADS 8

struct world {
	char path[64];
	struct debuginfo *debuginfo;
	struct debuginfo_options options;
	int64_t now_ns;
	_Atomic unsigned added;
	const char *used;   /* the build id that take_used says yes to */
	const char *wanted; /* the build id that lacks names; may be NULL */
};

/* Paused when this thread looks at the clock the next time. */
static _Thread_local struct debuginfod *paused_soon;

static int64_t world_clock(void *context)
{
	const struct world *world = context;

	if (paused_soon)
		debuginfod_pause(paused_soon, true);
	paused_soon = NULL;
	return world->now_ns;
}

static void world_added(void *context, struct slice build_id)
{
	struct world *world = context;

	assert_int_equal(build_id.len, 40);
	world->added++;
}

static bool world_take_used(void *context, struct slice build_id)
{
	const struct world *world = context;

	return world->used && slice_is(build_id, world->used);
}

static void world_each_wanted(void *context, debuginfo_want_f *want, void *want_context)
{
	const struct world *world = context;

	if (world->wanted)
		want(want_context, slice_of(world->wanted), 1);
}

static void open_world(struct world *world)
{
	struct err err;

	debuginfo_close(world->debuginfo);
	world->debuginfo = NULL;
	if (debuginfo_open(&world->options, &world->debuginfo, &err))
		fail_msg("%s", err.message);
}

static int set_up(void **state)
{
	struct world *world = mem_new(struct world);

	log_set(LOG_ERROR, LOG_LOGFMT);
	*state = world;
	snprintf(world->path, sizeof(world->path), "/tmp/firn-debuginfo-XXXXXX");
	assert_non_null(mkdtemp(world->path));
	world->now_ns = 1790000000 * CLOCK_NS_PER_S;
	world->options = (struct debuginfo_options){ .path = world->path,
						     .clock = world_clock,
						     .clock_context = world,
						     .added = world_added,
						     .take_used = world_take_used,
						     .each_wanted = world_each_wanted,
						     .context = world };
	open_world(world);
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	char command[128];

	debuginfo_close(world->debuginfo);
	snprintf(command, sizeof(command), "rm -r '%s'", world->path);
	assert_int_equal(system(command), 0);
	free(world);
	return 0;
}

/* The build id of images made with `id`. */
static struct slice id_of(unsigned char id, char text[41])
{
	for (int i = 0; i < 20; i++)
		snprintf(text + 2 * i, 3, "%02x", id);
	return slice_from(text, 40);
}

static struct debuginfo_offer offer_of(struct slice build_id, size_t bytes)
{
	return (struct debuginfo_offer){ .build_id = build_id,
					 .bytes = bytes,
					 .id_kind = DEBUGINFO_ID_GNU };
}

static int receive(struct world *world, struct slice build_id, const char *id, struct slice bytes,
		   struct err *err)
{
	struct debuginfo_receiver *receiver;
	uint64_t received;
	int rc = debuginfo_receive_begin(world->debuginfo, build_id, slice_of(id), 0, &receiver,
					 err);

	if (rc)
		return rc;
	rc = debuginfo_receive(receiver, slice_from(bytes.data, bytes.len / 2), err);
	if (!rc)
		rc = debuginfo_receive(receiver, slice_tail(bytes, bytes.len / 2), err);
	if (rc) {
		debuginfo_receive_abandon(receiver);
		return rc;
	}
	rc = debuginfo_receive_end(receiver, &received, err);
	if (!rc)
		assert_int_equal(received, bytes.len);
	return rc;
}

static int send_offer(struct world *world, const struct debuginfo_offer *offer,
		      const struct image *image, struct err *err)
{
	char id[DISK_UPLOAD_ID_BYTES];
	uint64_t received;
	int rc = debuginfo_begin(world->debuginfo, offer, id, &received, err);

	return rc ? rc
		  : receive(world, offer->build_id, id, slice_from(image, sizeof(*image)), err);
}

static int send_image(struct world *world, unsigned char id, enum shape shape, struct err *err)
{
	static const char *const hashes[] = { "a0", "a1", "a2" };
	struct image image = make_image(id, shape);
	char text[41];
	struct debuginfo_offer offer = offer_of(id_of(id, text), sizeof(image));

	offer.hash = slice_of(hashes[shape]); /* tells the files of one build apart */
	return send_offer(world, &offer, &image, err);
}

static enum debuginfo_verdict ask(struct world *world, unsigned char id)
{
	enum debuginfo_verdict verdict;
	char text[41];
	struct debuginfo_offer offer = offer_of(id_of(id, text), 0);

	assert_int_equal(debuginfo_ask(world->debuginfo, &offer, &verdict, NULL), 0);
	return verdict;
}

static void add_to_list(void *context, const struct debuginfo_file *file)
{
	strbuf_addf(context, "%.2s %s %s;", file->build_id.data,
		    file->kind == DEBUGINFO_BINARY  ? "bin"
		    : file->kind == DEBUGINFO_DEBUG ? "debug"
						    : "sources",
		    elf_quality_name(file->record->quality));
}

static void assert_files(struct world *world, const char *wanted)
{
	struct strbuf list = { 0 };

	debuginfo_each(world->debuginfo, add_to_list, &list);
	assert_string_equal(strbuf_text(&list), wanted);
	strbuf_free(&list);
}

static void one_of_many_is_told_to_send(void **state)
{
	struct world *world = *state;
	struct err err;

	assert_int_equal(ask(world, 1), DEBUGINFO_WANTED);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(world, 1), DEBUGINFO_IN_PROGRESS);
	assert_int_equal(ask(world, 2), DEBUGINFO_WANTED);
	assert_int_equal(send_image(world, 1, SYMBOLS, &err), 0);
	assert_int_equal(ask(world, 1), DEBUGINFO_PRESENT);
	assert_int_equal(world->added, 1);
}

static void an_upload_that_breaks_off_leaves_room(void **state)
{
	struct world *world = *state;
	struct debuginfo_receiver *receiver;
	char text[41], id[DISK_UPLOAD_ID_BYTES], other[DISK_UPLOAD_ID_BYTES];
	struct debuginfo_offer offer = offer_of(id_of(1, text), 100);
	uint64_t received;
	struct err err;

	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, id, &received, &err), 0);
	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, other, &received, &err),
			 -ERR_BUSY);
	assert_int_equal(debuginfo_confirm(world->debuginfo, offer.build_id, slice_of(id), &err),
			 -ERR_INVALID);
	assert_int_equal(debuginfo_receive_begin(world->debuginfo, offer.build_id, slice_of(id), 0,
						 &receiver, &err),
			 0);
	assert_int_equal(debuginfo_receive_begin(world->debuginfo, offer.build_id, slice_of(id), 0,
						 &receiver, &err),
			 -ERR_BUSY);
	assert_int_equal(debuginfo_receive(receiver, SLICE_LITERAL("part"), &err), 0);
	debuginfo_receive_abandon(receiver);
	assert_int_equal(receive(world, offer.build_id, id, SLICE_LITERAL("x"), &err),
			 -ERR_NOT_FOUND);
	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, other, &received, &err), 0);
	assert_files(world, "");
}

static void a_forced_upload_overtakes_the_one_under_way(void **state)
{
	struct world *world = *state;
	struct image image = make_image(1, SYMBOLS);
	char text[41], id[DISK_UPLOAD_ID_BYTES];
	struct debuginfo_offer offer = offer_of(id_of(1, text), sizeof(image));
	struct debuginfo_receiver *receiver;
	uint64_t bytes, received;
	struct err err;

	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, id, &received, &err), 0);
	assert_int_equal(debuginfo_receive_begin(world->debuginfo, offer.build_id, slice_of(id), 0,
						 &receiver, &err),
			 0);
	assert_int_equal(debuginfo_receive(receiver, slice_from(&image, sizeof(image)), &err), 0);
	offer.is_forced = true;
	image.content[0] = 1;
	assert_int_equal(send_offer(world, &offer, &image, &err), 0);
	assert_int_equal(debuginfo_receive_end(receiver, &bytes, &err), -ERR_CANCELLED);
	assert_int_equal(world->added, 1);
	assert_files(world, "01 bin symtab;");
}

static void better_replaces_worse_whatever_the_order(void **state)
{
	struct world *world = *state;
	struct err err;

	assert_int_equal(send_image(world, 1, STRIPPED, &err), 0);
	assert_files(world, "01 bin nothing;");
	assert_int_equal(send_image(world, 1, SYMBOLS, &err), 0);
	assert_files(world, "01 bin symtab;");
	assert_int_equal(send_image(world, 1, STRIPPED, &err), -ERR_EXISTS);
	assert_int_equal(send_image(world, 1, DEBUG_FILE, &err), 0);
	assert_files(world, "01 bin symtab;01 debug debug_info;");
	assert_int_equal(send_image(world, 2, DEBUG_FILE, &err), 0);
	assert_int_equal(send_image(world, 2, DEBUG_FILE, &err), -ERR_EXISTS);
	assert_int_equal(ask(world, 2), DEBUGINFO_PRESENT);
	assert_int_equal(world->added, 4);
	open_world(world);
	assert_files(world, "01 bin symtab;01 debug debug_info;02 debug debug_info;");
}

static void another_build_is_refused(void **state)
{
	struct world *world = *state;
	struct image image = make_image(2, SYMBOLS);
	char text[41];
	struct debuginfo_offer offer = offer_of(id_of(1, text), sizeof(image));
	struct err err;

	assert_int_equal(send_offer(world, &offer, &image, &err), -ERR_INVALID);
	offer.id_kind = DEBUGINFO_ID_HASH; /* no way around the note */
	assert_int_equal(send_offer(world, &offer, &image, &err), -ERR_INVALID);
	image.segments[1].p_type = PT_NULL; /* without a note, a hash of the program is believed */
	assert_int_equal(send_offer(world, &offer, &image, &err), 0);
	assert_files(world, "01 bin symtab;");
	assert_int_equal(world->added, 1);
}

static void the_same_file_twice_is_no_error(void **state)
{
	struct world *world = *state;
	struct image image = make_image(1, SYMBOLS);
	char text[41], id[DISK_UPLOAD_ID_BYTES];
	struct debuginfo_offer offer = offer_of(id_of(1, text), sizeof(image));
	uint64_t received;
	struct err err;

	assert_int_equal(send_offer(world, &offer, &image, &err), 0);
	offer.is_forced = true;
	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, id, &received, &err), 0);
	assert_int_equal(
		receive(world, offer.build_id, id, slice_from(&image, sizeof(image)), &err), 0);
	assert_int_equal(debuginfo_confirm(world->debuginfo, offer.build_id, slice_of(id), &err),
			 0);
	assert_int_equal(world->added, 1);
}

static void what_is_used_stays_and_the_rest_goes_by_age(void **state)
{
	struct world *world = *state;
	char text[41];
	struct err err;

	world->options.retention_ns = 10 * DAY_NS;
	open_world(world);
	assert_int_equal(send_image(world, 1, SYMBOLS, &err), 0);
	assert_int_equal(send_image(world, 1, DEBUG_FILE, &err), 0);
	assert_int_equal(send_image(world, 2, SYMBOLS, &err), 0);
	world->now_ns += 9 * DAY_NS;
	world->used = id_of(1, text).data;
	debuginfo_collect(world->debuginfo);
	world->used = NULL;
	assert_files(world, "01 bin symtab;01 debug debug_info;02 bin symtab;");
	open_world(world); /* the last use outlives the process */
	world->now_ns += 2 * DAY_NS;
	debuginfo_collect(world->debuginfo);
	assert_files(world, "01 bin symtab;01 debug debug_info;");
	world->now_ns += 10 * DAY_NS;
	debuginfo_collect(world->debuginfo);
	assert_files(world, "");
	open_world(world);
	assert_files(world, "");
	assert_int_equal(ask(world, 1), DEBUGINFO_WANTED);
}

static void over_the_size_of_all_the_longest_unused_goes(void **state)
{
	struct world *world = *state;
	struct err err;

	world->options.bytes_max = 3 * sizeof(struct image);
	world->options.file_bytes_max = sizeof(struct image);
	open_world(world);
	for (unsigned char id = 1; id <= 5; id++) {
		world->now_ns += DAY_NS;
		assert_int_equal(send_image(world, id, SYMBOLS, &err), 0);
	}
	assert_files(world, "03 bin symtab;04 bin symtab;05 bin symtab;");
	world->options.file_bytes_max = sizeof(struct image) - 1;
	open_world(world);
	assert_int_equal(send_image(world, 6, SYMBOLS, &err), -ERR_LIMIT);
}

static void shell(const struct world *world, const char *format)
{
	char command[512];

	snprintf(command, sizeof(command), "cd '%s' && %s", world->path, format);
	assert_int_equal(system(command), 0);
}

static void a_restart_finds_what_is_whole(void **state)
{
	struct world *world = *state;
	struct err err;

	for (unsigned char id = 1; id <= 4; id++)
		assert_int_equal(send_image(world, id, SYMBOLS, &err), 0);
	shell(world,
	      "rm 01/*.record && echo damaged >$(ls 02/*.record) && "
	      "printf x >>$(ls 03/*.bin) && : >$(ls 04/*.bin) && "
	      "echo >uploads/0011 && mkdir ab zz && echo >ab/cd.bin.tmp && echo >ab/xyz.bin && "
	      "ln -s /dev/zero ab/ef.bin");
	open_world(world);
	assert_files(world, "01 bin symtab;02 bin symtab;03 bin symtab;");
	shell(world, "test -z \"$(ls uploads)\" && test -e ab/xyz.bin");
}

struct sender {
	pthread_t thread;
	struct world *world;
	unsigned sent, refused;
};

static void *send_often(void *context)
{
	struct sender *sender = context;

	for (unsigned i = 0; i < 60; i++) {
		struct err err;
		int rc = send_image(sender->world, (unsigned char)(i / 2 + 1), SYMBOLS, &err);

		sender->sent += !rc;
		sender->refused += rc == -ERR_BUSY || rc == -ERR_EXISTS;
		if (i % 10 == 0)
			debuginfo_collect(sender->world->debuginfo);
	}
	return NULL;
}

/* All send the same content: each build id is written once, whoever comes first. */
static void many_threads_keep_one_each(void **state)
{
	struct world *world = *state;
	struct sender senders[THREADS];
	unsigned sent = 0, refused = 0;

	for (int i = 0; i < THREADS; i++) {
		senders[i] = (struct sender){ .world = world };
		pthread_create(&senders[i].thread, NULL, send_often, &senders[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(senders[i].thread, NULL);
		sent += senders[i].sent;
		refused += senders[i].refused;
	}
	assert_int_equal(world->added, 30);
	assert_int_equal(sent + refused, THREADS * 60);
}

#define BIG_BYTES ((size_t)3 << 20)

/* A large file: an image and zeros behind it. */
struct big {
	char *bytes;
	char hash[65];
};

static struct big make_big(unsigned char id)
{
	struct image image = make_image(id, SYMBOLS);
	struct big big = { .bytes = mem_calloc(BIG_BYTES, 1) };
	uint8_t digest[SHA256_DIGEST_BYTES];
	struct sha256 sha;

	memcpy(big.bytes, &image, sizeof(image));
	sha256_init(&sha);
	sha256_add(&sha, big.bytes, BIG_BYTES);
	sha256_finish(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(big.hash + 2 * i, 3, "%02x", digest[i]);
	return big;
}

/* Sends from `offset` on up to `end`; all of it when that is the end of the file. */
static int send_big(struct world *world, const struct debuginfo_offer *offer, const struct big *big,
		    uint64_t end, uint64_t *ret_received)
{
	struct debuginfo_receiver *receiver;
	char id[DISK_UPLOAD_ID_BYTES];
	struct slice bytes;
	uint64_t all;
	struct err err;
	int rc = debuginfo_begin(world->debuginfo, offer, id, ret_received, &err);

	if (rc)
		return rc;
	if (debuginfo_receive_begin(world->debuginfo, offer->build_id, slice_of(id),
				    *ret_received + 1, &receiver, &err) != -ERR_INVALID)
		fail_msg("more than there is");
	if (debuginfo_receive_begin(world->debuginfo, offer->build_id, slice_of(id), *ret_received,
				    &receiver, &err))
		fail_msg("%s", err.message);
	bytes = slice_from(big->bytes + *ret_received, end - *ret_received);
	assert_int_equal(debuginfo_receive(receiver, bytes, &err), 0);
	if (end == BIG_BYTES)
		return debuginfo_receive_end(receiver, &all, &err);
	debuginfo_receive_abandon(receiver);
	return 0;
}

static void what_was_cut_off_goes_on_after_a_restart(void **state)
{
	struct world *world = *state;
	struct big big = make_big(1);
	char text[41];
	struct debuginfo_offer offer = offer_of(id_of(1, text), BIG_BYTES);
	uint64_t received;

	offer.hash = slice_of(big.hash);
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES / 2, &received), 0);
	assert_int_equal(received, 0);
	open_world(world);
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES / 2 + 1000, &received), 0);
	assert_int_equal(received, BIG_BYTES / 2);
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES, &received), 0);
	assert_int_equal(received, BIG_BYTES / 2 + 1000);
	assert_files(world, "01 bin symtab;");
	open_world(world);
	assert_files(world, "01 bin symtab;");
	shell(world, "test -z \"$(ls uploads)\"");
	free(big.bytes);
}

static void only_the_same_content_goes_on(void **state)
{
	struct world *world = *state;
	struct big big = make_big(1);
	char text[41];
	struct debuginfo_offer offer = offer_of(id_of(1, text), BIG_BYTES);
	uint64_t received;

	offer.hash = slice_of(big.hash);
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES - 1, &received), 0);
	offer.hash = SLICE_LITERAL("ab12"); /* no SHA-256 */
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES - 1, &received), 0);
	assert_int_equal(received, 0);
	offer.hash = slice_of(big.hash);
	shell(world, "for f in uploads/????????????????????????????????; do "
		     "printf x | dd of=$f bs=1 seek=5000 conv=notrunc 2>/dev/null; done");
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES, &received), -ERR_INVALID);
	assert_int_equal(received, BIG_BYTES - 1);
	assert_files(world, "");
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES, &received), 0);
	assert_int_equal(received, 0); /* what was damaged is gone */
	free(big.bytes);
}

static void too_many_bytes_are_not_kept(void **state)
{
	struct world *world = *state;
	struct big big = make_big(1);
	char text[41], id[DISK_UPLOAD_ID_BYTES];
	struct debuginfo_offer offer = offer_of(id_of(1, text), BIG_BYTES);
	struct debuginfo_receiver *receiver;
	struct slice all = slice_from(big.bytes, BIG_BYTES);
	uint64_t received;
	struct err err;

	offer.hash = slice_of(big.hash);
	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, id, &received, &err), 0);
	assert_int_equal(debuginfo_receive_begin(world->debuginfo, offer.build_id, slice_of(id), 0,
						 &receiver, &err),
			 0);
	assert_int_equal(debuginfo_receive(receiver, all, &err), 0);
	assert_int_equal(debuginfo_receive(receiver, SLICE_LITERAL("x"), &err), -ERR_INVALID);
	debuginfo_receive_abandon(receiver);
	assert_int_equal(send_big(world, &offer, &big, BIG_BYTES, &received), 0);
	assert_int_equal(received, 0);
	free(big.bytes);
}

static void what_was_cut_off_goes_after_a_day_or_with_too_many_bytes(void **state)
{
	struct world *world = *state;
	char text[41];
	uint64_t received;

	world->now_ns = clock_real_ns(); /* what files are dated by */
	for (unsigned char id = 1; id <= 3; id++) {
		struct big big = make_big(id);
		struct debuginfo_offer offer = offer_of(id_of(id, text), BIG_BYTES);

		offer.hash = slice_of(big.hash);
		world->now_ns += CLOCK_NS_PER_S;
		assert_int_equal(send_big(world, &offer, &big, BIG_BYTES - 1, &received), 0);
		free(big.bytes);
	}
	world->options.bytes_max = 2 * BIG_BYTES * 4; /* two fit into a quarter of it */
	open_world(world);
	open_world(world); /* the end of the one before waits until the files are removed */
	shell(world, "test $(ls uploads | wc -l) = 4");
	world->now_ns += 2 * DAY_NS;
	debuginfo_collect(world->debuginfo);
	open_world(world);
	shell(world, "test -z \"$(ls uploads)\"");
}

static void too_little_debug_info_does_not_shadow(void **state)
{
	struct world *world = *state;
	struct image image = make_image(1, DEBUG_FILE);
	char text[41];
	struct debuginfo_offer offer = offer_of(id_of(1, text), sizeof(image));
	enum debuginfo_verdict verdict;
	struct err err;

	image.segments[0].p_memsz = 1 << 20; /* code, and 256 bytes of DWARF */
	offer.hash = SLICE_LITERAL("00");
	assert_int_equal(send_offer(world, &offer, &image, &err), 0);
	assert_files(world, "01 debug some_debug_info;");
	offer.hash = SLICE_LITERAL("11");
	assert_int_equal(debuginfo_ask(world->debuginfo, &offer, &verdict, &err), 0);
	assert_int_equal(verdict, DEBUGINFO_WANTED_MORE);
	image.segments[0].p_memsz = 1 << 10;
	assert_int_equal(send_offer(world, &offer, &image, &err), 0);
	assert_files(world, "01 debug debug_info;");
}

/* Who says what his file has is told at once whether it is better, without a hash. */
static void a_better_file_is_wanted_by_what_it_is_said_to_have(void **state)
{
	static const enum shape shapes[] = { STRIPPED, SYMBOLS, DEBUG_FILE };
	static const enum elf_quality qualities[] = { ELF_QUALITY_DYNSYM, ELF_QUALITY_SYMTAB,
						      ELF_QUALITY_DEBUG_INFO };
	struct world *world = *state;
	char text[41];
	struct err err;

	for (size_t held = 1; held < 3; held++) {
		unsigned char id = (unsigned char)(held + 1);

		assert_int_equal(send_image(world, id, shapes[held], &err), 0);
		for (size_t offered = 0; offered < 3; offered++) {
			struct debuginfo_offer offer = offer_of(id_of(id, text), 100);
			enum debuginfo_verdict verdict;

			offer.quality = qualities[offered];
			offer.hash = (struct slice){ 0 };
			assert_int_equal(debuginfo_ask(world->debuginfo, &offer, &verdict, &err),
					 0);
			if (offered <= held)
				assert_int_equal(verdict, DEBUGINFO_PRESENT);
			else
				assert_int_equal(verdict, DEBUGINFO_WANTED_MORE);
		}
	}
}

/* Of the archive's name below the fuzz target's seeds, without that target's first byte. */
static struct strbuf read_archive(const char *name)
{
	struct strbuf bytes = { 0 };
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/fuzz/corpus/tar/%s", getenv("FIRN_TESTS"), name);
	file = fopen(path, "r");
	assert_non_null(file);
	fgetc(file);
	bytes.len = fread(strbuf_reserve(&bytes, 1 << 16), 1, 1 << 16, file);
	fclose(file);
	return bytes;
}

static int send_sources(struct world *world, unsigned char id, struct slice archive, bool is_forced,
			struct err *err)
{
	char text[41], upload[DISK_UPLOAD_ID_BYTES];
	struct debuginfo_offer offer = offer_of(id_of(id, text), archive.len);
	uint64_t received;
	int rc;

	offer.content = DEBUGINFO_ARCHIVE;
	offer.is_forced = is_forced;
	rc = debuginfo_begin(world->debuginfo, &offer, upload, &received, err);
	return rc ? rc : receive(world, offer.build_id, upload, archive, err);
}

static void sources_are_kept_beside(void **state)
{
	struct world *world = *state;
	struct strbuf archive = read_archive("p_tar_zst"), other = read_archive("g_tar_gz");
	struct err err;

	assert_int_equal(send_sources(world, 1, SLICE_LITERAL("no archive"), false, &err),
			 -ERR_INVALID);
	assert_int_equal(
		send_sources(world, 1, slice_from(archive.data, archive.len - 20), false, &err),
		-ERR_INVALID);
	assert_int_equal(send_sources(world, 1, strbuf_slice(&archive), false, &err), 0);
	assert_int_equal(send_sources(world, 1, strbuf_slice(&other), false, &err), -ERR_EXISTS);
	assert_int_equal(ask(world, 1), DEBUGINFO_WANTED); /* they are no debug information */
	assert_int_equal(send_image(world, 1, SYMBOLS, &err), 0);
	assert_files(world, "01 bin symtab;01 sources nothing;");
	open_world(world);
	assert_files(world, "01 bin symtab;01 sources nothing;");
	assert_int_equal(world->added, 1);
	strbuf_free(&archive);
	strbuf_free(&other);
}

static int find_source(struct world *world, unsigned char id, const char *path, struct strbuf *out,
		       struct err *err)
{
	char text[41];
	const char *from;

	return source_find(
		world->debuginfo,
		&(struct source_wanted){ .build_id = id_of(id, text), .path = slice_of(path) }, out,
		&from, err);
}

static void sources_are_found_by_their_path(void **state)
{
	static const char *const found[] = { "src/main.c", "/src/main.c", "./src/main.c",
					     "/build/app/src/main.c", "main.c" };
	struct world *world = *state;
	struct strbuf archive = read_archive("g_tar_xz"), text = { 0 };
	struct err err;

	assert_int_equal(send_sources(world, 1, strbuf_slice(&archive), false, &err), 0);
	for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
		if (find_source(world, 1, found[i], &text, &err))
			fail_msg("%s", err.message);
		assert_string_equal(text.data, "int main(void) { return 0; }\n");
	}
	assert_int_equal(find_source(world, 1, "/src/empty.h", &text, &err), 0);
	assert_int_equal(text.len, 0);
	assert_int_equal(find_source(world, 1, "/src/link.c", &text, &err), -ERR_NOT_FOUND);
	assert_int_equal(find_source(world, 1, "/xsrc/main.cc", &text, &err), -ERR_NOT_FOUND);
	assert_non_null(strstr(err.message, "no such file"));
	assert_int_equal(find_source(world, 2, "/src/main.c", &text, &err), -ERR_NOT_FOUND);
	assert_non_null(strstr(err.message, "no archive"));
	assert_int_equal(find_source(world, 1, "", &text, &err), -ERR_INVALID);
	strbuf_free(&archive);
	strbuf_free(&text);
}

static void local_sources_stay_in_their_folder(void **state)
{
	struct world *world = *state;
	static const char *const out_of_it[] = { "../secret",	"/../secret",  "src/../../secret",
						 "link/secret", "/etc/passwd", "etc/passwd",
						 "src",		"loop",	       "pipe",
						 "absolute" };
	char root[100], path[200];
	const char *roots[] = { root };
	struct strbuf text = { 0 };
	struct err err;

	snprintf(root, sizeof(root), "%s/root", world->path);
	shell(world, "mkdir -p root/src && echo hidden >secret && echo 'int x;' >root/src/x.c && "
		     "ln -s .. root/link && ln -s loop root/loop && mkfifo root/pipe && "
		     "ln -s x.c root/src/y.c && ln -s /etc/passwd root/absolute");
	world->options.source_paths = roots;
	world->options.source_paths_count = 1;
	open_world(world);
	snprintf(path, sizeof(path), "%s/src/x.c", root);
	assert_int_equal(find_source(world, 1, path, &text, &err), 0);
	assert_int_equal(find_source(world, 1, "/build/17/src/x.c", &text, &err), 0);
	assert_int_equal(find_source(world, 1, "src/y.c", &text, &err), 0);
	assert_string_equal(text.data, "int x;\n");
	assert_int_equal(find_source(world, 1, "/elsewhere/x.c", &text, &err), -ERR_NOT_FOUND);
	for (size_t i = 0; i < sizeof(out_of_it) / sizeof(*out_of_it); i++) {
		assert_int_equal(find_source(world, 1, out_of_it[i], &text, &err), -ERR_NOT_FOUND);
		snprintf(path, sizeof(path), "%s/%s", root, out_of_it[i]);
		assert_int_equal(find_source(world, 1, path, &text, &err), -ERR_NOT_FOUND);
	}
	strbuf_free(&text);
}

static void local_sources_may_have_to_be_for_everyone(void **state)
{
	struct world *world = *state;
	const char *roots[] = { world->path };
	struct strbuf text = { 0 };
	struct err err;

	shell(world, "mkdir src && echo open >src/all.c && echo closed >src/few.c && "
		     "chmod 644 src/all.c && chmod 640 src/few.c");
	world->options.source_paths = roots;
	world->options.source_paths_count = 1;
	world->options.public_files_only = true;
	open_world(world);
	assert_int_equal(find_source(world, 1, "src/all.c", &text, &err), 0);
	assert_string_equal(text.data, "open\n");
	assert_int_equal(find_source(world, 1, "src/few.c", &text, &err), -ERR_DENIED);
	strbuf_free(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int count_misses(const struct world *world)
{
	char command[128];
	FILE *out;
	int count = -1;

	snprintf(command, sizeof(command), "ls '%s/debuginfod' | wc -l", world->path);
	out = popen(command, "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out, "%d", &count), 1);
	pclose(out);
	return count;
}

/* Whoever asks for sources that nobody has does not fill the disk. */
static void what_servers_do_not_have_is_remembered_within_bounds(void **state)
{
	static const char *const urls[] = { "http://127.0.0.1:1" };
	struct world *world = *state;

	world->now_ns = clock_real_ns();
	shell(world, "mkdir debuginfod && cd debuginfod && seq -f 'source-%06.0f.none' 20000 | "
		     "xargs touch && touch -d '2 hours ago' source-000001.none");
	world->options.debuginfod_urls = urls;
	world->options.debuginfod_urls_count = 1;
	open_world(world);
	assert_int_equal(count_misses(world), MISSES_MAX / 4 * 3);
	shell(world, "cd debuginfod && test ! -e source-000001.none");
	for (unsigned i = 0; i < MISSES_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "new-%u", i);
		debuginfod_write_miss(world->debuginfo->debuginfod, name);
	}
	assert_int_equal(count_misses(world), MISSES_MAX);
	debuginfo_collect(world->debuginfo);
	assert_int_equal(count_misses(world), MISSES_MAX / 4 * 3);
}

/* No server was asked, so none has said that it does not have the file. */
static void a_pause_before_any_server_was_asked_is_no_answer(void **state)
{
	static const char *const urls[] = { "http://127.0.0.1:1" };
	struct world *world = *state;
	struct strbuf text = { 0 }, why = { 0 };
	char id[41];

	world->options.debuginfod_urls = urls;
	world->options.debuginfod_urls_count = 1;
	open_world(world);
	paused_soon = atomic_load(&world->debuginfo->debuginfod);
	assert_int_equal(debuginfod_source(paused_soon, id_of(1, id), SLICE_LITERAL("/src/main.c"),
					   INT64_MAX, &text, &why, NULL),
			 0);
	assert_null(paused_soon);
	assert_null(strstr(strbuf_text(&why), "no debuginfod server has it"));
	assert_int_equal(count_misses(world), 0);
	strbuf_free(&text);
	strbuf_free(&why);
}

/* A port where nobody listens until `listen` is called. */
static int take_port(char url[64])
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	snprintf(url, 64, "http://127.0.0.1:%u", ntohs(address.sin_port));
	return fd;
}

static void note_failed(void *context, const struct debuginfo_asked *asked)
{
	*(bool *)context = !strcmp(asked->state, "failed");
}

static void await_failure(struct world *world)
{
	int64_t until_ns = clock_monotonic_ns() + 60 * CLOCK_NS_PER_S;
	bool has_failed = false;

	while (!has_failed && clock_monotonic_ns() < until_ns) {
		usleep(10000);
		debuginfod_each(world->debuginfo->debuginfod, slice_of(world->wanted), note_failed,
				&has_failed);
	}
	assert_true(has_failed);
}

/* Whoever says that files are to be fetched does not wait until failures are forgotten. */
static void consent_ends_the_pauses_after_failures(void **state)
{
	static char id[41]; /* the threads ask for it until the end */
	struct world *world = *state;
	char url[64];
	struct pollfd asked = { .fd = take_port(url), .events = POLLIN };
	struct err err;

	world->wanted = id_of(1, id).data;
	world->options.debuginfod_offered = url;
	open_world(world);
	assert_int_equal(debuginfo_answer(world->debuginfo, true, &err), 0);
	await_failure(world);
	assert_int_equal(listen(asked.fd, 1), 0);
	assert_int_equal(debuginfo_answer(world->debuginfo, true, &err), 0);
	assert_int_equal(poll(&asked, 1, 20000), 1);
	close(asked.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_of_many_is_told_to_send),
		TEST(an_upload_that_breaks_off_leaves_room),
		TEST(a_forced_upload_overtakes_the_one_under_way),
		TEST(better_replaces_worse_whatever_the_order),
		TEST(another_build_is_refused),
		TEST(the_same_file_twice_is_no_error),
		TEST(what_is_used_stays_and_the_rest_goes_by_age),
		TEST(over_the_size_of_all_the_longest_unused_goes),
		TEST(a_restart_finds_what_is_whole),
		TEST(many_threads_keep_one_each),
		TEST(what_was_cut_off_goes_on_after_a_restart),
		TEST(only_the_same_content_goes_on),
		TEST(too_many_bytes_are_not_kept),
		TEST(what_was_cut_off_goes_after_a_day_or_with_too_many_bytes),
		TEST(too_little_debug_info_does_not_shadow),
		TEST(a_better_file_is_wanted_by_what_it_is_said_to_have),
		TEST(sources_are_kept_beside),
		TEST(sources_are_found_by_their_path),
		TEST(local_sources_stay_in_their_folder),
		TEST(local_sources_may_have_to_be_for_everyone),
		TEST(what_servers_do_not_have_is_remembered_within_bounds),
		TEST(a_pause_before_any_server_was_asked_is_no_answer),
		TEST(consent_ends_the_pauses_after_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
