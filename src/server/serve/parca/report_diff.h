/* SPDX-License-Identifier: Apache-2.0 */
/* report_diff - differences in Parca's form: the compared side minus the base. */
#ifndef FIRN_SERVER_SERVE_PARCA_REPORT_DIFF_H
#define FIRN_SERVER_SERVE_PARCA_REPORT_DIFF_H

#include "server/query/tree/tree.h"

/*
 * Replaces the base's values so that other side minus base is the difference after the side with
 * the smaller total is scaled up to the larger.
 */
void report_scale(struct tree *tree);

/* The difference at a node; 0 when the tree is no diff. */
static inline int64_t report_node_diff(const struct tree *tree, uint32_t node)
{
	return tree->base ? tree->nodes[node].total - tree->base[node].total : 0;
}

#endif
