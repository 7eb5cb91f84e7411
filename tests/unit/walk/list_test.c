/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwinder (agent/bpf/walk.h) over lists of mappings that are not as they should be, and where
 * a frame pointer of 0 ends a stack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/bpf/space.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define TGID 7u
#define CODE 0x400000ull
#define STACK 0x7000ull

static struct space_head kept_head;
static struct space_part kept_part;
static struct binary_tables no_information;
#define STACK_WORDS 64
#define WORDS_BELOW 8 /* the stack pointer */
static uint64_t thread_stack[WORDS_BELOW + STACK_WORDS], *const stack = thread_stack + WORDS_BELOW;
static bool has_part, has_answer;

/* Code of a runtime, where the list says that there is some. */
#define GENERATED (CODE + 0x2000)
static uint8_t generated[128];
static bool is_v8;
static uint64_t beam_exit;

struct walk;
static bool walk_ask(struct walk *walk);

static inline long walk_read(void *to, __u32 bytes, __u64 address)
{
	uint64_t at = address - (STACK - 8 * WORDS_BELOW);

	if (bytes <= sizeof(generated) && address >= GENERATED &&
	    address - GENERATED <= sizeof(generated) - bytes) {
		memcpy(to, generated + (address - GENERATED), bytes);
		return 0;
	}
	if (at >= sizeof(thread_stack) || bytes > sizeof(thread_stack) - at)
		return -1;
	memcpy(to, (const char *)thread_stack + at, bytes);
	return 0;
}

static inline const struct space_head *walk_space(__u32 tgid)
{
	return tgid == TGID ? &kept_head : NULL;
}

static inline const struct space_part *walk_space_part(const struct space_part_key *key)
{
	return has_part && !key->part ? &kept_part : NULL;
}

static inline const struct binary_tables *walk_tables(const struct file_key *file, __u64 now_ns)
{
	(void)now_ns;
	return file->inode == 1 ? &no_information : NULL;
}

static inline const __u8 *walk_chunk(const struct table_segment *segment, __u64 into)
{
	(void)segment;
	(void)into;
	return NULL;
}

/* What V8 has of a function. */
#define OBJECT 0x100001ull
#define CALLED 0x200001ull /* in the register of the interrupted function */
#define OWN 0x300001ull	   /* in its frame */
#define CALLER 0x400001ull
#define POSITION 77u

static inline long walk_read_registers(__u64 *to)
{
	if (!is_v8)
		return -1;
	memset(to, 0, 8 * 21);
	to[14] = CALLED; /* rdi */
	return 0;
}

/* What is known of the generated code. */
static struct code_line known_line;
static bool has_line, is_of_jitdump, is_framed;

static inline const struct code_line *walk_code_line(const struct code_line_key *key)
{
	if (is_framed && key->line == CODE_LINE_OF_BLOCK(GENERATED >> CODE_BLOCK_SHIFT))
		return &known_line;
	return key->line == GENERATED >> CODE_LINE_SHIFT ? &known_line : NULL;
}

static inline void walk_copy(void *to, __u32 bytes, const void *from)
{
	memcpy(to, from, bytes);
}

#include "agent/bpf/beam.h"
#include "agent/bpf/jvm.h"
#include "agent/bpf/lua.h"
#include "agent/bpf/v8.h"

static const struct space_mapping code = { .start = CODE, .end = CODE + 0x1000, .file.inode = 1 };

static bool walk_ask(struct walk *walk)
{
	walk->mapping = code;
	return has_answer && walk->pc - code.start < code.end - code.start;
}

static int set_up(void **state)
{
	(void)state;
	kept_head = (struct space_head){ .start_ns = 1, .parts = 1, .firsts = { CODE } };
	kept_part = (struct space_part){ .start_ns = 1, .count = 1, .mappings = { code } };
	memset(thread_stack, 0, sizeof(thread_stack));
	memset(generated, 0x90, sizeof(generated));
	has_part = true;
	has_answer = is_v8 = has_line = is_of_jitdump = is_framed = false;
	beam_exit = 0;
	return 0;
}

static enum stack_end walk_from(struct walk *walk, uint64_t pc, uint64_t fp)
{
	static struct sample sample;

	*walk = (struct walk){ 0 };
	walk_own(walk, &(struct walk_owner){ .tgid = TGID });
	walk_start(walk);
	walk->pc = pc;
	walk->sp = STACK;
	walk->fp = fp;
	walk->full = true;
	walk->has_v8 = walk->notes_places = is_v8;
	walk->v8.layout = (struct script_v8_layout){ .function = -16,
						     .bytecode_array = -32,
						     .bytecode_offset = -40 };
	walk->has_beam = beam_exit;
	walk->beam.process.exit = beam_exit;
	walk->has_code = has_line;
	walk->code_key.number = is_of_jitdump ? CODE_NUMBER_OF_JITDUMP | 1 : 1;
	for (bool on = walk_leaf(walk, &sample); on; on = walk_frame(walk, &sample))
		continue;
	return (enum stack_end)walk->end;
}

static void a_part_that_is_gone_is_told(void **state)
{
	struct walk walk;

	(void)state;
	has_part = false;
	assert_int_equal(walk_from(&walk, CODE, 0), STACK_NO_MAPPINGS);
	assert_true(walk.part_lost);
}

static void a_part_of_another_process_is_not_used(void **state)
{
	struct walk walk;

	(void)state;
	kept_part.start_ns = 2;
	assert_int_equal(walk_from(&walk, CODE, 0), STACK_NO_MAPPINGS);
	assert_true(walk.part_lost);
	has_answer = true;
	assert_int_equal(walk_from(&walk, CODE, 0), STACK_NO_UNWIND_INFO);
}

static void beyond_a_cut_list_the_kernel_is_asked(void **state)
{
	const uint64_t beyond = CODE + 0x2000;
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	assert_int_equal(walk_from(&walk, beyond, 1), STACK_NO_FRAME_POINTER);
	kept_head.flags |= SPACE_CUT;
	assert_int_equal(walk_from(&walk, beyond, 1), STACK_NO_MAPPINGS);
	assert_false(walk.part_lost);
}

static void a_table_that_is_not_to_be_had_is_no_table_to_come(void **state)
{
	struct walk walk;

	(void)state;
	no_information.missing = TABLE_MISSING_FAILED;
	assert_int_equal(walk_from(&walk, CODE, 0), STACK_TABLE_FAILED);
	no_information.missing = TABLE_MISSING_NO_ROOM;
	assert_int_equal(walk_from(&walk, CODE, 0), STACK_TABLE_NO_ROOM);
	/* A chain of frame pointers may leave out frames: it is no whole stack. */
	stack[1] = CODE + 0x10;
	assert_int_equal(walk_from(&walk, CODE, STACK), STACK_TABLE_NO_ROOM);
	no_information.missing = TABLE_NOT_MISSING;
}

/* Without frame pointers the register is 0 for as long as no caller has had a use for it. */
static void zero_ends_a_chain_but_is_none_by_itself(void **state)
{
	struct walk walk;

	(void)state;
	assert_int_equal(walk_from(&walk, CODE, 0), STACK_NO_UNWIND_INFO);
	stack[0] = 0;		/* the caller's frame pointer */
	stack[1] = CODE + 0x10; /* and the return address */
	assert_int_equal(walk_from(&walk, CODE, STACK), STACK_COMPLETE);
	assert_int_equal(walk.at, 2);
}

/* It begins with a push of the caller's frame pointer, and then sets its own. */
static void a_function_without_a_row_is_left_where_it_begins(void **state)
{
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	generated[0x20 - 5] = 0xe8; /* a call */
	stack[0] = STACK + 8 * 16;
	stack[1] = GENERATED + 0x20;
	stack[16] = 0;
	stack[17] = GENERATED + 0x40;
	assert_int_equal(walk_from(&walk, CODE, STACK + 8 * 16), STACK_GUESSED_POINTER);
	assert_int_equal(walk.at, 3);
	assert_int_equal(walk_from(&walk, CODE, STACK), STACK_GUESSED_POINTER);
	assert_int_equal(walk.at, 3);
}

/* Such code may have left an older frame's pointer in the register: the stack is not known whole.
 */
static void the_way_out_of_generated_code_is_a_guess(void **state)
{
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	stack[0] = 0;
	stack[1] = CODE + 0x10;
	assert_int_equal(walk_from(&walk, GENERATED, STACK), STACK_GUESSED_POINTER);
	assert_int_equal(walk.at, 2);
	/* The next walk begins anew. */
	assert_int_equal(walk_from(&walk, CODE, STACK), STACK_COMPLETE);
}

/* Rows of generated code may name a place of the caller's frame pointer that other rows cannot. */
static void generated_code_may_save_the_frame_pointer_far_away(void **state)
{
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	has_line = true;
	memset(&known_line, 0xff, sizeof(known_line)); /* TABLE_ROW_UNUSED */
	known_line.rows[0] = TABLE_ROW(0, CODE_RULE_FAR | 28u << 1 | 21u << 11);
	stack[27] = GENERATED + 0x10; /* under the CFA, rsp + 28 words */
	stack[27 - 21] = 0x1234;
	assert_int_equal(walk_from(&walk, GENERATED, 1), STACK_COMPLETE);
	assert_int_equal(walk.at, 2);
	assert_int_equal(walk.fp, 0x1234);
	/* Without the flag some of the bits are the place of rbx. */
	known_line.rows[0] = TABLE_ROW(0, 28u << 1 | 21u << 11);
	stack[27 - 5] = 0x5678;
	assert_int_equal(walk_from(&walk, GENERATED, 1), STACK_COMPLETE);
	assert_int_equal(walk.fp, 0x5678);
	/* Where no row says anything it stays a guess. */
	known_line.rows[0] = TABLE_ROW(0, 0);
	stack[1] = CODE + 0x10;
	assert_int_equal(walk_from(&walk, GENERATED, STACK), STACK_GUESSED_POINTER);
}

/* At GENERATED + 16. */
static void lay_out(const char bytes[4])
{
	memset(generated, 0x90, sizeof(generated));
	memcpy(generated + 16, bytes, 4);
	memset(thread_stack, 0, sizeof(thread_stack));
}

/* Where functions begin and end it is known, too, what the register is. */
static void functions_that_all_have_a_frame_are_no_guess(void **state)
{
	static const char start[] = "\x55\x48\x89\xe5", end[] = "\x48\x89\xec\x5d";
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	has_line = is_of_jitdump = is_framed = true;
	memset(&known_line, 0, sizeof(known_line));
	/* Nothing is pushed but the return address, which the caller's frame pointer is not above.
	 */
	lay_out(start);
	stack[0] = GENERATED + 0x40;
	stack[8] = 0;
	stack[9] = CODE + 0x10;
	assert_int_equal(walk_from(&walk, GENERATED + 16, STACK + 8 * 8), STACK_COMPLETE);
	assert_int_equal(walk.at, 3);
	/* The frame pointer is, too. */
	lay_out(start);
	stack[0] = STACK + 8 * 8;
	stack[1] = GENERATED + 0x40;
	stack[9] = CODE + 0x10;
	assert_int_equal(walk_from(&walk, GENERATED + 17, STACK + 8 * 30), STACK_COMPLETE);
	assert_int_equal(walk.at, 3);
	/* It is the function's own. */
	lay_out(start);
	stack[0] = GENERATED + 0x40;
	stack[9] = CODE + 0x10;
	assert_int_equal(walk_from(&walk, GENERATED + 20, STACK + 8 * 8), STACK_COMPLETE);
	assert_int_equal(walk.at, 2);
	/* It is the caller's again: before a return, and before a jump to another function. */
	for (int i = 0; i < 3; i++) {
		lay_out(end);
		generated[20] = (uint8_t[]){ 0xc3, 0xc2, 0xe9 }[i];
		stack[0] = GENERATED + 0x40;
		stack[9] = CODE + 0x10;
		assert_int_equal(walk_from(&walk, GENERATED + 20, STACK + 8 * 8), STACK_COMPLETE);
		assert_int_equal(walk.at, 3);
	}
	/* Other code of the process is as it was. */
	is_framed = false;
	lay_out(start);
	stack[9] = CODE + 0x10;
	assert_int_equal(walk_from(&walk, GENERATED + 20, STACK + 8 * 8), STACK_GUESSED_POINTER);
}

/* Images of .NET are files, of which there may be lines; what a jitdump tells of is in no file. */
static void lines_by_a_jitdump_are_of_generated_code_alone(void **state)
{
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	has_line = true;
	memset(&known_line, 0xff, sizeof(known_line)); /* TABLE_ROW_UNUSED */
	known_line.rows[0] = TABLE_ROW(0, 3u << 1);
	stack[2] = GENERATED + 0x10;
	for (int i = 0; i < 2; i++) {
		is_of_jitdump = i;
		assert_int_equal(walk_from(&walk, GENERATED, 1), STACK_COMPLETE);
		assert_int_equal(walk.at, 2);
		assert_int_equal(walk.by_table, 2);
	}
	/* A file whose table is yet to come. */
	kept_part.mappings[0].file.inode = 2;
	kept_head.flags = 0;
	stack[0] = STACK + 8 * 4;
	stack[1] = CODE + 0x20;
	is_of_jitdump = false;
	assert_int_not_equal(walk_from(&walk, CODE, STACK), STACK_TABLE_PENDING);
	is_of_jitdump = true;
	assert_int_equal(walk_from(&walk, CODE, STACK), STACK_TABLE_PENDING);
}

/* CPython's trampolines keep no frame pointer, but what follows their call says all. */
static void the_end_of_a_stub_says_how_it_is_left(void **state)
{
	static const struct {
		uint8_t code[8];
		unsigned words; /* below the return address */
		bool pops;
	} ends[] = {
		{ { 0xc3 }, 0, false },				     /* ret */
		{ { 0x48, 0x83, 0xc4, 0x08, 0xc3 }, 1, false },	     /* add $8,%rsp; ret */
		{ { 0x48, 0x83, 0xc4, 0x78, 0xc3 }, 15, false },     /* the most */
		{ { 0x5d, 0xc3 }, 1, true },			     /* pop %rbp; ret */
		{ { 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3 }, 3, true }, /* add $16,%rsp; pop; ret */
	};
	static const uint8_t others[][8] = {
		{ 0x48, 0x83, 0xc4, 0x07, 0xc3 }, /* no word */
		{ 0x48, 0x83, 0xc4, 0x88, 0xc3 }, /* add $-120,%rsp */
		{ 0x48, 0x83, 0xec, 0x08, 0xc3 }, /* sub $8,%rsp */
		{ 0x5d, 0x5b, 0xc3 },		  /* pop %rbp; pop %rbx; ret */
	};
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		memset(thread_stack, 0, sizeof(thread_stack));
		memcpy(generated, ends[i].code, sizeof(ends[i].code));
		stack[ends[i].words] = CODE + 0x10;
		if (ends[i].pops) /* of a chain, which ends there */
			stack[ends[i].words - 1] = STACK + 8 * 32;
		stack[33] = CODE + 0x20;
		assert_int_equal(walk_from(&walk, GENERATED, STACK + 8 * 32), STACK_COMPLETE);
		assert_int_equal(walk.at, 3);
		assert_int_equal(walk.by_table, 1);

		/* The same as the caller of a function with frame pointers. */
		memmove(stack + 2, stack, 8 * (STACK_WORDS - 2));
		stack[0] = STACK + 8 * 34;
		stack[1] = GENERATED;
		if (ends[i].pops)
			stack[ends[i].words + 1] = STACK + 8 * 34;
		assert_int_equal(walk_from(&walk, CODE, STACK), STACK_COMPLETE);
		assert_int_equal(walk.at, 4);
		assert_int_equal(walk.by_table, 1);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		memset(thread_stack, 0, sizeof(thread_stack));
		memcpy(generated, others[i], sizeof(others[i]));
		assert_int_equal(walk_from(&walk, GENERATED, 1), STACK_NO_FRAME_POINTER);
		assert_int_equal(walk.by_table, 0);
	}
}

/* What is below the frame pointer at a word of the stack. */
static void put_slots(int at, uint64_t function)
{
	stack[at - 1] = OBJECT; /* the context */
	stack[at - 2] = function;
	stack[at - 4] = OBJECT; /* the bytecode */
	stack[at - 5] = (uint64_t)POSITION << 32;
}

/* The register has a frame of its own only in the middle: the function stands where it is known. */
static void a_function_of_v8_is_left_where_it_begins_and_ends(void **state)
{
	static const uint8_t function[] = {
		0x48, 0x8b, 0x59, 0xf8,		    /* mov -8(%rcx),%rbx */
		0xf6, 0x43, 0x35, 0x01,		    /* testb $1,0x35(%rbx) */
		0x0f, 0x85, 0x72, 0x63, 0xe4, 0x1f, /* jne */
		0x55, 0x48, 0x89, 0xe5,		    /* push %rbp; mov %rsp,%rbp */
		0x56, 0x57, 0x50,		    /* push %rsi; push %rdi; push %rax */
		0x48, 0x83, 0xec, 0x08,		    /* sub $8,%rsp */
		0x48, 0x8b, 0xe5, 0x5d,		    /* mov %rbp,%rsp; pop %rbp */
		0x48, 0x83, 0xf9, 0x03, 0x7f, 0x03, /* cmp $3,%rcx; jg */
		0xc2, 0x18, 0x00,		    /* ret $24 */
		0x41, 0x5a, 0x48, 0x8d, 0x24, 0xcc, 0x41, 0x52, 0xc3,
	};
	enum where { BEFORE, PUSHED, UNSET, INSIDE, AFTER };
	static const struct {
		unsigned at;
		enum where where;
	} places[] = { { 0, BEFORE }, { 8, BEFORE },  { 14, BEFORE }, { 15, PUSHED }, { 18, UNSET },
		       { 19, UNSET }, { 20, INSIDE }, { 21, INSIDE }, { 28, INSIDE }, { 29, AFTER },
		       { 33, AFTER }, { 35, AFTER },  { 38, AFTER } };
	uint64_t wanted;
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	is_v8 = true;
	memcpy(generated, function, sizeof(function));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		enum where where = places[i].where;
		bool has_frame = where == UNSET || where == INSIDE;
		unsigned frame = where == PUSHED || has_frame;

		memset(thread_stack, 0, sizeof(thread_stack));
		stack[0] = frame ? STACK + 8 * 32 : 0;
		stack[frame] = CODE + 0x10; /* the caller, whose frame ends the chain */
		stack[33] = CODE + 0x20;
		put_slots(where == AFTER ? -1 : 0, OWN);
		put_slots(32, CALLER);
		walk_from(&walk, GENERATED + places[i].at, has_frame ? STACK : STACK + 8 * 32);
		assert_int_equal(walk.at, 3);
		wanted = where == INSIDE || where == AFTER ? OWN : CALLED;
		assert_int_equal(walk.places[0].at, 0);
		assert_int_equal(walk.places[0].function, wanted);
		assert_int_equal(walk.places[0].position, SCRIPT_V8_NO_POSITION);
		/* The caller is interpreted: its own frame is noted for it. */
		assert_int_equal(walk.places_count, 2);
		assert_int_equal(walk.places[1].function, CALLER);
		assert_int_equal(walk.places[1].position, POSITION);
		assert_int_equal(walk.places[1].at, 1);
	}
}

/* More of them than are left in one go; one is no function, and of one the slots are something
 * else. */
static void functions_of_v8_that_call_one_another_are_noted(void **state)
{
	enum { FRAMES = 14, REGEXP = 5, OTHER = 7, KIND = 16 };
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	is_v8 = true;
	for (unsigned i = 0; i < FRAMES; i++) {
		stack[4 * i] = i + 1 < FRAMES ? STACK + 8 * (4 * i + 4) : 0;
		stack[4 * i + 1] = i + 1 < FRAMES ? GENERATED + 0x10 : 0;
		stack[4 * (int)i - 1] = i == REGEXP ? 2 * KIND : i == OTHER ? 2 * KIND + 3 : OBJECT;
		stack[4 * (int)i - 2] = OWN + 16 * i;
	}
	kept_part.count = 2;
	kept_part.mappings[1] =
		(struct space_mapping){ .start = GENERATED, .end = GENERATED + 0x1000 };
	assert_int_equal(walk_from(&walk, GENERATED, STACK), STACK_GUESSED_POINTER);
	assert_int_equal(walk.at, FRAMES);
	assert_int_equal(walk.room, SAMPLE_USER_FRAMES_MAX - FRAMES);
	assert_int_equal(walk.places_count, FRAMES - 1);
	for (unsigned i = 0, place = 0; i < FRAMES; i++) {
		if (i == OTHER)
			continue;
		assert_int_equal(walk.places[place].at, i);
		assert_int_equal(walk.places[place].function,
				 i == REGEXP ? 2 * KIND : OWN + 16 * i);
		place++;
	}
}

/* V8's builtins have no unwind information; few of them have a frame, but what calls them has. */
static void code_without_information_returns_to_what_called_it(void **state)
{
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	is_v8 = true;
	generated[11] = 0xe8; /* call; of the size of the displacement, it ends at 16 */
	stack[0] = GENERATED + 16;
	stack[33] = CODE + 0x20;
	put_slots(32, CALLER);
	walk_from(&walk, CODE + 0x100, STACK + 8 * 32);
	assert_int_equal(walk.at, 3);
	assert_int_equal(walk.places_count, 1);
	assert_int_equal(walk.places[0].function, CALLER);
	assert_int_equal(walk.places[0].position, SCRIPT_V8_NO_POSITION);
	assert_int_equal(walk.places[0].at, 1);
}

/* Code that Erlang's modules share returns to any address, their own functions to even ones. */
static void code_that_modules_share_returns_to_its_caller(void **state)
{
	struct walk walk;

	(void)state;
	kept_head.flags = SPACE_HAS_GENERATED;
	for (unsigned low = 0; low < 4; low++) {
		unsigned at = 32 + low;

		memset(generated, 0x90, sizeof(generated));
		generated[at - 5] = 0xe8;
		beam_exit = stack[3] = GENERATED;
		stack[0] = GENERATED + at;
		stack[1] = GENERATED + 0x32; /* a term, though it looks alike */
		stack[2] = GENERATED + 0x48;
		walk_from(&walk, GENERATED + 0x60, 0);
		assert_int_equal(walk.end, STACK_COMPLETE);
		assert_int_equal(walk.at, 3);
		/* In a module's own code it is a term, and so it is if no call is before it. */
		beam_exit = stack[3] = GENERATED + 0x40000;
		walk_from(&walk, GENERATED + 0x60, 0);
		assert_int_equal(walk.end, STACK_COMPLETE);
		assert_int_equal(walk.at, low ? 2 : 3);
	}
	beam_exit = stack[3] = GENERATED;
	generated[35 - 5] = 0x90;
	walk_from(&walk, GENERATED + 0x60, 0);
	assert_int_equal(walk.end, STACK_COMPLETE);
	assert_int_equal(walk.at, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_part_that_is_gone_is_told, set_up),
		cmocka_unit_test_setup(a_part_of_another_process_is_not_used, set_up),
		cmocka_unit_test_setup(beyond_a_cut_list_the_kernel_is_asked, set_up),
		cmocka_unit_test_setup(a_table_that_is_not_to_be_had_is_no_table_to_come, set_up),
		cmocka_unit_test_setup(zero_ends_a_chain_but_is_none_by_itself, set_up),
		cmocka_unit_test_setup(a_function_without_a_row_is_left_where_it_begins, set_up),
		cmocka_unit_test_setup(the_way_out_of_generated_code_is_a_guess, set_up),
		cmocka_unit_test_setup(generated_code_may_save_the_frame_pointer_far_away, set_up),
		cmocka_unit_test_setup(functions_that_all_have_a_frame_are_no_guess, set_up),
		cmocka_unit_test_setup(lines_by_a_jitdump_are_of_generated_code_alone, set_up),
		cmocka_unit_test_setup(the_end_of_a_stub_says_how_it_is_left, set_up),
		cmocka_unit_test_setup(code_without_information_returns_to_what_called_it, set_up),
		cmocka_unit_test_setup(code_that_modules_share_returns_to_its_caller, set_up),
		cmocka_unit_test_setup(a_function_of_v8_is_left_where_it_begins_and_ends, set_up),
		cmocka_unit_test_setup(functions_of_v8_that_call_one_another_are_noted, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
