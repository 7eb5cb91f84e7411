/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of Lua's prototypes, and how its threads are found and their calls walked, in memory
 * that is laid out by hand as in Lua 5.4 and 5.3.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/lua/lua_prototype.h"
#include "agent/runtime/puc/puc_code.h"
#include "unit/agent/forged_memory.h"

#include "agent/bpf/script_puc.h"

#define STEPS_MAX 4096
#define IN_C 2u /* flags of calls, of 5.4 */
#define ENTERED 4u

static const struct puc_layout layout_54 = { .code = 64,
					     .code_count = 24,
					     .lines = 88,
					     .lines_count = 28,
					     .bases = 96,
					     .bases_count = 40,
					     .first_line = 44,
					     .source = 112,
					     .constants = 56,
					     .constants_count = 20,
					     .locals = 104,
					     .locals_count = 36,
					     .captured = 80,
					     .captured_count = 16,
					     .instructions = PUC_INSTRUCTIONS_5_4,
					     .proof = 56 };
static const struct puc_layout layout_53 = { .code = 56,
					     .code_count = 24,
					     .lines = 72,
					     .lines_count = 28,
					     .first_line = 40,
					     .source = 104,
					     .proof = 48 };
static const struct script_puc_layout walk_54 = { .stack = 48,
						  .status = 10,
						  .base_call = 96,
						  .position = 32,
						  .flags = 62,
						  .lua_flag = IN_C,
						  .entry_flag = ENTERED,
						  .forms = SCRIPT_PUC_C_FLAGGED |
							   SCRIPT_PUC_IN_REGISTER,
						  .proof = 56,
						  .code = 64,
						  .code_count = 24 };

static struct sample sample;

static int setup(void **state)
{
	(void)state;
	clear_image(4);
	memset(&sample, 0, sizeof(sample));
	return 0;
}

static void set32(uint64_t at, uint32_t value)
{
	memcpy((uint8_t *)image + (at - BASE), &value, sizeof(value));
}

static void set64(uint64_t at, uint64_t value)
{
	memcpy((uint8_t *)image + (at - BASE), &value, sizeof(value));
}

static uint64_t text(const char *bytes)
{
	uint64_t words[16] = { 0, 4 };

	assert_true(strlen(bytes) < sizeof(words) - 24);
	memcpy((char *)words + 24, bytes, strlen(bytes));
	return put(words, 16);
}

/* Five instructions, of 5.4: on lines 13, 13, 300, 302, and one that is not known. */
static uint64_t prototype(const char *source, uint32_t first_line)
{
	uint64_t file = text(source), empty[16] = { 0 }, at;
	int8_t steps[8] = { 1, 0, -128, 2, -128 };
	uint32_t bases[2] = { 2, 300 };
	uint64_t code = put(empty, 3), lines, table;
	uint64_t words[2];

	memcpy(words, steps, sizeof(steps));
	lines = put(words, 1);
	memcpy(words, bases, sizeof(bases));
	table = put(words, 1);
	at = put(empty, 16);
	set32(at + layout_54.code_count, 5);
	set32(at + layout_54.lines_count, 5);
	set32(at + layout_54.bases_count, 1);
	set32(at + layout_54.first_line, first_line);
	set64(at + layout_54.code, code);
	set64(at + layout_54.lines, lines);
	set64(at + layout_54.bases, table);
	set64(at + layout_54.source, file);
	return at;
}

static uint64_t code_of(uint64_t prototype)
{
	uint64_t code;

	memcpy(&code, (uint8_t *)image + (prototype + layout_54.code - BASE), sizeof(code));
	return code;
}

static void functions_are_called_by_where_they_begin(void **state)
{
	uint64_t address = prototype("@/srv/shop/cart.lua", 12);
	uint32_t code = (uint32_t)code_of(address);
	struct script_code read;
	struct slice lines;

	(void)state;
	assert_int_equal(puc_code_read(&image_memory, &layout_54, address, &read),
			 SCRIPT_CODE_READ);
	lines = slice_from(read.lines, read.lines_len);
	assert_string_equal(read.function, "cart.lua:12");
	assert_string_equal(read.file, "/srv/shop/cart.lua");
	assert_int_equal(read.first_line, 12);
	/* The position is that of the instruction that follows. */
	assert_int_equal(puc_line(lines, code + 4), 13);
	assert_int_equal(puc_line(lines, code + 4 * 3), 300);
	assert_int_equal(puc_line(lines, code + 4 * 4), 302);
	assert_int_equal(puc_line(lines, code + 4 * 5), 0);
	assert_int_equal(puc_line(lines, code), 13);
	assert_int_equal(puc_line(lines, code + 2), 0);
	assert_int_equal(puc_line(lines, code + 4 * 6), 0);
	script_code_fini(&read);
	address = prototype("=stdin", 0);
	assert_int_equal(puc_code_read(&image_memory, &layout_54, address, &read),
			 SCRIPT_CODE_READ);
	assert_string_equal(read.function, "main chunk");
	assert_string_equal(read.file, "stdin");
	script_code_fini(&read);
	set64(address + layout_54.source, 8);
	assert_int_equal(puc_code_read(&image_memory, &layout_54, address, &read),
			 SCRIPT_CODE_GONE);
}

static void older_versions_have_a_line_of_each_instruction(void **state)
{
	uint64_t file = text("@a.lua"), words[16] = { 0 }, lines, address;
	struct script_code read;

	(void)state;
	lines = put((uint64_t[]){ (uint64_t)9 << 32 | 8, 7 }, 2);
	address = put(words, 16);
	set32(address + layout_53.code_count, 3);
	set32(address + layout_53.lines_count, 3);
	set64(address + layout_53.code, 0x100);
	set64(address + layout_53.lines, lines);
	set64(address + layout_53.source, file);
	assert_int_equal(puc_code_read(&image_memory, &layout_53, address, &read),
			 SCRIPT_CODE_READ);
	assert_int_equal(puc_line(slice_from(read.lines, read.lines_len), 0x108), 9);
	assert_int_equal(puc_line(slice_from(read.lines, read.lines_len), 0x10c), 7);
	script_code_fini(&read);
	set32(address + layout_53.lines_count, 0); /* stripped */
	assert_int_equal(puc_code_read(&image_memory, &layout_53, address, &read),
			 SCRIPT_CODE_READ);
	assert_null(read.lines);
	script_code_fini(&read);
}

#define OP(operation, a, b, c)                                                                     \
	((uint32_t)(operation) | (uint32_t)(a) << 7 | (uint32_t)(b) << 16 | (uint32_t)(c) << 24)
#define CONSTANT (1u << 15)

enum { MOVE = 0, GETUPVAL = 9, GETTABUP = 11, GETFIELD = 14, SELF = 20, ADD = 34, CALL = 68 };

/* print(); cart.add(); cart:total(); captured(); a copy of cart; a sum */
static const uint32_t calling[] = {
	OP(GETTABUP, 1, 0, 0),
	OP(CALL, 1, 1, 1),
	OP(GETFIELD, 1, 0, 1),
	OP(CALL, 1, 1, 1),
	OP(SELF, 1, 0, 2) | CONSTANT,
	OP(CALL, 1, 2, 1),
	OP(GETUPVAL, 1, 1, 0),
	OP(CALL, 1, 1, 1),
	OP(MOVE, 1, 0, 0),
	OP(CALL, 1, 1, 1),
	OP(ADD, 1, 0, 0),
	OP(CALL, 1, 1, 1),
	OP(SELF, 1, 0, 2),
	OP(CALL, 1, 2, 1),
};

static void check_callee(const struct script_code *code, uint64_t start, uint32_t position,
			 const char *name)
{
	const char *found = puc_callee(code, (uint32_t)start + 4 * (position + 1));

	if (name)
		assert_string_equal(found, name);
	else
		assert_null(found);
}

static void functions_are_called_by_what_their_callers_call_them(void **state)
{
	const uint64_t texts[] = { text("print"), text("add"),	text("total"),
				   text("cart"),  text("_ENV"), text("captured") };
	uint64_t address = prototype("@a.lua", 3), code, words[7] = { 0 };
	struct script_code read;

	(void)state;
	memcpy(words, calling, sizeof(calling));
	code = put(words, 7);
	set64(address + layout_54.code, code);
	set32(address + layout_54.code_count, 14);
	set64(address + layout_54.constants,
	      put((uint64_t[]){ texts[0], 0x44, texts[1], 0x44, texts[2], 0x44 }, 6));
	set32(address + layout_54.constants_count, 3);
	set64(address + layout_54.locals, put((uint64_t[]){ texts[3], (uint64_t)14 << 32 }, 2));
	set32(address + layout_54.locals_count, 1);
	set64(address + layout_54.captured, put((uint64_t[]){ texts[4], 0, texts[5], 0 }, 4));
	set32(address + layout_54.captured_count, 2);
	assert_int_equal(puc_code_read(&image_memory, &layout_54, address, &read),
			 SCRIPT_CODE_READ);
	assert_true(script_code_bytes(&read) > 5 * sizeof(struct lua_call));
	check_callee(&read, code, 1, "print");
	check_callee(&read, code, 3, "add");
	check_callee(&read, code, 5, "total");
	check_callee(&read, code, 7, "captured");
	check_callee(&read, code, 9, "cart");
	check_callee(&read, code, 11, NULL);
	check_callee(&read, code, 13, NULL); /* by a name that is in a register */
	check_callee(&read, code, 0, NULL);
	check_callee(&read, code, 500, NULL);
	script_code_fini(&read);
}

/* ---- threads ---- */

struct thread {
	uint64_t address, stack, call;
	uint32_t slots;
};

static struct thread thread_new(uint64_t shared)
{
	uint64_t words[32] = { 0 };
	struct thread thread = { .stack = put(words, 32) };

	words[1] = PUC_KIND_THREAD;
	words[6] = thread.stack;
	words[5] = thread.stack + 8 * 30;
	thread.address = put(words, 20);
	thread.call = thread.address + 96;
	set64(thread.address + 24, shared ? shared : thread.address + 8 * 19);
	set64(thread.call, thread.stack);
	set32(thread.call + 60, IN_C << 16);
	set64(thread.address + 32, thread.call);
	thread.slots = 1;
	return thread;
}

static void call(struct thread *thread, uint64_t prototype, uint32_t flags, uint64_t position)
{
	uint64_t closure = put((uint64_t[]){ 0, 0, 0, prototype }, 4);
	uint64_t slot = thread->stack + 16ull * thread->slots++, words[9] = { 0 };

	set64(slot, closure);
	set64(slot + 8, 0x46);
	words[0] = slot;
	words[2] = thread->call;
	words[4] = position;
	words[7] = (uint64_t)flags << 48;
	thread->call = put(words, 9);
	set64(thread->address + 32, thread->call);
}

/* From the words of a stack, the registers before them. */
static size_t walk_from(const uint64_t *stack, size_t count, __u64 *registers, bool in_loop)
{
	struct script script = { .room = SCRIPT_FRAMES_MAX,
				 .process = { .kind = SCRIPT_PUC, .puc = walk_54 } };
	size_t steps = 0;

	registers[REGISTERS_SP] = put(stack, count);
	put((uint64_t[16]){ 0 }, 16);
	script_puc_start(&script, &sample, registers);
	while (script_puc_frame(&script, &sample, in_loop ? registers : NULL))
		assert_true(++steps < STEPS_MAX);
	return script.at / 2;
}

static void check_word(size_t index, uint64_t object, uint64_t flags, uint64_t position)
{
	assert_int_equal(sample.frames[2 * index], object | flags);
	assert_int_equal((uint32_t)sample.frames[2 * index + 1], (uint32_t)position);
}

static void calls_are_those_of_the_thread_that_is_on_the_stack(void **state)
{
	uint64_t outer = prototype("@a.lua", 0), inner = prototype("@a.lua", 5);
	struct thread thread = thread_new(0);
	__u64 registers[21] = { 0 };

	(void)state;
	call(&thread, outer, ENTERED, code_of(outer) + 8);
	call(&thread, 0, IN_C, 0);
	call(&thread, inner, ENTERED, code_of(inner) + 4);
	call(&thread, inner, 0, code_of(inner) + 8);
	/* Behind words that are none, and one that was interrupted with the position in a register.
	 */
	assert_int_equal(
		walk_from((uint64_t[]){ 7, BASE + 8, ~0ull, thread.address }, 4, registers, false),
		3);
	check_word(0, inner, 0, code_of(inner) + 8);
	check_word(1, inner, SCRIPT_ENDS_RUN, code_of(inner) + 4);
	check_word(2, outer, SCRIPT_ENDS_RUN, code_of(outer) + 8);
	registers[0] = thread.address;
	registers[9] = code_of(inner) + 16;
	registers[10] = code_of(inner) + 12;
	assert_int_equal(walk_from((uint64_t[]){ 7 }, 1, registers, true), 3);
	check_word(0, inner, 0, code_of(inner) + 16);
	check_word(2, outer, SCRIPT_ENDS_RUN, code_of(outer) + 8);
}

static void threads_that_resumed_one_another_follow_one_another(void **state)
{
	uint64_t outer = prototype("@a.lua", 0), inner = prototype("@a.lua", 5);
	struct thread main_thread = thread_new(0);
	struct thread idle = thread_new(main_thread.address + 8 * 19);
	struct thread over = thread_new(main_thread.address + 8 * 19);
	struct thread running = thread_new(main_thread.address + 8 * 19);
	__u64 registers[21] = { 0 };

	(void)state;
	call(&main_thread, outer, ENTERED, code_of(outer) + 4);
	call(&running, inner, ENTERED, code_of(inner) + 4);
	call(&idle, inner, ENTERED, code_of(inner) + 4);
	set32(idle.address + 8, 1u << 16 | PUC_KIND_THREAD); /* it has yielded */
	assert_int_equal(
		walk_from((uint64_t[]){ idle.address, over.address, running.address,
					running.address, main_thread.address, running.address },
			  6, registers, false),
		2);
	check_word(0, inner, SCRIPT_ENDS_RUN, code_of(inner) + 4);
	check_word(1, outer, SCRIPT_ENDS_RUN, code_of(outer) + 4);
}

static void what_is_no_thread_or_call_is_left_or_cut(void **state)
{
	uint64_t code = prototype("@a.lua", 0);
	struct thread thread = thread_new(0);
	__u64 registers[21] = { 0 };

	(void)state;
	call(&thread, code, ENTERED, code_of(code));
	set64(thread.stack + 16 + 8, 0x66); /* a function in C */
	assert_int_equal(walk_from(&thread.address, 1, registers, false), 1);
	assert_int_equal(sample.frames[0], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[1], SCRIPT_UNREADABLE);
	set64(thread.call, BASE); /* not on its stack */
	assert_int_equal(walk_from(&thread.address, 1, registers, false), 0);
	registers[REGISTERS_SP] = 8;
	assert_int_equal(walk_from(&thread.address, 0, registers, false), 0);
}

static void deep_calls_are_cut(void **state)
{
	uint64_t code = prototype("@a.lua", 0);
	struct thread thread = thread_new(0);
	__u64 registers[21] = { 0 };

	(void)state;
	call(&thread, code, 0, code_of(code));
	set64(thread.call + 16, thread.call); /* outside of itself */
	assert_int_equal(walk_from(&thread.address, 1, registers, false), SCRIPT_FRAMES_MAX + 1);
	assert_int_equal(sample.frames[2 * SCRIPT_FRAMES_MAX], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[2 * SCRIPT_FRAMES_MAX + 1], SCRIPT_TOO_DEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(functions_are_called_by_where_they_begin, setup),
		cmocka_unit_test_setup(older_versions_have_a_line_of_each_instruction, setup),
		cmocka_unit_test_setup(functions_are_called_by_what_their_callers_call_them, setup),
		cmocka_unit_test_setup(calls_are_those_of_the_thread_that_is_on_the_stack, setup),
		cmocka_unit_test_setup(threads_that_resumed_one_another_follow_one_another, setup),
		cmocka_unit_test_setup(what_is_no_thread_or_call_is_left_or_cut, setup),
		cmocka_unit_test_setup(deep_calls_are_cut, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
