/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack that is walked again by the copy of its memory: two files, of which one has its table
 * and the other gets it later. In both, every frame has 16 bytes; the program's start ends the
 * walk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/collect/late_samples.h"

#define PROGRAM 0x400000ull
#define LIBRARY 0x700000ull
#define START (PROGRAM + 0x80) /* in the second line: there the stack ends */
#define GENERATED 0x900000ull
#define STACK 0x7ffe00000000ull

static struct {
	int chunk_fd;
	struct table_segment segment;
	bool has_library, removes, is_coming, is_lost;
	unsigned asked;
	uint32_t removals;
	struct binary program, library;
	struct space *space;
	struct stack_record stack;
	struct sample sample;
} world;

#define RULES_AT 2048 /* in the chunk, behind its lines */

static bool find_tables(void *context, const struct file_key *file, struct binary_tables *ret)
{
	(void)context;
	world.asked++;
	if (world.removes)
		world.removals++;
	if (file->inode == world.library.key.inode && !world.has_library)
		return false;
	*ret = (struct binary_tables){ .segments_count = 1, .segments = { world.segment } };
	return true;
}

static int chunk_fd(void *context, uint32_t index)
{
	(void)context;
	return index == 0 ? world.chunk_fd : -1;
}

static bool is_coming(void *context, const struct file_key *file)
{
	(void)context;
	assert_int_equal(file->inode, world.library.key.inode);
	return world.is_coming;
}

static bool is_lost(void *context, const struct file_key *file)
{
	(void)context;
	assert_int_equal(file->inode, world.library.key.inode);
	return world.is_lost;
}

static const struct second_walk_source source = { find_tables, chunk_fd,	is_coming,
						  is_lost,     &world.removals, NULL };

#define BY_POINTER (LIBRARY + 0x500) /* in the line whose frames are left by rbp */
#define CLONE (LIBRARY + 0x600)	     /* in the line of a system call that makes a thread */
#define REGISTER_AX 10		     /* in struct pt_regs */

/* Lines of 128 bytes of code: CFA = rsp + 16; behind the first one, the end. */
static int make_chunk(void)
{
	static const struct unwind_rule clone = { .cfa = UNWIND_CFA_CLONE,
						  .cfa_register = UNWIND_X86_SP,
						  .cfa_offset = 8,
						  .ra = UNWIND_VALUE_AT_CFA,
						  .ra_offset = -8 };
	uint32_t lines[32][TABLE_LINE_WORDS];
	int fd = memfd_create("chunk", MFD_CLOEXEC);

	memset(lines, 0xff, sizeof(lines));
	for (size_t i = 0; i < 32; i++)
		lines[i][0] = i == 1 ? (uint32_t)UNWIND_CFA_END << 11 : 2u << 1;
	lines[10][0] = 1u | 2u << 1 | 1u << 11; /* CFA = rbp + 16, rbp before it */
	lines[12][0] = TABLE_RULE_LISTED | 0;
	assert_int_equal(ftruncate(fd, TABLE_CHUNK_BYTES), 0);
	assert_int_equal(write(fd, lines, sizeof(lines)), RULES_AT);
	assert_int_equal(write(fd, &clone, sizeof(clone)), sizeof(clone));
	return fd;
}

static struct space *make_space(void)
{
	struct space *space = calloc(1, sizeof(*space) + 3 * sizeof(struct mapping));

	space->references = 1;
	space->count = 3;
	space->mappings[0] =
		(struct mapping){ PROGRAM, PROGRAM + 0x1000, 0, &world.program, MAPPING_FILE };
	space->mappings[1] =
		(struct mapping){ LIBRARY, LIBRARY + 0x1000, 0, &world.library, MAPPING_FILE };
	space->mappings[2] =
		(struct mapping){ GENERATED, GENERATED + 0x1000, 0, NULL, MAPPING_ANONYMOUS };
	return space;
}

static int set_up(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.program.key.inode = 1;
	world.library.key.inode = 2;
	world.chunk_fd = make_chunk();
	world.segment =
		(struct table_segment){ .blocks = 1, .rules_at = RULES_AT, .bucket_shift = 7 };
	world.space = make_space();
	world.stack = (struct stack_record){
		.head = { .kind = RECORD_STACK, .cpu = 3, .tid = 9, .at_ns = 77 },
		.pc = LIBRARY + 0x300,
		.sp = STACK,
		.start = STACK,
		.bytes = 96,
		.state = STACK_STATE_FULL | STACK_STATE_FP | STACK_STATE_BX,
	};
	/* Each frame's return address is its second word. */
	world.stack.words[1] = LIBRARY + 0x401;
	world.stack.words[3] = PROGRAM + 0x201;
	world.stack.words[5] = START + 1;
	world.sample = (struct sample){ .head = { .kind = RECORD_SAMPLE,
						  .cpu = 3,
						  .tid = 9,
						  .at_ns = 77,
						  .flags = SAMPLE_HAS_STACK },
					.kernel_count = 1,
					.user_count = 2,
					.user_end = STACK_TABLE_PENDING,
					.script_words = 2,
					.script_kind = SCRIPT_PYTHON,
					.frames = { 0xf0, LIBRARY + 0x300, 0xbad, 0x51, 0x52 } };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(world.space->references, 1);
	free(world.space);
	close(world.chunk_fd);
	return 0;
}

static bool walk(const struct space *space)
{
	struct second_walk *second = second_walk_new(&source);
	bool is_done = second_walk_run(second, &world.stack, space, false, &world.sample);

	second_walk_free(second);
	return is_done;
}

static void a_stack_is_whole_once_the_table_is_there(void **state)
{
	static const uint64_t whole[] = {
		0xf0, LIBRARY + 0x300, LIBRARY + 0x400, PROGRAM + 0x200, START, 0x51, 0x52
	};
	struct sample before = world.sample;

	(void)state;
	assert_false(walk(world.space));
	assert_memory_equal(&world.sample, &before, sizeof(before));
	world.has_library = true;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 4);
	assert_memory_equal(world.sample.frames, whole, sizeof(whole));
}

static void a_table_that_is_taken_away_meanwhile_is_not_believed(void **state)
{
	(void)state;
	world.has_library = world.removes = true;
	assert_false(walk(world.space));
	world.removes = false;
	assert_true(walk(world.space));
}

static void what_was_not_copied_is_said_to_be_unreadable(void **state)
{
	(void)state;
	world.has_library = true;
	world.stack.bytes = 24;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_UNREADABLE);
	assert_int_equal(world.sample.user_count, 2);
}

/* What lies on a new stack, if it is resident at all, is no return address. */
static void a_thread_that_has_just_begun_has_no_caller(void **state)
{
	static const uint64_t whole[] = { 0xf0, CLONE, 0x51, 0x52 };

	(void)state;
	world.has_library = true;
	world.stack.pc = CLONE;
	world.stack.words[0] = LIBRARY + 0x401;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 1);
	assert_memory_equal(world.sample.frames, whole, sizeof(whole));
	world.stack.bytes = 0;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
}

#define FAR_AT (2 * 4096u + 2048) /* of all that is read, other pages than the lines' */
#define FAR_ROWS 1024u
#define FAR_RULE_AT (5 * 4096u - 8)

/* Of the line of CLONE: one far row for each of its bytes, of which only the last lists the rule.
 */
static void put_far_rows(void)
{
	static const struct unwind_rule clone = { .cfa = UNWIND_CFA_CLONE,
						  .cfa_register = UNWIND_X86_SP,
						  .cfa_offset = 8,
						  .ra = UNWIND_VALUE_AT_CFA,
						  .ra_offset = -8 };
	uint32_t line[TABLE_LINE_WORDS], far[FAR_ROWS];

	for (uint32_t i = 0; i < TABLE_LINE_WORDS; i++)
		line[i] = TABLE_ROW(i, 2u << 1);
	line[0] = TABLE_ROW(FAR_ROWS, 2u << 1);
	line[TABLE_LINE_ROWS_MAX] = TABLE_ROW_FAR | FAR_AT / 4;
	for (uint32_t i = 0; i < FAR_ROWS; i++)
		far[i] = TABLE_ROW(15 + i / 16, i == FAR_ROWS - 1 ? TABLE_RULE_LISTED : 2u << 1);
	assert_int_equal(pwrite(world.chunk_fd, line, sizeof(line), 12 * sizeof(line)),
			 sizeof(line));
	assert_int_equal(pwrite(world.chunk_fd, far, sizeof(far), FAR_AT), sizeof(far));
	assert_int_equal(pwrite(world.chunk_fd, &clone, sizeof(clone), FAR_RULE_AT), sizeof(clone));
	world.segment.rules_at = FAR_RULE_AT;
}

static void rows_and_rules_lie_in_any_page(void **state)
{
	(void)state;
	world.has_library = true;
	put_far_rows();
	world.stack.pc = CLONE + 15 + FAR_ROWS / 16 - 1;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 1);
	world.stack.pc--; /* it has a caller */
	world.stack.words[1] = START + 1;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 2);
}

/* Whatever it says: nothing is read that is not there. */
static void a_table_that_makes_no_sense_does_no_harm(void **state)
{
	uint32_t line[TABLE_LINE_WORDS];

	(void)state;
	world.has_library = true;
	for (uint32_t i = 0; i < TABLE_LINE_WORDS; i++)
		line[i] = TABLE_ROW(i, TABLE_RULE_MASK);
	line[0] = TABLE_ROW_FAR | TABLE_RULE_MASK;
	line[TABLE_LINE_ROWS_MAX] = TABLE_ROW_FAR | TABLE_RULE_MASK;
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(
			pwrite(world.chunk_fd, line, sizeof(line), (off_t)(i * sizeof(line))),
			sizeof(line));
	for (uint32_t at = TABLE_CHUNK_BYTES - 64; at <= TABLE_CHUNK_BYTES + 64; at += 4) {
		world.segment.rules_at = at;
		world.segment.chunk = at % 8 ? 0 : TABLE_CHUNKS_MAX;
		walk(world.space);
	}
}

static void who_makes_a_thread_has_its_callers(void **state)
{
	static const uint64_t whole[] = { 0xf0, CLONE, LIBRARY + 0x400, START, 0x51, 0x52 };

	(void)state;
	world.has_library = true;
	world.stack.pc = CLONE;
	world.stack.registers[REGISTER_AX] = 4711; /* the new one's id */
	world.stack.words[0] = LIBRARY + 0x401;
	world.stack.words[2] = START + 1;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 3);
	assert_memory_equal(world.sample.frames, whole, sizeof(whole));
	world.stack.bytes = 0;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_UNREADABLE);
}

#define FAR_STACK 0xc000100000ull

/* As Go's runtime does: the words of the other stack come behind those of the first. */
static void a_stack_goes_on_where_it_was_switched_from(void **state)
{
	(void)state;
	world.has_library = true;
	world.stack.fp = FAR_STACK + 8;
	world.stack.bytes = 16;
	world.stack.far_start = FAR_STACK;
	world.stack.far_bytes = 48;
	world.stack.words[1] = BY_POINTER + 1;
	world.stack.words[4] = PROGRAM + 0x201;
	world.stack.words[6] = START + 1;
	assert_true(second_walk_is_sound(&world.stack, STACK_RECORD_HEADER_BYTES + 64));
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 4);
	assert_int_equal(world.sample.frames[3], PROGRAM + 0x200);
	world.stack.far_bytes = 16;
	world.sample.user_end = STACK_TABLE_PENDING;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_UNREADABLE);
}

/*
 * The first walk came out of HotSpot's code into a library whose table was not there: the second
 * one begins in that, and leaves more of HotSpot's code by what was copied of it.
 */
static void frames_of_hotspot_go_on_where_a_table_was_missing(void **state)
{
	static const uint64_t frames[] = {
		0xf0, GENERATED + 0x800, LIBRARY + 0x300, GENERATED + 0x100, PROGRAM + 0x200, START
	};
	const __u64 *words = world.sample.frames + 6;

	(void)state;
	world.sample.script_kind = SCRIPT_HOTSPOT;
	world.sample.frames[1] = GENERATED + 0x800;
	world.sample.frames[2] = LIBRARY + 0x300;
	world.stack.state = STACK_STATE_AFTER_CALL;
	world.stack.frames_kept = world.stack.noted_kept = 1;
	world.stack.jvm.low = GENERATED;
	world.stack.jvm.bytes = 0x1000;
	world.stack.blobs_count = 1;
	world.stack.blobs[0] = (struct jvm_blob){
		.start = GENERATED, .bytes = 0x400, .frame_words = 2, .proof = 5
	};
	world.stack.words[1] = GENERATED + 0x101;
	assert_false(walk(world.space));
	world.has_library = true;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 5);
	assert_memory_equal(world.sample.frames, frames, sizeof(frames));
	assert_int_equal(world.sample.script_words, 4);
	assert_int_equal(words[0], 0x51);
	assert_int_equal(words[1], 0x52);
	assert_int_equal(words[2], GENERATED | SCRIPT_ENDS_RUN);
	assert_int_equal(words[3], 5ull << 32 | 0x100);
}

/* Of a blob that was not copied, nobody says how big its frame is. */
static void code_of_hotspot_that_was_not_copied_is_not_guessed_at(void **state)
{
	(void)state;
	world.has_library = true;
	world.sample.script_kind = SCRIPT_NONE;
	world.sample.script_words = 0;
	world.stack.jvm.low = GENERATED;
	world.stack.jvm.bytes = 0x1000;
	world.stack.words[1] = GENERATED + 0x101;
	assert_true(walk(world.space));
	assert_int_not_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 2);
}

static void put_apart(uint64_t address, uint64_t word)
{
	struct stack_apart apart = { address, word };
	uint64_t at =
		(world.stack.bytes + world.stack.far_bytes) / 8 + 2 * world.stack.apart_count++;

	memcpy(&world.stack.words[at], &apart, sizeof(apart));
}

#define CODE_OF_END 0xc308c48348ull /* add $8,%rsp; ret */

/* A stub that a runtime made keeps no frame pointer; its code says what comes after the call. */
static void generated_code_is_left_by_what_it_runs_next(void **state)
{
	(void)state;
	world.has_library = true;
	world.stack.fp = 8;
	world.stack.words[1] = GENERATED + 0x101;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_NO_FRAME_POINTER);
	put_apart(GENERATED + 0x201, 0);
	put_apart(GENERATED + 0x101, CODE_OF_END);
	assert_true(second_walk_is_sound(&world.stack, STACK_RECORD_HEADER_BYTES + 96 + 32));
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 4);
	assert_int_equal(world.sample.frames[2], GENERATED + 0x100);
	assert_int_equal(world.sample.frames[3], PROGRAM + 0x200);
}

#define CODE_OF_CALL (0xe8ull << 24) /* call, whose four bytes come last */

/* Ruby's compiled code runs in the frame of the call that entered it, whatever lies below that. */
static void compiled_code_of_ruby_is_left_by_the_call_that_entered_it(void **state)
{
	(void)state;
	world.has_library = true;
	world.stack.fp = 8;
	world.sample.script_kind = SCRIPT_RUBY;
	world.stack.entry = (struct code_entry){ .start = PROGRAM, .bytes = 0x1000 };
	world.stack.words[1] = GENERATED + 0x101;
	world.stack.words[2] = PROGRAM + 0x333;
	put_apart(PROGRAM + 0x333 - 8, 0);
	put_apart(PROGRAM + 0x201 - 8, CODE_OF_CALL);
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
	assert_int_equal(world.sample.user_count, 4);
	assert_int_equal(world.sample.frames[2], GENERATED + 0x100);
	assert_int_equal(world.sample.frames[3], PROGRAM + 0x200);
	assert_int_equal(world.sample.script_words, 2);
}

static void mappings_that_are_not_known_are_waited_for(void **state)
{
	(void)state;
	world.has_library = true;
	world.sample.user_end = STACK_NO_MAPPINGS;
	assert_false(walk(NULL));
	/* The list from before the library was mapped. */
	world.space->mappings[1].end = LIBRARY + 1;
	assert_false(walk(world.space));
	world.space->mappings[1].end = LIBRARY + 0x1000;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_COMPLETE);
}

static void a_return_address_that_is_no_code_is_told(void **state)
{
	(void)state;
	world.has_library = true;
	world.space->count = 2; /* no generated code */
	world.stack.words[3] = 0x12345;
	assert_true(walk(world.space));
	assert_int_equal(world.sample.user_end, STACK_BAD_ADDRESS);
}

static void unsound_records_are_refused(void **state)
{
	size_t len = STACK_RECORD_HEADER_BYTES + world.stack.bytes;

	(void)state;
	assert_true(second_walk_is_sound(&world.stack, len));
	assert_false(second_walk_is_sound(&world.stack, len - 8));
	assert_false(second_walk_is_sound(&world.stack, STACK_RECORD_HEADER_BYTES - 8));
	world.stack.far_bytes = STACK_RECORD_BYTES - world.stack.bytes + 8;
	assert_false(second_walk_is_sound(&world.stack,
					  STACK_RECORD_HEADER_BYTES + STACK_RECORD_BYTES + 8));
	world.stack.far_bytes = -world.stack.bytes; /* the sum is 0 */
	assert_false(second_walk_is_sound(&world.stack, STACK_RECORD_HEADER_BYTES));
	world.stack.far_bytes = 0;
	world.stack.bytes = 90;
	assert_false(second_walk_is_sound(&world.stack, STACK_RECORD_HEADER_BYTES + 90));
	world.stack.bytes = 96;
	world.stack.apart_count = STACK_APART_MAX + 1;
	len += world.stack.apart_count * sizeof(struct stack_apart);
	assert_false(second_walk_is_sound(&world.stack, len));
	world.stack.apart_count--;
	assert_true(second_walk_is_sound(&world.stack, len - sizeof(struct stack_apart)));
	world.stack.apart_count = 0;
	world.stack.bytes = STACK_RECORD_BYTES + 8;
	assert_false(
		second_walk_is_sound(&world.stack, STACK_RECORD_HEADER_BYTES + world.stack.bytes));
}

/* ---- waiting ---- */

static struct {
	unsigned count;
	uint8_t end;
	uint32_t flags;
	const struct space *space;
} done;

static const struct space *find_space(void *context, const struct sample *sample)
{
	(void)context;
	(void)sample;
	return NULL;
}

static void take(void *context, const struct sample *sample, const struct space *space)
{
	(void)context;
	done.count++;
	done.end = sample->user_end;
	done.flags = sample->head.flags;
	done.space = space;
}

static const struct late_samples_user user = { find_space, take, NULL };

static bool arrive(struct late_samples *late)
{
	return late_samples_take_stack(late, &world.stack,
				       STACK_RECORD_HEADER_BYTES + world.stack.bytes) &&
	       late_samples_take(late, &world.sample, world.space, 1000);
}

static void a_sample_waits_for_its_table(void **state)
{
	struct late_samples late;

	(void)state;
	memset(&done, 0, sizeof(done));
	late_samples_init(&late, &source, 19);
	assert_true(arrive(&late));
	late_samples_walk(&late, &user, 2000);
	assert_int_equal(done.count, 0);
	world.has_library = true;
	late_samples_walk(&late, &user, 3000);
	assert_int_equal(done.count, 1);
	assert_int_equal(done.end, STACK_COMPLETE);
	assert_int_equal(done.flags & SAMPLE_HAS_STACK, 0);
	assert_ptr_equal(done.space, world.space);
	assert_int_equal(late.count, 0);
	assert_int_equal(late.bytes, 0);
	late_samples_free(&late);
}

static void a_sample_waits_no_longer_than_it_may(void **state)
{
	struct late_samples late;

	(void)state;
	memset(&done, 0, sizeof(done));
	late_samples_init(&late, &source, 19);
	assert_true(arrive(&late));
	late_samples_walk(&late, &user, 999 + LATE_WAIT_NS);
	assert_int_equal(done.count, 0);
	late_samples_walk(&late, &user, 1000 + LATE_WAIT_NS);
	assert_int_equal(done.count, 1);
	assert_int_equal(done.end, STACK_TABLE_PENDING);
	late_samples_free(&late);
}

static void a_table_whose_file_is_gone_is_not_called_pending(void **state)
{
	struct late_samples late;

	(void)state;
	memset(&done, 0, sizeof(done));
	world.is_lost = true;
	late_samples_init(&late, &source, 19);
	assert_true(arrive(&late));
	late_samples_walk(&late, &user, 1000 + LATE_WAIT_NS);
	assert_int_equal(done.count, 1);
	assert_int_equal(done.end, STACK_TABLE_FAILED);
	late_samples_free(&late);
}

/* However long it takes where other programs want the CPUs too. */
static void a_table_that_is_being_made_is_waited_for(void **state)
{
	struct late_samples late;

	(void)state;
	memset(&done, 0, sizeof(done));
	world.is_coming = true;
	late_samples_init(&late, &source, 19);
	assert_true(arrive(&late));
	late_samples_walk(&late, &user, 1000 + LATE_WAIT_NS);
	assert_int_equal(done.count, 0);
	assert_true(late_samples_are_coming(&late));
	/* It is looked for, and the stack not walked before it is there. */
	world.asked = 0;
	late_samples_walk(&late, &user, 1500 + LATE_WAIT_NS);
	assert_int_equal(world.asked, 1);
	assert_true(late_samples_are_coming(&late));
	world.has_library = true;
	late_samples_walk(&late, &user, 2000 + LATE_WAIT_NS);
	assert_int_equal(done.end, STACK_COMPLETE);
	assert_false(late_samples_are_coming(&late));
	world.has_library = false;
	assert_true(arrive(&late));
	late_samples_walk(&late, &user, 999 + LATE_COMING_NS);
	assert_int_equal(done.count, 1);
	late_samples_walk(&late, &user, 1000 + LATE_COMING_NS);
	assert_int_equal(done.count, 2);
	assert_int_equal(done.end, STACK_TABLE_PENDING);
	late_samples_free(&late);
}

static void a_sample_without_its_stack_does_not_wait(void **state)
{
	struct late_samples late;

	(void)state;
	late_samples_init(&late, &source, 19);
	assert_false(late_samples_take(&late, &world.sample, world.space, 1000));
	/* One stack per CPU: that of a sample which never came goes when the next one comes. */
	assert_true(late_samples_take_stack(&late, &world.stack, STACK_RECORD_HEADER_BYTES + 96));
	world.stack.head.at_ns = world.sample.head.at_ns = 78;
	assert_true(arrive(&late));
	assert_int_equal(late.count, 1);
	late_samples_free(&late);
}

static unsigned fill(struct late_samples *late)
{
	unsigned waiting = 0;

	while (waiting < 5000 && arrive(late)) {
		world.stack.head.at_ns = ++world.sample.head.at_ns;
		waiting++;
	}
	return waiting;
}

static void memory_is_bounded(void **state)
{
	struct late_samples late;

	(void)state;
	world.stack.bytes = STACK_RECORD_BYTES;
	late_samples_init(&late, &source, 19);
	assert_in_range(fill(&late), 100, 400);
	assert_true(late.bytes <= LATE_BYTES_MIN + sizeof(struct sample));
	late_samples_free(&late);
	late_samples_init(&late, &source, 9999);
	assert_in_range(fill(&late), 1000, 2400); /* for one second at a thousand each */
	assert_true(late.bytes <= LATE_BYTES_MAX + sizeof(struct sample));
	late_samples_free(&late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(a_stack_is_whole_once_the_table_is_there),
		TEST(a_table_that_is_taken_away_meanwhile_is_not_believed),
		TEST(what_was_not_copied_is_said_to_be_unreadable),
		TEST(a_thread_that_has_just_begun_has_no_caller),
		TEST(who_makes_a_thread_has_its_callers),
		TEST(rows_and_rules_lie_in_any_page),
		TEST(a_table_that_makes_no_sense_does_no_harm),
		TEST(a_stack_goes_on_where_it_was_switched_from),
		TEST(generated_code_is_left_by_what_it_runs_next),
		TEST(compiled_code_of_ruby_is_left_by_the_call_that_entered_it),
		TEST(frames_of_hotspot_go_on_where_a_table_was_missing),
		TEST(code_of_hotspot_that_was_not_copied_is_not_guessed_at),
		TEST(mappings_that_are_not_known_are_waited_for),
		TEST(a_return_address_that_is_no_code_is_told),
		TEST(unsound_records_are_refused),
		TEST(a_sample_waits_for_its_table),
		TEST(a_sample_waits_no_longer_than_it_may),
		TEST(a_table_whose_file_is_gone_is_not_called_pending),
		TEST(a_table_that_is_being_made_is_waited_for),
		TEST(a_sample_without_its_stack_does_not_wait),
		TEST(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
