/* SPDX-License-Identifier: Apache-2.0 */
/* Tables from hand-made ranges, rows and symbols: random ones beside a search that looks at all. */
#include "server/resolve/table/symbol_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "made_table.h"

#define LOW 0xfffff000ull /* ranges lie on both sides of a 32-bit boundary */
#define LEN 0x4000ull
#define BUDGET ((size_t)64 << 20)

static unsigned seed = 1;

static uint64_t draw(uint64_t end)
{
	return (uint64_t)rand_r(&seed) % end;
}

static void begin(struct symbol_builder *builder)
{
	symbol_builder_init(builder, BUDGET, -1);
	symbol_builder_code(builder, LOW + 0x100, LOW + LEN);
	symbol_builder_code(builder, LOW, LOW + 0x200);
	symbol_builder_code_done(builder);
}

/* A scope whose function and line tell its number. */
static uint32_t add_scope(struct symbol_builder *builder, uint32_t parent, uint32_t number)
{
	struct symbol_function function = { .line = number };
	char name[16];

	snprintf(name, sizeof(name), "f%u", number);
	function.name = symbol_builder_text(builder, slice_of(name));
	return symbol_builder_scope(
		builder,
		&(struct symbol_scope){ .parent = parent,
					.function = symbol_builder_function(builder, &function) });
}

static uint32_t innermost(const struct made_table *made, uint64_t address)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];

	return symbol_texts_lookup(made->texts, address, lines) ? lines[0].start_line : 0;
}

struct together {
	const struct made_table *made;
	uint64_t addresses[1000];
	size_t answers;
};

static void compare_answer(void *context, size_t index, const struct symbol_frame *frames,
			   size_t count)
{
	struct together *together = context;
	struct symbol_frame alone[SYMBOL_CHAIN_MAX];

	together->answers++;
	assert_int_equal(symbol_lookup(together->made->table, together->addresses[index], alone),
			 count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(frames[i].function, alone[i].function);
		assert_int_equal(frames[i].line, alone[i].line);
	}
}

static void compare_location(const struct together *together, size_t index,
			     const struct symbol_location *location)
{
	struct symbol_frame alone[SYMBOL_CHAIN_MAX];
	size_t count = symbol_lookup(together->made->table, together->addresses[index], alone);
	uint32_t scope = location->scope, line = location->line;

	if (scope == SYMBOL_NONE)
		assert_true(!count || alone[0].function == SYMBOL_NONE);
	for (size_t i = 0; scope != SYMBOL_NONE; i++) {
		struct symbol_caller caller;

		assert_true(i < count);
		assert_true(symbol_lookup_scope(together->made->table, scope, &caller));
		assert_int_equal(alone[i].function, caller.function);
		assert_int_equal(alone[i].line, line);
		scope = caller.scope;
		line = caller.line;
		assert_int_equal(scope == SYMBOL_NONE, i + 1 == count);
	}
}

/* Of addresses in any order, each has the answer that it has alone. */
static void expect_together(struct made_table *made)
{
	struct together together = { .made = made };
	struct symbol_location locations[1000];

	for (size_t i = 0; i < 1000; i++)
		together.addresses[i] = LOW - 10 + draw(LEN + 20);
	symbol_lookup_many(made->table, together.addresses, 1000, compare_answer, &together);
	assert_int_equal(together.answers, 1000);
	symbol_lookup_locations(made->table, together.addresses, 1000, locations);
	for (size_t i = 0; i < 1000; i++)
		compare_location(&together, i, &locations[i]);
}

static void nested_ranges_answer_as_a_full_search_does(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		struct address_range ranges[200];
		struct symbol_builder builder;
		struct made_table made;
		uint32_t count = 0;

		begin(&builder);
		for (uint64_t at = LOW; at < LOW + LEN - 200 && count < 180; at += draw(300)) {
			uint64_t low = at, high = at + 1 + draw(200);
			uint32_t parent = SYMBOL_NONE;

			at = high;
			while (low < high && count < 190) {
				uint32_t scope = add_scope(&builder, parent, count + 1);

				symbol_builder_range(&builder, low, high, scope);
				ranges[count++] = (struct address_range){ low, high, scope };
				parent = scope;
				low += draw(40);
				high -= draw(40);
			}
		}
		assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
		for (uint64_t at = LOW - 10; at < LOW + LEN + 10; at++) {
			uint32_t want = 0;

			for (uint32_t i = 0; i < count; i++)
				if (ranges[i].low <= at && at < ranges[i].high)
					want = i + 1;
			assert_int_equal(innermost(&made, at), want);
		}
		expect_together(&made);
		made_table_free(&made);
		symbol_builder_free(&builder);
	}
}

static void line_rows_answer_as_a_full_search_does(void **state)
{
	struct symbol_line_row rows[1000];
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct symbol_builder builder;
	struct made_table made;
	uint64_t at = LOW;
	size_t count = 0;
	uint32_t a;

	(void)state;
	begin(&builder);
	a = symbol_builder_text(&builder, SLICE_LITERAL("a.c"));
	symbol_builder_range(&builder, LOW, LOW + LEN, add_scope(&builder, SYMBOL_NONE, 1));
	while (count < 1000) {
		struct symbol_line_row *row = &rows[count++];

		*row = (struct symbol_line_row){
			.address = at += draw(20),
			.file = symbol_builder_text(&builder, slice_of(draw(3) ? "a.c" : "b.c")),
			.line = (uint32_t)draw(5) ? 1 + (uint32_t)draw(100) : UINT32_MAX,
		};
		symbol_builder_row(&builder, row);
	}
	symbol_builder_end_sequence(&builder, at + 5);
	symbol_builder_row(&builder,
			   &(struct symbol_line_row){ .address = 0, .line = 9 }); /* dead */
	symbol_builder_end_sequence(&builder, 100);
	assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
	for (uint64_t address = LOW; address < at + 20; address++) {
		const struct symbol_line_row *want = NULL;

		for (size_t i = 0; i < count; i++)
			if (rows[i].address <= address && address < at + 5)
				want = &rows[i];
		assert_int_equal(symbol_texts_lookup(made.texts, address, lines), 1);
		assert_int_equal(lines[0].line, want ? want->line : 0);
		if (want)
			assert_string_equal(lines[0].file.data, want->file == a ? "a.c" : "b.c");
	}
	made_table_free(&made);
	symbol_builder_free(&builder);
}

/* A sequence may say once more where it is before it ends there. */
static void a_row_where_its_sequence_ends_holds_for_nothing(void **state)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct symbol_builder builder;
	struct made_table made;

	(void)state;
	begin(&builder);
	symbol_builder_row(&builder, &(struct symbol_line_row){ .address = LOW, .line = 1 });
	symbol_builder_row(&builder, &(struct symbol_line_row){ .address = LOW + 4, .line = 2 });
	symbol_builder_end_sequence(&builder, LOW + 4);
	assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
	assert_int_equal(symbol_texts_lookup(made.texts, LOW + 3, lines), 1);
	assert_int_equal(lines[0].line, 1);
	assert_int_equal(lines[0].name.len + lines[0].linkage_name.len, 0);
	assert_int_equal(symbol_texts_lookup(made.texts, LOW + 4, lines), 0);
	made_table_free(&made);
	symbol_builder_free(&builder);
}

static void add_symbol(struct symbol_builder *builder, uint64_t address, uint64_t size,
		       const char *name, uint32_t rank)
{
	symbol_builder_symbol(builder, &(struct symbol_candidate){
					       .address = address,
					       .size = size,
					       .section_end = LOW + LEN,
					       .name = symbol_builder_text(builder, slice_of(name)),
					       .rank = rank });
}

static void expect_symbol(const struct made_table *made, uint64_t address, const char *name)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	size_t count = symbol_texts_lookup(made->texts, address, lines);

	assert_string_equal(count ? lines[0].name.data : "", name);
}

static void code_at_address_0_is_a_function_of_its_own(void **state)
{
	struct symbol_builder builder;
	struct made_table made;

	(void)state;
	symbol_builder_init(&builder, BUDGET, -1);
	symbol_builder_code(&builder, 0, LEN);
	symbol_builder_code_done(&builder);
	/* Lines are kept before the scopes. */
	symbol_builder_row(&builder, &(struct symbol_line_row){ .address = 0x100, .line = 1 });
	symbol_builder_end_sequence(&builder, 0x200);
	symbol_builder_range(&builder, 0, 0x80, add_scope(&builder, SYMBOL_NONE, 1));
	symbol_builder_range(&builder, 0x200, 0x280, add_scope(&builder, SYMBOL_NONE, 2));
	assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
	assert_int_equal(innermost(&made, 0), 1);
	assert_int_equal(innermost(&made, 0x7f), 1);
	assert_int_equal(innermost(&made, 0x80), 0);
	made_table_free(&made);
	symbol_builder_free(&builder);
}

static void best_symbol_wins_and_sizes_bound(void **state)
{
	struct symbol_builder builder;
	struct made_table made;

	(void)state;
	begin(&builder);
	add_symbol(&builder, LOW + 0x10, 0x10, "__alias", 1);
	add_symbol(&builder, LOW + 0x10, 0x10, "name", 2);
	add_symbol(&builder, LOW + 0x18, 0, "label_inside", 3);
	add_symbol(&builder, LOW + 0x30, 0, "sizeless", 1);
	add_symbol(&builder, LOW + 0x40, 0x8, "last", 1);
	add_symbol(&builder, LOW + LEN, 0x8, "outside", 1);
	assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
	expect_symbol(&made, LOW + 0xf, "");
	expect_symbol(&made, LOW + 0x10, "name");
	expect_symbol(&made, LOW + 0x1f, "name");
	expect_symbol(&made, LOW + 0x20, "");
	expect_symbol(&made, LOW + 0x3f, "sizeless");
	expect_symbol(&made, LOW + 0x47, "last");
	expect_symbol(&made, LOW + 0x48, "");
	expect_symbol(&made, LOW + LEN, "");
	made_table_free(&made);
	symbol_builder_free(&builder);
}

static void add_extent(struct symbol_builder *builder, uint64_t low, uint64_t high, uint64_t entry)
{
	symbol_builder_extent(builder,
			      &(struct symbol_extent){ LOW + low, LOW + high, LOW + entry });
}

static void expect_unnamed(const struct made_table *made, uint64_t address, uint64_t start)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	char name[32];

	snprintf(name, sizeof(name), "+0x%llx", (unsigned long long)(LOW + start));
	assert_int_equal(symbol_texts_lookup(made->texts, LOW + address, lines), 1);
	assert_string_equal(lines[0].name.data, name);
	assert_true(lines[0].is_unnamed);
}

static void functions_without_names_are_called_by_their_start(void **state)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct symbol_builder builder;
	struct made_table made;

	(void)state;
	begin(&builder);
	add_symbol(&builder, LOW + 0x40, 0x20, "sized", 1);
	add_symbol(&builder, LOW + 0x80, 0, "start", 1);
	add_symbol(&builder, LOW + 0x90, 0, "label", 2);
	add_symbol(&builder, LOW + 0xe8, 0, "before", 1);
	symbol_builder_range(&builder, LOW + 0x400, LOW + 0x440,
			     add_scope(&builder, SYMBOL_NONE, 7));
	add_extent(&builder, 0x10, 0x20, 0x10);
	add_extent(&builder, 0x20, 0x30, 0x20);
	add_extent(&builder, 0x20, 0x30, 0x20); /* of another file */
	add_extent(&builder, 0x40, 0x60, 0x40);
	add_extent(&builder, 0x80, 0xa0, 0x80);
	add_extent(&builder, 0xf0, 0x100, 0xf0);
	add_extent(&builder, 0x400, 0x450, 0x400); /* DWARF knows most of it */
	add_extent(&builder, LEN - 8, LEN + 8, LEN - 8);
	add_extent(&builder, 0x200, 0x210, 0x10); /* parts */
	add_extent(&builder, 0x210, 0x220, 0x40);
	add_extent(&builder, 0x220, 0x230, 0x3000); /* of nothing known */
	assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
	expect_symbol(&made, LOW + 0xf, "");
	expect_unnamed(&made, 0x10, 0x10);
	expect_unnamed(&made, 0x1f, 0x10);
	expect_unnamed(&made, 0x20, 0x20);
	expect_symbol(&made, LOW + 0x30, "");
	expect_symbol(&made, LOW + 0x5f, "sized");
	expect_symbol(&made, LOW + 0x60, "");
	expect_symbol(&made, LOW + 0x9f, "start"); /* as far as the function, labels and all */
	expect_symbol(&made, LOW + 0xa0, "");
	expect_symbol(&made, LOW + 0xef, "before"); /* and no further than the next one */
	expect_unnamed(&made, 0xf0, 0xf0);
	expect_unnamed(&made, 0x20f, 0x10);
	expect_symbol(&made, LOW + 0x210, "sized");
	expect_unnamed(&made, 0x22f, 0x220);
	assert_int_equal(innermost(&made, LOW + 0x43f), 7);
	expect_unnamed(&made, 0x440, 0x400);
	expect_unnamed(&made, LEN - 1, LEN - 8);
	assert_int_equal(symbol_texts_lookup(made.texts, LOW + LEN, lines), 0);
	assert_int_equal(symbol_table_stats(made.table).unnamed, 6);
	made_table_free(&made);
	symbol_builder_free(&builder);
}

static void extents_at_random_are_of_some_function(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct symbol_builder builder;
		struct made_table made;
		uint8_t covered[LEN] = { 0 };

		begin(&builder);
		for (unsigned i = 0; i < 40; i++) {
			uint64_t low = draw(LEN), high = low + draw(0x200), entry = draw(LEN);
			bool is_symbol = draw(2);

			if (is_symbol)
				add_symbol(&builder, LOW + low, high - low + 1, "f", 1);
			else
				add_extent(&builder, low, high, draw(4) ? low : entry);
			for (uint64_t at = low; !is_symbol && at < high && at < LEN; at++)
				covered[at] = 1;
		}
		assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
		for (uint64_t at = 0; at < LEN; at++) {
			struct symbol_line lines[SYMBOL_CHAIN_MAX];

			if (covered[at])
				assert_int_equal(symbol_texts_lookup(made.texts, LOW + at, lines),
						 1);
		}
		made_table_free(&made);
		symbol_builder_free(&builder);
	}
}

static void going_over_the_budget_yields_no_table(void **state)
{
	struct symbol_builder builder;
	struct made_table made;
	uint32_t scope;

	(void)state;
	symbol_builder_init(&builder, 1000, -1);
	symbol_builder_code(&builder, LOW, LOW + LEN);
	symbol_builder_code_done(&builder);
	scope = add_scope(&builder, SYMBOL_NONE, 1);
	for (uint32_t i = 1; i < 1000; i++)
		symbol_builder_range(&builder, LOW + i, LOW + i + 1, scope);
	assert_int_equal(made_table_finish(&builder, &made, NULL), -ERR_LIMIT);
	symbol_builder_free(&builder);
}

/* More than one block may have, of few functions. */
static void the_longest_names_can_be_read_back(void **state)
{
	enum { FUNCTIONS = 600 };
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	struct symbol_builder builder;
	struct made_table made;
	char *name = malloc(SYMBOL_TEXT_BYTES_MAX + 1);

	(void)state;
	memset(name, 'x', SYMBOL_TEXT_BYTES_MAX);
	name[SYMBOL_TEXT_BYTES_MAX] = 0;
	symbol_builder_init(&builder, 4 * BUDGET, -1);
	symbol_builder_code(&builder, LOW, LOW + LEN);
	symbol_builder_code_done(&builder);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		struct symbol_function function = { .line = i + 1 };

		snprintf(name, 8, "f%06u", i);
		name[7] = 'x';
		function.name = symbol_builder_text(&builder, slice_of(name));
		symbol_builder_range(
			&builder, LOW + i, LOW + i + 1,
			symbol_builder_scope(&builder, &(struct symbol_scope){
							       .parent = SYMBOL_NONE,
							       .function = symbol_builder_function(
								       &builder, &function) }));
	}
	assert_int_equal(made_table_finish(&builder, &made, NULL), 0);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		assert_int_equal(symbol_texts_lookup(made.texts, LOW + i, lines), 1);
		snprintf(name, 8, "f%06u", i);
		name[7] = 'x';
		assert_true(slice_is(lines[0].name, name));
	}
	made_table_free(&made);
	symbol_builder_free(&builder);
	free(name);
}

static void make_many(struct made_table *ret, char letter)
{
	struct symbol_builder builder;
	char name[48];

	begin(&builder);
	for (unsigned i = 0; i < LEN; i++) {
		snprintf(name, sizeof(name), "%c%040u", letter, i);
		add_symbol(&builder, LOW + i, 1, name, 1);
	}
	assert_int_equal(made_table_finish(&builder, ret, NULL), 0);
	symbol_builder_free(&builder);
}

/* What was read long ago goes, whichever table it is of, and comes again when it is asked for. */
static void texts_of_several_tables_share_a_bound(void **state)
{
	enum { TABLES = 3, BLOCK_BYTES = SYMBOL_TEXTS_PER_BLOCK_MAX * (42 + 4) + 1024 };
	struct symbol_text_pool *pool = symbol_text_pool_new();
	struct made_table made[TABLES];
	size_t most = 0;

	(void)state;
	for (unsigned i = 0; i < TABLES; i++) {
		make_many(&made[i], (char)('a' + i));
		symbol_texts_share(made[i].texts, pool);
	}
	for (unsigned i = 0; i < 2000; i++) {
		struct symbol_line lines[SYMBOL_CHAIN_MAX];
		unsigned table = (unsigned)draw(TABLES), at = (unsigned)draw(LEN);
		char name[48];

		snprintf(name, sizeof(name), "%c%040u", 'a' + table, at);
		assert_int_equal(symbol_texts_find(made[table].table, LOW + at, lines), 1);
		assert_int_equal(lines[0].name.len, 0);
		symbol_texts_trim(made[table].texts, (size_t)2 * BLOCK_BYTES);
		symbol_texts_fill(made[table].texts, &lines[0]);
		assert_string_equal(lines[0].name.data, name);
		if (symbol_text_pool_bytes(pool) > most)
			most = symbol_text_pool_bytes(pool);
	}
	assert_in_range(most, 2 * (BLOCK_BYTES - 2048), 3 * BLOCK_BYTES);
	symbol_texts_free(made[0].texts); /* its blocks alone */
	made[0].texts = NULL;
	assert_in_range(symbol_text_pool_bytes(pool), 1, most);
	for (unsigned i = 0; i < TABLES; i++)
		made_table_free(&made[i]);
	assert_int_equal(symbol_text_pool_bytes(pool), 0);
	symbol_text_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_ranges_answer_as_a_full_search_does),
		cmocka_unit_test(line_rows_answer_as_a_full_search_does),
		cmocka_unit_test(a_row_where_its_sequence_ends_holds_for_nothing),
		cmocka_unit_test(code_at_address_0_is_a_function_of_its_own),
		cmocka_unit_test(best_symbol_wins_and_sizes_bound),
		cmocka_unit_test(functions_without_names_are_called_by_their_start),
		cmocka_unit_test(extents_at_random_are_of_some_function),
		cmocka_unit_test(going_over_the_budget_yields_no_table),
		cmocka_unit_test(the_longest_names_can_be_read_back),
		cmocka_unit_test(texts_of_several_tables_share_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
