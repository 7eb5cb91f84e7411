/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of generated code, and what names of code say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "agent/jit/code_name.h"

static void add(struct code_map_builder *builder, uint64_t start, uint32_t bytes, const char *name)
{
	struct code_place place = { .name = slice_of(name) };

	assert_true(code_map_builder_add(builder, start, bytes, &place));
}

static struct code_map *build(struct code_map_builder *builder, struct code_map *base)
{
	size_t dropped;
	struct code_map *map = code_map_build(builder, base, &dropped);

	assert_int_equal(dropped, 0);
	code_map_unref(base);
	code_map_builder_clear(builder);
	return map;
}

static void expect(const struct code_map *map, uint64_t address, const char *name)
{
	struct code_place place;
	bool found = code_map_find(map, address, &place);

	if (found != (name != NULL) || (name && !slice_is(place.name, name)))
		fail_msg("%#lx: got %.*s, want %s", (unsigned long)address,
			 found ? (int)place.name.len : 4, found ? place.name.data : "none",
			 name ? name : "none");
}

static void the_newest_entry_wins_for_every_address(void **state)
{
	struct code_map_builder builder = { 0 };
	struct code_map *map;

	(void)state;
	add(&builder, 100, 100, "old");
	add(&builder, 150, 20, "inner");
	add(&builder, 190, 30, "tail");
	map = build(&builder, NULL);
	expect(map, 99, NULL);
	expect(map, 100, "old");
	expect(map, 149, "old");
	expect(map, 150, "inner");
	expect(map, 170, "old");
	expect(map, 190, "tail");
	expect(map, 219, "tail");
	expect(map, 220, NULL);
	assert_int_equal(map->count, 4);
	add(&builder, 90, 200, "all");
	map = build(&builder, map);
	assert_int_equal(map->count, 1); /* the older ones are hidden */
	expect(map, 150, "all");
	code_map_unref(map);
	code_map_builder_free(&builder);
}

/* The same by painting an array. */
static void random_entries_equal_painting(void **state)
{
	enum { SPACE = 600, ROUNDS = 300 };
	static char names[64][8];

	(void)state;
	srand(7);
	for (int i = 0; i < 64; i++)
		snprintf(names[i], sizeof(names[i]), "f%d", i % 40);
	for (int round = 0; round < ROUNDS; round++) {
		const char *painted[SPACE] = { 0 };
		struct code_map_builder builder = { 0 };
		struct code_map *map = NULL;

		for (int i = 0; i < 64; i++) {
			uint32_t start = (uint32_t)rand() % (SPACE - 1);
			uint32_t bytes = 1 + (uint32_t)rand() % (i % 3 ? 20 : SPACE - start);

			if (start + bytes > SPACE)
				bytes = SPACE - start;
			add(&builder, start, bytes, names[i]);
			for (uint32_t at = start; at < start + bytes; at++)
				painted[at] = names[i];
			if (i % 16 == round % 16)
				map = build(&builder, map);
		}
		map = build(&builder, map);
		for (uint32_t at = 0; at < SPACE; at++)
			expect(map, at, painted[at]);
		code_map_unref(map);
		code_map_builder_free(&builder);
	}
}

static void what_begins_at_an_address_is_found_while_building(void **state)
{
	struct code_map_builder builder = { 0 };
	struct code_map *map;
	struct code_place place;

	(void)state;
	add(&builder, 100, 10, "base");
	add(&builder, 200, 10, "hidden");
	map = build(&builder, NULL);
	add(&builder, 200, 10, "newer");
	add(&builder, 200, 10, "newest");
	assert_true(code_map_builder_find(&builder, map, 100, &place));
	assert_true(slice_is(place.name, "base"));
	assert_true(code_map_builder_find(&builder, map, 200, &place));
	assert_true(slice_is(place.name, "newest"));
	assert_false(code_map_builder_find(&builder, map, 105, &place)); /* the middle */
	assert_false(code_map_builder_find(&builder, NULL, 100, &place));
	code_map_unref(map);
	code_map_builder_free(&builder);
}

static void places_are_kept_and_cut_at_nul(void **state)
{
	struct code_map_builder builder = { 0 };
	struct code_place place = { SLICE_LITERAL("f\0g"), SLICE_LITERAL("/a.jl"), 12 };
	struct code_map *map;

	(void)state;
	assert_true(code_map_builder_add(&builder, 1, 1, &place));
	place.line = 13;
	assert_true(code_map_builder_add(&builder, 2, 1, &place));
	map = build(&builder, NULL);
	assert_true(code_map_find(map, 1, &place));
	assert_true(slice_is(place.name, "f"));
	assert_true(slice_is(place.file, "/a.jl"));
	assert_int_equal(place.line, 12);
	assert_true(code_map_find(map, 2, &place));
	assert_int_equal(place.line, 13);
	code_map_unref(map);
	code_map_builder_free(&builder);
}

static void texts_are_kept_once(void **state)
{
	struct code_map_builder builder = { 0 };
	struct code_map *map = NULL;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		add(&builder, i * 10, 5, i % 2 ? "StubRoutines (1)" : "Interpreter");
		if (i % 300 == 0)
			map = build(&builder, map);
	}
	map = build(&builder, map);
	assert_int_equal(map->count, 1000);
	assert_true(map->texts.len < 60);
	code_map_unref(map);
	code_map_builder_free(&builder);
}

static void a_full_map_counts_what_it_leaves_out(void **state)
{
	struct code_map_builder builder = { 0 };
	struct code_map *map = NULL, *next;
	struct code_place place = { .name = SLICE_LITERAL("f") };
	size_t dropped = 0, added = 0;

	(void)state;
	while (dropped == 0) {
		while (code_map_builder_add(&builder, added * 10, 5, &place))
			added++;
		next = code_map_build(&builder, map, &dropped);
		code_map_unref(map);
		code_map_builder_clear(&builder);
		map = next;
	}
	assert_int_equal(map->count, CODE_MAP_RANGES_MAX);
	assert_int_equal(added, CODE_MAP_RANGES_MAX + dropped);
	code_map_unref(map);
	code_map_builder_free(&builder);
}

static const struct {
	const char *raw;
	enum frame_kind runtime, kind;
	const char *function, *file;
	uint32_t line;
} names[] = {
	{ "JS:*parse /srv/app/a.js:12:3", FRAME_NATIVE, FRAME_NODE, "parse", "/srv/app/a.js", 12 },
	{ "JS:^get size /srv/my app/a.js:7:30", FRAME_NATIVE, FRAME_NODE, "get size",
	  "/srv/my app/a.js", 7 },
	{ "JS:~ file:///srv/a.mjs:1:1", FRAME_NATIVE, FRAME_NODE, "(anonymous)",
	  "file:///srv/a.mjs", 1 },
	{ "JS:+processTicks node:internal/process/task_queues:67:35", FRAME_NATIVE, FRAME_NODE,
	  "processTicks", "node:internal/process/task_queues", 67 },
	{ "LazyCompile:~heavy /tmp/x.js:5", FRAME_NATIVE, FRAME_NODE, "heavy", "/tmp/x.js", 5 },
	{ "JS:*evaluated evalmachine.<anonymous>:3:4", FRAME_NATIVE, FRAME_NODE, "evaluated",
	  "evalmachine.<anonymous>", 3 },
	{ "JS:*bare", FRAME_NATIVE, FRAME_NODE, "bare", "", 0 },
	{ "Eval:~ /tmp/b.js:1:1", FRAME_NATIVE, FRAME_NODE, "(anonymous)", "/tmp/b.js", 1 },
	{ "Builtin:ArrayPrototypeMap", FRAME_NATIVE, FRAME_NODE, "Builtin:ArrayPrototypeMap", "",
	  0 },
	{ "RegExp:a b:1:2", FRAME_NATIVE, FRAME_NODE, "RegExp:a b:1:2", "", 0 },
	{ "py::Reader.next:/srv/b.py", FRAME_NATIVE, FRAME_PYTHON, "Reader.next", "/srv/b.py", 0 },
	{ "Lcom/acme/Main;::run", FRAME_JVM, FRAME_JVM, "Lcom/acme/Main;::run", "", 0 },
	{ "julia_solve_1234", FRAME_NATIVE, FRAME_NATIVE, "julia_solve_1234", "", 0 },
	{ "JS:", FRAME_NATIVE, FRAME_NATIVE, "JS:", "", 0 },
	{ "JS::1", FRAME_NATIVE, FRAME_NODE, "(anonymous)", "", 0 },
	{ "py::", FRAME_NATIVE, FRAME_PYTHON, "py::", "", 0 },
};

static void names_of_runtimes_are_taken_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct code_place place = { .name = slice_of(names[i].raw) };
		struct code_name got;

		code_name_parse(&place, names[i].runtime, &got);
		if (got.kind != names[i].kind || !slice_is(got.function, names[i].function) ||
		    !slice_is(got.file, names[i].file) || got.line != names[i].line)
			fail_msg("%s: kind %d, \"%.*s\", \"%.*s\", line %u", names[i].raw,
				 (int)got.kind, SLICE_FMT(got.function), SLICE_FMT(got.file),
				 got.line);
	}
}

static void runtimes_are_told_by_their_library(void **state)
{
	(void)state;
	assert_int_equal(code_name_runtime(SLICE_LITERAL("/usr/lib/jvm/lib/server/libjvm.so")),
			 FRAME_JVM);
	assert_int_equal(code_name_runtime(SLICE_LITERAL("/opt/dotnet/libcoreclr.so")),
			 FRAME_DOTNET);
	assert_int_equal(code_name_runtime(SLICE_LITERAL("/usr/bin/luajit-2.1.0-beta3")),
			 FRAME_LUA);
	assert_int_equal(code_name_runtime(SLICE_LITERAL("/srv/libjvm.so/other")), FRAME_NATIVE);
	assert_int_equal(code_name_runtime(SLICE_LITERAL("")), FRAME_NATIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_entry_wins_for_every_address),
		cmocka_unit_test(random_entries_equal_painting),
		cmocka_unit_test(what_begins_at_an_address_is_found_while_building),
		cmocka_unit_test(places_are_kept_and_cut_at_nul),
		cmocka_unit_test(texts_are_kept_once),
		cmocka_unit_test(a_full_map_counts_what_it_leaves_out),
		cmocka_unit_test(names_of_runtimes_are_taken_apart),
		cmocka_unit_test(runtimes_are_told_by_their_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
