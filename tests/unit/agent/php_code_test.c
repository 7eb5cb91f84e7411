/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of PHP's functions, and how their frames are walked, in memory that is laid out by
 * hand as in PHP 8.2.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/php/php_code.h"
#include "unit/agent/forged_memory.h"

#define FUNCTION_WORDS 22u
#define INSTRUCTION_WORDS 4u
#define FIRST_LINE 6u
#define LAST_LINE 20u

static const struct php_layout php_82 = { .last = 80, .opcodes = 88, .file = 152 };

#include "agent/bpf/script_php.h"

static struct sample sample;

static int setup(void **state)
{
	(void)state;
	clear_image(4);
	return 0;
}

static uint64_t text_of(const char *bytes, size_t len)
{
	uint64_t words[3 + 256] = { 1, 0, len };

	assert_true(len <= sizeof(words) - 24);
	memcpy(words + 3, bytes, len);
	return put(words, 3 + (len + 8) / 8);
}

static uint64_t text(const char *string)
{
	return string ? text_of(string, strlen(string)) : 0;
}

static uint64_t class_of(uint64_t name)
{
	return put((uint64_t[]){ 2, name }, 2);
}

/* Four instructions, on lines 7, 7, 9 and 8. */
static uint64_t instructions(void)
{
	static const uint32_t lines[] = { 7, 7, 9, 8 };
	uint64_t words[4 * INSTRUCTION_WORDS] = { 0 };

	for (size_t i = 0; i < 4; i++)
		words[i * INSTRUCTION_WORDS + 3] = lines[i];
	return put(words, 4 * INSTRUCTION_WORDS);
}

static uint64_t function_of(uint64_t class, const char *name, const char *file)
{
	uint64_t words[FUNCTION_WORDS] = { 2, text(name), class };

	words[10] = 4;
	words[11] = instructions();
	words[19] = text(file);
	words[20] = (uint64_t)LAST_LINE << 32 | FIRST_LINE;
	return put(words, FUNCTION_WORDS);
}

static uint64_t internal_of(uint64_t class, const char *name)
{
	uint64_t words[FUNCTION_WORDS] = { 1, text(name), class };

	return put(words, FUNCTION_WORDS);
}

static struct script_code read_code(uint64_t address)
{
	struct script_code code;

	assert_int_equal(php_code_read(&image_memory, &php_82, address, &code), SCRIPT_CODE_READ);
	return code;
}

static void check(uint64_t address, bool is_entry, const char *label, const char *file)
{
	struct script_code code = read_code(address);
	struct strbuf text = { 0 };

	php_label(&code, is_entry, &text);
	assert_string_equal(text.data, label);
	assert_string_equal(code.file, file);
	strbuf_free(&text);
	script_code_fini(&code);
}

static void functions_are_called_with_their_class(void **state)
{
	uint64_t shop = class_of(text("App\\Größe"));
	uint64_t nameless = class_of(text_of("class@anonymous\0/srv/a.php:3$0", 30));

	(void)state;
	check(function_of(shop, "sell", "/srv/a.php"), false, "App\\Größe::sell", "/srv/a.php");
	check(function_of(nameless, "sell", "/srv/a.php"), false, "class@anonymous::sell",
	      "/srv/a.php");
	check(function_of(0, "App\\sell", "/srv/a.php"), true, "App\\sell", "/srv/a.php");
	check(function_of(shop, "{closure}", "/srv/a.php"), true, "App\\Größe::{closure}",
	      "/srv/a.php");
	check(function_of(shop, "{closure:App\\Größe::f():12}", "/srv/a.php"), true,
	      "{closure:App\\Größe::f():12}", "/srv/a.php");
	check(internal_of(class_of(text("Fiber")), "start"), false, "Fiber::start", "");
	/* Bytes that are no text. */
	check(function_of(0, "a\xff", "/srv/a.php"), false, "a\xef\xbf\xbd", "/srv/a.php");
}

static void code_of_files_is_called_by_how_it_runs(void **state)
{
	uint64_t shop = class_of(text("Shop"));

	(void)state;
	check(function_of(0, NULL, "/srv/index.php"), true, "{main}", "/srv/index.php");
	/* Included within a method, it has that one's class. */
	check(function_of(shop, NULL, "/srv/lib/a.php"), false, "{include a.php}",
	      "/srv/lib/a.php");
	check(function_of(shop, NULL, "/srv/a.php(3) : eval()'d code"), false, "{eval}",
	      "/srv/a.php(3) : eval()'d code");
}

static void lines_are_those_of_the_instruction(void **state)
{
	uint64_t function = function_of(0, "f", "/srv/a.php");
	struct script_code code = read_code(function);
	struct slice lines = slice_from(code.lines, code.lines_len);
	uint32_t first = (uint32_t)image[(function - BASE) / 8 + 11];

	(void)state;
	assert_int_equal(code.first_line, FIRST_LINE);
	assert_int_equal(php_line(lines, first), 7);
	assert_int_equal(php_line(lines, first + 32), 7);
	assert_int_equal(php_line(lines, first + 64), 9);
	assert_int_equal(php_line(lines, first + 96), 8);
	/* Elsewhere, between instructions, never set. */
	assert_int_equal(php_line(lines, first + 128), 0);
	assert_int_equal(php_line(lines, first + 8), 0);
	assert_int_equal(php_line(lines, first - 32), 0);
	assert_int_equal(php_line(lines, 0), 0);
	script_code_fini(&code);
}

static void what_is_none_is_not_read(void **state)
{
	uint64_t lost = function_of(0, "f", "/srv/a.php"), endless = function_of(0, "f", "/a.php");
	struct script_code code;

	(void)state;
	image[(lost - BASE) / 8 + 1] = 8;	     /* its name */
	image[(endless - BASE) / 8 + 10] = 1u << 31; /* its instructions */
	assert_int_equal(
		php_code_read(&image_memory, &php_82, put((uint64_t[]){ 9, 0, 0 }, 3), &code),
		SCRIPT_CODE_OTHER);
	assert_int_equal(php_code_read(&image_memory, &php_82, lost, &code), SCRIPT_CODE_GONE);
	assert_int_equal(php_code_read(&image_memory, &php_82, 1, &code), SCRIPT_CODE_GONE);
	code = read_code(endless);
	assert_null(code.lines);
	script_code_fini(&code);
}

/* ---- frames ---- */

#define TOP ((uint64_t)PHP_FLAG_TOP)

static uint64_t frame_of(uint64_t function, uint64_t flags, uint64_t outer)
{
	return put((uint64_t[]){ 0x7f00000010, 0, 0, function, 0, flags, outer }, 7);
}

/* Walks the frames; returns how many entries. `position` of the innermost, 0 = as it says. */
static size_t walk_from(uint64_t first, uint64_t position)
{
	struct script script = { .room = SCRIPT_FRAMES_MAX };

	script.process.state_at = put(&first, 1);
	script.process.php.file = (uint8_t)php_82.file;
	script.process.php.generator = 4 << 4 | 7;
	if (!script_php_start(&script))
		return 0;
	script.limit = position;
	while (script_php_frame(&script, &sample))
		;
	return script.at / 2;
}

static void frames_are_those_of_functions(void **state)
{
	uint64_t closure = function_of(0, "{closure}", "/srv/a.php");
	uint64_t map = internal_of(0, "array_map"), fiber = internal_of(0, NULL);
	uint64_t top = function_of(0, NULL, "/srv/a.php"), main_frame, inner;
	struct script_code known = read_code(closure);

	(void)state;
	main_frame = frame_of(top, TOP, 0);
	/* A frame that stands for a generator has no function. */
	inner = frame_of(map, TOP, frame_of(0, 0, frame_of(fiber, 0, main_frame)));
	inner = frame_of(closure, TOP, inner);
	assert_int_equal(walk_from(inner, 0x7f00000030), 4);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[0]), closure);
	assert_int_equal(sample.frames[0] & SCRIPT_FLAGS, SCRIPT_ENDS_RUN);
	/* With a proof of what it was, and the position that is in the register. */
	assert_int_equal(sample.frames[1], (uint64_t)known.proof << 32 | 0x30);
	/* C has called it, and no loop. */
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[2]), map);
	assert_int_equal(sample.frames[2] & SCRIPT_FLAGS, 0);
	assert_int_equal(sample.frames[4], SCRIPT_ENDS_RUN | SCRIPT_IS_MARK);
	assert_int_equal(sample.frames[5], SCRIPT_OTHER_STACK);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[6]), top);
	assert_int_equal((uint32_t)sample.frames[7], 0x10);
	script_code_fini(&known);
}

/* A generator: its frame at 56, what it runs at 104, and its placeholder at 136. */
static uint64_t generator_of(uint64_t function, uint64_t runs, uint64_t outer)
{
	uint64_t generator = BASE + 8 * used, frame = generator + 8 * 24;
	uint64_t words[24] = { 0 };

	words[7] = frame;
	words[13] = runs;
	words[17 + PHP_FRAME_OBJECT] = generator;
	words[17 + PHP_FRAME_FLAGS] = PHP_VALUE_OBJECT;
	words[17 + PHP_FRAME_PREVIOUS] = outer;
	put(words, 24);
	return put((uint64_t[]){ 0x7f00000020, 0, generator, function, 0, TOP, 0 }, 7) - 8 * 24;
}

/* The outermost one has the placeholder; the innermost runs, and is in the list. */
static void generators_that_run_others_are_outside_of_them(void **state)
{
	uint64_t run = function_of(0, "run", "/srv/a.php"), outer = function_of(0, "o", "/a.php");
	uint64_t between = function_of(0, "b", "/a.php"), inner = function_of(0, "i", "/a.php");
	uint64_t first, second, third, caller, at;

	(void)state;
	caller = frame_of(run, TOP, 0);
	third = generator_of(inner, 0, 0);
	second = generator_of(between, third, 0);
	first = generator_of(outer, second, caller);
	at = frame_of(inner, TOP, first + 8 * 17);
	assert_int_equal(walk_from(at, 0), 4);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[0]), inner);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[2]), between);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[4]), outer);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[6]), run);
	/* One loop runs them all. */
	assert_int_equal(sample.frames[0] & SCRIPT_FLAGS, SCRIPT_ENDS_RUN);
	assert_int_equal(sample.frames[2] & SCRIPT_FLAGS, 0);
	assert_int_equal((uint32_t)sample.frames[5], 0x20);
	/* One whose frame is another's is not shown. */
	image[(second - BASE) / 8 + 7] = at;
	assert_int_equal(walk_from(at, 0), 4);
	assert_int_equal(sample.frames[2], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[3], SCRIPT_UNSURE);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[4]), outer);
	/* In a circle. */
	image[(second - BASE) / 8 + 13] = first;
	assert_int_equal(walk_from(at, 0), 2);
	assert_int_equal(sample.frames[2], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[3], SCRIPT_TOO_DEEP);
}

/* Closures are made for a moment: what tells them from others is not their address. */
static void copies_of_a_function_are_one(void **state)
{
	uint64_t closure = function_of(0, "{closure}", "/srv/a.php"), words[FUNCTION_WORDS];
	uint64_t copy, other = function_of(0, "{closure}", "/srv/a.php");

	(void)state;
	memcpy(words, image + (closure - BASE) / 8, sizeof(words));
	copy = put(words, FUNCTION_WORDS);
	assert_int_equal(
		walk_from(frame_of(closure, 0, frame_of(copy, 0, frame_of(other, 0, 0))), 0), 3);
	assert_int_equal(sample.frames[0] >> SCRIPT_PLACE_SHIFT,
			 sample.frames[2] >> SCRIPT_PLACE_SHIFT);
	assert_int_equal(sample.frames[1], sample.frames[3]);
	assert_true(sample.frames[1] != sample.frames[5]);
}

static void frames_that_go_nowhere_are_cut(void **state)
{
	(void)state;
	assert_int_equal(walk_from(0, 0), 0);
	assert_int_equal(walk_from(1 << 20, 0), 1);
	assert_int_equal(sample.frames[0], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[1], SCRIPT_UNREADABLE);
	assert_int_equal(walk_from(frame_of(1 << 20, 0, 0), 0), 1);
	assert_int_equal(sample.frames[0], SCRIPT_IS_CUT);
}

static void deep_stacks_are_cut(void **state)
{
	uint64_t circle = BASE + 8 * (used + FUNCTION_WORDS), function = internal_of(0, NULL);

	(void)state;
	image[(function - BASE) / 8 + 1] = BASE;
	assert_int_equal(frame_of(function, 0, circle), circle);
	assert_int_equal(walk_from(circle, 0), SCRIPT_FRAMES_MAX + 1);
	assert_int_equal(sample.frames[2 * SCRIPT_FRAMES_MAX], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[2 * SCRIPT_FRAMES_MAX + 1], SCRIPT_TOO_DEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(functions_are_called_with_their_class, setup),
		cmocka_unit_test_setup(code_of_files_is_called_by_how_it_runs, setup),
		cmocka_unit_test_setup(lines_are_those_of_the_instruction, setup),
		cmocka_unit_test_setup(what_is_none_is_not_read, setup),
		cmocka_unit_test_setup(frames_are_those_of_functions, setup),
		cmocka_unit_test_setup(generators_that_run_others_are_outside_of_them, setup),
		cmocka_unit_test_setup(copies_of_a_function_are_one, setup),
		cmocka_unit_test_setup(frames_that_go_nowhere_are_cut, setup),
		cmocka_unit_test_setup(deep_stacks_are_cut, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
