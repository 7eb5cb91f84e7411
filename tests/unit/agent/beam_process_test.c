/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of Erlang's modules, functions and lines, and how its stacks are walked, in memory
 * that is laid out by hand as in Erlang/OTP 25.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/beam/beam_process.h"
#include "fuzz/beam_layout_25.h"

#define ATOMS_MAX 32u

#define CODE (BASE + 0x4000) /* of all modules */
#define STACK (BASE + 0x6000)
#define EXIT (BASE + 0x7000)
#define THREAD (BASE + 0x7200)
#define SCHEDULER (BASE + 0x7a00)
#define PROCESS (BASE + 0x7c00)
#define STOP_AT 0x58u

#define IMAGE_PUT_END CODE
#include "unit/agent/forged_memory.h"

static uint64_t atom_segment, atoms_used;

static const struct beam_layout beam_25 = { BEAM_LAYOUT_25(BASE) };

/* ---- the walk ---- */

static long walk_read_registers(__u64 *to)
{
	(void)to;
	return -1;
}

#include "unit/walk/without_files.h"

/* All of the code is in no file. */
static bool walk_ask(struct walk *walk)
{
	walk->mapping = (struct space_mapping){ .start = CODE, .end = CODE + 0x2000 };
	return walk->pc - CODE < 0x2000;
}

/* ---- memory ---- */

static void set(uint64_t address, uint64_t value)
{
	image[(address - BASE) / 8] = value;
}

static uint64_t atom(const char *name)
{
	uint64_t bytes[8] = { 0 }, text;

	assert_true(strlen(name) <= sizeof(bytes) && atoms_used < ATOMS_MAX);
	memcpy(bytes, name, strlen(name));
	text = put(bytes, 8);
	set(atom_segment + 8 * atoms_used,
	    put((uint64_t[]){ 0, 0, atoms_used, strlen(name), text }, 5));
	return atoms_used++ << 6 | 0x0b;
}

static uint64_t info(const char *module, const char *function, uint64_t arity)
{
	return put((uint64_t[]){ 0, 0, atom(module), atom(function), arity }, 5);
}

/* Two functions, at 0x100 and 0x180 of the module's 0x200 bytes, on lines from `lines` on. */
static void put_module(uint64_t at, const uint64_t *infos, uint64_t lines)
{
	set(at, 2);
	set(at + beam_25.lines, lines);
	set(at + beam_25.functions, at + 0x100);
	set(at + beam_25.functions + 8, at + 0x180);
	set(at + beam_25.functions + 16, at + 0x200);
	/* The words that the functions begin with are their ErtsCodeInfo. */
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < 5; k++)
			set(at + 0x100 + 0x80 * i + 8 * k, image[(infos[i] - BASE) / 8 + k]);
}

/* Of 0x100: 7 from 0x110 on, 9 from 0x120; of 0x180: 12 of another file from 0x190 on. */
static uint64_t put_lines(uint64_t module)
{
	uint64_t addresses = put((uint64_t[]){ module + 0x110, module + 0x120, module + 0x190 }, 3);
	uint64_t places = put((uint64_t[]){ 7 | 9ull << 32, 1 << 24 | 12 }, 2);
	uint64_t files = put((uint64_t[]){ atom("lib/other.ex") }, 1);

	return put((uint64_t[]){ files, 4, places, addresses, addresses + 16, addresses + 24 }, 6);
}

#define FIRST CODE
#define SECOND (CODE + 0x400)

static int setup(void **state)
{
	uint64_t ranges;

	(void)state;
	atoms_used = 0;
	clear_image((0x80 + 0x80) / 8);
	atom_segment = put((uint64_t[ATOMS_MAX]){ 0 }, ATOMS_MAX);
	set(beam_25.atoms + beam_25.segments, put(&atom_segment, 1));
	put_module(FIRST,
		   (uint64_t[]){ info("shop", "sell", 2), info("shop", "-sell/2-fun-0-", 1) },
		   put_lines(FIRST));
	put_module(SECOND,
		   (uint64_t[]){ info("Elixir.Größe", "map", 2),
				 info("Elixir.Größe", "-map/2-fun-0-", 1) },
		   0);
	ranges = put((uint64_t[]){ FIRST, FIRST + 0x200, SECOND, SECOND + 0x200 }, 4);
	set(beam_25.active_code, 1);
	set(beam_25.ranges + 32, ranges);
	set(beam_25.ranges + 40, 2);
	set(beam_25.exit, EXIT);
	set(beam_25.key, 4);
	return 0;
}

static struct beam_process *read_at(enum beam_answer expected, const uint64_t *wanted, size_t count)
{
	struct beam_process *process = beam_process_new(&beam_25, 0);

	assert_int_equal(beam_process_read(process, &image_memory, wanted, count), expected);
	return process;
}

static void check(uint64_t address, const char *function, const char *file, uint32_t line)
{
	struct beam_process *process = read_at(BEAM_ANSWERED, &address, 1);
	const struct beam_place *place = beam_process_find(process, address);

	assert_non_null(place);
	if (function)
		assert_string_equal(place->function, function);
	else
		assert_null(place->function);
	assert_string_equal(place->file, file);
	assert_int_equal(place->line, line);
	beam_process_free(process);
}

static void test_names_and_lines(void **state)
{
	(void)state;
	check(FIRST + 0x110, "shop:sell/2", "shop.erl", 7);
	check(FIRST + 0x11f, "shop:sell/2", "shop.erl", 7);
	check(FIRST + 0x17f, "shop:sell/2", "shop.erl", 9);
	check(FIRST + 0x108, "shop:sell/2", "", 0);
	check(FIRST + 0x1a0, "shop:-sell/2-fun-0-/1", "lib/other.ex", 12);
	check(SECOND + 0x110, "Größe.map/2", "", 0);
	check(SECOND + 0x1f0, "anonymous fn/1 in Größe.map/2", "", 0);
	check(FIRST + 0x10, NULL, "", 0);
	check(FIRST + 0x300, NULL, "", 0);
	check(SECOND + 0x200, NULL, "", 0);
}

static void test_what_is_not_there_yet(void **state)
{
	(void)state;
	set(beam_25.exit, 0);
	beam_process_free(read_at(BEAM_NOT_YET, NULL, 0));
	set(beam_25.exit, EXIT);
	set(beam_25.ranges + 40, 0);
	beam_process_free(read_at(BEAM_NOT_YET, NULL, 0));
}

/* Where the runtime keeps frame pointers its stacks are not for this walk. */
static void test_frame_pointers(void **state)
{
	struct beam_process *process = read_at(BEAM_ANSWERED, NULL, 0);

	(void)state;
	assert_true(beam_process_walk(process).exit == EXIT);
	assert_int_equal(beam_process_walk(process).key, 4);
	beam_process_free(process);
	set(beam_25.frame_layout, 1);
	process = read_at(BEAM_ANSWERED, NULL, 0);
	assert_true(beam_process_walk(process).exit == 0);
	beam_process_free(process);
}

static void test_what_is_other(void **state)
{
	(void)state;
	set(beam_25.active_code, 3);
	beam_process_free(read_at(BEAM_UNKNOWN, NULL, 0));
	set(beam_25.active_code, 1);
	set(beam_25.ranges + 40, BEAM_MODULES_MAX + 1);
	beam_process_free(read_at(BEAM_UNKNOWN, NULL, 0));
	set(beam_25.ranges + 40, 2);
	set(SECOND, BEAM_FUNCTIONS_MAX + 1ull);
	beam_process_free(read_at(BEAM_UNKNOWN, NULL, 0));
}

/* The module that was looked at first is just being replaced. */
static void test_what_was_understood(void **state)
{
	uint64_t wanted[] = { FIRST + 0x110 };
	struct beam_process *process = read_at(BEAM_ANSWERED, wanted, 1);

	(void)state;
	set(SECOND, BEAM_FUNCTIONS_MAX + 1ull);
	assert_int_equal(beam_process_read(process, &image_memory, NULL, 0), BEAM_ANSWERED);
	assert_non_null(beam_process_find(process, wanted[0]));
	beam_process_free(process);
}

/* A module that is loaded anew at another place leaves nothing behind. */
static void test_code_that_goes(void **state)
{
	uint64_t wanted[] = { FIRST + 0x110, SECOND + 0x110 };
	struct beam_process *process = read_at(BEAM_ANSWERED, wanted, 2);

	(void)state;
	set(beam_25.ranges + 40, 2);
	set(beam_25.ranges + 32,
	    put((uint64_t[]){ SECOND, SECOND + 0x200, SECOND + 0x200, SECOND + 0x400 }, 4));
	put_module(SECOND + 0x200, (uint64_t[]){ info("a", "b", 0), info("a", "c", 0) }, 0);
	assert_int_equal(beam_process_read(process, &image_memory, NULL, 0), BEAM_ANSWERED);
	assert_null(beam_process_find(process, wanted[0]));
	assert_non_null(beam_process_find(process, wanted[1]));
	beam_process_free(process);
}

/* ---- stacks ---- */

static struct walk walk;

static void start(uint64_t pc, uint64_t sp, bool full)
{
	memset(&walk, 0, sizeof(walk));
	walk.pc = pc;
	walk.sp = sp;
	walk.full = full;
	walk.fp_known = walk.bx_known = true;
	walk.after_call = !full;
	walk.bx = 0x7fff00000000; /* the scheduler's registers are elsewhere */
	walk.has_beam = true;
	walk.beam.process = (struct beam_walk){ .exit = EXIT, .key = 4, .current_process = 0xa8 };
	walk.beam.thread = THREAD;
}

/* Terms (nil, small numbers, a list), and return addresses between. */
static void put_stack(void)
{
	const uint64_t words[] = { 0x3b, 0x1f, FIRST + 0x140, 0,    STACK + 0x81,
				   0x0f, 0x1b, FIRST + 0x1c0, 0x3b, EXIT };

	memcpy(&image[(STACK - BASE) / 8], words, sizeof(words));
}

static void check_walk(void)
{
	assert_int_equal(walk_out_of_beam(&walk), STACK_ENDS);
	assert_true(walk.pc == FIRST + 0x13f && walk.sp == STACK + 24);
	assert_int_equal(walk_out_of_beam(&walk), STACK_ENDS);
	assert_true(walk.pc == FIRST + 0x1bf && walk.sp == STACK + 64);
	assert_int_equal(walk_out_of_beam(&walk), STACK_COMPLETE);
}

static void test_stack(void **state)
{
	(void)state;
	put_stack();
	start(SECOND + 0x110, STACK, true);
	check_walk();
}

/* From a C function: what restores the stack says where it is. */
static void test_from_c_by_frame_pointer(void **state)
{
	(void)state;
	put_stack();
	set(SECOND + 0x110, 0xec8948c084ull << 8); /* test %al, %al; mov %rbp, %rsp */
	start(SECOND + 0x10f, BASE + 64, false);
	walk.fp = STACK;
	check_walk();
}

static void put_process(uint64_t running)
{
	set(THREAD + 0x310 + 16 * 4 + 8, SCHEDULER);
	set(SCHEDULER + 0xa8, running);
	set(PROCESS + STOP_AT - 8, STACK - 64);
	set(PROCESS + STOP_AT, STACK);
	set(SECOND + 0x110, (uint64_t)STOP_AT << 24 | 0x658b49); /* mov 0x58(%r13), %rsp */
}

static void test_from_c_by_process(void **state)
{
	(void)state;
	put_stack();
	put_process(PROCESS);
	start(SECOND + 0x10f, BASE + 64, false);
	walk.fp_known = false;
	check_walk();
}

/* musl: a pointer to the values of all keys. */
static void test_from_c_by_process_with_musl(void **state)
{
	(void)state;
	put_stack();
	put_process(PROCESS);
	set(THREAD + 0x310 + 16 * 4 + 8, 0);
	set(THREAD + 0x80, THREAD + 0x100);
	set(THREAD + 0x100 + 8 * 4, SCHEDULER);
	start(SECOND + 0x10f, BASE + 64, false);
	walk.beam.process.keys_at = 0x80;
	walk.fp_known = false;
	check_walk();
}

/* The collector moves the stack into the new heap, and notes that heap when the old one is gone. */
static void test_while_garbage_is_collected(void **state)
{
	(void)state;
	put_stack();
	put_process(PROCESS);
	set(PROCESS + STOP_AT - 8, STACK + 64); /* the old heap is behind the stack */
	start(SECOND + 0x10f, BASE + 64, false);
	walk.fp_known = false;
	check_walk();
}

static void test_nothing_runs(void **state)
{
	(void)state;
	put_process(0);
	start(SECOND + 0x10f, BASE + 64, false);
	assert_int_equal(walk_out_of_beam(&walk), STACK_COMPLETE);
}

#define C_STACK (BASE + 64)
#define SHARED (SECOND + 0x1c0)
#define CALL 0xe8000000ull /* of the word before the return address */

/* Shared code at SHARED, which SECOND + 0x118 has called on the scheduler's stack. */
static void put_shared_code(void)
{
	put_stack();
	put_process(PROCESS);
	set(SECOND + 0x110, CALL);
	set(SECOND + 0x118, 0);				   /* restores nothing within sight */
	set(SHARED, (uint64_t)STOP_AT << 32 | 0x658b49c9); /* leave; mov 0x58(%r13), %rsp */
	set(C_STACK, 0x1234);
	set(C_STACK + 8, SECOND + 0x118);
	set(C_STACK + 16, SECOND + 0x118); /* what is above is no frame */
}

static void check_from_shared_code(uint64_t sp)
{
	assert_int_equal(walk_out_of_beam(&walk), STACK_ENDS);
	assert_true(walk.pc == SECOND + 0x117 && walk.sp == sp);
	check_walk();
}

/* From C through code that modules share, which has its frame on the scheduler's stack. */
static void test_from_c_by_shared_code(void **state)
{
	(void)state;
	put_shared_code();
	start(SHARED - 1, C_STACK, false);
	walk.fp_known = false;
	check_from_shared_code(C_STACK + 16);
}

/* Interrupted in it, with its caller at the stack's end. */
static void test_in_shared_code(void **state)
{
	(void)state;
	put_shared_code();
	set(SHARED, (uint64_t)STOP_AT << 24 | 0x658b49);
	start(SHARED, C_STACK + 8, true);
	walk.bx = C_STACK + 0x50;
	check_from_shared_code(C_STACK + 16);
}

/* Code that was not called on it: its stack is aligned, or what lies there follows no call. */
static void test_not_called_on_scheduler(void **state)
{
	(void)state;
	put_shared_code();
	set(SHARED, (uint64_t)STOP_AT << 24 | 0x658b49);
	start(SHARED, C_STACK + 16, true);
	walk.bx = C_STACK + 0x50;
	check_walk();
	set(SECOND + 0x110, 0);
	start(SHARED, C_STACK + 8, true);
	walk.bx = C_STACK + 0x50;
	check_walk();
}

/* What cannot be known is said, and not guessed. */
static void test_unknown_stack(void **state)
{
	(void)state;
	put_stack();
	put_process(PROCESS);
	set(SECOND + 0x110, 0);
	start(SECOND + 0x10f, BASE + 64, false);
	walk.fp = STACK;
	assert_int_equal(walk_out_of_beam(&walk), STACK_NO_FRAME_POINTER);
	put_process(PROCESS);
	set(PROCESS + STOP_AT, 0);
	start(SECOND + 0x10f, BASE + 64, false);
	assert_int_equal(walk_out_of_beam(&walk), STACK_NO_FRAME_POINTER);
}

static void test_return_to_no_code(void **state)
{
	(void)state;
	put_stack();
	set(STACK + 16, 0x7fff12345678);
	start(SECOND + 0x110, STACK, true);
	assert_int_equal(walk_out_of_beam(&walk), STACK_BAD_ADDRESS);
	set(STACK + 16, 0x3b);
	start(SECOND + 0x110, BASE + sizeof(image), true);
	assert_int_equal(walk_out_of_beam(&walk), STACK_UNREADABLE);
	start(SECOND + 0x110, STACK + 4, true);
	assert_int_equal(walk_out_of_beam(&walk), STACK_BAD_ADDRESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_names_and_lines, setup),
		cmocka_unit_test_setup(test_what_is_not_there_yet, setup),
		cmocka_unit_test_setup(test_frame_pointers, setup),
		cmocka_unit_test_setup(test_what_is_other, setup),
		cmocka_unit_test_setup(test_what_was_understood, setup),
		cmocka_unit_test_setup(test_code_that_goes, setup),
		cmocka_unit_test_setup(test_stack, setup),
		cmocka_unit_test_setup(test_from_c_by_frame_pointer, setup),
		cmocka_unit_test_setup(test_from_c_by_process, setup),
		cmocka_unit_test_setup(test_from_c_by_process_with_musl, setup),
		cmocka_unit_test_setup(test_while_garbage_is_collected, setup),
		cmocka_unit_test_setup(test_from_c_by_shared_code, setup),
		cmocka_unit_test_setup(test_in_shared_code, setup),
		cmocka_unit_test_setup(test_not_called_on_scheduler, setup),
		cmocka_unit_test_setup(test_nothing_runs, setup),
		cmocka_unit_test_setup(test_unknown_stack, setup),
		cmocka_unit_test_setup(test_return_to_no_code, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
