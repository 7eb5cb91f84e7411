/* SPDX-License-Identifier: Apache-2.0 */
/* Copying by what stacks say: against the tables' own copying, which goes by ids. */
#include "model/stack_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define REPORTS 400
#define DEPTH 30

struct sides {
	struct tables from, wanted, made;
	struct stack_index index;
};

static int set_up(void **state)
{
	struct sides *sides = calloc(1, sizeof(*sides));

	tables_init(&sides->from);
	tables_init(&sides->wanted);
	tables_init(&sides->made);
	*state = sides;
	return 0;
}

static int tear_down(void **state)
{
	struct sides *sides = *state;

	tables_free(&sides->from);
	tables_free(&sides->wanted);
	tables_free(&sides->made);
	stack_index_free(&sides->index);
	free(sides);
	return 0;
}

static uint32_t series(struct tables *tables)
{
	struct column column = { tables_string(tables, SLICE_LITERAL("samples")), 0, 0 };
	struct group group = { .name = column.sample_type, .column_count = 1 };

	return tables_series(tables, 0, tables_group(tables, &group, &column));
}

/* Frames that differ in one field each, some in texts alone. */
static struct frame frame_of(struct tables *tables, uint32_t number)
{
	char text[32];
	uint32_t string;

	snprintf(text, sizeof(text), "text_%u", number / 10);
	string = tables_string(tables, slice_of(text));
	switch (number % 10) {
	case 0:
		return (struct frame){ .function = string };
	case 1:
		return (struct frame){ .system_name = string };
	case 2:
		return (struct frame){ .file = string };
	case 3:
		return (struct frame){ .mapping_file = string };
	case 4:
		return (struct frame){ .build_id = string };
	case 5:
		return (struct frame){ .address = number, .kind = FRAME_NATIVE };
	case 6:
		return (struct frame){ .line = number };
	case 7:
		return (struct frame){ .column = number };
	case 8:
		return (struct frame){ .line = 7, .start_line = number };
	default:
		return (struct frame){ .kind = number % FRAME_KINDS, .flags = number & 3 };
	}
}

/* `twice`: some frames are there several times, as a request's may be. */
static void fill(struct tables *tables, uint32_t random, bool twice)
{
	uint32_t id = series(tables);

	for (uint32_t i = 0; i < REPORTS; i++) {
		uint32_t node = 0;

		tables_report_begin(tables, id, i, 1, i);
		for (uint32_t depth = 0; depth < DEPTH; depth++) {
			struct frame frame;

			random = random * 1664525 + 1013904223;
			frame = frame_of(tables, (random >> 16) % (depth + 12));
			node = tables_node(tables, node,
					   twice && random >> 30 == 3
						   ? tables_add_frame(tables, &frame)
						   : tables_frame(tables, &frame));
			if (depth % 7 == 0)
				tables_row(tables, node, 0, &(int64_t){ 1 });
		}
	}
}

static bool is_even(void *context, uint32_t report)
{
	(void)context;
	return report % 2 == 0;
}

static bool takes_all(void *context, uint32_t report)
{
	(void)context;
	(void)report;
	return true;
}

/* Both sides have the same stacks then, and each once. */
static void compare(struct sides *sides, const struct tables_copy *by_ids,
		    const struct tables_copy *by_content)
{
	uint32_t nodes = (uint32_t)sides->wanted.nodes.count, found = 0;
	uint32_t *there = calloc(nodes, sizeof(*there));

	assert_int_equal(sides->made.nodes.count, nodes);
	assert_int_equal(sides->made.frames.count, sides->wanted.frames.count);
	assert_int_equal(sides->made.strings.count, sides->wanted.strings.count);
	for (uint32_t i = 1; i < by_ids->from.nodes_count; i++) {
		uint32_t a = by_ids->nodes[i], b = by_content->nodes[i];

		if (a == TABLES_FULL)
			continue;
		assert_true(b && b < nodes);
		found += !there[a];
		assert_true(!there[a] || there[a] == b);
		there[a] = b;
	}
	assert_true(found > 1000);
	free(there);
}

static void copy_both(struct sides *sides, bool (*takes)(void *, uint32_t), bool one_by_one)
{
	const struct tables_view view = tables_view_of(&sides->from);
	struct tables_copy by_ids, by_content;
	struct stack_copier copier;

	tables_copy_begin(&by_ids, &sides->wanted, &view);
	tables_copy_begin(&by_content, &sides->made, &view);
	stack_copier_begin(&copier, &sides->index, &by_content);
	if (!one_by_one)
		stack_copier_take(&copier, takes, NULL);
	for (uint32_t i = 0; i < view.reports_count; i++) {
		const struct report *report = &view.reports[i];

		for (uint32_t j = 0; takes(NULL, i) && j < report->row_count; j++) {
			uint32_t stack = view.rows[report->row_first + j].stack;

			tables_copy_node(&by_ids, stack);
			if (one_by_one)
				stack_copier_node(&copier, stack);
			assert_int_not_equal(by_content.nodes[stack], TABLES_FULL);
		}
	}
	/* Of those that only lie on the way to another, the ids are not told. */
	for (uint32_t i = 1; i < view.nodes_count; i++)
		if (by_ids.nodes[i] != TABLES_FULL)
			stack_copier_node(&copier, i);
	compare(sides, &by_ids, &by_content);
	stack_copier_end(&copier);
	tables_copy_end(&by_ids);
	tables_copy_end(&by_content);
}

static void says_what_ids_say(void **state)
{
	struct sides *sides = *state;

	fill(&sides->from, 1, false);
	copy_both(sides, is_even, false);
	copy_both(sides, is_even, false); /* nothing is added */
	copy_both(sides, takes_all, false);
	tables_reset(&sides->from);
	fill(&sides->from, 77, false); /* other ids, partly the same stacks */
	copy_both(sides, takes_all, false);
}

static void finds_a_single_stack(void **state)
{
	struct sides *sides = *state;

	fill(&sides->from, 3, false);
	copy_both(sides, is_even, true);
	copy_both(sides, takes_all, true);
	copy_both(sides, takes_all, false);
}

static void makes_one_of_what_is_there_twice(void **state)
{
	struct sides *sides = *state;

	fill(&sides->from, 5, true);
	assert_true(sides->from.frames.count > 1000);
	copy_both(sides, takes_all, false);
	assert_true(sides->made.frames.count < 50);
	assert_true(stack_index_bytes(&sides->index) > sides->made.nodes.count * 16);
	stack_index_free(&sides->index);
	assert_int_equal(stack_index_bytes(&sides->index), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(says_what_ids_say, set_up, tear_down),
		cmocka_unit_test_setup_teardown(finds_a_single_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(makes_one_of_what_is_there_twice, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
