/* SPDX-License-Identifier: Apache-2.0 */
/* Profile types: their parts, what is refused, and the way back to text. */
#include "model/profile_type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void profile_type_has_five_parts_and_perhaps_delta(void **state)
{
	static const char *const texts[] = {
		"on_cpu:samples:count:cpu:nanoseconds:delta",
		"memory:inuse_space:bytes:space:bytes",
		"x:y:z::",
		"x:y:z:::delta",
		"with space:a-b:c/d:e.f:g",
		"a:b::d:e",
		"widgets:widgets::::delta",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct profile_type type;
		struct strbuf out = { 0 };

		assert_int_equal(profile_type_parse(slice_of(texts[i]), &type, NULL), 0);
		assert_int_equal(type.delta, !!strstr(texts[i], ":delta"));
		profile_type_format(&out, &type);
		assert_string_equal(strbuf_text(&out), texts[i]);
		strbuf_free(&out);
	}
}

static void profile_type_refuses_other_shapes(void **state)
{
	static const char *const texts[] = { "",
					     "a",
					     "a:b:c:d",
					     ":b:c:d:e",
					     "a::c:d:e",
					     "a:b:c:d:e:",
					     "a:b:c:d:e:gauge",
					     "a:b:c:d:e:delta:",
					     "a:b:c:d:e:delta:delta" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct profile_type type = { .delta = true };
		struct err err = { 0 };

		assert_int_equal(profile_type_parse(slice_of(texts[i]), &type, &err), -ERR_INVALID);
		assert_non_null(strstr(err.message, "expected name:sample_type"));
		assert_true(type.delta && !type.name.data);
	}
}

static void profile_type_of_a_column_and_its_copy_are_equal(void **state)
{
	struct tables tables;
	struct tables_view view;
	struct profile_type type, copy, other;
	struct group group = { .column_count = 2 };
	struct column columns[2];
	struct arena arena;
	uint32_t id;

	(void)state;
	tables_init(&tables);
	arena_init(&arena, 0);
	group.name = tables_string(&tables, SLICE_LITERAL("memory"));
	for (uint32_t i = 0; i < 2; i++)
		columns[i] = (struct column){ tables_string(&tables, SLICE_LITERAL("space")),
					      tables_string(&tables, SLICE_LITERAL("bytes")),
					      i ? COLUMN_GAUGE : COLUMN_DELTA };
	id = tables_group(&tables, &group, columns);
	view = tables_view_of(&tables);
	type = profile_type_of(&view, id, 0);
	other = profile_type_of(&view, id, 1);
	copy = profile_type_copy(&type, &arena);
	assert_true(profile_type_equal(&type, &copy));
	assert_false(profile_type_equal(&type, &other));
	arena_free(&arena);
	tables_free(&tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_type_has_five_parts_and_perhaps_delta),
		cmocka_unit_test(profile_type_refuses_other_shapes),
		cmocka_unit_test(profile_type_of_a_column_and_its_copy_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
