/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel does for others while a program runs is told from what it does for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/query/diff/interrupts.h"

enum { TOTAL, MAIN, WRITE, SCHEDULE, INTERRUPT, SOFTIRQ, LIKE_ONE, ALL };

static void what_interrupts_do_is_found(void **state)
{
	struct tree_function functions[ALL] = {
		[TOTAL] = { .name = SLICE_LITERAL("total") },
		[MAIN] = { .name = SLICE_LITERAL("main"), .kind = FRAME_NATIVE },
		[WRITE] = { .name = SLICE_LITERAL("ksys_write"), .kind = FRAME_KERNEL },
		[SCHEDULE] = { .name = SLICE_LITERAL("schedule"), .kind = FRAME_KERNEL },
		[INTERRUPT] = { .name = SLICE_LITERAL("asm_sysvec_apic_timer_interrupt"),
				.kind = FRAME_KERNEL },
		[SOFTIRQ] = { .name = SLICE_LITERAL("handle_softirqs"), .kind = FRAME_KERNEL },
		[LIKE_ONE] = { .name = SLICE_LITERAL("asm_sysvec_of_mine"), .kind = FRAME_NATIVE },
	};
	/* schedule: 3 below the call, 2 below the interrupt of this side, 4 of the other side's */
	struct tree_node nodes[] = {
		{ 0, 0, TOTAL, 0, 0, 20 },    { 0, 1, MAIN, 0, 5, 20 },
		{ 1, 2, WRITE, 0, 2, 5 },     { 2, 3, SCHEDULE, 0, 3, 3 },
		{ 1, 2, INTERRUPT, 0, 1, 6 }, { 4, 3, SOFTIRQ, 0, 3, 3 },
		{ 4, 3, SCHEDULE, 0, 2, 2 },  { 1, 2, LIKE_ONE, 0, 4, 4 },
	};
	struct tree_base base[] = { { 0, 9 }, { 5, 9 }, { 0, 0 }, { 0, 0 },
				    { 0, 4 }, { 0, 0 }, { 4, 4 }, { 0, 0 } };
	struct tree tree = { .functions = functions,
			     .functions_count = ALL,
			     .nodes = nodes,
			     .nodes_count = 8,
			     .depth_max = 3 };
	static const bool alone[ALL] = { [INTERRUPT] = true, [SOFTIRQ] = true };
	static const bool both[ALL] = { [INTERRUPT] = true, [SOFTIRQ] = true, [SCHEDULE] = true };

	(void)state;
	for (int diff = 0; diff < 2; diff++) {
		struct functions rows;
		bool *found;

		tree.base = diff ? base : NULL;
		functions_make(&rows, &tree);
		found = interrupts_find(&tree, &rows);
		for (int i = MAIN; i < ALL; i++)
			assert_int_equal(found[rows.row_of[i]], diff ? both[i] : alone[i]);
		free(found);
		functions_free(&rows);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_interrupts_do_is_found) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
