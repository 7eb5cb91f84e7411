/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of the code of a process that runs CoreCLR, in memory that is laid out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/table.h"
#include "agent/runtime/dotnet/dotnet_process.h"
#include "fuzz/dotnet_image_8.h"

#define BIAS 0x100000ull /* of the file; what it points to has addresses already */

static struct dotnet_forged forged;
static bool is_gone;

static bool read_forged(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address == BIAS + DOTNET_BASE)
		address = DOTNET_BASE; /* the page with the word that the symbol names */
	if (is_gone || address < DOTNET_BASE || address - DOTNET_BASE > DOTNET_BYTES ||
	    len > DOTNET_BYTES - (address - DOTNET_BASE))
		return false;
	memcpy(to, forged.bytes + (address - DOTNET_BASE), len);
	return true;
}

static const struct memory_reader memory = { read_forged, NULL };

static int setup(void **state)
{
	struct dotnet_symbols symbols = { .dac = DOTNET_DAC, .major = 8 };

	dotnet_forge(&forged);
	is_gone = false;
	*state = dotnet_process_new(&symbols, BIAS, 7);
	return 0;
}

static int teardown(void **state)
{
	dotnet_process_free(*state);
	return 0;
}

static void look(struct dotnet_process *process, uint64_t wanted)
{
	assert_int_equal(dotnet_process_read(process, &memory, &wanted, wanted != 0),
			 DOTNET_ANSWERED);
}

static void assert_name(const struct dotnet_process *process, uint64_t address, const char *name)
{
	const struct dotnet_function *function = dotnet_process_find(process, address);

	assert_non_null(function);
	assert_non_null(function->name);
	assert_string_equal(function->name, name);
}

static void compiled_methods_and_their_funclets_are_named(void **state)
{
	look(*state, 0);
	assert_name(*state, DOTNET_START, "Shop.Cart.Total");
	assert_name(*state, DOTNET_START + DOTNET_SMALL_BYTES - 1, "Shop.Cart.Total");
	assert_name(*state, DOTNET_FUNCLET + 2, "Shop.Cart.Total");
	assert_null(dotnet_process_find(*state, DOTNET_START - 1));
	assert_null(dotnet_process_find(*state, DOTNET_START + DOTNET_SMALL_BYTES));
}

static void functions_of_images_are_read_when_they_are_wanted(void **state)
{
	uint64_t first = DOTNET_IMAGE_AT + DOTNET_IMAGE_CODE;

	look(*state, 0);
	assert_null(dotnet_process_find(*state, first));
	assert_true(dotnet_process_has(*state, first));
	look(*state, first + 3);
	assert_false(dotnet_process_has_stub(*state, first + 3));
	assert_true(dotnet_process_has_stub(*state, DOTNET_IMAGE_AT + 0x1800));
	assert_name(*state, first, "Shop.Cart+Line.Price");
	look(*state, first + 0x20);
	assert_name(*state, first + 0x20, "Shop.Cart.Total");
	assert_name(*state, first, "Shop.Cart+Line.Price"); /* still */
}

/* The rule of an address, as the kernel's program finds it; 0 = none. */
static uint32_t rule_at(const struct dotnet_process *process, uint64_t address)
{
	const struct dotnet_line *lines;
	size_t count = dotnet_process_lines(process, &lines);
	uint32_t rule = 0;

	for (size_t i = 0; i < count; i++) {
		if (lines[i].number != address >> CODE_LINE_SHIFT || lines[i].is_gone)
			continue;
		for (size_t k = 0; k < TABLE_LINE_WORDS; k++)
			if (lines[i].line.rows[k] <= TABLE_ROW_KEY(address % CODE_LINE_BYTES))
				rule = TABLE_ROW_RULE(lines[i].line.rows[k]);
	}
	return rule;
}

#define RULE_BY_SP(words) ((words) << 1)

static void lines_say_how_the_code_is_left(void **state)
{
	look(*state, 0);
	assert_int_equal(rule_at(*state, DOTNET_START), RULE_BY_SP(1));
	assert_int_equal(rule_at(*state, DOTNET_START + 1), RULE_BY_SP(2));
	assert_int_equal(rule_at(*state, DOTNET_START + 9), RULE_BY_SP(2));
	assert_int_equal(rule_at(*state, DOTNET_START + 10), RULE_BY_SP(1)); /* at ret */
	assert_int_equal(rule_at(*state, DOTNET_START + 11), 0);
	assert_int_equal(rule_at(*state, DOTNET_FUNCLET + 5), RULE_BY_SP(2));
}

static void code_that_went_is_forgotten(void **state)
{
	const struct dotnet_line *lines;

	look(*state, 0);
	dotnet_put(&forged, DOTNET_NIBBLES, 0, 4);
	look(*state, 0);
	assert_null(dotnet_process_find(*state, DOTNET_START));
	assert_false(dotnet_process_has_stub(*state, DOTNET_START));
	assert_int_equal(dotnet_process_lines(*state, &lines), 2);
	assert_true(lines[0].is_gone);
	assert_true(lines[1].is_gone);
	/* It may have samples that have no name yet. */
	assert_null(dotnet_process_find_gone(*state, DOTNET_START - 1));
	assert_string_equal(dotnet_process_find_gone(*state, DOTNET_START)->name,
			    "Shop.Cart.Total");
	look(*state, 0);
	assert_non_null(dotnet_process_find_gone(*state, DOTNET_START));
	dotnet_process_forget(*state);
	assert_null(dotnet_process_find_gone(*state, DOTNET_START));
}

static void another_method_at_the_place_is_told_from_the_first(void **state)
{
	look(*state, 0);
	dotnet_put_bytes(&forged, DOTNET_HEADER + 0x100,
			 forged.bytes + (DOTNET_HEADER - DOTNET_BASE), 64);
	dotnet_put(&forged, DOTNET_START - 8, DOTNET_HEADER + 0x100, 8);
	dotnet_put(&forged, DOTNET_METHOD, 2, 2);
	look(*state, 0);
	assert_name(*state, DOTNET_START, "Shop.Cart+Line.Price");
}

static void what_was_known_stays_when_the_process_has_ended(void **state)
{
	look(*state, 0);
	is_gone = true;
	look(*state, 0);
	assert_name(*state, DOTNET_START, "Shop.Cart.Total");
}

static void a_runtime_that_starts_is_asked_again(void **state)
{
	dotnet_put(&forged, DOTNET_DAC, 0, 8);
	assert_int_equal(dotnet_process_read(*state, &memory, NULL, 0), DOTNET_NOT_YET);
	dotnet_put(&forged, DOTNET_DAC, DOTNET_LEVELS, 8);
	look(*state, 0);
	assert_name(*state, DOTNET_START, "Shop.Cart.Total");
}

static void other_versions_are_not_guessed(void **state)
{
	struct dotnet_symbols symbols = { .dac = DOTNET_DAC, .major = 9 };
	struct dotnet_process *process = dotnet_process_new(&symbols, BIAS, 1);

	(void)state;
	assert_int_equal(dotnet_process_read(process, &memory, NULL, 0), DOTNET_UNKNOWN);
	dotnet_process_free(process);
}

static void dynamic_methods_have_the_name_that_they_were_given(void **state)
{
	dotnet_put(&forged, DOTNET_METHOD + 6, 7, 2);
	dotnet_put(&forged, DOTNET_METHOD + 24, DOTNET_METADATA + 0x400 + DOTNET_S_LINE, 8);
	look(*state, 0);
	assert_name(*state, DOTNET_START, "dynamicClass.Line");
}

static void a_method_without_metadata_has_rows_and_no_name(void **state)
{
	const struct dotnet_function *function;

	dotnet_put(&forged, DOTNET_MODULE + 0x108, 0x1010, 8);
	look(*state, 0);
	function = dotnet_process_find(*state, DOTNET_START);
	assert_non_null(function);
	assert_null(function->name);
	assert_int_equal(rule_at(*state, DOTNET_START + 1), RULE_BY_SP(2));
}

/* Tables of types that say that each lies within the other. */
static void types_that_are_nested_in_circles_have_no_name(void **state)
{
	uint64_t nested = DOTNET_METADATA + 0x60 + 36 + 5 * 14;

	dotnet_put(&forged, nested, 2, 2);
	dotnet_put(&forged, nested + 2, 2, 2);
	look(*state, 0);
	assert_null(dotnet_process_find(*state, DOTNET_START)->name);
}

static void a_map_that_leads_back_to_itself_ends(void **state)
{
	for (unsigned int i = 0; i < 256; i++)
		dotnet_put(&forged, DOTNET_LEVELS + 8 * i, DOTNET_LEVELS, 8);
	look(*state, DOTNET_START);
	assert_null(dotnet_process_find(*state, DOTNET_START));
	assert_true(dotnet_process_is_nothing(*state, DOTNET_START));
	dotnet_process_forget(*state);
	assert_false(dotnet_process_is_nothing(*state, DOTNET_START));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(compiled_methods_and_their_funclets_are_named,
						setup, teardown),
		cmocka_unit_test_setup_teardown(functions_of_images_are_read_when_they_are_wanted,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lines_say_how_the_code_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(code_that_went_is_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(another_method_at_the_place_is_told_from_the_first,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_known_stays_when_the_process_has_ended,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_runtime_that_starts_is_asked_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(other_versions_are_not_guessed, setup, teardown),
		cmocka_unit_test_setup_teardown(dynamic_methods_have_the_name_that_they_were_given,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_method_without_metadata_has_rows_and_no_name,
						setup, teardown),
		cmocka_unit_test_setup_teardown(types_that_are_nested_in_circles_have_no_name,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_map_that_leads_back_to_itself_ends, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
