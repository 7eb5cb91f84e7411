/* SPDX-License-Identifier: Apache-2.0 */
/* Demangling: C++ and Rust names, what is left alone, and inputs made to be expensive. */
#include "server/resolve/display/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/strbuf.h"

static void names_become_what_the_source_says(void **state)
{
	static const struct {
		const char *mangled, *name; /* NULL: left alone */
	} cases[] = {
		{ "_ZN6shapes3box6volumeEi", "shapes::box::volume(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back(int&&)" },
		{ "_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work()" },
		{ "_ZL13unlikely_pathi.cold", "unlikely_path(int) [clone .cold]" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_RNvC6_123foo3bar", "123foo::bar" },
		{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar" },
		{ "_D3std5stdio12__ModuleInfoZ", "ModuleInfo for std.stdio" },
		{ "_D8demangle4testFiZv", "demangle.test(int)" },
		{ "camlStdlib__List__map_123", "Stdlib.List.map" },
		{ "camlMain__fun_1$2b_2", "Main.fun_1+" },
		{ "camlMain", NULL },
		{ "caml_alloc_shr", NULL },
		{ "_DYNAMIC", NULL },
		{ "main", NULL },
		{ "_start", NULL },
		{ "_Z", NULL },
		{ "_ZN", NULL },
		{ "_R", NULL },
		{ "runtime.mallocgc", NULL },
		{ "", NULL },
	};
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct slice name = { "untouched", 9 };
		bool done = demangle(slice_of(cases[i].mangled), &arena, &name);

		if (done != (cases[i].name != NULL) ||
		    !slice_is(name, cases[i].name ? cases[i].name : "untouched"))
			fail_msg("%s gives \"%.*s\"", cases[i].mangled, SLICE_FMT(name));
	}
	arena_free(&arena);
}

static void modes_leave_parts_out(void **state)
{
	static const struct {
		const char *mangled, *templates, *simple;
	} cases[] = {
		{ "_ZNSt6vectorIiSaIiEE9push_backEOi",
		  "std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back" },
		{ "_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work",
		  "(anonymous namespace)::work" },
		{ "_ZN3boxIiElsEi", "box<int>::operator<<", "box::operator<<" },
		{ "_ZN3boxIiEltIcEEvi", "box<int>::operator< <char>", "box::operator<" },
		{ "_ZN3boxIiEptEv", "box<int>::operator->", "box::operator->" },
		{ "_RINvC1a1fiE", "a::f::<isize>", "a::f" },
		{ "_RNvXC1aNtB2_1SNtB2_1T1f", "<a::S as a::T>::f", "<a::S as a::T>::f" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt",
		  "core::fmt::Write::write_fmt" },
	};
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct slice mangled = slice_of(cases[i].mangled), name;

		assert_false(demangle_as(mangled, DEMANGLE_NONE, &arena, &name));
		assert_true(demangle_as(mangled, DEMANGLE_TEMPLATES, &arena, &name));
		assert_string_equal(name.data, cases[i].templates);
		assert_true(demangle_as(mangled, DEMANGLE_SIMPLE, &arena, &name));
		assert_string_equal(name.data, cases[i].simple);
	}
	arena_free(&arena);
}

static void modes_have_names(void **state)
{
	enum demangle_mode mode;

	(void)state;
	assert_true(demangle_parse_mode(slice_of("none"), &mode) && mode == DEMANGLE_NONE);
	assert_true(demangle_parse_mode(slice_of("simple"), &mode) && mode == DEMANGLE_SIMPLE);
	assert_true(demangle_parse_mode(slice_of("templates"), &mode) &&
		    mode == DEMANGLE_TEMPLATES);
	assert_true(demangle_parse_mode(slice_of("full"), &mode) && mode == DEMANGLE_FULL);
	assert_false(demangle_parse_mode(slice_of("most"), &mode));
}

/* Each level names the one before twice: output doubles with every four bytes of input. */
static void exponential_output_is_cut_off(void **state)
{
	struct strbuf mangled = { 0 };
	struct slice name = { "untouched", 9 };
	struct arena arena;

	(void)state;
	arena_init(&arena, 0);
	strbuf_add_text(&mangled, "_Z1fI1AIiiE");
	for (int level = 0; level < 30; level++) {
		char index[4] = "_";

		if (level)
			snprintf(index, sizeof(index), "%c_",
				 level < 11 ? '0' + level - 1 : 'A' + level - 11);
		strbuf_addf(&mangled, "S0_IS%sS%sE", index, index);
	}
	strbuf_add_text(&mangled, "Evv");
	if (demangle(strbuf_slice(&mangled), &arena, &name))
		assert_true(name.len <= DEMANGLE_OUTPUT_BYTES_MAX);
	strbuf_clear(&mangled);
	strbuf_add_text(&mangled, "_Z1f");
	for (int i = 0; i < 100000; i++)
		strbuf_add_byte(&mangled, 'P');
	strbuf_add_byte(&mangled, 'i');
	assert_false(demangle(strbuf_slice(&mangled), &arena, &name));
	strbuf_free(&mangled);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_become_what_the_source_says),
		cmocka_unit_test(modes_leave_parts_out),
		cmocka_unit_test(modes_have_names),
		cmocka_unit_test(exponential_output_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
