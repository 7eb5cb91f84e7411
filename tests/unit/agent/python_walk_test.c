/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose frames of CPython a thread runs, over a memory made by hand: the first state of a thread,
 * and another one that has the interpreter's lock, which may be this thread's or another's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdbool.h>

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define BASE 0x10000ull
#define THREAD BASE
#define CURRENT (BASE + 0x10)	   /* the state that has the lock */
#define INTERPRETERS (BASE + 0x18) /* the newest one */
#define NEWEST (BASE + 0x20)
#define OWN (BASE + 0x100) /* states */
#define OTHER (BASE + 0x200)
#define FRAMES (BASE + 0x400)
#define STACK (BASE + 0x4000)
#define STACK_BYTES 0x5000u
#define LEAF_BYTES 0x100u

#define FIRST_FRAME 24u /* in a state */
#define ON_STACK 48u
#define PREVIOUS 24u /* in a frame */
#define OBJECT 32u
#define OWNER 70u

static uint8_t memory[STACK + STACK_BYTES - BASE];

static long walk_read(void *to, uint32_t bytes, uint64_t address)
{
	if (address < BASE || address - BASE > sizeof(memory) ||
	    bytes > sizeof(memory) - (address - BASE))
		return -1;
	memcpy(to, memory + (address - BASE), bytes);
	return 0;
}

#include "agent/bpf/shared.h"
#include "agent/bpf/script_python.h"

static struct sample sample;
static struct script script;
static __u64 registers[21];

static void put(uint64_t at, uint64_t word)
{
	memcpy(memory + (at - BASE), &word, sizeof(word));
}

static uint64_t frame(size_t index)
{
	return FRAMES + 0x80 * index;
}

static uint64_t code(size_t index)
{
	return FRAMES + 0x2000 + 0x100 * index;
}

/* Frames `first` to `last`, from the innermost on, of a state. */
static void put_state(uint64_t at, size_t first, size_t last)
{
	put(at + FIRST_FRAME, frame(first));
	for (size_t i = first; i <= last; i++) {
		put(frame(i) + PREVIOUS, i < last ? frame(i + 1) : 0);
		put(frame(i) + OBJECT, code(i));
	}
}

/* Of two interpreters: this thread's first state has frames 2 and 3, another one 0 and 1. */
static int setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	memset(registers, 0, sizeof(registers));
	registers[REGISTERS_SP] = STACK;
	put(THREAD, OWN);
	put(CURRENT, OTHER);
	put(INTERPRETERS, NEWEST);
	put(NEWEST, NEWEST + 0x40);
	put_state(OWN, 2, 3);
	put_state(OTHER, 0, 1);
	script = (struct script){
		.room = SCRIPT_FRAMES_MAX,
		.process = { .kind = SCRIPT_PYTHON,
			     .state_form = SCRIPT_STATE_STATIC,
			     .current_at = CURRENT,
			     .interpreters_at = INTERPRETERS,
			     .layout = { .first_frame = FIRST_FRAME,
					 .first_frame_hop = SCRIPT_NO_HOP,
					 .frame_bytes = 112,
					 .previous = PREVIOUS,
					 .object = OBJECT,
					 .position = 104,
					 .position_is_index = 1,
					 .boundary_kind = SCRIPT_EACH_FRAME,
					 .proof_words = 3 } },
	};
	return 0;
}

/* Walks the thread, whose interrupted function has a C frame of LEAF_BYTES. How many entries. */
static size_t walk(void)
{
	size_t steps = 0;

	script.at = 0;
	script_python_start(&script, THREAD, registers, STACK + LEAF_BYTES);
	while (script_python_seek(&script))
		assert_true(++steps <= SCRIPT_PYTHON_SCAN_STEPS);
	if (script_python_settle(&script, &sample))
		while (script_frame(&script, &sample))
			;
	return script.at / 2;
}

static void check_note(size_t index, enum script_note note)
{
	assert_int_equal(sample.frames[2 * index], SCRIPT_IS_MARK);
	assert_int_equal(sample.frames[2 * index + 1], note);
}

static void check_code(size_t index, size_t expected)
{
	assert_int_equal(sample.frames[2 * index], code(expected) | SCRIPT_ENDS_RUN);
}

static void a_thread_with_the_lock_runs_what_it_names(void **state)
{
	(void)state;
	put(CURRENT, OWN);
	put(STACK, frame(0)); /* left behind */
	assert_int_equal(walk(), 2);
	check_code(0, 2);
	check_code(1, 3);
}

/* From 3.12 on a thread that has given up the lock is named by a key, from 3.15 by a variable. */
static void a_thread_without_the_lock_runs_what_is_kept_for_it(void **state)
{
	enum { NUMBER = 3 };
	const uint64_t key = BASE + 0x30, value = THREAD + THREAD_KEYS_AT + 16 * NUMBER + 8;

	script.process.current_at = 0;
	put(THREAD, 0);
	assert_int_equal(walk(), 0);
	put(THREAD + 8, OWN);
	script.process.key_form = SCRIPT_STATE_STATIC;
	script.process.key_at = 8;
	assert_int_equal(walk(), 2);
	check_code(0, 2);
	setup(state);
	script.process.current_at = 0;
	put(THREAD, 0);
	put(key, 1 | (uint64_t)NUMBER << 32);
	put(value, OWN);
	script.process.key_at = key;
	assert_int_equal(walk(), 0); /* of a key that was there before */
	put(value - 8, 1);
	assert_int_equal(walk(), 2);
	check_code(0, 2);
}

/* musl: the thread has the address of all values, which are nothing but values. */
static void with_musl_a_key_names_the_state(void **state)
{
	enum { NUMBER = 40, KEYS_AT = 0x80 };
	const uint64_t key = BASE + 0x30, values = STACK + 0x100;

	(void)state;
	script.process.current_at = 0;
	script.process.state_form = SCRIPT_STATE_KEY;
	script.process.state_at = key;
	script.process.keys_at = KEYS_AT;
	put(key, 1 | (uint64_t)NUMBER << 32);
	put(values + 8 * NUMBER, OWN);
	assert_int_equal(walk(), 0); /* no key has a value yet */
	put(THREAD + KEYS_AT, values);
	assert_int_equal(walk(), 2);
	check_code(0, 2);
	/* From 3.12 on, of a thread that has given up the lock. */
	script.process.state_form = SCRIPT_STATE_STATIC;
	script.process.state_at = 0;
	script.process.key_form = SCRIPT_STATE_KEY;
	script.process.key_at = key;
	put(THREAD, 0);
	assert_int_equal(walk(), 2);
	check_code(0, 2);
	/* Numbers that are none, and values that are nowhere. */
	put(key, 1 | (uint64_t)THREAD_KEYS_MAX << 32);
	assert_int_equal(walk(), 0);
	put(key, (uint64_t)NUMBER << 32); /* not created */
	assert_int_equal(walk(), 0);
	put(key, 1 | (uint64_t)NUMBER << 32);
	put(THREAD + KEYS_AT, (uint64_t)-16);
	assert_int_equal(walk(), 0);
}

/* A variable of a library: {module, offset}, and the vector that a thread has of all modules. */
static void a_variable_of_a_library_names_the_state(void **state)
{
	enum { MODULE = 3, OFFSET = 0x18 };
	static const struct {
		uint16_t keys_at;
		uint8_t stride;
	} cases[] = { { 0, 16 }, { 0x80, 8 } }; /* glibc, musl */
	const uint64_t slot = BASE + 0x30, vector = STACK + 0x100, block = STACK + 0x200;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(state);
		script.process.current_at = 0;
		script.process.state_form = SCRIPT_STATE_DYNAMIC;
		script.process.state_at = slot;
		script.process.keys_at = cases[i].keys_at;
		put(slot + 8, OFFSET);
		put(THREAD + THREAD_VECTOR_AT, vector);
		put(vector + cases[i].stride * MODULE, block);
		put(block + OFFSET, OWN);
		assert_int_equal(walk(), 0); /* not loaded yet */
		put(slot, MODULE);
		assert_int_equal(walk(), 2);
		check_code(0, 2);
		put(slot, (uint64_t)-1);
		assert_int_equal(walk(), 0);
	}
}

/* A sub-interpreter: the state was made here or elsewhere, and names no thread that runs it. */
static void a_state_whose_frame_is_on_the_stack_is_the_threads(void **state)
{
	(void)state;
	put(STACK + 0x3000, frame(0));
	assert_int_equal(walk(), 3);
	check_note(0, SCRIPT_RUNS_ARE_INNER);
	check_code(1, 0);
	check_code(2, 1);
}

static void a_state_whose_frame_is_in_a_register_is_the_threads(void **state)
{
	(void)state;
	registers[REGISTERS_FP] = frame(0);
	assert_int_equal(walk(), 3);
	check_code(1, 0);
	/* Functions do not preserve this one. */
	setup(state);
	registers[REGISTERS_PRESERVED] = frame(0);
	assert_int_equal(walk(), 3);
	check_code(1, 2);
}

static void another_threads_state_is_not_taken(void **state)
{
	(void)state;
	put(STACK + 8, OTHER);
	put(STACK + 16, frame(1));
	put(STACK + 8ull * SCRIPT_PYTHON_SCAN_WORDS, frame(0)); /* too far away */
	assert_int_equal(walk(), 3);
	check_note(0, SCRIPT_RUNS_ARE_OUTER);
	check_code(1, 2);
	check_code(2, 3);
	/* Nobody has the lock: this thread has given it up, in whatever state. */
	setup(state);
	put(CURRENT, 0);
	assert_int_equal(walk(), 3);
	check_note(0, SCRIPT_RUNS_ARE_OUTER);
	check_code(1, 2);
}

static void a_thread_without_a_state_of_its_own_may_run_another(void **state)
{
	(void)state;
	put(THREAD, 0);
	put(STACK + 0x80, frame(0));
	assert_int_equal(walk(), 3);
	check_code(1, 0);
	setup(state);
	put(THREAD, 0);
	assert_int_equal(walk(), 0);
}

/* Threads in C code, for which nothing but the interrupted function is looked at. */
static void of_one_interpreter_a_loop_that_was_interrupted_counts(void **state)
{
	(void)state;
	put(NEWEST, 0);
	put(STACK + 2 * LEAF_BYTES, frame(0));
	assert_int_equal(walk(), 2);
	check_code(0, 2);
	setup(state);
	put(NEWEST, 0);
	put(STACK + LEAF_BYTES - 8, frame(0));
	assert_int_equal(walk(), 3);
	check_code(1, 0);
}

/* 3.10 and 3.11: {call of the loop} on the C stack. */
static void a_call_of_the_loop_is_in_the_interrupted_function_or_not(void **state)
{
	(void)state;
	put(CURRENT, OWN);
	put(OWN + ON_STACK, STACK + LEAF_BYTES - 8);
	script.process.layout.on_stack = ON_STACK;
	assert_int_equal(walk(), 3);
	check_note(0, SCRIPT_RUNS_ARE_INNER);
	check_code(1, 2);
	setup(state);
	put(CURRENT, OWN);
	put(OWN + ON_STACK, STACK + LEAF_BYTES);
	script.process.layout.on_stack = ON_STACK;
	assert_int_equal(walk(), 2);
	/* It tells more than that the state is another one. */
	setup(state);
	put(STACK + 0x800, frame(0));
	put(OTHER + ON_STACK, STACK + 0x800);
	script.process.layout.on_stack = ON_STACK;
	assert_int_equal(walk(), 2);
	check_code(0, 0);
}

static void nothing_is_said_where_the_interrupted_functions_frame_is_not_known(void **state)
{
	(void)state;
	put(CURRENT, OWN);
	put(OWN + ON_STACK, STACK);
	script.process.layout.on_stack = ON_STACK;
	script_python_start(&script, THREAD, registers, 0);
	assert_true(script_python_settle(&script, &sample));
	assert_int_equal(script.at, 0);
}

/* From 3.12 on a frame on the C stack ends the run of a call of the loop. */
static void a_mark_is_in_the_interrupted_function_or_not(void **state)
{
	uint64_t inner = STACK + 0x40, outer = STACK + 0x400;

	(void)state;
	put_state(OWN, 0, 0);
	put(frame(0) + PREVIOUS, inner);
	put(inner + OWNER, 3);
	put(inner + PREVIOUS, outer);
	put(outer + OWNER, 3);
	script.process.current_at = 0;
	script.process.layout.boundary = OWNER;
	script.process.layout.boundary_kind = SCRIPT_MARK_FRAME;
	script.process.layout.boundary_value = 3;
	assert_int_equal(walk(), 3);
	assert_int_equal(sample.frames[0], code(0));
	assert_int_equal(sample.frames[2], SCRIPT_ENDS_RUN | SCRIPT_IS_MARK);
	assert_int_equal(sample.frames[3], SCRIPT_RUNS_ARE_INNER);
	assert_int_equal(sample.frames[4], SCRIPT_ENDS_RUN | SCRIPT_IS_MARK);
	assert_int_equal(sample.frames[5], 0);
}

static void a_note_takes_the_place_of_a_frame(void **state)
{
	(void)state;
	put(frame(1) + PREVIOUS, frame(0)); /* a circle */
	put(STACK, frame(0));
	assert_int_equal(walk(), SCRIPT_FRAMES_MAX + 1);
	check_note(0, SCRIPT_RUNS_ARE_INNER);
	assert_int_equal(sample.frames[2 * SCRIPT_FRAMES_MAX], SCRIPT_IS_CUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_thread_with_the_lock_runs_what_it_names, setup),
		cmocka_unit_test_setup(a_state_whose_frame_is_on_the_stack_is_the_threads, setup),
		cmocka_unit_test_setup(a_state_whose_frame_is_in_a_register_is_the_threads, setup),
		cmocka_unit_test_setup(a_thread_without_the_lock_runs_what_is_kept_for_it, setup),
		cmocka_unit_test_setup(with_musl_a_key_names_the_state, setup),
		cmocka_unit_test_setup(a_variable_of_a_library_names_the_state, setup),
		cmocka_unit_test_setup(another_threads_state_is_not_taken, setup),
		cmocka_unit_test_setup(a_thread_without_a_state_of_its_own_may_run_another, setup),
		cmocka_unit_test_setup(of_one_interpreter_a_loop_that_was_interrupted_counts,
				       setup),
		cmocka_unit_test_setup(a_call_of_the_loop_is_in_the_interrupted_function_or_not,
				       setup),
		cmocka_unit_test_setup(
			nothing_is_said_where_the_interrupted_functions_frame_is_not_known, setup),
		cmocka_unit_test_setup(a_mark_is_in_the_interrupted_function_or_not, setup),
		cmocka_unit_test_setup(a_note_takes_the_place_of_a_frame, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
