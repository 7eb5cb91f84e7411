/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo: who may send, what is taken and kept, and what a restart finds, on a real folder with
 * a wall clock that tests move. Files are small ELF images made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/debuginfo/debuginfo.h"

#define DAY_NS (24 * 3600 * CLOCK_NS_PER_S)
#define THREADS 8

static const char names[] = "\0.symtab\0.debug_info\0.note.gnu.build-id\0.shstrtab";
#define NAME_SYMTAB 1
#define NAME_DEBUG_INFO 9
#define NAME_SHSTRTAB 40

/* An ELF file of one code segment, a note, and one section besides. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Nhdr note;
	char owner[4];
	unsigned char id[20];
	Elf64_Shdr sections[3];
	char names[sizeof(names)];
	char content[256]; /* of the section; the last bytes of the file */
};

enum shape { STRIPPED, SYMBOLS, DEBUG_FILE };

static struct image make_image(unsigned char id, enum shape shape)
{
	struct image image = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_phoff = offsetof(struct image, segments),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 2,
			    .e_shoff = offsetof(struct image, sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 2 },
		.segments = { { .p_type = PT_LOAD,
				.p_flags = PF_X,
				.p_filesz = shape == DEBUG_FILE ? 0 : 64,
				.p_memsz = 64 },
			      { .p_type = PT_NOTE,
				.p_offset = offsetof(struct image, note),
				.p_filesz = 36,
				.p_align = 4 } },
		.note = { 4, 20, NT_GNU_BUILD_ID },
		.owner = "GNU",
		.sections = { [1] = { .sh_name =
					      shape == DEBUG_FILE ? NAME_DEBUG_INFO : NAME_SYMTAB,
				      .sh_type = shape == STRIPPED ? SHT_NOBITS : SHT_PROGBITS,
				      .sh_offset = offsetof(struct image, content),
				      .sh_size = sizeof(image.content) },
			      [2] = { .sh_name = NAME_SHSTRTAB,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct image, names),
				      .sh_size = sizeof(names) } },
	};

	memcpy(image.names, names, sizeof(names));
	memset(image.id, id, sizeof(image.id));
	return image;
}

struct world {
	char path[64];
	struct debuginfo *debuginfo;
	struct debuginfo_options options;
	int64_t now_ns;
	_Atomic unsigned added;
	const char *used; /* the build id that take_used says yes to */
};

static int64_t world_clock(void *context)
{
	const struct world *world = context;

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
	int rc = debuginfo_receive_begin(world->debuginfo, build_id, slice_of(id), &receiver, err);

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
	int rc = debuginfo_begin(world->debuginfo, offer, id, err);

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
		    file->kind == DEBUGINFO_BINARY ? "bin" : "debug",
		    debuginfo_quality_name(file->record->quality));
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
	struct err err;

	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, id, &err), 0);
	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, other, &err), -ERR_BUSY);
	assert_int_equal(debuginfo_confirm(world->debuginfo, offer.build_id, slice_of(id), &err),
			 -ERR_INVALID);
	assert_int_equal(debuginfo_receive_begin(world->debuginfo, offer.build_id, slice_of(id),
						 &receiver, &err),
			 0);
	assert_int_equal(debuginfo_receive_begin(world->debuginfo, offer.build_id, slice_of(id),
						 &receiver, &err),
			 -ERR_BUSY);
	assert_int_equal(debuginfo_receive(receiver, SLICE_LITERAL("part"), &err), 0);
	debuginfo_receive_abandon(receiver);
	assert_int_equal(receive(world, offer.build_id, id, SLICE_LITERAL("x"), &err),
			 -ERR_NOT_FOUND);
	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, other, &err), 0);
	assert_files(world, "");
}

static void a_forced_upload_overtakes_the_one_under_way(void **state)
{
	struct world *world = *state;
	struct image image = make_image(1, SYMBOLS);
	char text[41], id[DISK_UPLOAD_ID_BYTES];
	struct debuginfo_offer offer = offer_of(id_of(1, text), sizeof(image));
	struct debuginfo_receiver *receiver;
	uint64_t bytes;
	struct err err;

	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, id, &err), 0);
	assert_int_equal(debuginfo_receive_begin(world->debuginfo, offer.build_id, slice_of(id),
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
	struct err err;

	assert_int_equal(send_offer(world, &offer, &image, &err), 0);
	offer.is_forced = true;
	assert_int_equal(debuginfo_begin(world->debuginfo, &offer, id, &err), 0);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
