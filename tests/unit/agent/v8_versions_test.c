/* SPDX-License-Identifier: Apache-2.0 */
/* V8 without its tables: layouts by version, kinds of objects as functions tell them, out of memory
 * that is laid out by hand, with whole words and with compressed ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/v8/v8_code.h"
#include "agent/runtime/v8/v8_optimized.h"
#include "agent/runtime/v8/v8_text.h"
#include "agent/runtime/v8/v8_versions.h"
#include "base/mem.h"

#define CAGE 0x3a3e00000000ull
#define BASE (CAGE + 0x10000)
#define IMAGE_BYTES 8192u
#define SOURCE "let a;\nfunction f() {}\nfunction g() {}\n"

enum {
	NARROW = 8,
	ODDBALL = 131,
	SCRIPT = 166,
	CODE = 186,
	HEAD = 192,
	ARRAY = 193,
	BYTES = 196,
	SCOPE = 276,
	SHARED = 278,
};

#define SCOPE_FLAGS (3u << 12 | 1u << 14)
#define NUMBER(value) ((uint64_t)(uint32_t)(value) << 32)
#define RAW(value) ((uint64_t)(uint32_t)(value) | 2) /* no tagged word: stands as it is */

static struct v8_layout layout;
static struct script_v8_layout slots;
static uint8_t image[IMAGE_BYTES];
static size_t used;

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address < BASE || address - BASE > used || len > used - (address - BASE))
		return false;
	memcpy(to, image + (address - BASE), len);
	return true;
}

static const struct memory_reader memory = { read_image, NULL };

static void start(bool is_compressed)
{
	memset(image, 0, sizeof(image));
	used = 64;
	assert_true(v8_versions_find(15, is_compressed ? 8 : 0, is_compressed, &layout, &slots));
	layout.is_not_node = true;
	layout.cage = is_compressed ? CAGE : 0;
}

static void put(size_t at, const void *bytes, size_t count)
{
	assert_true(at + count <= sizeof(image));
	memcpy(image + at, bytes, count);
}

/* As the process has it. */
static void put_word(size_t at, uint64_t word)
{
	uint32_t half = word & 1 ? (uint32_t)word : (uint32_t)((int32_t)(word >> 32) * 2);

	if (layout.is_compressed && (word & 3) != 2)
		put(at, &half, sizeof(half));
	else
		put(at, &word, v8_word_bytes(&layout));
}

static uint64_t room(uint16_t type, size_t bytes)
{
	uint64_t map = BASE + used + 1, at;

	put(used + layout.map_type, &type, sizeof(type));
	used += 24;
	at = BASE + used + 1;
	put_word(used, map);
	used += (bytes + 7) & ~(size_t)7;
	assert_true(used <= sizeof(image));
	return at;
}

/* An object of these words behind its map. */
static uint64_t object(uint16_t type, const uint64_t *words, size_t count)
{
	size_t bytes = v8_word_bytes(&layout);
	uint64_t word = room(type, (count + 1) * bytes);

	for (size_t i = 0; i < count; i++)
		put_word(word - 1 - BASE + (i + 1) * bytes, words[i]);
	return word;
}

/* Of bytes behind two words, the second of which is how many they are. */
static uint64_t bytes_of(const uint8_t *bytes, uint32_t count)
{
	size_t head = 2 * v8_word_bytes(&layout);
	uint64_t word = room(BYTES, head + count);

	put(word - 1 - BASE + head / 2, &count, sizeof(count));
	put(word - 1 - BASE + head, bytes, count);
	return word;
}

static uint64_t narrow(const char *text)
{
	uint32_t count = (uint32_t)strlen(text);
	uint64_t word = room(NARROW, layout.text_characters + count);

	put(word - 1 - BASE + layout.text_length, &count, sizeof(count));
	put(word - 1 - BASE + layout.text_characters, text, count);
	return word;
}

static uint64_t undefined(void)
{
	return object(ODDBALL, (uint64_t[]){ 0 }, 1);
}

static uint64_t script_of(const char *name)
{
	return object(SCRIPT, (uint64_t[]){ narrow(SOURCE), narrow(name), 0, 0 }, 4);
}

static uint64_t scope_of(uint32_t flags, const char *name, uint32_t position)
{
	return object(SCOPE,
		      (uint64_t[]){ RAW(flags), NUMBER(1), 0, NUMBER(position),
				    NUMBER(position + 5), narrow(name), NUMBER(-1), narrow("") },
		      8);
}

static uint64_t shared_of(uint64_t name, uint64_t script)
{
	return object(SHARED,
		      (uint64_t[]){ NUMBER(0), NUMBER(-1), name, undefined(), script, NUMBER(1),
				    NUMBER(2), NUMBER(3), NUMBER(4), NUMBER(5), NUMBER(6) },
		      11);
}

static uint64_t function_of(const char *name, uint32_t position)
{
	return shared_of(scope_of(SCOPE_FLAGS, name, position), script_of("/srv/app.js"));
}

static void check(uint64_t shared, const char *name, const char *file, uint32_t line)
{
	struct v8_lines lines = { 0 };
	struct script_code code;

	assert_int_equal(v8_code_read(&memory, &layout, &lines, 1, shared - 1, &code),
			 SCRIPT_CODE_READ);
	assert_string_equal(code.name, name);
	assert_string_equal(code.file, file);
	assert_int_equal(code.first_line, line);
	script_code_fini(&code);
	v8_lines_fini(&lines);
}

static enum script_code_result refused(uint64_t shared)
{
	struct v8_lines lines = { 0 };
	struct script_code code;

	return v8_code_read(&memory, &layout, &lines, 1, shared - 1, &code);
}

static void names_and_lines_are_read_without_knowing_kinds(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		start(i);
		check(function_of("f", 17), "f", "/srv/app.js", 2);
		check(function_of("g", 34), "g", "/srv/app.js", 3);
		check(shared_of(narrow("lazy"), script_of("/srv/b.js")), "lazy", "/srv/b.js", 0);
		check(shared_of(narrow("sort"), undefined()), "sort", "", 0);
	}
}

/* With asm.js a flag went, and what is behind it moved. */
static void initializers_are_known_by_the_flags_of_the_version(void **state)
{
	uint64_t script;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		start(i);
		script = script_of("/srv/app.js");
		check(shared_of(scope_of(SCOPE_FLAGS | 24u << (17 - i), "Cart", 34), script),
		      "<instance_members_initializer>", "/srv/app.js", 3);
		check(shared_of(scope_of(SCOPE_FLAGS | 12u << (17 - i), "Cart", 34), script),
		      "Cart", "/srv/app.js", 3);
	}
}

static void what_only_looks_like_a_function_is_refused(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t script;

		start(i);
		script = script_of("/srv/app.js");
		/* No scope: its kind is not that below a function's. */
		assert_int_equal(
			refused(shared_of(object(SCOPE - 1, (uint64_t[]){ 0, 0, 0 }, 3), script)),
			SCRIPT_CODE_OTHER);
		/* No script: a text, a number, something else with a name. */
		assert_int_equal(refused(shared_of(narrow("f"), narrow("text"))),
				 SCRIPT_CODE_OTHER);
		assert_int_equal(refused(shared_of(narrow("f"), NUMBER(3))), SCRIPT_CODE_OTHER);
		assert_int_equal(
			refused(shared_of(
				narrow("f"),
				object(SCRIPT, (uint64_t[]){ script, narrow("f"), 0, 0 }, 4))),
			SCRIPT_CODE_OTHER);
		assert_int_equal(
			refused(narrow("text that is long enough for a function's fields")),
			SCRIPT_CODE_OTHER);
		assert_int_equal(refused(BASE + IMAGE_BYTES + 1), SCRIPT_CODE_GONE);
	}
}

/* V8 sees what became of it, under its name. */
static void sources_in_typescript_have_no_lines(void **state)
{
	uint64_t scope;

	(void)state;
	start(false);
	scope = scope_of(SCOPE_FLAGS, "f", 17);
	check(shared_of(scope, script_of("file:///srv/a.ts")), "f", "/srv/a.ts", 0);
	check(shared_of(scope, script_of("/srv/ts")), "f", "/srv/ts", 2);
	layout.is_not_node = false; /* it leaves lines as they are */
	check(shared_of(scope, script_of("/srv/a.mts")), "f", "/srv/a.mts", 2);
}

/* ---- optimized code ---- */

#define CODE_BYTES 64u
#define RETURN_AT 20u

/* The literals 1 and 0, the second within the first. */
static const uint8_t translations[] = { 0x0e, 0x00, 0x02, 0x02, 0x01, 0x08, 0x02, 0x00, 0x04,
					0x0e, 0x00, 0x04, 0x04, 0x01, 0x12, 0x02, 0x00, 0x04,
					0x26, 0x01, 0x01, 0x12, 0x00, 0x02, 0x04 };

struct made {
	uint64_t outer, inner, start;
};

static uint64_t code_of(uint64_t data, uint64_t positions, uint64_t head, uint64_t start_at)
{
	uint64_t code = room(CODE, 96);
	size_t at = code - 1 - BASE;
	uint32_t size = CODE_BYTES;

	put_word(at + layout.code_deoptimization, data);
	put_word(at + layout.code_positions, positions);
	put(at + layout.code_start, &start_at, sizeof(start_at));
	put(at + layout.code_size, &size, sizeof(size));
	put_word(head - 1 - BASE + layout.head_code, code);
	return code;
}

/* Code of outer, into which inner is inlined if `inlinings` is not 0; one call returns to
 * RETURN_AT. */
static struct made make_code(uint32_t inlinings, int32_t return_at)
{
	struct made made = { .outer = function_of("outer", 17), .inner = function_of("inner", 34) };
	uint8_t none[16] = { 0 };
	uint64_t literals, data, head, wrapper;

	literals = object(ARRAY, (uint64_t[]){ RAW(0), made.inner, made.outer }, 3);
	put(literals - 1 - BASE + v8_word_bytes(&layout), &(uint32_t){ 2 }, 4);
	wrapper = object(ARRAY, (uint64_t[]){ made.outer }, 1);
	data = object(ARRAY,
		      (uint64_t[]){ RAW(0), bytes_of(translations, sizeof(translations)), NUMBER(1),
				    literals, literals, NUMBER(-1), NUMBER(-1), NUMBER(4), wrapper,
				    bytes_of(none, inlinings), NUMBER(60), NUMBER(1), NUMBER(1),
				    NUMBER(3), NUMBER(0), NUMBER(-1), NUMBER(9), NUMBER(9),
				    NUMBER(return_at) },
		      19);
	put(data - 1 - BASE + v8_word_bytes(&layout), &(uint32_t){ 18 }, 4);
	while ((BASE + used + 24 + layout.head_bytes) % 32)
		used += 8;
	head = room(HEAD, layout.head_bytes + CODE_BYTES);
	made.start = head - 1 + layout.head_bytes;
	code_of(data, bytes_of(none, 0), head, made.start);
	used = sizeof(image);
	return made;
}

static struct v8_place *place_of(const struct made *made, uint32_t offset)
{
	struct v8_lines lines = { 0 };
	struct v8_place *place =
		v8_optimized_read(&memory, &layout, &lines, 1, made->start + offset);

	v8_lines_fini(&lines);
	return place;
}

/* As frames have it. */
static uint64_t noted(uint64_t shared)
{
	return (shared - 1) << layout.is_compressed;
}

static void where_something_is_called_inlined_functions_are_known(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct v8_place *place;
		struct made made;

		start(i & 1);
		made = make_code(16, RETURN_AT);
		place = place_of(&made, RETURN_AT - (i >> 1)); /* or at the call's last byte */
		assert_int_equal(place->count, 2);
		assert_int_equal(place->functions[0].shared, noted(made.outer));
		assert_int_equal(place->functions[1].shared, noted(made.inner));
		assert_true(place->sure == V8_ALL_SURE);
		free(place);
	}
}

static void elsewhere_functions_may_be_missing(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct v8_place *place;
		struct made made;

		start(i);
		made = make_code(16, RETURN_AT);
		place = place_of(&made, RETURN_AT + 5);
		assert_int_equal(place->count, 1);
		assert_int_equal(place->functions[0].shared, noted(made.outer));
		assert_int_equal(place->sure, 1);
		free(place);
		start(i);
		made = make_code(0, RETURN_AT);
		place = place_of(&made, RETURN_AT + 5);
		assert_int_equal(place->count, 1);
		assert_true(place->sure == V8_ALL_SURE); /* nothing is inlined */
		free(place);
	}
}

/* One of 4 bytes behind it. */
static void put_distance(size_t at, size_t target)
{
	int32_t distance = (int32_t)(target - (at + sizeof(distance)));

	put(at, &distance, sizeof(distance));
}

/* A check is left where outer runs, and a loop is interrupted where inner does. */
static void elsewhere_checks_let_functions_be_guessed(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct v8_place *place;
		struct made made;
		size_t code;

		start(i);
		made = make_code(16, 46);
		code = made.start - BASE;
		put(code + 30, "\x0f\x84", 2);
		put_distance(code + 32, code + 60);
		place = place_of(&made, 26);
		assert_int_equal(place->count, 1);
		assert_int_equal(place->functions[0].shared, noted(made.outer));
		assert_int_equal(place->sure, 0); /* who runs is a guess, though it has called */
		free(place);
		put(code + 30, "\xe9", 1);
		put_distance(code + 31, code + 40);
		put(code + 48, "\xe9", 1);
		put_distance(code + 49, code + 24);
		place = place_of(&made, 26);
		assert_int_equal(place->count, 2);
		assert_int_equal(place->functions[0].shared, noted(made.outer));
		assert_int_equal(place->functions[1].shared, noted(made.inner));
		assert_int_equal(place->sure, 1);
		free(place);
	}
}

/* Node.js has V8 note positions, but Maglev of some 24.x has not done so. */
static void without_positions_calls_tell_of_nodejs_too(void **state)
{
	struct v8_place *place;
	struct made made;

	(void)state;
	start(false);
	layout.is_not_node = false;
	made = make_code(16, RETURN_AT);
	place = place_of(&made, RETURN_AT);
	assert_int_equal(place->count, 2);
	assert_int_equal(place->functions[1].shared, noted(made.inner));
	free(place);
	place = place_of(&made, RETURN_AT + 5);
	assert_true(place->count == 1 && place->sure == 1);
	free(place);
}

static void a_translation_of_other_code_is_not_believed(void **state)
{
	struct v8_place *place;
	struct made made;

	(void)state;
	start(false);
	layout.translation_codes = 0;
	made = make_code(16, RETURN_AT);
	place = place_of(&made, RETURN_AT);
	assert_true(place->count == 1 && place->sure == 1);
	free(place);
	start(false);
	made = make_code(16, RETURN_AT);
	for (size_t i = 0; i + sizeof(translations) <= sizeof(image); i++)
		if (!memcmp(image + i, translations, sizeof(translations)))
			image[i + 15] = 0; /* its outermost function is the other one */
	place = place_of(&made, RETURN_AT);
	assert_true(place->count == 1 && place->sure == 1);
	free(place);
}

static void only_versions_that_were_seen_are_known(void **state)
{
	static const uint32_t known[][2] = { { 12, 9 }, { 13, 0 }, { 13, 6 }, { 14, 3 },
					     { 14, 7 }, { 14, 9 }, { 15, 3 }, { 15, 8 } };
	static const uint32_t unknown[][2] = { { 0, 0 },  { 12, 4 }, { 13, 1 }, { 14, 8 },
					       { 15, 2 }, { 15, 9 }, { 16, 0 }, { 14, 500 } };

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		assert_true(v8_versions_find(known[i][0], known[i][1], false, &layout, &slots));
		assert_false(
			v8_versions_find(unknown[i][0], unknown[i][1], false, &layout, &slots));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_lines_are_read_without_knowing_kinds),
		cmocka_unit_test(initializers_are_known_by_the_flags_of_the_version),
		cmocka_unit_test(what_only_looks_like_a_function_is_refused),
		cmocka_unit_test(sources_in_typescript_have_no_lines),
		cmocka_unit_test(where_something_is_called_inlined_functions_are_known),
		cmocka_unit_test(elsewhere_functions_may_be_missing),
		cmocka_unit_test(elsewhere_checks_let_functions_be_guessed),
		cmocka_unit_test(without_positions_calls_tell_of_nodejs_too),
		cmocka_unit_test(a_translation_of_other_code_is_not_believed),
		cmocka_unit_test(only_versions_that_were_seen_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
