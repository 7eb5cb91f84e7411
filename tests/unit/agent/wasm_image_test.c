/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read of an image of WebAssembly that wasmtime has compiled: names, and where functions
 * are known to keep the frame pointer. Laid out by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/shared.h"
#include "agent/jit/code_images.h"
#include "agent/jit/wasm_image.h"
#include "unit/agent/forged_wasm.h"

#define BASE 0x100000ull
#define TEXT (BASE + WASM_TEXT_AT)
#define TEXT_END (TEXT + WASM_TEXT_BYTES)
#define BLOCK (TEXT >> CODE_BLOCK_SHIFT)

static uint8_t image[WASM_BYTES];
static size_t image_bytes;

static bool read_image(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address < BASE || address - BASE > image_bytes || len > image_bytes - (address - BASE))
		return false;
	memcpy(to, image + (address - BASE), len);
	return true;
}

static const struct memory_reader memory = { read_image, NULL };

static int set_up(void **state)
{
	(void)state;
	image_bytes = sizeof(image);
	wasm_forge(image, "42");
	wasm_add_function(image, 0, 0x40, "wasm[0]::function[0]::leaf");
	wasm_add_function(image, 0x1000, 0x80, "wasm[0]::function[1]");
	wasm_add_function(image, 0x2000, 0x80, "wasm[0]::array_to_wasm_trampoline[1]");
	return 0;
}

static struct wasm_image *read_it(void)
{
	return wasm_image_read(&memory, TEXT, TEXT_END);
}

static void assert_none(void)
{
	struct wasm_image *found = read_it();

	assert_null(found);
	wasm_image_unref(found);
}

/* "" = it has none. */
static const char *name_at(const struct wasm_image *found, uint64_t address)
{
	static char text[128];
	struct code_place place;
	struct slice name;

	if (!code_map_find(found->names, address, &place))
		return "";
	name = wasm_image_function(place.name);
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(name));
	return text;
}

static void functions_have_their_own_names_or_their_numbers(void **state)
{
	struct wasm_image *found = read_it();

	(void)state;
	assert_non_null(found);
	assert_int_equal(found->text, TEXT);
	assert_int_equal(found->text_bytes, WASM_TEXT_BYTES);
	assert_string_equal(name_at(found, TEXT), "leaf");
	assert_string_equal(name_at(found, TEXT + 0x3f), "leaf");
	assert_string_equal(name_at(found, TEXT + 0x40), "");
	assert_string_equal(name_at(found, TEXT + 0x1010), "wasm[0]::function[1]");
	assert_string_equal(name_at(found, TEXT + 0x2000), "wasm[0]::array_to_wasm_trampoline[1]");
	wasm_image_unref(found);
}

static void a_name_may_hold_anything(void **state)
{
	(void)state;
	assert_true(slice_is(wasm_image_function(slice_of("wasm[12]::function[3]::a::b[1]")),
			     "a::b[1]"));
	assert_true(slice_is(wasm_image_function(slice_of("wasm[0]::function[3]::")),
			     "wasm[0]::function[3]::"));
	assert_true(slice_is(wasm_image_function(slice_of("wasm[x]::function[3]::a")),
			     "wasm[x]::function[3]::a"));
	assert_true(slice_is(wasm_image_function(slice_of("wasm[0]::function[")),
			     "wasm[0]::function["));
	assert_true(slice_is(wasm_image_function(slice_of("")), ""));
}

static void what_is_no_image_of_wasmtime_is_none(void **state)
{
	(void)state;
	wasm_header(image)->e_ident[EI_OSABI] = ELFOSABI_LINUX;
	assert_none();
	set_up(state);
	wasm_header(image)->e_machine = EM_AARCH64;
	assert_none();
	set_up(state);
	wasm_header(image)->e_shnum = WASM_IMAGE_SECTIONS_MAX + 1;
	assert_none();
	set_up(state);
	wasm_header(image)->e_shstrndx = WASM_SECTIONS;
	assert_none();
	set_up(state);
	wasm_header(image)->e_shoff = WASM_BYTES - 64;
	assert_none();
	set_up(state);
	wasm_section(image, WASM_TEXT)->sh_flags = SHF_ALLOC;
	assert_none();
}

/* The code is all of the executable memory, or its beginning, and right where the header says. */
static void code_that_lies_elsewhere_is_not_its_own(void **state)
{
	(void)state;
	wasm_section(image, WASM_TEXT)->sh_offset = WASM_TEXT_AT + 0x1000;
	assert_none();
	set_up(state);
	wasm_section(image, WASM_TEXT)->sh_size = WASM_TEXT_BYTES + 1;
	assert_none();
	set_up(state);
	assert_null(wasm_image_read(&memory, TEXT + 0x1000, TEXT_END));
	assert_null(wasm_image_read(&memory, TEXT + 8, TEXT_END));
	assert_null(wasm_image_read(&memory, TEXT, TEXT));
}

static void lengths_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	wasm_section(image, WASM_NAMES)->sh_size = WASM_IMAGE_NAMES_BYTES_MAX + 1;
	assert_none();
	set_up(state);
	wasm_section(image, WASM_NAMES)->sh_size = 0;
	assert_none();
	set_up(state);
	wasm_section(image, WASM_SYMBOLS)->sh_size =
		(WASM_IMAGE_SYMBOLS_MAX + 1) * sizeof(Elf64_Sym);
	assert_none();
	set_up(state);
	wasm_section(image, WASM_SYMBOLS)->sh_link = WASM_SECTIONS;
	assert_none();
	set_up(state);
	wasm_section(image, WASM_SYMBOLS)->sh_offset = WASM_BYTES;
	assert_none();
	set_up(state);
	image_bytes = WASM_NAMES_AT; /* it is being unmapped */
	assert_none();
}

static void symbols_beyond_the_code_or_the_names_are_left_out(void **state)
{
	struct wasm_image *found;

	(void)state;
	wasm_symbol(image, 1)->st_value = WASM_TEXT_BYTES;
	wasm_symbol(image, 2)->st_size = WASM_TEXT_BYTES;
	wasm_symbol(image, 3)->st_name = (uint32_t)wasm_section(image, WASM_NAMES)->sh_size;
	found = read_it();
	assert_non_null(found);
	assert_int_equal(found->names->count, 0);
	assert_int_equal(found->blocks, 0); /* nothing is known of any function */
	wasm_image_unref(found);
}

static void assert_framed(const char *blocks)
{
	struct wasm_image *found = read_it();

	assert_non_null(found);
	for (size_t i = 0; i < strlen(blocks); i++)
		assert_int_equal(
			wasm_image_is_framed(found, TEXT + (i << CODE_BLOCK_SHIFT) + 0x20, true),
			blocks[i] == 'x');
	wasm_image_unref(found);
}

/* Elsewhere the register is the caller's, and would leave that out. */
static void the_frame_pointer_counts_between_a_functions_edges(void **state)
{
	struct wasm_image *found = read_it();

	(void)state;
	assert_false(wasm_image_is_framed(found, TEXT, true));
	assert_false(wasm_image_is_framed(found, TEXT + 1, true));
	assert_true(wasm_image_is_framed(found, TEXT + 4, true));
	assert_true(wasm_image_is_framed(found, TEXT + WASM_RETURN_AT - 1, true));
	assert_false(wasm_image_is_framed(found, TEXT + WASM_RETURN_AT, true));
	assert_true(wasm_image_is_framed(found, TEXT, false)); /* what has called has its frame */
	assert_false(wasm_image_is_framed(found, TEXT + 0x100, true)); /* of no function */
	assert_false(wasm_image_is_framed(found, TEXT - 1, false));
	assert_false(wasm_image_is_framed(found, TEXT_END, false));
	wasm_image_unref(found);
}

static void a_function_that_begins_otherwise_is_not_known_up_to_the_next(void **state)
{
	(void)state;
	assert_framed("xxx");
	image[WASM_TEXT_AT + 0x1000] = 0x53; /* push %rbx */
	assert_framed("x.x");
}

static void a_function_that_moves_its_frame_is_not_known_there(void **state)
{
	static const uint8_t move[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
					0xec, 0x20, 0x48, 0x89, 0xe5 };

	(void)state;
	memcpy(image + WASM_TEXT_AT + 0x1000, move, sizeof(move));
	assert_framed("x.x");
	image[WASM_TEXT_AT + 0x1008] = 0x90; /* only a larger frame */
	assert_framed("xxx");
}

/* A tail call may move the return address before it jumps. */
static void a_frame_that_is_left_otherwise_is_not_known_there(void **state)
{
	uint8_t *end = image + WASM_TEXT_AT + 0x1000 + WASM_RETURN_AT;

	(void)state;
	*end = 0xe9; /* jmp */
	assert_framed("xxx");
	memcpy(end, "\x4c\x8b\x1c\x24", 4); /* mov (%rsp),%r11 */
	assert_framed("x.x");
}

static void versions_with_other_tail_calls_keep_their_guess(void **state)
{
	(void)state;
	image[0x41] = 2;
	memcpy(image + 0x42, "20", 2);
	assert_framed("...");
	memcpy(image + 0x42, "12", 2);
	assert_framed("...");
	memcpy(image + 0x42, "11", 2);
	assert_framed("xxx");
	memcpy(image + 0x42, "21", 2);
	assert_framed("xxx");
	image[0x41] = 255;
	memset(image + 0x42, '9', 64);
	assert_framed("xxx");
	image[0x42] = 'x'; /* the embedder says another thing */
	assert_framed("...");
	image[0x42] = '9';
	image[0x40] = 1; /* another form */
	assert_framed("...");
}

/* ---- images of a process ---- */

static struct {
	bool is_framed[4];
	size_t puts;
} kernel;

static void put_line(void *context, uint64_t number, const struct code_line *line)
{
	(void)context;
	assert_in_range(number, CODE_LINE_OF_BLOCK(BLOCK), CODE_LINE_OF_BLOCK(BLOCK + 2));
	kernel.is_framed[number - CODE_LINE_OF_BLOCK(BLOCK)] = line;
	kernel.puts++;
}

static void update(struct code_images *images, struct code_rows *rows)
{
	const struct code_memory_range range = { TEXT, TEXT_END };

	code_rows_begin(rows, 16);
	code_images_update(images, &memory, &range, 1, SIZE_MAX, rows);
	code_rows_take_changes(rows, SIZE_MAX, put_line, NULL);
}

static void an_image_in_the_place_of_another_is_told_apart(void **state)
{
	struct code_images images = { 0 };
	struct code_rows rows = { 0 };
	struct code_image_set *before;
	struct code_place place;

	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	update(&images, &rows);
	assert_int_equal(images.count, 1);
	assert_true(kernel.is_framed[0] && kernel.is_framed[1] && kernel.is_framed[2]);
	update(&images, &rows); /* nothing is new */
	assert_int_equal(kernel.puts, 3);
	before = code_image_set_ref(images.set);

	wasm_forge(image, "42");
	wasm_add_function(image, 0x1000, 0x40, "wasm[0]::function[0]::other");
	image[WASM_TEXT_AT + 0x1000] = 0x53;
	update(&images, &rows);
	assert_int_equal(images.count, 1);
	assert_true(code_image_set_find(images.set, TEXT + 0x1000, &place));
	assert_true(slice_is(wasm_image_function(place.name), "other"));
	assert_false(code_image_set_find(images.set, TEXT, &place));
	assert_true(kernel.is_framed[0] && !kernel.is_framed[1]);
	/* Who has the set before has its names. */
	assert_true(code_image_set_find(before, TEXT, &place));
	assert_true(code_image_set_is_framed(before, TEXT + 4, true));
	code_image_set_unref(before);

	image_bytes = 0;
	update(&images, &rows);
	assert_int_equal(images.count, 0);
	assert_null(images.set);
	assert_false(kernel.is_framed[0] || kernel.is_framed[2]);
	code_images_fini(&images);
	code_rows_fini(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(functions_have_their_own_names_or_their_numbers, set_up),
		cmocka_unit_test_setup(a_name_may_hold_anything, set_up),
		cmocka_unit_test_setup(what_is_no_image_of_wasmtime_is_none, set_up),
		cmocka_unit_test_setup(code_that_lies_elsewhere_is_not_its_own, set_up),
		cmocka_unit_test_setup(lengths_that_do_not_fit_are_refused, set_up),
		cmocka_unit_test_setup(symbols_beyond_the_code_or_the_names_are_left_out, set_up),
		cmocka_unit_test_setup(the_frame_pointer_counts_between_a_functions_edges, set_up),
		cmocka_unit_test_setup(a_function_that_begins_otherwise_is_not_known_up_to_the_next,
				       set_up),
		cmocka_unit_test_setup(a_function_that_moves_its_frame_is_not_known_there, set_up),
		cmocka_unit_test_setup(a_frame_that_is_left_otherwise_is_not_known_there, set_up),
		cmocka_unit_test_setup(versions_with_other_tail_calls_keep_their_guess, set_up),
		cmocka_unit_test_setup(an_image_in_the_place_of_another_is_told_apart, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
