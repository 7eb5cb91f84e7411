/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of V8's functions, out of memory that is laid out by hand as in Node.js 20. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/code_memory.h"
#include "agent/runtime/v8/v8_code.h"
#include "agent/runtime/v8/v8_optimized.h"
#include "base/mem.h"
#include "fuzz/v8_layout_20.h"

#define BASE 0x10000ull
#define IMAGE_BYTES 8192u
#define SOURCE "let a;\nfunction f() {}\r\nfunction g() {}\n\nclass C { m() {} }\n"

/* Kinds of objects. */
enum {
	WIDE = 0x20,
	NARROW = 0x28,
	CONS = 0x29,
	EXTERNAL = 0x2a,
	SLICED = 0x2b,
	THIN = 0x2d,
	SHARED = 262,
	SCOPE = 261,
	SCRIPT = 167,
	CODE = 245,
	HEAD = 252,
	ARRAY = 175,
	BYTES = 190,
	ODDBALL = 131
};

/* Function variable, inferred name; both are there. */
#define SCOPE_FLAGS (3u << 12 | 1u << 14)
#define NUMBER(value) ((uint64_t)(value) << 32)

static const struct v8_layout layout = {
	.type_shared = SHARED,
	.type_scope = SCOPE,
	.type_script = SCRIPT,
	.type_code = CODE,
	.type_head = HEAD,
	V8_LAYOUT_20,
};

static uint8_t image[IMAGE_BYTES];
static size_t used;
static unsigned reads;

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	reads++;
	if (address < BASE || address - BASE > used || len > used - (address - BASE))
		return false;
	memcpy(to, image + (address - BASE), len);
	return true;
}

static int setup(void **state)
{
	(void)state;
	memset(image, 0, sizeof(image));
	used = 64;
	return 0;
}

/* An object of these words behind its map; returns the word that points at it. */
static uint64_t object(uint16_t type, const uint64_t *words, size_t count)
{
	uint64_t map = BASE + used + 1, at = BASE + used + 24;

	assert_true(used + 24 + 8 * (count + 1) <= sizeof(image));
	memcpy(image + used + 12, &type, sizeof(type));
	memcpy(image + used + 24, &map, sizeof(map));
	memcpy(image + used + 32, words, 8 * count);
	used += 24 + 8 * (count + 1);
	return at + 1;
}

/* The word before a string's characters: its hash, and how many there are. */
static uint64_t length(size_t count)
{
	return (uint64_t)count << 32;
}

static uint64_t narrow(const char *text)
{
	uint64_t words[40] = { length(strlen(text)) };

	assert_true(strlen(text) <= sizeof(words) - 8);
	memcpy(words + 1, text, strlen(text));
	return object(NARROW, words, 1 + (strlen(text) + 7) / 8);
}

static uint64_t script_of(const char *name)
{
	return object(SCRIPT, (uint64_t[]){ narrow(SOURCE), narrow(name), 0 }, 3);
}

static uint64_t scope_of_kind(uint32_t kind, uint64_t name, uint64_t inferred, uint32_t position)
{
	return object(SCOPE,
		      (uint64_t[]){ NUMBER(SCOPE_FLAGS | kind << 17), NUMBER(1), NUMBER(2),
				    narrow("x"), narrow("y"), NUMBER(7), NUMBER(7), name,
				    NUMBER(-1), inferred, NUMBER(position), NUMBER(position + 5) },
		      12);
}

static uint64_t scope_of(uint64_t name, uint64_t inferred, uint32_t position)
{
	return scope_of_kind(0, name, inferred, position);
}

static uint64_t shared_of(uint64_t name, uint64_t script)
{
	return object(SHARED, (uint64_t[]){ 0, name, 0, script, 1, 2, 3 }, 7) - 1;
}

static void check(uint64_t shared, const char *name, const char *file, uint32_t line)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	struct script_code code;

	assert_int_equal(v8_code_read(&memory, &layout, &lines, 1, shared, &code),
			 SCRIPT_CODE_READ);
	assert_string_equal(code.name, name);
	assert_string_equal(code.file, file);
	assert_int_equal(code.first_line, line);
	script_code_fini(&code);
	v8_lines_fini(&lines);
}

static void names_and_lines_are_those_of_the_scope(void **state)
{
	uint64_t script = script_of("/srv/app.js");

	(void)state;
	check(shared_of(scope_of(narrow("f"), narrow(""), 17), script), "f", "/srv/app.js", 2);
	check(shared_of(scope_of(narrow("g"), narrow(""), 34), script), "g", "/srv/app.js", 3);
	check(shared_of(scope_of(narrow("m"), narrow(""), 53), script), "m", "/srv/app.js", 5);
	check(shared_of(scope_of(narrow("top"), narrow(""), 0), script), "top", "/srv/app.js", 1);
}

static void without_a_name_it_is_what_it_was_assigned_to(void **state)
{
	uint64_t script = script_of("/srv/app.js");

	(void)state;
	check(shared_of(scope_of(narrow(""), narrow("Module._load"), 17), script), "Module._load",
	      "/srv/app.js", 2);
	check(shared_of(scope_of(0, narrow(""), 17), script), "(anonymous)", "/srv/app.js", 2);
	/* Not compiled: the name stands for the scope. */
	check(shared_of(narrow("lazy"), script), "lazy", "/srv/app.js", 0);
}

static void initializers_of_classes_are_not_called_as_the_class(void **state)
{
	static const char *const names[] = { "<instance_members_initializer>",
					     "<static_initializer>", "<static_initializer>" };
	uint64_t script = script_of("/srv/app.js");

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		check(shared_of(scope_of_kind(24 + i, narrow("Cart"), narrow(""), 34), script),
		      names[i], "/srv/app.js", 3);
	check(shared_of(scope_of_kind(23, narrow("Cart"), narrow(""), 34), script), "Cart",
	      "/srv/app.js", 3);
}

/* Scopes of V8 before 10 say where the receiver is, if the function uses it. */
static void older_scopes_have_a_word_for_the_receiver(void **state)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_layout older = layout;
	struct v8_lines lines = { 0 };
	struct script_code code;
	uint64_t scope = object(SCOPE,
				(uint64_t[]){ NUMBER(SCOPE_FLAGS | 1u << 7), NUMBER(1), 0,
					      NUMBER(-1), narrow("total"), NUMBER(-1), narrow(""),
					      NUMBER(34), NUMBER(39) },
				9);

	(void)state;
	older.scope_has_receiver = 1;
	assert_int_equal(v8_code_read(&memory, &older, &lines, 1,
				      shared_of(scope, script_of("/srv/app.js")), &code),
			 SCRIPT_CODE_READ);
	assert_string_equal(code.name, "total");
	assert_int_equal(code.first_line, 3);
	script_code_fini(&code);
	v8_lines_fini(&lines);
}

static void files_of_modules_are_paths(void **state)
{
	(void)state;
	check(shared_of(scope_of(narrow("f"), 0, 17), script_of("file:///srv/a%20b.mjs")), "f",
	      "/srv/a b.mjs", 2);
	check(shared_of(scope_of(narrow("f"), 0, 17), script_of("node:internal/timers")), "f",
	      "node:internal/timers", 2);
	check(shared_of(scope_of(narrow("f"), 0, 17), script_of("file:///srv/%zz%c3")), "f",
	      "/srv/%zz%c3", 2);
}

static void functions_of_v8_have_no_file(void **state)
{
	uint64_t undefined = object(ODDBALL, (uint64_t[]){ 0 }, 1);

	(void)state;
	check(shared_of(narrow("sort"), undefined), "sort", "", 0);
}

static void strings_of_all_forms_are_read(void **state)
{
	uint64_t script = script_of("/srv/app.js");
	uint64_t one = narrow("One"), two = narrow("Two");
	uint64_t both = object(CONS, (uint64_t[]){ length(6), one, two }, 3);
	uint64_t piece = object(SLICED, (uint64_t[]){ length(3), both, NUMBER(2) }, 3);
	uint64_t thin = object(THIN, (uint64_t[]){ length(3), two }, 2);
	uint64_t wide = object(WIDE, (uint64_t[]){ length(4), 0xde00d83d00e46d4bull }, 2);
	uint64_t outside = object(EXTERNAL, (uint64_t[]){ length(3), 0, one - 1 + 16 }, 3);

	(void)state;
	check(shared_of(both, script), "OneTwo", "/srv/app.js", 0);
	check(shared_of(piece, script), "eTw", "/srv/app.js", 0);
	check(shared_of(thin, script), "Two", "/srv/app.js", 0);
	check(shared_of(outside, script), "One", "/srv/app.js", 0);
	check(shared_of(wide, script), "\xe6\xb5\x8b\xc3\xa4\xf0\x9f\x98\x80", "/srv/app.js", 0);
}

/* As garbage is collected: its new address stands in place of its map. */
static void a_string_that_is_being_moved_is_read(void **state)
{
	uint64_t script = script_of("/srv/app.js");
	uint64_t old = narrow("moved"), new = narrow("moved") - 1;

	(void)state;
	memcpy(image + (old - 1 - BASE), &new, sizeof(new));
	check(shared_of(old, script), "moved", "/srv/app.js", 0);
}

static void strings_that_go_in_circles_end(void **state)
{
	uint64_t script = script_of("/srv/app.js");
	uint64_t circle = object(CONS, (uint64_t[]){ length(6), 0, 0 }, 3);

	(void)state;
	memcpy(image + (circle - 1 - BASE) + 16, &circle, sizeof(circle));
	memcpy(image + (circle - 1 - BASE) + 24, &circle, sizeof(circle));
	check(shared_of(circle, script), "(anonymous)", "/srv/app.js", 0);
}

/* Strings move: what came to the place of a source has lines of its own. */
static void a_source_at_the_place_of_another_has_its_own_lines(void **state)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	uint64_t source = narrow("a\nb\nc\n");

	(void)state;
	assert_int_equal(v8_lines_find(&lines, 1, &memory, &layout, source, 4), 3);
	image[source - 1 - BASE + 16 + 1] = ' ';
	assert_int_equal(v8_lines_find(&lines, 1, &memory, &layout, source, 4), 2);
	v8_lines_fini(&lines);
}

#define FAR 0x100000000ull /* lines, as many as anyone wants */

static unsigned far_reads;

static bool read_endless(void *context, uint64_t address, void *to, size_t len)
{
	if (address < FAR)
		return read_image(context, address, to, len);
	memset(to, '\n', len);
	far_reads++;
	return true;
}

/* Each function of a large bundle asks for its line. */
static void a_source_of_too_many_lines_is_counted_once(void **state)
{
	struct memory_reader memory = { read_endless, NULL };
	struct v8_lines lines = { 0 };
	uint64_t source =
		object(EXTERNAL, (uint64_t[]){ length(2 * (size_t)V8_LINES_MAX), 0, FAR }, 3);
	unsigned counted;

	(void)state;
	far_reads = 0;
	assert_int_equal(v8_lines_find(&lines, 1, &memory, &layout, source, 4), 0);
	counted = far_reads;
	assert_true(counted > 2);
	for (uint32_t place = 0; place < 100; place++)
		assert_int_equal(v8_lines_find(&lines, 1, &memory, &layout, source, place), 0);
	assert_int_equal(far_reads - counted, 100 * 2); /* its beginning and its end */
	v8_lines_fini(&lines);
}

static void what_is_no_function_is_refused(void **state)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	struct script_code code;
	uint64_t text = narrow("no function");

	(void)state;
	assert_int_equal(v8_code_read(&memory, &layout, &lines, 1, text - 1, &code),
			 SCRIPT_CODE_OTHER);
	assert_int_equal(v8_code_read(&memory, &layout, &lines, 1, BASE + IMAGE_BYTES, &code),
			 SCRIPT_CODE_GONE);
}

/* ---- optimized code ---- */

#define CODE_BYTES 64u
#define DEPTH_MAX 200u /* of inlining */

/* Of a place in the script, and an inlining, counted from 0; -1 = none. */
static uint64_t position(uint32_t place, int32_t inlining)
{
	return (uint64_t)place << 1 | (uint64_t)(uint32_t)(inlining + 1) << 31;
}

static void put_varint(uint8_t **to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*(*to)++ = (uint8_t)(value | 0x80);
	*(*to)++ = (uint8_t)value;
}

/* A step from one position to the next, as V8 writes them: every other one with a mark. */
static void put_step(uint8_t **to, uint32_t bytes, uint64_t from, uint64_t position_to)
{
	int64_t step = (int64_t)(position_to - from);

	put_varint(to, (uint64_t)bytes << 1 | (bytes & 1));
	put_varint(to, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
}

static uint64_t bytes_of(const uint8_t *bytes, size_t count)
{
	uint64_t words[1 + 2 * DEPTH_MAX] = { length(count) };

	assert_true(count <= sizeof(words) - 8);
	memcpy(words + 1, bytes, count);
	return object(BYTES, words, 1 + (count + 7) / 8);
}

/* What the code of one function with others in it is made of. */
struct made {
	uint64_t outer, middle, inner; /* what their closures share */
	uint64_t start;		       /* of the instructions */
	uint64_t code, data;
};

static uint64_t positions_of_code(void)
{
	const uint64_t at[] = { position(17, -1), position(34, 0), position(53, 1),
				position(18, -1) };
	const uint32_t steps[] = { 4, 7, 9, 20 };
	uint8_t bytes[64], *end = bytes;

	for (size_t i = 0; i < 4; i++)
		put_step(&end, steps[i], i ? at[i - 1] : 0, at[i]);
	return bytes_of(bytes, (size_t)(end - bytes));
}

/* Code with these source positions, from which `inlinings` lead to middle (1) and inner (0). */
static struct made make_code_with(uint64_t (*positions)(void), const uint64_t *inlinings,
				  size_t bytes)
{
	uint64_t script = script_of("/srv/app.js"), head, literals, code;
	struct made made = { .outer = shared_of(scope_of(narrow("outer"), 0, 17), script),
			     .middle = shared_of(scope_of(narrow("middle"), 0, 34), script),
			     .inner = shared_of(scope_of(narrow("inner"), 0, 53), script) };

	literals =
		object(ARRAY, (uint64_t[]){ length(2), (made.inner + 1) | 2, made.middle + 1 }, 3);
	made.data = object(ARRAY,
			   (uint64_t[]){ length(9), 0, NUMBER(2), literals, 0, 0, 0, made.outer + 1,
					 bytes_of((const uint8_t *)inlinings, bytes), NUMBER(60) },
			   10);
	while ((BASE + used + 24 + 16) % 32)
		used += 8;
	made.start = BASE + used + 24 + 16;
	head = object(HEAD, (uint64_t[1 + CODE_BYTES / 8]){ 0 }, 1 + CODE_BYTES / 8);
	code = object(CODE,
		      (uint64_t[]){ 0, made.data, positions(), head, made.start, 0, CODE_BYTES },
		      7);
	memcpy(image + (head - 1 - BASE) + 8, &code, sizeof(code));
	made.code = code - 1;
	used = IMAGE_BYTES;
	return made;
}

/* outer calls middle (34), which calls inner (53). */
static struct made make_code(void)
{
	const uint64_t calls[] = { position(20, -1), 1, position(35, 0), 0 };

	return make_code_with(positions_of_code, calls, sizeof(calls));
}

/* The functions at an offset of the code, from the outermost on, and their lines. */
static void check_place(const struct made *made, uint32_t offset, size_t count, uint64_t innermost,
			uint32_t line)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	struct v8_place *place =
		v8_optimized_read(&memory, &layout, &lines, 1, made->start + offset);

	assert_int_equal(place->count, count);
	if (count) {
		assert_int_equal(place->functions[0].shared, made->outer);
		assert_int_equal(place->functions[count - 1].shared, innermost);
		assert_int_equal(place->functions[count - 1].line, line);
	}
	if (count == 3) {
		assert_int_equal(place->functions[0].line, 2);
		assert_int_equal(place->functions[1].shared, made->middle);
		assert_int_equal(place->functions[1].line, 3);
	}
	free(place);
	v8_lines_fini(&lines);
}

static void inlined_functions_are_those_of_the_last_position(void **state)
{
	struct made made = make_code();

	(void)state;
	check_place(&made, 0, 1, made.outer, 0); /* before the first one */
	check_place(&made, 4, 1, made.outer, 2);
	check_place(&made, 10, 1, made.outer, 2);
	check_place(&made, 11, 2, made.middle, 3);
	check_place(&made, 19, 2, made.middle, 3);
	check_place(&made, 20, 3, made.inner, 5);
	check_place(&made, 39, 3, made.inner, 5);
	check_place(&made, 40, 1, made.outer, 2);
	check_place(&made, CODE_BYTES - 1, 1, made.outer, 2);
	check_place(&made, CODE_BYTES, 0, 0, 0); /* behind the code */
}

static uint32_t depth;

static uint64_t position_of_the_deepest(void)
{
	uint8_t bytes[16], *end = bytes;

	put_step(&end, 4, 0, position(53, (int32_t)depth - 1));
	return bytes_of(bytes, (size_t)(end - bytes));
}

/* inner, within as many others as `depth` says. */
static struct v8_place *read_deep_place(struct made *ret)
{
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	struct v8_place *place;
	uint64_t calls[2 * DEPTH_MAX];

	for (uint32_t i = 0; i < depth; i++) {
		calls[2 * i] = position(i ? 35 : 20, (int32_t)i - 1);
		calls[2 * i + 1] = i + 1 < depth;
	}
	*ret = make_code_with(position_of_the_deepest, calls, 2 * sizeof(calls[0]) * depth);
	place = v8_optimized_read(&memory, &layout, &lines, 1, ret->start + 8);
	v8_lines_fini(&lines);
	return place;
}

/* outer calls middle, which calls outer, which calls inner. */
static void a_function_that_is_inlined_into_itself_has_no_literal(void **state)
{
	const uint64_t calls[] = { position(20, -1), 1, position(34, 0), UINT32_MAX,
				   position(53, 1),  0 };
	struct memory_reader memory = { read_image, NULL };
	struct v8_lines lines = { 0 };
	struct v8_place *place;
	struct made made;

	(void)state;
	depth = 3;
	made = make_code_with(position_of_the_deepest, calls, sizeof(calls));
	place = v8_optimized_read(&memory, &layout, &lines, 1, made.start + 8);
	assert_int_equal(place->count, 4);
	assert_int_equal(place->functions[0].shared, made.outer);
	assert_int_equal(place->functions[1].shared, made.middle);
	assert_int_equal(place->functions[2].shared, made.outer);
	assert_int_equal(place->functions[3].shared, made.inner);
	free(place);
	v8_lines_fini(&lines);
}
/* Small functions are inlined into each other as long as V8's budget for a function lasts. */
static void functions_that_are_inlined_deeply_are_all_there(void **state)
{
	struct made made;
	struct v8_place *place;

	(void)state;
	depth = V8_INLINED_MAX - 1;
	place = read_deep_place(&made);
	assert_int_equal(place->count, depth + 1);
	assert_false(place->is_cut);
	assert_int_equal(place->functions[0].shared, made.outer);
	assert_int_equal(place->functions[1].shared, made.middle);
	assert_int_equal(place->functions[depth].shared, made.inner);
	free(place);
}

static void of_too_many_inlined_functions_the_innermost_are_there(void **state)
{
	struct made made;
	struct v8_place *place;

	(void)state;
	depth = DEPTH_MAX;
	place = read_deep_place(&made);
	assert_int_equal(place->count, V8_INLINED_MAX);
	assert_true(place->is_cut);
	assert_int_equal(place->functions[0].shared, made.outer);
	assert_int_equal(place->functions[0].line, 2);
	assert_int_equal(place->functions[V8_INLINED_MAX - 1].shared, made.inner);
	assert_int_equal(place->functions[V8_INLINED_MAX - 1].line, 5);
	free(place);
}

/* The name of a function is read with the proof that came with its place. */
static void the_proof_of_an_inlined_function_is_that_of_its_name(void **state)
{
	struct memory_reader memory = { read_image, NULL };
	struct made made = make_code();
	struct v8_lines lines = { 0 };
	struct v8_place *place = v8_optimized_read(&memory, &layout, &lines, 1, made.start + 30);
	struct script_code code;

	(void)state;
	assert_int_equal(place->count, 3);
	assert_int_equal(
		v8_code_read(&memory, &layout, &lines, 1, place->functions[2].shared, &code),
		SCRIPT_CODE_READ);
	assert_string_equal(code.name, "inner");
	assert_int_equal(code.proof, place->functions[2].proof);
	script_code_fini(&code);
	free(place);
	v8_lines_fini(&lines);
}

static void by_pages_a_place_takes_few_reads(void **state)
{
	struct memory_reader direct = { read_image, NULL };
	struct code_memory *pages = code_memory_new(&direct);
	struct memory_reader by_pages = code_memory_reader(pages);
	struct v8_lines lines = { .next = 0 };
	struct made made = make_code();
	struct v8_place *one, *other;
	unsigned reads_before;

	(void)state;
	used = IMAGE_BYTES;
	reads = 0;
	one = v8_optimized_read(&direct, &layout, &lines, 1, made.start + 30);
	v8_lines_fini(&lines);
	reads_before = reads;
	reads = 0;
	other = v8_optimized_read(&by_pages, &layout, &lines, 1, made.start + 30);
	assert_int_equal(one->count, 3);
	assert_int_equal(other->count, 3);
	assert_memory_equal(one->functions, other->functions, 3 * sizeof(one->functions[0]));
	assert_true(reads_before > 50);
	assert_true(reads <= 5); /* the image's two pages, and the window of the code's head */
	v8_lines_fini(&lines);
	free(one);
	free(other);
	free(pages);
}

/* Inlinings that name each other, functions that are none, code whose head is another's. */
static void optimized_code_that_makes_no_sense_has_no_functions(void **state)
{
	struct made made = make_code();
	uint64_t inlinings, circle = position(20, 1), other = made.start + 8, word;

	(void)state;
	memcpy(&inlinings, image + (made.data - 1 - BASE) + 16 + 8 * 7, sizeof(inlinings));
	memcpy(image + (inlinings - 1 - BASE) + 16, &circle, sizeof(circle));
	check_place(&made, 30, 0, 0, 0);
	made = (setup(state), make_code());
	memcpy(&word, image + (made.data - 1 - BASE) + 16 + 8 * 2, sizeof(word));
	memcpy(image + (word - 1 - BASE) + 16, &made.data, sizeof(made.data));
	check_place(&made, 30, 0, 0, 0);
	check_place(&made, 15, 2, made.middle, 3);
	memcpy(image + (made.code - BASE) + 40, &other, sizeof(other));
	check_place(&made, 15, 0, 0, 0);
}

/* It is read again more rarely while all of it stays. */
static void a_place_is_the_same_if_all_functions_and_lines_are(void **state)
{
	struct made made;
	struct v8_place *place, *again;

	(void)state;
	depth = 2;
	place = read_deep_place(&made);
	again = mem_calloc(1, v8_place_bytes(place));
	memcpy(again, place, v8_place_bytes(place));
	assert_true(place->count == 3 && v8_place_equals(place, again));
	again->functions[place->count - 1].line++;
	assert_false(v8_place_equals(place, again));
	again->functions[place->count - 1].line--;
	again->functions[0].shared += 8; /* as garbage is collected */
	assert_false(v8_place_equals(place, again));
	again->functions[0].shared -= 8;
	again->is_cut = !again->is_cut;
	assert_false(v8_place_equals(place, again));
	again->is_cut = place->is_cut;
	again->count--;
	assert_false(v8_place_equals(place, again));
	free(place);
	free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(names_and_lines_are_those_of_the_scope, setup),
		cmocka_unit_test_setup(without_a_name_it_is_what_it_was_assigned_to, setup),
		cmocka_unit_test_setup(initializers_of_classes_are_not_called_as_the_class, setup),
		cmocka_unit_test_setup(older_scopes_have_a_word_for_the_receiver, setup),
		cmocka_unit_test_setup(files_of_modules_are_paths, setup),
		cmocka_unit_test_setup(functions_of_v8_have_no_file, setup),
		cmocka_unit_test_setup(strings_of_all_forms_are_read, setup),
		cmocka_unit_test_setup(a_string_that_is_being_moved_is_read, setup),
		cmocka_unit_test_setup(strings_that_go_in_circles_end, setup),
		cmocka_unit_test_setup(a_source_at_the_place_of_another_has_its_own_lines, setup),
		cmocka_unit_test_setup(a_source_of_too_many_lines_is_counted_once, setup),
		cmocka_unit_test_setup(what_is_no_function_is_refused, setup),
		cmocka_unit_test_setup(inlined_functions_are_those_of_the_last_position, setup),
		cmocka_unit_test_setup(a_function_that_is_inlined_into_itself_has_no_literal,
				       setup),
		cmocka_unit_test_setup(functions_that_are_inlined_deeply_are_all_there, setup),
		cmocka_unit_test_setup(of_too_many_inlined_functions_the_innermost_are_there,
				       setup),
		cmocka_unit_test_setup(the_proof_of_an_inlined_function_is_that_of_its_name, setup),
		cmocka_unit_test_setup(by_pages_a_place_takes_few_reads, setup),
		cmocka_unit_test_setup(optimized_code_that_makes_no_sense_has_no_functions, setup),
		cmocka_unit_test_setup(a_place_is_the_same_if_all_functions_and_lines_are, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
