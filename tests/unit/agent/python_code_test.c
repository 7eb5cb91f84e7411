/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython's code objects: lines as CPython itself gives them, names of modules, and objects in a
 * memory that is not as it should be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/code_memory.h"
#include "agent/runtime/python/python_code.h"
#include "agent/runtime/python/python_lines.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Of one function, compiled by 3.9, 3.10, 3.11 and 3.13: co_lnotab or co_linetable, and the line of
 * each instruction as `dis` and co_lines say, 0 for none.
 */
static const uint8_t lnotab_3_9[] = { 0, 1, 4, 3, 2,  1, 2, 254, 4, 4,
				      8, 1, 4, 1, 10, 3, 2, 1,	 2, 255 };
static const uint8_t lines_3_9[] = { 3,	 3,  6,	 7,  5,	 5,  9,	 9,  9,	 9, 10,
				     10, 11, 11, 11, 11, 11, 14, 15, 14, 14 };
static const uint8_t table_3_10[] = { 4, 1, 2, 3, 2,   1, 4, 254, 8, 4, 4,
				      1, 8, 1, 2, 128, 2, 3, 2,	  1, 4, 255 };
static const uint8_t lines_3_10[] = { 3,  3,  6,  7,  5,  5, 9,	 9,  9,	 9, 10,
				      10, 11, 11, 11, 11, 0, 14, 15, 14, 14 };
static const uint8_t table_3_11[] = {
	128, 0,	 216, 8,  9,   128, 65, 240, 6,	 0,  9,	  10, 216, 8,  9,   240, 5,   3,   9,	6,
	128, 65, 240, 8,  0,   14,  15, 240, 0,	 2,  5,	  21, 240, 0,  2,   5,	 21,  136, 1,	216,
	11,  12, 240, 0,  1,   9,   21, 221, 12, 17, 144, 33, 137, 72, 140, 72,	 136, 72,  248, 240,
	6,   0,	 13,  14, 216, 12,  13, 241, 3,	 1,  13,  14, 240, 0,  1,   5,	 15
};
static const uint8_t lines_3_11[] = { 2,  3,  3,  6,  7,  5,  5,  9,  9,  9,  9,  10,
				      10, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11,
				      11, 11, 11, 11, 0,  14, 15, 14, 14, 14 };
static const uint8_t table_3_13[] = { 128, 0,	216, 8,	  9,  128, 65,	240, 6,	  0,   9,  10,	216,
				      8,   9,	240, 5,	  3,  9,   6,	128, 65,  243, 8,  0,	14,
				      15,  136, 1,   223, 11, 12,  136, 49,  220, 12,  17, 144, 33,
				      142, 72,	241, 5,	  0,  14,  15,	240, 10,  0,   13, 14,	216,
				      12,  13,	241, 3,	  1,  13,  14,	240, 0,	  1,   5,  15 };
static const uint8_t lines_3_13[] = { 2,  3,  3,  6,  7,  5,  5,  9,  9,  9,  9,  9,  10, 10,
				      10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11,
				      11, 11, 11, 11, 11, 11, 9,  9,  14, 15, 14, 14, 14 };

static void check_lines(const uint8_t *table, size_t len, enum python_lines_form form,
			const uint8_t *lines, size_t count, int step)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(python_line(slice_from(table, len), form, 2, (int)i * step),
				 lines[i]);
}

static void lines_are_cpythons(void **state)
{
	(void)state;
	check_lines(lnotab_3_9, sizeof(lnotab_3_9), PYTHON_LINES_LNOTAB, lines_3_9,
		    COUNT(lines_3_9), 2);
	check_lines(table_3_10, sizeof(table_3_10), PYTHON_LINES_RANGES, lines_3_10,
		    COUNT(lines_3_10), 1);
	check_lines(table_3_11, sizeof(table_3_11), PYTHON_LINES_LOCATIONS, lines_3_11,
		    COUNT(lines_3_11), 2);
	check_lines(table_3_13, sizeof(table_3_13), PYTHON_LINES_LOCATIONS, lines_3_13,
		    COUNT(lines_3_13), 2);
}

static void places_outside_of_the_table_have_no_line(void **state)
{
	static const uint8_t endless[] = { 0xff, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f };

	(void)state;
	for (int form = 0; form <= PYTHON_LINES_LOCATIONS; form++) {
		/* Before the first instruction: the function is being entered. */
		assert_int_equal(python_line((struct slice){ 0 }, form, 7, -1), 7);
		assert_int_equal(python_line((struct slice){ 0 }, form, 0xffffffffu, -1), 0);
		python_line(slice_from(endless, sizeof(endless)), form, 1, INT32_MAX);
	}
	assert_int_equal(python_line(slice_from(table_3_11, sizeof(table_3_11)),
				     PYTHON_LINES_LOCATIONS, 2, 4000),
			 0);
}

static void modules_are_named_by_their_files(void **state)
{
	static const char *const cases[][2] = {
		{ "/usr/lib/python3.11/json/decoder.py", "json.decoder" },
		{ "/usr/lib/python3.11/json/__init__.py", "json" },
		{ "/usr/lib/python3.11/threading.py", "threading" },
		{ "/srv/venv/lib/python3.12/site-packages/flask/app.py", "flask.app" },
		{ "/usr/lib/python3/dist-packages/yaml/__init__.py", "yaml" },
		{ "/srv/shop/cart/totals.py", "totals" },
		{ "/srv/shop/cart/__init__.py", "cart" },
		{ "app.py", "app" },
		{ "bin/tool", "tool" },
		{ "<frozen importlib._bootstrap>", "importlib._bootstrap" },
		{ "<string>", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct strbuf out = { 0 };

		python_module_name(cases[i][0], &out);
		assert_string_equal(strbuf_text(&out), cases[i][1]);
		strbuf_free(&out);
	}
}

/* ---- a process's memory, by hand: 3.11's layout ---- */

#define BASE 0x10000ull
#define CODE (BASE + 0x100)
#define NAME (BASE + 0x400)
#define FILE_NAME (BASE + 0x600)
#define LINES (BASE + 0x800)
#define TYPE 0x7000ull
#define BIAS 0x555000000000ull

static const struct python_layout layout = {
	.type = 8,
	.file_name = 112,
	.name = 120,
	.qualified_name = 128,
	.first_line = 72,
	.lines = 136,
	.bytes_count = 16,
	.bytes_data = 32,
	.text_count = 16,
	.text_state = 32,
	.text_ascii = 48,
	.text_wide = 72,
	.lines_form = PYTHON_LINES_LOCATIONS,
	.code_type = TYPE,
};

struct image {
	uint8_t bytes[0x4000];
	unsigned reads;
};

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	struct image *image = context;

	image->reads++;
	if (address < BASE || address - BASE > sizeof(image->bytes) ||
	    len > sizeof(image->bytes) - (address - BASE))
		return false;
	memcpy(to, image->bytes + (address - BASE), len);
	return true;
}

static void put(struct image *image, uint64_t at, uint64_t word)
{
	memcpy(image->bytes + (at - BASE), &word, sizeof(word));
}

/* `state`: kind << 2, compact 1 << 5, ASCII 1 << 6. */
static void put_text(struct image *image, uint64_t at, uint32_t text_state, const void *data,
		     size_t count, size_t len)
{
	put(image, at + layout.text_count, count);
	put(image, at + layout.text_state, text_state);
	memcpy(image->bytes + (at - BASE) +
		       (text_state & 64 ? layout.text_ascii : layout.text_wide),
	       data, len);
}

static void make_image(struct image *image)
{
	memset(image, 0, sizeof(*image));
	put(image, CODE + layout.type, TYPE + BIAS);
	put(image, CODE + layout.first_line, 2);
	put(image, CODE + layout.file_name, FILE_NAME);
	put(image, CODE + layout.name, NAME);
	put(image, CODE + layout.qualified_name, NAME);
	put(image, CODE + layout.lines, LINES);
	put_text(image, NAME, 1 << 2 | 1 << 5 | 1 << 6, "Area.f", 6, 6);
	put_text(image, FILE_NAME, 1 << 2 | 1 << 5 | 1 << 6, "/srv/app.py", 11, 11);
	put(image, LINES + layout.bytes_count, sizeof(table_3_11));
	memcpy(image->bytes + (LINES - BASE) + layout.bytes_data, table_3_11, sizeof(table_3_11));
}

static enum script_code_result read_code(struct image *image, struct script_code *ret)
{
	struct memory_reader memory = { read_image, image };

	return python_code_read(&memory, &layout, BIAS, 4, CODE, ret);
}

static void a_code_object_has_its_names_and_lines(void **state)
{
	struct script_code code;
	struct image image;

	(void)state;
	make_image(&image);
	assert_int_equal(read_code(&image, &code), SCRIPT_CODE_READ);
	assert_string_equal(code.function, "app.Area.f");
	assert_string_equal(code.name, "Area.f");
	assert_string_equal(code.file, "/srv/app.py");
	assert_int_equal(code.first_line, 2);
	assert_int_equal(python_line(slice_from(code.lines, code.lines_len), code.lines_form,
				     code.first_line, 26),
			 11);
	script_code_fini(&code);
}

/* From 3.13 on binaries say their layout themselves, and any file may say that it is one. */
static void a_layout_beyond_code_objects_reads_nothing(void **state)
{
	struct python_layout wide = layout;
	struct script_code code;
	struct image image;
	struct memory_reader memory = { read_image, &image };

	(void)state;
	make_image(&image);
	wide.lines = 4000;
	assert_int_equal(python_code_read(&memory, &wide, BIAS, 4, CODE, &code), SCRIPT_CODE_OTHER);
	assert_int_equal(image.reads, 0);
}

static void by_pages_it_is_the_same_in_one_read(void **state)
{
	struct script_code direct, code;
	struct image image;
	struct memory_reader memory = { read_image, &image };
	struct code_memory *pages = code_memory_new(&memory);
	struct memory_reader by_pages = code_memory_reader(pages);

	(void)state;
	make_image(&image);
	assert_int_equal(read_code(&image, &direct), SCRIPT_CODE_READ);
	assert_true(image.reads > 6);
	image.reads = 0;
	assert_int_equal(python_code_read(&by_pages, &layout, BIAS, 4, CODE, &code),
			 SCRIPT_CODE_READ);
	assert_int_equal(image.reads, 1);
	assert_string_equal(code.function, direct.function);
	assert_string_equal(code.file, direct.file);
	assert_int_equal(code.proof, direct.proof);
	assert_int_equal(code.lines_len, direct.lines_len);
	assert_memory_equal(code.lines, direct.lines, code.lines_len);
	script_code_fini(&direct);
	script_code_fini(&code);
	free(pages);
}

static void names_may_have_any_characters(void **state)
{
	static const uint8_t latin[] = { 'd', 0xe9, 'j', 0xe0 };
	static const uint16_t wide[] = { 0x6d4b, 0x8bd5, 0xd800 };
	static const uint32_t widest[] = { 0x1d4d0, 'x', 0x110000 };
	static const struct {
		uint32_t kind;
		const void *data;
		size_t count;
		const char *name;
	} cases[] = {
		{ 1, latin, 4, "d\xc3\xa9j\xc3\xa0" },
		{ 2, wide, 3, "\xe6\xb5\x8b\xe8\xaf\x95\xef\xbf\xbd" },
		{ 4, widest, 3, "\xf0\x9d\x93\x90x\xef\xbf\xbd" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		/* As most builds have it, without a global lock, and as 3.14 has it. */
		static const unsigned shifts[] = { 2, 8, 16 };

		for (size_t j = 0; j < COUNT(shifts); j++) {
			struct script_code code;
			struct image image;

			make_image(&image);
			put_text(&image, NAME, (cases[i].kind | 1 << 3) << 2, cases[i].data,
				 cases[i].count, cases[i].count * cases[i].kind);
			put(&image, NAME + layout.text_state,
			    (cases[i].kind | 1 << 3) << shifts[j] | 1);
			assert_int_equal(read_code(&image, &code), SCRIPT_CODE_READ);
			assert_string_equal(code.name, cases[i].name);
			script_code_fini(&code);
		}
	}
}

static void what_is_no_code_object_is_told(void **state)
{
	struct script_code code;
	struct image image;

	(void)state;
	make_image(&image);
	put(&image, CODE + layout.type, TYPE);
	assert_int_equal(read_code(&image, &code), SCRIPT_CODE_OTHER);
	make_image(&image);
	put(&image, CODE + layout.qualified_name, 0);
	assert_int_equal(read_code(&image, &code), SCRIPT_CODE_GONE);
	make_image(&image);
	put(&image, NAME + layout.text_state, 0);
	assert_int_equal(read_code(&image, &code), SCRIPT_CODE_GONE);
}

static void lengths_are_bounded_before_memory_is_taken(void **state)
{
	struct script_code code;
	struct image image;

	(void)state;
	make_image(&image);
	put(&image, NAME + layout.text_count, UINT64_MAX);
	put(&image, LINES + layout.bytes_count, UINT64_MAX);
	assert_int_equal(read_code(&image, &code), SCRIPT_CODE_READ);
	assert_true(strlen(code.name) <= PYTHON_TEXT_MAX * 3);
	assert_null(code.lines);
	assert_true(image.reads <= 8);
	script_code_fini(&code);
	/* A table that ends in memory that is not there. */
	put(&image, NAME + layout.text_count, 1);
	put(&image, LINES + layout.bytes_count, PYTHON_LINES_MAX);
	assert_int_equal(read_code(&image, &code), SCRIPT_CODE_READ);
	assert_null(code.lines);
	script_code_fini(&code);
}

static void another_object_at_the_place_has_another_proof(void **state)
{
	struct script_code first, second;
	struct image image;

	(void)state;
	make_image(&image);
	assert_int_equal(read_code(&image, &first), SCRIPT_CODE_READ);
	put(&image, CODE + layout.lines, LINES + 8);
	assert_int_equal(read_code(&image, &second), SCRIPT_CODE_READ);
	assert_int_not_equal(first.proof, second.proof);
	script_code_fini(&first);
	script_code_fini(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_cpythons),
		cmocka_unit_test(places_outside_of_the_table_have_no_line),
		cmocka_unit_test(modules_are_named_by_their_files),
		cmocka_unit_test(a_code_object_has_its_names_and_lines),
		cmocka_unit_test(a_layout_beyond_code_objects_reads_nothing),
		cmocka_unit_test(by_pages_it_is_the_same_in_one_read),
		cmocka_unit_test(names_may_have_any_characters),
		cmocka_unit_test(what_is_no_code_object_is_told),
		cmocka_unit_test(lengths_are_bounded_before_memory_is_taken),
		cmocka_unit_test(another_object_at_the_place_has_another_proof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
