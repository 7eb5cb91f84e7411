/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "server/query/render/render.h"

void tree_checks_nodes(const struct tree *tree)
{
	int64_t *sums = mem_new_array(int64_t, tree->nodes_count);

	assert_true(tree->nodes_count >= 1);
	for (uint32_t i = tree->nodes_count; i-- > 0;) {
		const struct tree_node *node = &tree->nodes[i];

		assert_true(node->function < tree->functions_count);
		assert_true(node->depth <= tree->depth_max);
		assert_int_equal(node->total, node->self + sums[i]);
		if (!i)
			continue;
		assert_true(node->parent < i);
		assert_int_equal(node->depth, tree->nodes[node->parent].depth + 1);
		sums[node->parent] += node->total;
	}
	assert_int_equal(tree->total, tree->nodes[0].total);
	free(sums);
}

void tree_checks_siblings(const struct tree *tree)
{
	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		for (uint32_t at = i + 1;
		     at < tree->nodes_count && tree->nodes[at].depth >= tree->nodes[i].depth;
		     at++) {
			const struct tree_node *a = &tree->nodes[i], *b = &tree->nodes[at];

			if (b->depth > a->depth)
				continue;
			assert_int_equal(a->parent, b->parent);
			assert_true(a->function != b->function);
			assert_true(a->total > b->total ||
				    (a->total == b->total &&
				     slice_compare(tree->functions[a->function].name,
						   tree->functions[b->function].name) <= 0));
		}
	}
}

/* A node as a picture of that width shows it, and what is below it; returns the node behind. */
static uint32_t draw_node(const struct tree *tree, uint32_t i, int64_t width_px, struct strbuf *out)
{
	const struct tree_node *node = &tree->nodes[i];
	int64_t cut = tree->cut ? tree->cut[i] : 0;
	uint32_t at = i + 1;

	strbuf_addf(out, "%u %.*s %u %d %lld\n", node->depth,
		    SLICE_FMT(tree->functions[node->function].name), node->inlined,
		    tree->functions[node->function].kind, (long long)node->self);
	while (at < tree->nodes_count && tree->nodes[at].depth > node->depth) {
		if (tree->nodes[at].total * 2 * width_px >= tree->total) {
			at = draw_node(tree, at, width_px, out);
			continue;
		}
		cut += tree->nodes[at].total;
		for (at++; at < tree->nodes_count && tree->nodes[at].depth > node->depth + 1;)
			at++;
	}
	strbuf_addf(out, "%u cut %lld\n", node->depth, (long long)cut);
	return at;
}

void tree_checks_draw(const struct tree *tree, uint32_t width_px, struct strbuf *out)
{
	draw_node(tree, 0, width_px, out);
	strbuf_addf(out, "%llu reports, %lld\n", (unsigned long long)tree->reports,
		    (long long)tree->total);
	if (tree->unresolved_count)
		render_unresolved_text(tree, out);
}
