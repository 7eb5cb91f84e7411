/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of LuaJIT's prototypes and traces, and how its frames are walked, in memory that is
 * laid out by hand as in LuaJIT 2.1 with 64-bit references.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/lua/lua_code.h"

#define IMAGE_WORDS 0x1e000u
#include "unit/agent/forged_memory.h"

#include "agent/bpf/script_lua.h"

#define BASE_AT 0x20u
#define SHARED_AT 0x10u
#define TRACE_BASE_AT 0x178u

/* Instructions: operation, first slot, and what is behind. */
#define OP(operation, a, d) ((uint32_t)(operation) | (uint32_t)(a) << 8 | (uint32_t)(d) << 16)
#define MOV 18u
#define UGET 45u
#define GGET 54u
#define TGETS 57u
#define CALL 66u
#define ADD 32u
#define FUNCF 89u

static const struct lua_layout layout_21 = { .code = 88 };
static const struct script_lua_layout walk_21 = {
	.trace_base = TRACE_BASE_AT, .shared = SHARED_AT, .base = BASE_AT, .frame = 0x50, .code = 88
};

static struct sample sample;
static struct walk_lua places;

static int setup(void **state)
{
	(void)state;
	clear_image(4);
	memset(&places, 0, sizeof(places));
	return 0;
}

static uint64_t text(const char *bytes)
{
	uint64_t words[32] = { 0 };

	words[1] = 4u << 8;
	assert_true(strlen(bytes) < sizeof(words) - 24);
	memcpy((char *)words + 24, bytes, strlen(bytes));
	return put(words, 32);
}

struct shape {
	uint32_t code[16];
	uint32_t count;
	const char *file;
	uint32_t first_line;
	uint8_t lines[16];
	const char *constants[4]; /* by index */
	const char *captures;	  /* NUL between */
	size_t captures_len;
	uint8_t captures_count;
	const char *variables;
	size_t variables_len;
};

/* In one piece, as LuaJIT lays it out. */
static uint64_t prototype(const struct shape *shape)
{
	uint64_t words[128] = { 0 }, texts[4] = { 0 }, at, file = text(shape->file);
	uint8_t *bytes = (uint8_t *)words;

	for (size_t i = 0; i < 4 && shape->constants[i]; i++)
		texts[i] = text(shape->constants[i]);
	at = BASE + 8 * used;
	words[1] = (uint64_t)shape->count << 32 | 7u << 8;
	memcpy(bytes + 104, shape->code, 4 * shape->count);
	for (size_t i = 0; i < 4; i++)
		words[40 + 3 - i] = texts[i];
	words[4] = at + 8 * 44; /* constants lie before it */
	words[7] = (uint64_t)shape->captures_count << 32 | sizeof(words);
	words[8] = file;
	words[9] = (uint64_t)20 << 32 | shape->first_line;
	words[10] = at + 400;
	memcpy(bytes + 400, shape->lines, sizeof(shape->lines));
	words[11] = at + 440;
	if (shape->captures)
		memcpy(bytes + 440, shape->captures, shape->captures_len);
	words[12] = at + 640;
	if (shape->variables)
		memcpy(bytes + 640, shape->variables, shape->variables_len);
	return put(words, 128);
}

/* local cart = ...; print(), cart.add(), captured(), a local that is a copy, a sum */
static const struct shape shop = {
	.code = { OP(FUNCF, 5, 0), OP(GGET, 1, 0), OP(CALL, 1, 0x101), OP(TGETS, 1, 1),
		  OP(CALL, 1, 0x101), OP(UGET, 2, 1), OP(CALL, 2, 0x101), OP(MOV, 3, 0),
		  OP(CALL, 3, 0x101), OP(ADD, 1, 0), OP(CALL, 1, 0x101) },
	.count = 11,
	.file = "@/srv/shop/cart.lua",
	.first_line = 12,
	.lines = { 1, 1, 2, 2, 3, 3, 4, 4, 5, 6 },
	.constants = { "print", "add" },
	.captures = "first\0second",
	.captures_len = 13,
	.captures_count = 2,
	.variables = "cart\0\1\x14\0",
	.variables_len = 8,
};

static void functions_are_called_by_what_their_callers_call_them(void **state)
{
	uint64_t address = prototype(&shop);
	const struct lua_prototype *read;
	struct script_code code;

	(void)state;
	assert_int_equal(lua_code_read(&image_memory, &layout_21, address, &code),
			 SCRIPT_CODE_READ);
	read = &code.lua->prototypes[0];
	assert_string_equal(code.function, "cart.lua:12");
	assert_string_equal(code.file, "/srv/shop/cart.lua");
	assert_string_equal(lua_prototype_callee(read, 2), "print");
	assert_string_equal(lua_prototype_callee(read, 4), "add");
	assert_string_equal(lua_prototype_callee(read, 6), "second");
	assert_string_equal(lua_prototype_callee(read, 8), "cart");
	assert_string_equal(lua_prototype_callee(read, 9), "__add");
	assert_null(lua_prototype_callee(read, 10)); /* a sum has no name */
	assert_null(lua_prototype_callee(read, 1000));
	assert_int_equal(lua_prototype_line(read, 0), 12);
	assert_int_equal(lua_prototype_line(read, 3), 14);
	assert_int_equal(lua_prototype_line(read, 10), 18);
	assert_int_equal(lua_prototype_line(read, 11), 0);
	script_code_fini(&code);
}

static void check_file(const char *chunk, uint32_t line, const char *function, const char *file)
{
	struct shape shape = shop;
	struct script_code code;

	shape.file = chunk;
	shape.first_line = line;
	assert_int_equal(lua_code_read(&image_memory, &layout_21, prototype(&shape), &code),
			 SCRIPT_CODE_READ);
	assert_string_equal(code.function, function);
	assert_string_equal(code.file, file);
	script_code_fini(&code);
}

static void chunks_are_files_names_or_texts(void **state)
{
	(void)state;
	check_file("@cart.lua", 0, "main chunk", "cart.lua");
	check_file("=stdin", 3, "stdin:3", "stdin");
	check_file("return 1\nor 2", 1, "[string \"return 1\"]:1", "[string \"return 1\"]");
	check_file("=\xff", 1, "\xef\xbf\xbd:1", "\xef\xbf\xbd");
}

static enum script_code_result read_changed(uint64_t address, size_t word, uint64_t value)
{
	uint64_t *at = &image[(address - BASE) / 8 + word], kept = *at;
	struct script_code code;
	enum script_code_result result;

	*at = value;
	result = lua_code_read(&image_memory, &layout_21, address, &code);
	if (result == SCRIPT_CODE_READ)
		script_code_fini(&code);
	*at = kept;
	return result;
}

/*
 * Copies of copies before each call, and variables that are in no instruction: who followed all of
 * that would not come to an end today.
 */
static void names_of_a_forged_prototype_are_given_up(void **state)
{
	static const uint32_t copied[] = { OP(MOV, 1, 1), OP(MOV, 3, 1), OP(CALL, 3, 0x101) };
	const uint32_t count = 0x1c000, bytes = 0xe0000, variables = 104 + 4 * count;
	uint64_t file = text("@forged.lua"), address = BASE + 8 * used;
	uint8_t *prototype = (uint8_t *)(image + used);
	uint64_t head[13] = { 0, (uint64_t)count << 32 | 7u << 8 };
	struct script_code code;

	(void)state;
	head[7] = bytes;
	head[8] = file;
	head[12] = address + variables;
	memcpy(prototype, head, sizeof(head));
	for (uint32_t i = 0; i < count; i++)
		memcpy(prototype + 104 + 4 * (size_t)i, &copied[i % 3], 4);
	for (uint32_t at = variables; at + 3 <= bytes; at += 3)
		prototype[at] = 1; /* from nowhere to nowhere */
	assert_int_equal(lua_code_read(&image_memory, &layout_21, address, &code),
			 SCRIPT_CODE_READ);
	assert_int_equal(code.lua->prototypes[0].calls_count, 0);
	script_code_fini(&code);
}

static void what_is_none_is_not_read(void **state)
{
	uint64_t address = prototype(&shop);

	(void)state;
	assert_int_equal(read_changed(address, 1, 5u << 8), SCRIPT_CODE_OTHER);
	assert_int_equal(read_changed(address, 1, 7u << 8), SCRIPT_CODE_OTHER); /* no code */
	assert_int_equal(read_changed(address, 1, ~0ull << 32 | 7u << 8), SCRIPT_CODE_OTHER);
	assert_int_equal(read_changed(address, 7, 8), SCRIPT_CODE_OTHER);
	assert_int_equal(read_changed(address, 7, UINT32_MAX), SCRIPT_CODE_OTHER);
	assert_int_equal(read_changed(address, 7, (uint32_t)1 << 20), SCRIPT_CODE_GONE);
	assert_int_equal(read_changed(address, 8, 8), SCRIPT_CODE_GONE);
	/* Tables that lie elsewhere are left out. */
	assert_int_equal(read_changed(address, 10, 8), SCRIPT_CODE_READ);
	assert_int_equal(read_changed(address, 4, ~0ull), SCRIPT_CODE_READ);
	assert_int_equal(read_changed(address, 11, ~0ull), SCRIPT_CODE_READ);
	assert_int_equal(read_changed(address, 12, 1), SCRIPT_CODE_READ);
}

/* ---- traces ---- */

#define FIRST 0x7ff0u /* of the constants */
#define NUMBER(slot, flags, ref) ((uint32_t)(slot) << 24 | (flags) | (ref))

/* In `outer`, which has called `inner`, from the second snapshot on. */
static uint64_t trace_of(uint64_t outer, uint64_t inner)
{
	uint64_t constants[16] = { 0 }, trace[16] = { 0 };
	uint32_t entries[8] = { 0 };
	uint8_t snapshots[24] = { 0 };
	uint64_t pc = (outer + 104 + 4) << 8, pc_inside = (inner + 104 + 4 * 3) << 8 | 3;
	uint32_t second = 2;
	uint16_t start = 0x40;

	constants[0] = 14ull << 32; /* a number: where the caller goes on */
	constants[1] = outer + 104 + 4 * 5;
	constants[2] = 7ull << 32;
	constants[3] = inner;
	memcpy(entries, &pc, 8);
	entries[2] = NUMBER(4, 0x10000, FIRST);
	memcpy(entries + 3, &pc_inside, 8);
	memcpy(snapshots + 12, &second, 4);
	memcpy(snapshots + 18, &start, 2);
	snapshots[22] = 1;
	trace[1] = 2u << 16 | 9u << 8;
	trace[4] = put(constants, 16) - 8 * FIRST;
	trace[5] = (uint64_t)5 << 32 | FIRST;
	trace[6] = put((uint64_t *)snapshots, 3);
	trace[7] = put((uint64_t *)entries, 4);
	trace[8] = outer;
	trace[11] = 0x5000;
	return put(trace, 16);
}

static void traces_have_the_functions_that_they_inline(void **state)
{
	struct shape inner = shop;
	const struct lua_place *in;
	struct script_code code;
	uint64_t outer_at = prototype(&shop), trace;
	bool is_unsure;

	(void)state;
	inner.first_line = 100;
	trace = trace_of(outer_at, prototype(&inner));
	assert_int_equal(lua_code_read(&image_memory, &layout_21, trace, &code), SCRIPT_CODE_READ);
	assert_int_equal(lua_code_places(code.lua, 0x3f, &in, &is_unsure), 1);
	assert_true(is_unsure); /* another call lies between */
	assert_int_equal(in[0].position, 1);
	assert_int_equal(code.lua->prototypes[in[0].prototype].first_line, 12);
	assert_int_equal(lua_code_places(code.lua, 0x40, &in, &is_unsure), 2);
	assert_false(is_unsure);	     /* the trace ends there */
	assert_int_equal(in[0].position, 4); /* the call that returns to the instruction behind */
	assert_int_equal(in[1].position, 3);
	assert_int_equal(code.lua->prototypes[in[1].prototype].first_line, 100);
	script_code_fini(&code);
	assert_int_equal(read_changed(trace, 5, (uint64_t)5 << 32 | 0x9000), SCRIPT_CODE_GONE);
	assert_int_equal(read_changed(trace, 5, (uint64_t)UINT32_MAX << 32 | FIRST),
			 SCRIPT_CODE_GONE);
	assert_int_equal(read_changed(trace, 7, 8), SCRIPT_CODE_GONE);
}

/* ---- frames ---- */

static uint64_t stack, thread, shared;

static uint64_t function_of(uint64_t code, bool is_native)
{
	return put((uint64_t[]){ 0, (is_native ? 1u << 16 : 0) | 8u << 8, 0, 0, code + 104, 0 }, 6);
}

static uint64_t value_of(uint64_t function)
{
	return function | (uint64_t)LUA_TAG_FUNCTION << LUA_TAG_SHIFT;
}

/* A stack of 64 slots, and its thread. */
static void put_thread(void)
{
	uint64_t words[64] = { 0 };

	stack = put(words, 64);
	shared = put(words, 64);
	words[1] = 6u << 8;
	words[2] = shared;
	words[6] = stack + 8 * 60;
	words[7] = stack;
	thread = put(words, 12);
}

static void put_frame(uint32_t slot, uint64_t function, uint64_t link)
{
	image[(stack - BASE) / 8 + slot - 2] = value_of(function);
	image[(stack - BASE) / 8 + slot - 1] = link;
}

static void put_base(uint32_t slot)
{
	image[(thread - BASE + BASE_AT) / 8] = stack + 8 * slot;
}

static uint64_t slot_at(uint32_t slot)
{
	return stack + 8ull * slot;
}

static void add_place(uint64_t base, uint64_t pc)
{
	uint64_t at = put((uint64_t[]){ 0, 0, thread, 0, 0, 0, 0, 0, 0, 0 }, 10);

	places.places[places.count++] =
		(struct walk_lua_place){ .thread = thread, .at = at, .base = base, .pc = pc };
}

static size_t walk(void)
{
	struct script script = { .room = SCRIPT_FRAMES_MAX,
				 .process = { .kind = SCRIPT_LUA, .lua = walk_21 } };
	size_t steps = 0;

	while (script_lua_frame(&script, &places, &sample))
		assert_true(++steps < 4096);
	return script.at / 2;
}

static void check_word(size_t index, uint64_t object, uint64_t flags, uint32_t position)
{
	assert_int_equal(sample.frames[2 * index] >> SCRIPT_PLACE_SHIFT, LUA_FUNCTION);
	assert_true(sample.frames[2 * index] == (object | flags));
	assert_int_equal((uint32_t)sample.frames[2 * index + 1], position);
}

/* main calls sort, which calls back: two runs, of which the second begins where the first ends. */
static void runs_end_where_c_has_called(void **state)
{
	uint64_t main_code, native, main_function, callback, code;

	(void)state;
	main_code = prototype(&shop);
	code = prototype(&shop);
	main_function = function_of(main_code, false);
	callback = function_of(code, false);
	native = function_of(0x4000 - 104, true);
	put_thread();
	put_frame(4, main_function, 2 << 3 | 1);
	/* main calls with its first slot 1: the frame begins two behind. */
	put_frame(7, native, main_code + 104 + 4 * 3);
	put_frame(12, callback, 5 << 3 | 1);
	put_base(7); /* not written since */
	add_place(slot_at(12), code + 104 + 4 * 2);
	add_place(0, 0x4000 + 4);
	assert_int_equal(walk(), 3);
	check_word(0, code, SCRIPT_ENDS_RUN, 1);
	assert_true(sample.frames[2] == (uint64_t)LUA_NATIVE << SCRIPT_PLACE_SHIFT);
	check_word(2, main_code, SCRIPT_ENDS_RUN, 2);
}

/* The registers say nothing, and memory something else than what runs. */
static void a_base_that_is_not_certain_says_so(void **state)
{
	uint64_t code, other, function;

	(void)state;
	code = prototype(&shop);
	other = prototype(&shop);
	function = function_of(code, false);
	put_thread();
	put_frame(4, function, 2 << 3 | 1);
	put_base(4);
	add_place(0, other + 104 + 4);
	assert_int_equal(walk(), 2);
	assert_true(sample.frames[0] == SCRIPT_IS_CUT && sample.frames[1] == SCRIPT_UNSURE);
	/* One that returns to what runs next is about to begin, or has ended. */
	setup(NULL);
	code = prototype(&shop);
	function = function_of(code, false);
	put_thread();
	put_frame(4, function, 2 << 3 | 1);
	put_frame(7, function, code + 104 + 4 * 3);
	add_place(slot_at(7), code + 104 + 4 * 3);
	assert_int_equal(walk(), 2);
	check_word(0, code, 0, 2);
	check_word(1, code, SCRIPT_ENDS_RUN, 2);
}

/* A function calls itself, and has its new base, but has not written the link there. */
static void a_call_of_itself_without_its_link_has_not_begun(void **state)
{
	static const uint64_t left_there[] = { 0, 0x400c000000000000ull, 0xffffffffffffffffull,
					       0x400c000000000001ull, 40 << 3 | 1 };

	for (size_t i = 0; i < sizeof(left_there) / sizeof(left_there[0]); i++) {
		uint64_t code, function;

		setup(state);
		code = prototype(&shop);
		function = function_of(code, false);
		put_thread();
		put_frame(4, function, 2 << 3 | 1);
		put_frame(7, function, left_there[i]);
		add_place(slot_at(7), code + 104 + 4 * 3);
		assert_int_equal(walk(), 1);
		check_word(0, code, SCRIPT_ENDS_RUN, 2);
		put_frame(7, function, code + 104 + 4 * 3);
		assert_int_equal(walk(), 2);
		check_word(0, code, 0, 2);
		check_word(1, code, SCRIPT_ENDS_RUN, 2);
	}
}

static void arguments_continuations_and_traces(void **state)
{
	uint64_t code, function, trace;

	(void)state;
	code = prototype(&shop);
	function = function_of(code, false);
	trace = trace_of(code, code);
	put_thread();
	put_frame(4, function, 2 << 3 | 1);
	put_frame(10, function, 6 << 3 | 2); /* of a metamethod */
	image[(stack - BASE) / 8 + 10 - 4] = 77;
	image[(stack - BASE) / 8 + 10 - 3] = code + 104 + 4 * 10;
	put_frame(14, function, 4 << 3 | 3); /* the same function's arguments are before it */
	image[(shared - BASE + TRACE_BASE_AT) / 8] = slot_at(14);
	add_place(0, 0);
	places.places[0].is_compiled = 1;
	places.places[0].trace = trace;
	places.places[0].offset = 0x44;
	assert_int_equal(walk(), 2);
	assert_true(sample.frames[0] == (trace | (uint64_t)LUA_TRACE << SCRIPT_PLACE_SHIFT));
	assert_int_equal((uint32_t)sample.frames[1], 0x44);
	check_word(1, code, SCRIPT_ENDS_RUN, 9);
}

static void circles_and_deep_stacks_are_cut(void **state)
{
	uint64_t code, function;

	(void)state;
	code = prototype(&shop);
	function = function_of(code, false);
	put_thread();
	put_frame(4, function, 0 << 3 | 1); /* leads back to itself */
	add_place(slot_at(4), code + 104 + 4);
	assert_int_equal(walk(), 2);
	assert_int_equal(sample.frames[2] & SCRIPT_FLAGS, SCRIPT_IS_CUT | SCRIPT_ENDS_RUN);
	/* More calls of the interpreter than are noted. */
	places.count = 0;
	for (size_t i = 0; i < WALK_LUA_PLACES; i++)
		places.places[places.count++].thread = 0;
	places.count = 1000;
	assert_int_equal(walk(), WALK_LUA_PLACES + 1);
	assert_true(sample.frames[2 * WALK_LUA_PLACES] == SCRIPT_IS_CUT &&
		    sample.frames[2 * WALK_LUA_PLACES + 1] == SCRIPT_TOO_DEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(functions_are_called_by_what_their_callers_call_them, setup),
		cmocka_unit_test_setup(chunks_are_files_names_or_texts, setup),
		cmocka_unit_test_setup(names_of_a_forged_prototype_are_given_up, setup),
		cmocka_unit_test_setup(what_is_none_is_not_read, setup),
		cmocka_unit_test_setup(traces_have_the_functions_that_they_inline, setup),
		cmocka_unit_test_setup(runs_end_where_c_has_called, setup),
		cmocka_unit_test_setup(a_base_that_is_not_certain_says_so, setup),
		cmocka_unit_test_setup(a_call_of_itself_without_its_link_has_not_begun, setup),
		cmocka_unit_test_setup(arguments_continuations_and_traces, setup),
		cmocka_unit_test_setup(circles_and_deep_stacks_are_cut, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
