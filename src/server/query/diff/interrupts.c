/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/diff/interrupts.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct weight {
	double all, interrupts;
};

static bool is_entry(const struct tree_function *function)
{
	static const char *const beginnings[] = {
		"asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi",		 /* x86_64 */
		"el0t_64_irq", "el1h_64_irq",	       "el0_irq",     "el1_irq", /* aarch64 */
	};

	if (function->kind != FRAME_KERNEL)
		return false;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (slice_starts_with(function->name, slice_of(beginnings[i])))
			return true;
	return false;
}

bool *interrupts_find(const struct tree *tree, const struct functions *functions)
{
	struct weight *weights = mem_new_array(struct weight, (size_t)functions->rows_count + 1);
	bool *below = mem_new_array(bool, (size_t)tree->nodes_count + 1);
	bool *found = mem_new_array(bool, (size_t)functions->rows_count + 1);

	assert(tree->nodes_count > 0 && functions->row_of);
	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint32_t row = functions->row_of[node->function];
		double value = (double)node->total;

		if (tree->base)
			value += (double)tree->base[i].total;
		below[i] = below[node->parent] || is_entry(&tree->functions[node->function]);
		if (row == FUNCTIONS_NO_ROW)
			continue;
		weights[row].all += value;
		weights[row].interrupts += below[i] ? value : 0;
	}
	for (uint32_t row = 0; row < functions->rows_count; row++)
		found[row] = 2 * weights[row].interrupts > weights[row].all;
	free(weights);
	free(below);
	return found;
}
