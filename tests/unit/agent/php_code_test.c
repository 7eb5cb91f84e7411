/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of PHP's functions, and how their frames are walked, in memory that is laid out by
 * hand as in PHP 8.2.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

/* As a frame has it: by its file's name if it is the code of one. */
static struct script_code read_code(uint64_t function)
{
	const uint64_t *words = &image[(function - BASE) / 8];
	bool is_file = (uint8_t)words[0] != PHP_KIND_INTERNAL && !words[1];
	uint64_t address = is_file ? words[19] : function;
	struct script_code code;

	assert_int_equal(php_code_read(&image_memory, &php_82, is_file ? SCRIPT_PHP_IS_FILE : 0,
				       address, &code),
			 SCRIPT_CODE_READ);
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

	(void)state;
	assert_int_equal(code.first_line, FIRST_LINE);
	assert_int_equal(php_line(lines, code.lines_form, 0), 7);
	assert_int_equal(php_line(lines, code.lines_form, 32), 7);
	assert_int_equal(php_line(lines, code.lines_form, 64), 9);
	assert_int_equal(php_line(lines, code.lines_form, 96), 8);
	/* Elsewhere, between instructions. */
	assert_int_equal(php_line(lines, code.lines_form, 128), 0);
	assert_int_equal(php_line(lines, code.lines_form, 8), 0);
	assert_int_equal(php_line(lines, code.lines_form, (uint32_t)-32), 0);
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
		php_code_read(&image_memory, &php_82, 0, put((uint64_t[]){ 9, 0, 0 }, 3), &code),
		SCRIPT_CODE_OTHER);
	assert_int_equal(php_code_read(&image_memory, &php_82, 0, lost, &code), SCRIPT_CODE_GONE);
	assert_int_equal(php_code_read(&image_memory, &php_82, 0, 1, &code), SCRIPT_CODE_GONE);
	assert_int_equal(php_code_read(&image_memory, &php_82, SCRIPT_PHP_IS_FILE, 1, &code),
			 SCRIPT_CODE_GONE);
	code = read_code(endless);
	assert_null(code.lines);
	script_code_fini(&code);
}

/* ---- frames ---- */

#define TOP ((uint64_t)PHP_FLAG_TOP)

static uint64_t *function_word(uint64_t function, uint32_t at)
{
	return &image[(function - BASE) / 8 + at];
}

/* At its second instruction. */
static uint64_t position_in(uint64_t function)
{
	return function >= BASE && function - BASE < sizeof(image)
		       ? *function_word(function, 11) + 32
		       : 32;
}

static uint64_t frame_of(uint64_t function, uint64_t flags, uint64_t outer)
{
	return put((uint64_t[]){ position_in(function), 0, 0, function, 0, flags, outer }, 7);
}

static size_t walk_with(struct script *script, uint64_t first, uint64_t position)
{
	script->at = 0;
	script->room = SCRIPT_FRAMES_MAX;
	script->sample++;
	script_window_reset(&script->frames, 0);
	script->process.state_at = put(&first, 1);
	script->process.php.file = php_layout_file(&php_82);
	script->process.php.generator = 4 << 4 | 7;
	if (!script_php_start(script))
		return 0;
	script->limit = position;
	while (script_php_frame(script, &sample))
		;
	return script->at / 2;
}

/* Walks the frames; returns how many entries. `position` of the innermost, 0 = as it says. */
static size_t walk_from(uint64_t first, uint64_t position)
{
	static struct script script;

	script = (struct script){ 0 };
	return walk_with(&script, first, position);
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
	assert_int_equal(walk_from(inner, *function_word(closure, 11) + 96), 4);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[0]), closure);
	assert_int_equal(sample.frames[0] & SCRIPT_FLAGS, SCRIPT_ENDS_RUN);
	/* With a proof of what it was, and the position that is in the register. */
	assert_int_equal(sample.frames[1], (uint64_t)known.proof << 32 | 96);
	/* C has called it, and no loop. */
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[2]), map);
	assert_int_equal(sample.frames[0] >> SCRIPT_PLACE_SHIFT & SCRIPT_PHP_IS_FILE, 0);
	assert_int_equal(sample.frames[2] & SCRIPT_FLAGS, 0);
	assert_int_equal(sample.frames[4], SCRIPT_ENDS_RUN | SCRIPT_IS_MARK);
	assert_int_equal(sample.frames[5], SCRIPT_OTHER_STACK);
	/* The code of a file, which goes when it has run, by the file's name, with its line. */
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[6]), *function_word(top, 19));
	assert_int_equal(sample.frames[6] >> SCRIPT_PLACE_SHIFT & SCRIPT_PHP_IS_FILE,
			 SCRIPT_PHP_IS_FILE);
	assert_int_equal((uint32_t)sample.frames[7], 7);
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
	return put((uint64_t[]){ position_in(function) + 32, 0, generator, function, 0, TOP, 0 },
		   7) -
	       8 * 24;
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
	assert_int_equal((uint32_t)sample.frames[5], 64);
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

/* What the function is known by, in its frame. */
struct known_by {
	uint64_t place, proof;
};

static struct known_by walk_function(uint64_t function)
{
	struct script_code code = read_code(function);
	struct known_by known;

	assert_int_equal(walk_from(frame_of(function, 0, 0), 0), 1);
	known = (struct known_by){ sample.frames[0] >> SCRIPT_PLACE_SHIFT, sample.frames[1] };
	assert_int_equal((uint32_t)known.proof, 32);
	assert_int_equal(known.proof >> 32, code.proof);
	script_code_fini(&code);
	return known;
}

static void check_same(uint64_t one, uint64_t other, bool is_same)
{
	struct known_by first = walk_function(one), second = walk_function(other);

	assert_int_equal(first.place == second.place && first.proof == second.proof, is_same);
}

/* Closures are made for a moment, and without opcache each request makes all functions anew. */
static void a_function_is_known_by_what_it_is(void **state)
{
	uint64_t method = function_of(class_of(text("Shop")), "sell", "/srv/a.php");
	uint64_t again = function_of(class_of(text("Shop")), "sell", "/srv/a.php");
	uint64_t other_lines = function_of(class_of(text("Shop")), "sell", "/srv/a.php");
	uint64_t longer = function_of(class_of(text("Shop")), "sell", "/srv/a.php");

	(void)state;
	check_same(method, again, true);
	check_same(method, function_of(class_of(text("Shop")), "sall", "/srv/a.php"), false);
	check_same(method, function_of(class_of(text("Stop")), "sell", "/srv/a.php"), false);
	check_same(method, function_of(class_of(text("Shop")), "sell", "/srv/b.php"), false);
	check_same(method, function_of(0, "sell", "/srv/a.php"), false);
	++*function_word(other_lines, 20);
	check_same(method, other_lines, false);
	--*function_word(longer, 10);
	check_same(method, longer, false);
}

/* Requests that compile alike have other functions at the same places. */
static void another_function_at_its_place_is_another(void **state)
{
	uint64_t function = function_of(0, "sell", "/srv/a.php");
	struct known_by before = walk_function(function), after;

	(void)state;
	memcpy(&image[(*function_word(function, 1) - BASE) / 8 + 3], "send", 4);
	after = walk_function(function);
	assert_true(before.place != after.place && before.proof != after.proof);
}

/* All but its end says nothing of a long text, so PHP's hash of it does. */
static void long_texts_are_known_by_their_hash(void **state)
{
	char path[301];
	uint64_t first, second, third;

	(void)state;
	memset(path, 'a', sizeof(path));
	path[300] = 0;
	first = function_of(0, "sell", path);
	path[299] = 'b';
	second = function_of(0, "sell", path);
	third = function_of(0, "sell", path);
	/* PHP has not looked it up yet: where it is tells it from others. */
	check_same(second, third, false);
	image[(*function_word(first, 19) - BASE) / 8 + 1] = 1ull << 63 | 7;
	image[(*function_word(second, 19) - BASE) / 8 + 1] = 1ull << 63 | 8;
	image[(*function_word(third, 19) - BASE) / 8 + 1] = 1ull << 63 | 8;
	check_same(second, third, true);
	check_same(first, second, false);
}

/* No more is read of a text than is there. */
static void a_text_may_end_with_its_page(void **state)
{
	uint64_t function = function_of(0, "sell", "/srv/a.php");
	uint64_t moved = function_of(0, "sell", "/srv/a.php");
	const uint64_t *text = &image[(*function_word(function, 1) - BASE) / 8];

	(void)state;
	memcpy(image + IMAGE_WORDS - 4, text, 32);
	*function_word(moved, 1) = BASE + 8 * (IMAGE_WORDS - 4);
	check_same(function, moved, true);
}

/* Read by the agent, it will be. */
static void a_text_that_is_not_resident_cuts_no_stack(void **state)
{
	uint64_t function = function_of(0, "sell", "/srv/a.php");

	(void)state;
	*function_word(function, 1) = 1 << 20;
	assert_int_equal(walk_from(frame_of(function, 0, frame_of(function, TOP, 0)), 0), 2);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[0]), function);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[2]), function);
}

/* ---- what samples of a request have in common ---- */

#define PID 7
#define ROUND 5
#define FIRST_REQUEST 1764454321.123457
#define NEXT_REQUEST 1764454321.123458

static struct script samples; /* of one CPU */

/* Walks as the next sample does, in a request. */
static size_t walk_in(double request, uint64_t first)
{
	uint64_t time;

	memcpy(&time, &request, sizeof(time));
	samples.process.key_at = put(&time, 1);
	script_had_start(&samples.had, PID, ROUND);
	return walk_with(&samples, first, 0);
}

static int start_samples(void **state)
{
	samples = (struct script){ 0 };
	return setup(state);
}

/* Instead of what it says, without another change. */
static void rename_in_place(uint64_t function, const char *name)
{
	char *text = (char *)&image[(*function_word(function, 1) - BASE) / 8 + 3];

	assert_int_equal(strlen(text), strlen(name));
	memcpy(text, name, strlen(name));
}

static uint64_t proof_in(double request, uint64_t first)
{
	assert_int_equal(walk_in(request, first), 1);
	return sample.frames[0] >> SCRIPT_PLACE_SHIFT << 32 | sample.frames[1] >> 32;
}

/* One that reads the function anew. */
static uint64_t proof_alone(uint64_t first)
{
	assert_int_equal(walk_from(first, 0), 1);
	return sample.frames[0] >> SCRIPT_PLACE_SHIFT << 32 | sample.frames[1] >> 32;
}

static void functions_are_read_once_in_a_request(void **state)
{
	enum { DEPTH = 200 };
	static struct sample first;
	uint64_t at = 0;
	size_t reads;

	(void)state;
	for (size_t i = 0; i < DEPTH; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%zu", i);
		at = frame_of(function_of(i % 3 ? class_of(text("Shop")) : 0, name, "/srv/a.php"),
			      i % 7 ? 0 : TOP, at);
	}
	assert_int_equal(walk_in(FIRST_REQUEST, at), DEPTH);
	first = sample;
	memset(&sample, 0, sizeof(sample));
	walk_reads = 0;
	assert_int_equal(walk_in(FIRST_REQUEST, at), DEPTH);
	assert_memory_equal(&sample.frames, &first.frames, 16 * DEPTH);
	/* The frames are apart. */
	assert_true(walk_reads <= DEPTH + 2);
	reads = walk_reads;
	assert_int_equal(walk_from(at, 0), DEPTH);
	assert_true(walk_reads - reads > 3 * DEPTH);
	assert_memory_equal(&sample.frames, &first.frames, 16 * DEPTH);
}

/* Two pages that compile alike, so that one has the other's functions at their places. */
static void another_request_has_other_functions(void **state)
{
	uint64_t function = function_of(0, "first", "/srv/a.php");
	uint64_t frame = frame_of(function, TOP, 0), first, other;

	(void)state;
	first = proof_in(FIRST_REQUEST, frame);
	assert_int_equal(proof_in(FIRST_REQUEST, frame), first);
	rename_in_place(function, "other");
	other = proof_alone(frame);
	assert_int_not_equal(other, first);
	assert_int_equal(proof_in(NEXT_REQUEST, frame), other);
	assert_int_equal(proof_in(NEXT_REQUEST, frame), other);
}

/* Of another number, or image; or what was read may be gone, or some seconds old. */
static void what_is_known_is_of_one_process_and_round(void **state)
{
	uint64_t function = function_of(0, "first", "/srv/a.php");
	uint64_t frame = frame_of(function, TOP, 0);
	uint64_t first = proof_in(FIRST_REQUEST, frame), other;

	(void)state;
	rename_in_place(function, "other");
	other = proof_alone(frame);
	assert_int_equal(proof_in(FIRST_REQUEST, frame), first);
	samples.process.start_ns++;
	assert_int_equal(proof_in(FIRST_REQUEST, frame), other);
	rename_in_place(function, "third");
	assert_int_equal(proof_in(FIRST_REQUEST, frame), other);
	script_had_start(&samples.had, PID + 1, ROUND);
	assert_int_equal(walk_with(&samples, frame, 0), 1);
	assert_int_not_equal(sample.frames[1] >> 32, (uint32_t)other);
	script_had_start(&samples.had, PID, ROUND + 1);
	assert_int_equal(walk_with(&samples, frame, 0), 1);
	assert_int_not_equal(sample.frames[1] >> 32, (uint32_t)other);
}

/* Until something asks for it; and where more than one request may have it. */
static void without_an_exact_time_nothing_is_known_to_stay(void **state)
{
	static const double times[] = { 0,	    1,	    1764454321.123,
					1764454321, 1e-300, -1764454321.1234,
					1e18 };
	uint64_t function = function_of(0, "first", "/srv/a.php");
	uint64_t frame = frame_of(function, TOP, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		uint64_t before = proof_in(times[i], frame);

		rename_in_place(function, i % 2 ? "first" : "other");
		assert_int_not_equal(proof_in(times[i], frame), before);
	}
	samples.process.key_at = 1 << 20; /* not there */
	assert_int_equal(walk_with(&samples, frame, 0), 1);
	assert_int_equal(samples.lasting.scope, 0);
}

/* True if a sample takes the function as an earlier one of its request has read it. */
static bool is_taken(uint64_t function, uint64_t flags)
{
	uint64_t frame = frame_of(function, flags, 0);
	uint64_t before = proof_in(FIRST_REQUEST, frame), after;

	rename_in_place(function, "other");
	after = proof_in(FIRST_REQUEST, frame);
	assert_true(after == before || after == proof_alone(frame));
	return after == before;
}

static uint64_t flagged(uint32_t bit)
{
	uint64_t function = function_of(0, "first", "/srv/a.php");

	*function_word(function, 0) |= 1ull << (32 + bit);
	return function;
}

/* Closures' copies, and what stands in for methods, come and go in a request. */
static void what_does_not_stay_is_read_again(void **state)
{
	uint64_t file = function_of(0, "a", "/a.php"), frame, copy, first;

	(void)state;
	assert_true(is_taken(flagged(0), TOP));
	assert_true(is_taken(flagged(24), 0));
	assert_false(is_taken(flagged(22), PHP_FLAG_CLOSURE));
	assert_false(is_taken(flagged(22), 0));
	assert_false(is_taken(flagged(23), 0));
	assert_false(is_taken(flagged(18), 0));
	assert_false(is_taken(flagged(0), PHP_FLAG_CLOSURE));
	/* As if a copy had come to where a function was. */
	copy = flagged(0);
	first = proof_in(FIRST_REQUEST, frame_of(copy, 0, 0));
	rename_in_place(copy, "other");
	assert_int_equal(proof_in(FIRST_REQUEST, frame_of(copy, 0, 0)), first);
	assert_int_not_equal(proof_in(FIRST_REQUEST, frame_of(copy, PHP_FLAG_CLOSURE, 0)), first);
	/* The code of a file, which goes when it has run. */
	*function_word(file, 1) = 0;
	frame = frame_of(file, TOP, 0);
	assert_int_equal(walk_in(FIRST_REQUEST, frame), 1);
	*function_word(file, 19) = text("/b.php");
	assert_int_equal(walk_in(FIRST_REQUEST, frame), 1);
	assert_int_equal(SCRIPT_ADDRESS(sample.frames[0]), *function_word(file, 19));
}

static void instructions_of_others_have_the_function_read_again(void **state)
{
	uint64_t function = function_of(0, "first", "/srv/a.php");
	uint64_t frame = frame_of(function, 0, 0), first = proof_in(FIRST_REQUEST, frame);
	uint64_t *position = &image[(frame - BASE) / 8 + PHP_FRAME_POSITION];
	uint64_t start = *function_word(function, 11);

	(void)state;
	rename_in_place(function, "other");
	*position = start + 4 * 8 * INSTRUCTION_WORDS - 1;
	assert_int_equal(proof_in(FIRST_REQUEST, frame), first);
	*position = start + 4 * 8 * INSTRUCTION_WORDS;
	assert_int_not_equal(proof_in(FIRST_REQUEST, frame), first);
	/* That has taken its place. */
	*position = start;
	assert_int_not_equal(proof_in(FIRST_REQUEST, frame), first);
}

/* What stands for it then is not what the agent reads. */
static void functions_with_unsure_texts_are_read_again(void **state)
{
	char path[] = "/srv/a.php", long_path[140];
	uint64_t name = function_of(0, "first", path), file = function_of(0, "first", path);
	uint64_t class = function_of(class_of(1 << 20), "first", path), two, far, hashed;
	uint64_t *path_words;

	(void)state;
	memset(long_path, 'a', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = 0;
	far = function_of(0, "first", long_path);
	hashed = function_of(0, "first", long_path);
	path_words = &image[(*function_word(hashed, 19) - BASE) / 8];
	path_words[1] = 1ull << 63 | 7;
	*function_word(file, 19) = 1 << 20;
	assert_false(is_taken(file, 0));
	assert_false(is_taken(class, 0));
	assert_false(is_taken(far, 0));
	assert_true(is_taken(hashed, 0));
	*function_word(name, 1) = 1 << 20;
	two = frame_of(name, 0, 0);
	assert_int_equal(walk_in(FIRST_REQUEST, two), 1);
	*function_word(name, 1) = text("first");
	assert_int_equal(proof_in(FIRST_REQUEST, two), proof_alone(two));
	/* Nor is one that has it of the frame before it. */
	two = function_of(0, "first", path);
	*function_word(two, 19) = 1 << 20;
	assert_int_equal(walk_in(FIRST_REQUEST, frame_of(file, 0, frame_of(two, 0, 0))), 2);
	assert_false(is_taken(two, 0));
}

/* As script_php.h finds a function's parts. */
static void layouts_of_all_versions_fit_a_byte(void **state)
{
	static const struct php_layout layouts[] = {
		{ 60, 64, 136 }, { 68, 72, 144 }, { 80, 88, 152 }, { 76, 80, 144 }, { 96, 104, 168 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		uint32_t byte = php_layout_file(&layouts[i]);
		uint32_t opcodes = (byte & 31) - SCRIPT_PHP_DISTANCE - (byte >> 6);

		assert_int_equal(8 * (byte & 31), layouts[i].file);
		assert_int_equal(8 * opcodes, layouts[i].opcodes);
		assert_int_equal(8 * opcodes - (byte & SCRIPT_PHP_LAST_IS_LOW ? 8 : 4),
				 layouts[i].last);
	}
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
		cmocka_unit_test_setup(a_function_is_known_by_what_it_is, setup),
		cmocka_unit_test_setup(another_function_at_its_place_is_another, setup),
		cmocka_unit_test_setup(long_texts_are_known_by_their_hash, setup),
		cmocka_unit_test_setup(a_text_may_end_with_its_page, setup),
		cmocka_unit_test_setup(a_text_that_is_not_resident_cuts_no_stack, setup),
		cmocka_unit_test_setup(functions_are_read_once_in_a_request, start_samples),
		cmocka_unit_test_setup(another_request_has_other_functions, start_samples),
		cmocka_unit_test_setup(what_is_known_is_of_one_process_and_round, start_samples),
		cmocka_unit_test_setup(without_an_exact_time_nothing_is_known_to_stay,
				       start_samples),
		cmocka_unit_test_setup(what_does_not_stay_is_read_again, start_samples),
		cmocka_unit_test_setup(instructions_of_others_have_the_function_read_again,
				       start_samples),
		cmocka_unit_test_setup(functions_with_unsure_texts_are_read_again, start_samples),
		cmocka_unit_test_setup(layouts_of_all_versions_fit_a_byte, setup),
		cmocka_unit_test_setup(frames_that_go_nowhere_are_cut, setup),
		cmocka_unit_test_setup(deep_stacks_are_cut, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
