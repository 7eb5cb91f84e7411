/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a method of Java 8's is left that saves all registers below its frame and calls sin() of C
 * (agent/bpf/jvm.h): at each of its instructions, over a stack that is full of what looks like
 * return addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/types.h>

#define CODE 0x400000ull
#define STACK 0x7000000ull
#define FRAME (STACK + 8 * 256) /* the method's stack pointer, in its frame */
#define FRAME_WORDS 20u
#define CALLER_FP 0x1230ull
#define BLOB_BYTES 4096u
#define START 0x40u   /* of the method's code, in the blob */
#define CALLED 0x900u /* behind a call, in a caller */

static uint8_t machine_code[BLOB_BYTES];
static uint64_t stack[512];
static bool is_unreadable;

static inline long walk_read(void *to, __u32 bytes, __u64 address)
{
	if (address >= CODE && address - CODE < sizeof(machine_code) &&
	    bytes <= sizeof(machine_code) - (address - CODE) && !is_unreadable) {
		memcpy(to, machine_code + (address - CODE), bytes);
		return 0;
	}
	if (address < STACK || address - STACK >= sizeof(stack) ||
	    bytes > sizeof(stack) - (address - STACK))
		return -1;
	memcpy(to, (const char *)stack + (address - STACK), bytes);
	return 0;
}

static inline long walk_read_registers(__u64 *to)
{
	(void)to;
	return -1;
}

#include "without_files.h"

static bool walk_ask(struct walk *walk)
{
	(void)walk;
	return false;
}

/* Instructions, and how far below the frame the stack pointer is before each. */
static struct {
	uint32_t at, depth;
} places[128];
static size_t places_count;
static uint32_t length, depth;

static void emit(const uint8_t *bytes, uint32_t count, int32_t lowers)
{
	assert_in_range(places_count, 0, sizeof(places) / sizeof(places[0]) - 1);
	places[places_count].at = length;
	places[places_count++].depth = depth;
	memcpy(machine_code + length, bytes, count);
	length += count;
	depth += (uint32_t)lowers;
}

#define EMIT(lowers, ...)                                                                          \
	emit((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), lowers)

/* mov between a register and its place: all but rsp */
static void emit_move(unsigned place, uint8_t direction)
{
	unsigned number = 15 - place; /* of the register */
	uint8_t rex = number > 7 ? 0x4c : 0x48, form = (uint8_t)((number & 7) << 3 | 4);

	if (place == 0)
		EMIT(0, rex, direction, form, 0x24);
	else if (number != 4)
		EMIT(0, rex, direction, (uint8_t)(form | 0x40), 0x24, (uint8_t)(8 * place));
}

/* vmovdqu between the vector registers and their places */
static void emit_vectors(uint8_t direction)
{
	for (unsigned i = 0; i < 16; i++)
		if (i < 8)
			EMIT(0, 0xc5, 0xfa, direction, (uint8_t)(8 * i | 0x44), 0x24,
			     (uint8_t)(16 * i));
		else
			EMIT(0, 0xc5, 0x7a, direction, (uint8_t)(8 * (i & 7) | 0x84), 0x24,
			     (uint8_t)(16 * i), 0, 0, 0);
}

static void emit_saving(unsigned halves)
{
	EMIT(0, 0x48, 0x89, 0x64, 0x24, 0xd8);	     /* mov %rsp,-0x28(%rsp) */
	EMIT(0x80, 0x48, 0x81, 0xec, 0x80, 0, 0, 0); /* sub $0x80,%rsp */
	for (unsigned place = 16; place-- > 0;)
		emit_move(place, 0x89);
	for (unsigned i = 0; i < halves; i++) {
		EMIT(0x100, 0x48, 0x81, 0xec, 0, 1, 0, 0); /* sub $0x100,%rsp */
		emit_vectors(0x7f);
	}
}

static void emit_restoring(unsigned halves)
{
	for (unsigned i = 0; i < halves; i++) {
		emit_vectors(0x6f);
		EMIT(-0x100, 0x48, 0x81, 0xc4, 0, 1, 0, 0); /* add $0x100,%rsp */
	}
	for (unsigned place = 0; place < 16; place++)
		emit_move(place, 0x8b);
	EMIT(-0x80, 0x48, 0x81, 0xc4, 0x80, 0, 0, 0); /* add $0x80,%rsp */
}

/* With one argument for sin(), or two for pow(). */
static void emit_call(unsigned arguments)
{
	EMIT(8 * (int32_t)arguments, 0x48, 0x83, 0xec, (uint8_t)(8 * arguments));
	EMIT(0, 0xdd, 0x1c, 0x24);	       /* fstpl (%rsp) */
	EMIT(0, 0xf7, 0xc4, 0x0f, 0, 0, 0);    /* test $0xf,%esp */
	EMIT(0, 0x0f, 0x84, 0x12, 0, 0, 0);    /* je */
	EMIT(8, 0x48, 0x83, 0xec, 0x08);       /* sub $8,%rsp */
	EMIT(0, 0xe8, 0xa6, 0xf4, 0x9e, 0x17); /* call */
	EMIT(-8, 0x48, 0x83, 0xc4, 0x08);      /* add $8,%rsp */
	EMIT(0, 0xe9, 0x05, 0, 0, 0);	       /* jmp */
	EMIT(0, 0xe8, 0x98, 0xf4, 0x9e, 0x17); /* call */
	EMIT(0, 0xc5, 0xfb, 0x11, 0x04, 0x24); /* vmovsd %xmm0,(%rsp) */
	EMIT(0, 0xdd, 0x04, 0x24);	       /* fldl (%rsp) */
	EMIT(-8 * (int32_t)arguments, 0x48, 0x83, 0xc4, (uint8_t)(8 * arguments));
}

static void emit_method(unsigned halves, unsigned arguments)
{
	memset(machine_code, 0x90, sizeof(machine_code));
	machine_code[CALLED - 5] = 0xe8;
	places_count = depth = 0;
	length = START;
	EMIT(0, 0xc5, 0xfb, 0x11, 0x14, 0x24); /* vmovsd %xmm2,(%rsp) */
	EMIT(0, 0x0f, 0x87, 0x07, 0, 0, 0);    /* ja, to what follows the jmp */
	EMIT(0, 0xd9, 0xfe);		       /* fsin */
	EMIT(0, 0xe9, 0xde, 0x01, 0, 0);       /* jmp, to the end */
	emit_saving(halves);
	emit_call(arguments);
	emit_restoring(halves);
	EMIT(0, 0xdd, 0x1c, 0x24);	       /* fstpl (%rsp) */
	EMIT(0, 0xc5, 0xfb, 0x10, 0x04, 0x24); /* vmovsd (%rsp),%xmm0 */
	EMIT(0, 0xff, 0xc6);		       /* inc %esi */
	assert_int_equal(depth, 0);
}

static uint64_t *word_at(uint64_t address)
{
	return stack + (address - STACK) / 8;
}

/* The method's frame, and below it and in it only what looks like return addresses. */
static void make_stack(bool has_saved)
{
	for (size_t i = 0; i < sizeof(stack) / sizeof(stack[0]); i++)
		stack[i] = CODE + CALLED;
	*word_at(FRAME + 8 * FRAME_WORDS - 16) = CALLER_FP;
	if (has_saved)
		*word_at(FRAME - 0x28) = FRAME;
}

static enum stack_end leave(struct walk *walk, uint32_t at, uint32_t below, bool is_interrupted)
{
	static const struct jvm_blob blob = { .start = CODE,
					      .bytes = BLOB_BYTES,
					      .frame_words = FRAME_WORDS };

	*walk = (struct walk){ 0 };
	walk->jvm.process = (struct jvm_process){
		.low = CODE,
		.bytes = BLOB_BYTES,
		.layout = { .frame_complete = 20,
			    .frame_complete_bytes = 4,
			    .code_bytes = 8,
			    .saves_below = 1 },
	};
	walk->jvm.kept = &blob;
	walk->jvm.kept_count = 1;
	jvm_start(&walk->jvm);
	walk->pc = CODE + at - !is_interrupted;
	walk->sp = FRAME - below;
	walk->fp = 0x5678;
	walk->fp_known = true;
	walk->full = is_interrupted;
	return walk_out_of_jvm(walk);
}

static void assert_left(struct walk *walk, uint32_t at, uint32_t below, bool is_interrupted)
{
	assert_int_equal(leave(walk, at, below, is_interrupted), STACK_ENDS);
	assert_int_equal(walk->pc, CODE + CALLED - 1);
	assert_int_equal(walk->sp, FRAME + 8 * FRAME_WORDS);
	assert_int_equal(walk->fp, CALLER_FP);
}

static int set_up(void **state)
{
	(void)state;
	is_unreadable = false;
	return 0;
}

/* Java 8 saves no halves of vector registers, the lower ones, or both. */
static void each_instruction_of_it_is_left_to_the_caller(void **state)
{
	static struct walk walk;

	(void)state;
	for (unsigned halves = 0; halves <= 2; halves++)
		for (unsigned arguments = 1; arguments <= 2; arguments++) {
			emit_method(halves, arguments);
			for (size_t i = 0; i < places_count; i++) {
				make_stack(places[i].depth);
				assert_left(&walk, places[i].at, places[i].depth, true);
			}
		}
}

static void the_caller_of_c_is_left_to_its_caller(void **state)
{
	static struct walk walk;

	(void)state;
	for (unsigned halves = 0; halves <= 2; halves++) {
		emit_method(halves, 1);
		make_stack(true);
		for (size_t i = 1; i < places_count; i++)
			if (machine_code[places[i - 1].at] == 0xe8)
				assert_left(&walk, places[i].at, places[i].depth, false);
	}
}

/* Of an earlier call, which saved registers above, a word is left that says where it is. */
static void what_an_earlier_call_left_is_no_frame(void **state)
{
	static struct walk walk;

	(void)state;
	emit_method(1, 1);
	make_stack(false);
	*word_at(FRAME + 0x80 - 0x28) = FRAME + 0x80;
	for (size_t i = 0; i < places_count; i++)
		if (!places[i].depth)
			assert_left(&walk, places[i].at, 0, true);

	/* What a frame ends with looks like the end of that code. */
	length = START;
	EMIT(0, 0xff, 0xc6);			  /* inc %esi */
	EMIT(0, 0x48, 0x8b, 0x44, 0x24, 0x78);	  /* mov 0x78(%rsp),%rax */
	EMIT(0, 0x48, 0x81, 0xc4, 0x80, 0, 0, 0); /* add $0x80,%rsp */
	EMIT(0, 0x5d);				  /* pop %rbp */
	assert_left(&walk, START, 0, true);
	assert_left(&walk, START + 2, 0, true);
	assert_left(&walk, START + 2, 0, false);
}

/* Whose stack pointer that word is only the code tells. */
static void without_the_code_nothing_is_guessed(void **state)
{
	static struct walk walk;

	(void)state;
	emit_method(1, 1);
	make_stack(true);
	is_unreadable = true;
	assert_int_equal(leave(&walk, places[10].at, places[10].depth, true), STACK_UNREADABLE);
	assert_int_equal(walk.jvm.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_instruction_of_it_is_left_to_the_caller, set_up),
		cmocka_unit_test_setup(the_caller_of_c_is_left_to_its_caller, set_up),
		cmocka_unit_test_setup(what_an_earlier_call_left_is_no_frame, set_up),
		cmocka_unit_test_setup(without_the_code_nothing_is_guessed, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
