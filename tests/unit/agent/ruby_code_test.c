/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of Ruby's methods and blocks, and how their frames are walked, in memory that is
 * laid out by hand as in Ruby 3.1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/ruby/ruby_code.h"
#include "agent/runtime/ruby/ruby_lines.h"
#include "fuzz/ruby_layout_31.h"
#include "unit/agent/forged_memory.h"

#define IDS_MAX 32u
#define CODE 0x7fff00001000ull /* where instructions begin; nothing reads them */

static const struct ruby_layout ruby_31 = { RUBY_LAYOUT_31, .symbols = BASE };

static uint64_t table_of_ids, ids_used;

#include "agent/bpf/script_ruby.h"

static uint64_t text(const char *string)
{
	uint64_t words[5] = { 5 | (uint64_t)strlen(string) << 14 }, bytes[16] = { 0 };

	if (strlen(string) < 24) {
		memcpy(words + 2, string, strlen(string));
		return put(words, 5);
	}
	words[0] = 5 | 1 << 13;
	words[2] = strlen(string);
	assert_true(strlen(string) <= sizeof(bytes));
	memcpy(bytes, string, strlen(string));
	words[3] = put(bytes, 16);
	return put(words, 5);
}

/* A long array of these words. */
static uint64_t array(const uint64_t *items, size_t count)
{
	uint64_t at = put(items, count);

	return put((uint64_t[]){ 7, 0, count, 0, at }, 5);
}

/* Ids begin behind the operators', with 200. */
static uint64_t id_of(const char *name)
{
	uint64_t number = 200 + ids_used++, word = text(name);

	assert_true(ids_used <= IDS_MAX);
	image[(table_of_ids - BASE) / 8 + 2 * number] = word;
	return number << 4;
}

static int setup(void **state)
{
	uint64_t block[2 * (200 + IDS_MAX)] = { 0 }, blocks;

	(void)state;
	ids_used = 0;
	clear_image(4);
	table_of_ids = BASE + 8 * used;
	blocks = array(block, 2 * (200 + IDS_MAX));
	image[2] = put((uint64_t[]){ 7 | 1 << 13 | 1 << 15, 0, blocks, 0, 0 }, 5);
	return 0;
}

/* A class with these variables: {id, value} each. */
static uint64_t class_with(uint64_t flags, const uint64_t *variables, size_t count)
{
	uint64_t entries[12] = { 0 }, table, extension;

	for (size_t i = 0; i < count; i++)
		memcpy(entries + 3 * i + 1, variables + 2 * i, 16);
	table = put(entries, 12);
	table = put((uint64_t[]){ 0, 0, count, 0, 0, count, table }, 7);
	extension = put((uint64_t[]){ 0, table }, 2);
	return put((uint64_t[]){ flags, 0, 0, extension, 0 }, 5);
}

static uint64_t class_named(const char *name)
{
	return class_with(2, (uint64_t[]){ id_of("@x"), 1, id_of("__classpath__"), text(name) }, 2);
}

/* Instructions, 64 words long, on three lines: 7 from the first on, 9 from word 2, 8 from 60. */
static uint64_t code_of(const char *label, const char *name)
{
	uint64_t body[39] = { 0 }, index[16] = { 0 }, entries[5];
	uint32_t lines[9] = { 7, 0, 0, 9, 0, 0, 8 };

	for (int i = 0; i < 54; i++)
		index[i / 9] |= (uint64_t)(i < 2 ? 1 : 2) << i % 9 * 7;
	index[6] = 2;	      /* rank: two entries began before word 54 */
	index[8] = 1ull << 6; /* another begins 6 words behind */
	memcpy(entries, lines, sizeof(lines));
	body[0] = (uint64_t)64 << 32;
	body[1] = CODE;
	body[8] = array((uint64_t[]){ text("app.rb"), text("/srv/app.rb") }, 2);
	body[9] = text(name);
	body[10] = text(label);
	body[11] = 6 << 1 | 1;
	body[15] = put(entries, 5);
	body[17] = 3;
	body[18] = put(index, 16);
	return put((uint64_t[]){ 0x701a, 0, put(body, 39), 0, 0 }, 5);
}

static uint64_t method_of(uint64_t class, uint64_t code, uint64_t id)
{
	uint64_t definition = put((uint64_t[]){ code ? 0 : 1, code, 0, 0, id }, 5);

	return put((uint64_t[]){ 0x601a, class, definition, id, class }, 5);
}

static struct script_code read_code(uint64_t address)
{
	struct script_code code;

	assert_int_equal(ruby_code_read(&image_memory, &ruby_31, 0, address, &code),
			 SCRIPT_CODE_READ);
	return code;
}

static void check(uint64_t address, const char *function, const char *name, const char *file)
{
	struct script_code code = read_code(address);

	assert_string_equal(code.function, function);
	assert_string_equal(code.name, name);
	assert_string_equal(code.file, file);
	script_code_fini(&code);
}

static void methods_are_called_with_their_class(void **state)
{
	uint64_t foo = class_named("Größe::Foo"), code = code_of("run", "run");
	uint64_t included = put((uint64_t[]){ 0x1c, class_named("Loud"), 0, 0, 0 }, 5);
	uint64_t single = class_with(2 | 1 << 12, (uint64_t[]){ id_of("__attached__"), foo }, 1);
	uint64_t nameless = class_with(2, (uint64_t[]){ id_of("@a"), text("Foo") }, 1);

	(void)state;
	check(method_of(foo, code, id_of("run")), "Größe::Foo#run", "run", "/srv/app.rb");
	check(method_of(single, code, id_of("run")), "Größe::Foo.run", "run", "/srv/app.rb");
	check(method_of(included, code, id_of("run")), "Loud#run", "run", "/srv/app.rb");
	check(method_of(nameless, code, id_of("run")), "run", "run", "/srv/app.rb");
	check(method_of(class_named("Array"), 0, id_of("each")), "Array#each", "each", "");
}

static void check_label(const struct script_code *code, const struct script_code *method,
			const char *expected)
{
	struct strbuf label = { 0 };

	ruby_full_label(code, method, &label);
	assert_string_equal(label.data, expected);
	strbuf_free(&label);
}

static void blocks_have_the_class_of_their_method(void **state)
{
	uint64_t foo = class_named("Foo");
	struct script_code block = read_code(code_of("block in run", "run"));
	struct script_code method = read_code(method_of(foo, code_of("run", "run"), id_of("run")));
	struct script_code other = read_code(method_of(foo, code_of("go", "go"), id_of("go")));
	struct script_code made = read_code(method_of(foo, 0, id_of("run")));

	(void)state;
	check_label(&block, &method, "block in Foo#run");
	check_label(&block, NULL, "block in run");
	check_label(&block, &other, "block in run");
	check_label(&block, &made, "block in run");
	script_code_fini(&block);
	script_code_fini(&method);
	script_code_fini(&other);
	script_code_fini(&made);
}

static void lines_are_those_of_the_word_that_runs(void **state)
{
	struct script_code code = read_code(code_of("run", "run"));
	struct slice lines = slice_from(code.lines, code.lines_len);

	(void)state;
	assert_int_equal(code.first_line, 6);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE), 7);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE + 8 * 2), 7);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE + 8 * 3), 9);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE + 8 * 60), 9);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE + 8 * 61), 8);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE + 8 * 64), 8);
	/* Elsewhere, between words, never set. */
	assert_int_equal(ruby_line(lines, (uint32_t)CODE + 8 * 65), 0);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE + 4), 0);
	assert_int_equal(ruby_line(lines, 0), 0);
	assert_int_equal(ruby_line(lines, (uint32_t)CODE - 8), 0);
	script_code_fini(&code);
}

static void what_is_none_is_not_read(void **state)
{
	uint64_t lost = put((uint64_t[]){ 0x601a, 0, 1, 0, 0 }, 5);
	struct script_code code;

	(void)state;
	assert_int_equal(ruby_code_read(&image_memory, &ruby_31, 0, text("x"), &code),
			 SCRIPT_CODE_OTHER);
	assert_int_equal(ruby_code_read(&image_memory, &ruby_31, 0, lost, &code), SCRIPT_CODE_GONE);
	assert_int_equal(ruby_code_read(&image_memory, &ruby_31, 0, 1, &code), SCRIPT_CODE_GONE);
}

/* ---- frames ---- */

static struct sample sample;

/* An environment: {method entry, outer environment, flags}; returns where its flags are. */
static uint64_t scope(uint64_t method, uint64_t outer, uint64_t flags)
{
	return put((uint64_t[]){ method, outer, flags }, 3) + 16;
}

static void put_frame(uint64_t code, uint64_t environment)
{
	put((uint64_t[]){ CODE + 24, 0, code, 0, environment, 0, 0, 0 }, 8);
}

/* Walks the frames from `first` to the end of the image; returns how many entries. */
static size_t walk_from(uint64_t first)
{
	uint64_t end = BASE + 8 * used;
	uint64_t context = put((uint64_t[]){ first, (end - first) / 8, first }, 3);
	struct script script = { .room = SCRIPT_FRAMES_MAX };

	script.process.state_form = SCRIPT_STATE_STATIC;
	script.process.ruby.frame_bytes = 64;
	assert_true(script_ruby_start(&script, put(&context, 1)));
	while (script_ruby_frame(&script, &sample))
		;
	return script.at / 2;
}

/* Before 3.0 a thread has its Thread, which has the context. */
static void the_context_is_that_of_the_thread(void **state)
{
	uint64_t context = put((uint64_t[]){ BASE, 8, BASE + 16 }, 3);
	uint64_t thread = put((uint64_t[]){ 0, 0, 0, 0, context }, 5), none = put(&thread, 0);
	struct script script = { .process.state_form = SCRIPT_STATE_STATIC,
				 .process.ruby.context = 32 };

	(void)state;
	assert_true(script_ruby_start(&script, put(&thread, 1)));
	assert_int_equal(script.frame, BASE + 16);
	assert_int_equal(script.limit, BASE + 64);
	image[(thread - BASE) / 8 + 4] = 0;
	assert_false(script_ruby_start(&script, none));
}

static void frames_are_those_of_methods_and_blocks(void **state)
{
	uint64_t foo = class_named("Foo"), run = code_of("run", "run");
	uint64_t block = code_of("block in run", "run"), top = code_of("<main>", "<main>");
	uint64_t method = method_of(foo, run, id_of("run"));
	uint64_t each = method_of(foo, 0, id_of("each"));
	uint64_t special = put((uint64_t[]){ 0x201a, method, 0, 0, 0 }, 5);
	uint64_t in_run = scope(special, 0, 0x11110003), first;
	uint64_t scopes[] = { scope(0, in_run | 1, 0x22220021), scope(each, 0, 0x55550083),
			      scope(0, 0, 0x44440023), scope(0, 0, 0x799900a3) };
	struct script_code known = read_code(method);

	(void)state;
	first = BASE + 8 * used;
	put_frame(block, scopes[0]);
	put_frame(0, scopes[1]);
	put_frame(run, in_run);
	put_frame(top, scopes[2]);
	put_frame(0, scopes[3]);
	assert_int_equal(walk_from(first), 6);
	assert_int_equal(sample.frames[0], block);
	assert_int_equal(sample.frames[2], method | SCRIPT_IS_MARK | SCRIPT_ENDS_RUN);
	assert_int_equal(sample.frames[4], each);
	assert_int_equal(sample.frames[6], method);
	assert_int_equal(sample.frames[8], top);
	assert_int_equal(sample.frames[10], SCRIPT_IS_MARK | SCRIPT_ENDS_RUN);
	/* With a proof of what it was, and the program counter. */
	assert_int_equal(sample.frames[7], (uint64_t)known.proof << 32 | (uint32_t)(CODE + 24));
	script_code_fini(&known);
}

static void frames_that_go_nowhere_are_cut(void **state)
{
	uint64_t first, circle;

	(void)state;
	circle = scope(0, BASE + 8 * used + 16, 0x22220001);
	first = BASE + 8 * used;
	put_frame(code_of("block in run", "run"), circle);
	assert_true(walk_from(first) >= 1);
	first = BASE + 8 * used;
	put_frame(0, 1 << 20);
	assert_int_equal(walk_from(first), 1);
	assert_int_equal(sample.frames[0], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[1], SCRIPT_UNREADABLE);
}

static void deep_stacks_are_cut(void **state)
{
	uint64_t method = method_of(class_named("Foo"), code_of("run", "run"), id_of("run"));
	uint64_t environment = scope(method, 0, 0x11110003), first = BASE + 8 * used;

	(void)state;
	for (size_t i = 0; i < SCRIPT_FRAMES_MAX + 8; i++)
		put_frame(0, environment);
	assert_int_equal(walk_from(first), SCRIPT_FRAMES_MAX + 1);
	assert_int_equal(sample.frames[2 * SCRIPT_FRAMES_MAX], SCRIPT_IS_CUT);
	assert_int_equal(sample.frames[2 * SCRIPT_FRAMES_MAX + 1], SCRIPT_TOO_DEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(methods_are_called_with_their_class, setup),
		cmocka_unit_test_setup(blocks_have_the_class_of_their_method, setup),
		cmocka_unit_test_setup(lines_are_those_of_the_word_that_runs, setup),
		cmocka_unit_test_setup(what_is_none_is_not_read, setup),
		cmocka_unit_test_setup(the_context_is_that_of_the_thread, setup),
		cmocka_unit_test_setup(frames_are_those_of_methods_and_blocks, setup),
		cmocka_unit_test_setup(frames_that_go_nowhere_are_cut, setup),
		cmocka_unit_test_setup(deep_stacks_are_cut, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
