/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of the code of a process that runs Mono, in memory that is laid out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/dotnet/dotnet_process.h"
#include "fuzz/mono_image_6.h"

#define BIAS 0x100000ull /* of the file; what it points to has addresses already */

static struct mono_forged forged;
static bool is_gone;
static int changing; /* reads of the chunk while it is none */

static bool read_forged(void *context, uint64_t address, void *to, size_t len)
{
	(void)context;
	if (address == BIAS + MONO_DATA)
		address = MONO_DATA;
	if (is_gone || address < MONO_BASE || address - MONO_BASE > MONO_BYTES ||
	    len > MONO_BYTES - (address - MONO_BASE))
		return false;
	memcpy(to, forged.bytes + (address - MONO_BASE), len);
	if (changing && MONO_CHUNK - address + 4 < len && changing--)
		((uint8_t *)to)[MONO_CHUNK - address + 4] = UINT8_MAX;
	return true;
}

static const struct memory_reader memory = { read_forged, NULL };

static int setup(void **state)
{
	struct dotnet_symbols symbols = { .mono = MONO_SYMBOLS };

	mono_forge(&forged);
	is_gone = false;
	changing = 0;
	*state = dotnet_process_new(&symbols, BIAS, 7);
	return 0;
}

static int teardown(void **state)
{
	dotnet_process_free(*state);
	return 0;
}

static void look(struct dotnet_process *process)
{
	assert_int_equal(dotnet_process_read(process, &memory, NULL, 0), DOTNET_ANSWERED);
}

static void assert_name(const struct dotnet_process *process, uint64_t address, const char *name)
{
	const struct dotnet_function *function = dotnet_process_find(process, address);

	assert_non_null(function);
	assert_non_null(function->name);
	assert_string_equal(function->name, name);
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
#define RULE_BY_FP(words, fp) (1u | (words) << 1 | (fp) << 11)

static void methods_and_trampolines_are_named(void **state)
{
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
	assert_name(*state, MONO_CODE(MONO_PRICE) + MONO_CODE_BYTES - 1, "Shop.Cart+Line.Price");
	assert_name(*state, MONO_CODE(MONO_STUB), "[stub]");
	assert_true(dotnet_process_has(*state, MONO_CODE(MONO_TOTAL)));
	assert_false(dotnet_process_has(*state, MONO_CODE(MONO_TOTAL) + MONO_CODE_BYTES));
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_TOTAL) - 1));
}

static void code_without_frame_pointer_has_rows(void **state)
{
	uint64_t code = MONO_CODE(MONO_TOTAL);

	look(*state);
	assert_int_equal(rule_at(*state, code), RULE_BY_SP(1));
	assert_int_equal(rule_at(*state, code + 4), RULE_BY_SP(4));
	assert_int_equal(rule_at(*state, code + MONO_END + 3), RULE_BY_SP(4));
	assert_int_equal(rule_at(*state, code + MONO_END + 4), RULE_BY_SP(1)); /* at ret */
	/* What is done out of line comes behind it. */
	assert_int_equal(rule_at(*state, code + MONO_END + 5), RULE_BY_SP(4));
	assert_int_equal(rule_at(*state, code + MONO_CODE_BYTES), 0);
}

static void code_with_frame_pointer_and_clauses_has_rows(void **state)
{
	uint64_t code = MONO_CODE(MONO_PRICE);

	look(*state);
	assert_int_equal(rule_at(*state, code + 1), RULE_BY_SP(2) | 1u << 11);
	assert_int_equal(rule_at(*state, code + 4), RULE_BY_FP(2, 1u));
	assert_int_equal(rule_at(*state, code + MONO_END), RULE_BY_FP(2, 1u));
	assert_int_equal(rule_at(*state, code + MONO_END + 1), RULE_BY_SP(1));
	assert_int_equal(rule_at(*state, code + MONO_END + 2), RULE_BY_FP(2, 1u));
}

static void a_caller_s_frame_pointer_may_be_far_away(void **state)
{
	uint64_t code = MONO_CODE(MONO_FAR);
	uint32_t rule;

	look(*state);
	rule = rule_at(*state, code + 0x80);
	assert_true(rule & CODE_RULE_FAR);
	assert_int_equal(TABLE_RULE_CFA(rule), 0xe0 / 8);
	assert_int_equal(CODE_RULE_FAR_FP(rule), 21);
	assert_int_equal(rule_at(*state, code + 8), RULE_BY_SP(0xe0 / 8));
}

/* Trampolines say that the caller's registers are in the copies that they make. */
static void trampolines_are_left_by_their_usual_frame(void **state)
{
	uint64_t code = MONO_CODE(MONO_STUB);

	look(*state);
	assert_int_equal(rule_at(*state, code), RULE_BY_SP(2));
	assert_int_equal(rule_at(*state, code + 7), RULE_BY_SP(1));
	assert_int_equal(rule_at(*state, code + 0x40), RULE_BY_FP(2, 1u));
	assert_int_equal(rule_at(*state, code + 0xf0), RULE_BY_SP(1));
}

/* Sizes of structures may be other ones than those that we know. */
static void a_method_whose_end_does_not_return_has_no_rows(void **state)
{
	mono_put(&forged, MONO_CODE(MONO_TOTAL) + MONO_END + 4, 0x90, 1);
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
	assert_int_equal(rule_at(*state, MONO_CODE(MONO_TOTAL) + 0x20), 0);
	assert_int_equal(rule_at(*state, MONO_CODE(MONO_PRICE) + 0x20), RULE_BY_FP(2, 1u));
}

static void a_program_that_is_not_understood_gives_no_rows(void **state)
{
	mono_put(&forged, MONO_UNWIND(MONO_TOTAL) + 4 + 5, 0x3f, 1);
	mono_put(&forged, MONO_INFO(MONO_FAR) + 24, 1u << 30, 4); /* none has such a number */
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
	assert_int_equal(rule_at(*state, MONO_CODE(MONO_TOTAL)), 0);
	assert_int_equal(rule_at(*state, MONO_CODE(MONO_FAR)), 0);
}

static void what_is_loading_or_of_files_or_gone_is_left_out(void **state)
{
	mono_put(&forged, MONO_INFO(MONO_TOTAL) + 32, 1u << MONO_LOADING, 4);
	mono_put(&forged, MONO_INFO(MONO_PRICE) + 32, 1u << MONO_FROM_FILE, 4);
	mono_put(&forged, MONO_INFO(MONO_FAR), 0, 8);
	look(*state);
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_TOTAL)));
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_PRICE)));
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_FAR)));
	assert_name(*state, MONO_CODE(MONO_STUB), "[stub]");
}

/* The list of domains has the first one, too, and places of those that were unloaded. */
static void methods_of_all_domains_are_read(void **state)
{
	const uint64_t list = 0x2a00, domain = 0x2b00, table = 0x2f80, chunk = 0x5000;

	mono_put(&forged, MONO_DATA + 8, list, 8);
	mono_put(&forged, MONO_DATA + 24, 3, 2);
	mono_put(&forged, list, MONO_DOMAIN, 8);
	mono_put(&forged, list + 16, domain, 8);
	mono_put(&forged, domain + 0x148, table, 8);
	mono_put(&forged, table, domain, 8);
	mono_put(&forged, table + 8, 1, 4);
	mono_put(&forged, table + 16, chunk, 8);
	mono_put(&forged, chunk + 4, 1, 4);
	mono_put(&forged, chunk + 24, MONO_INFO(MONO_PRICE), 8);
	mono_put(&forged, MONO_CHUNK + 4, 1, 4);
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
	assert_name(*state, MONO_CODE(MONO_PRICE), "Shop.Cart+Line.Price");
	mono_put(&forged, list + 16, 0, 8);
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_PRICE)));
}

static void code_that_went_is_forgotten(void **state)
{
	const struct dotnet_line *lines;

	look(*state);
	mono_put(&forged, MONO_CHUNK + 4, 1, 4);
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_PRICE)));
	assert_int_equal(dotnet_process_lines(*state, &lines),
			 3 * MONO_CODE_BYTES / CODE_LINE_BYTES);
	for (size_t i = 0; i < 6; i++)
		assert_true(lines[i].is_gone);
}

static void another_method_at_the_place_is_told_from_the_first(void **state)
{
	look(*state);
	mono_put(&forged, MONO_INFO(MONO_TOTAL), MONO_METHOD(MONO_FAR), 8);
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Far");
}

static void what_was_known_stays_when_the_process_has_ended(void **state)
{
	look(*state);
	is_gone = true;
	assert_int_equal(dotnet_process_read(*state, &memory, NULL, 0), DOTNET_NOT_YET);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
}

static void a_runtime_that_starts_is_asked_again(void **state)
{
	mono_put(&forged, MONO_DATA, 0, 8);
	assert_int_equal(dotnet_process_read(*state, &memory, NULL, 0), DOTNET_NOT_YET);
	mono_put(&forged, MONO_DATA, MONO_DOMAIN, 8);
	mono_put(&forged, MONO_DATA + 32, 0, 8);
	assert_int_equal(dotnet_process_read(*state, &memory, NULL, 0), DOTNET_NOT_YET);
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_TOTAL)));
	mono_put(&forged, MONO_DATA + 32, MONO_UNWINDS, 8);
	look(*state);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
}

static void tables_of_another_form_are_not_guessed(void **state)
{
	mono_put(&forged, MONO_CHUNK + 4, 65, 4);
	assert_int_equal(dotnet_process_read(*state, &memory, NULL, 0), DOTNET_UNKNOWN);
	mono_put(&forged, MONO_CHUNK + 4, 32, 4);
	for (unsigned int i = MONO_ENTRIES; i < 32; i++)
		mono_put(&forged, MONO_CHUNK + 24 + 8ull * i, MONO_INFO(MONO_TOTAL), 8);
	mono_put(&forged, MONO_DATA + 32, 0, 8);
	assert_int_equal(dotnet_process_read(*state, &memory, NULL, 0), DOTNET_UNKNOWN);
}

static void a_table_that_changes_is_read_again(void **state)
{
	changing = 1;
	look(*state);
	assert_int_equal(changing, 0);
	assert_name(*state, MONO_CODE(MONO_TOTAL), "Shop.Cart.Total");
}

static void classes_that_are_nested_in_circles_have_no_name(void **state)
{
	mono_put(&forged, MONO_CART + 48, MONO_LINE, 8);
	look(*state);
	assert_null(dotnet_process_find(*state, MONO_CODE(MONO_TOTAL))->name);
	assert_int_equal(rule_at(*state, MONO_CODE(MONO_TOTAL)), RULE_BY_SP(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(methods_and_trampolines_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(code_without_frame_pointer_has_rows, setup,
						teardown),
		cmocka_unit_test_setup_teardown(code_with_frame_pointer_and_clauses_has_rows, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_caller_s_frame_pointer_may_be_far_away, setup,
						teardown),
		cmocka_unit_test_setup_teardown(trampolines_are_left_by_their_usual_frame, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_method_whose_end_does_not_return_has_no_rows,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_program_that_is_not_understood_gives_no_rows,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_loading_or_of_files_or_gone_is_left_out,
						setup, teardown),
		cmocka_unit_test_setup_teardown(methods_of_all_domains_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(code_that_went_is_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(another_method_at_the_place_is_told_from_the_first,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_known_stays_when_the_process_has_ended,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_runtime_that_starts_is_asked_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(tables_of_another_form_are_not_guessed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_table_that_changes_is_read_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(classes_that_are_nested_in_circles_have_no_name,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
