/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/parca/report_diff.h"

#include <math.h>

static int64_t scaled(int64_t value, double factor)
{
	double product = round((double)value * factor);

	if (product >= (double)INT64_MAX)
		return INT64_MAX;
	return product <= (double)INT64_MIN ? INT64_MIN : (int64_t)product;
}

void report_scale(struct tree *tree)
{
	double ours = (double)tree->total, base = (double)tree->base_total;

	if (ours <= 0 || base <= 0)
		return;
	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		struct tree_base *of = &tree->base[i];

		if (base < ours) {
			of->self = scaled(of->self, ours / base);
			of->total = scaled(of->total, ours / base);
		} else {
			of->self += node->self - scaled(node->self, base / ours);
			of->total += node->total - scaled(node->total, base / ours);
		}
	}
}
