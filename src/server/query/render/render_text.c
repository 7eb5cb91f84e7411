/* SPDX-License-Identifier: Apache-2.0 */
/* render_text - folded stacks, and the flame graph as an indented tree. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/printable.h"
#include "server/query/render/measure.h"
#include "server/query/render/render.h"
#include "server/query/tree/unresolved.h"
#include "server/query/work.h"

#define REASONS_MAX 5 /* beside a table that is read at a glance */

/* A name of a folded stack, whose frames stand between semicolons. */
static void add_folded_name(struct strbuf *out, struct slice name)
{
	size_t from = out->len;

	printable_add(out, name);
	for (size_t i = from; i < out->len; i++)
		if (out->data[i] == ';')
			out->data[i] = ':';
}

void render_folded(const struct tree *tree, struct strbuf *out)
{
	size_t *ends = mem_new_array(size_t, (size_t)tree->depth_max + 1);
	struct strbuf path = { 0 };

	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (i) {
			path.len = ends[node->depth - 1];
			if (path.len)
				strbuf_add_byte(&path, ';');
			add_folded_name(&path, tree->functions[node->function].name);
		}
		ends[node->depth] = path.len;
		if (!node->self)
			continue;
		if (path.len)
			strbuf_add(out, path.data, path.len);
		else
			strbuf_add_text(out, "[no frames]");
		strbuf_addf(out, " %" PRId64 "\n", node->self);
	}
	strbuf_free(&path);
	free(ends);
}

/* Siblings too small to show, by depth. */
struct hidden {
	uint64_t count;
	int64_t value;
};

static void print_line(const struct tree *tree, uint32_t depth, int64_t value, struct strbuf *out)
{
	struct strbuf text = { 0 };

	measure_value_auto(&text, value, tree->type.sample_unit);
	strbuf_addf(out, "%10s ", strbuf_text(&text));
	measure_percentage(out, value, work_add(tree->total, tree->filtered));
	strbuf_addf(out, "  %*s", (int)(2 * depth), "");
	strbuf_free(&text);
}

/* Says what was hidden at depths from `from` up to `until`, deepest first. */
static void print_hidden(const struct tree *tree, struct hidden *hidden, uint32_t from,
			 uint32_t until, struct strbuf *out)
{
	for (uint32_t depth = from; depth > until; depth--) {
		if (!hidden[depth].count)
			continue;
		print_line(tree, depth, hidden[depth].value, out);
		strbuf_addf(out, "(%" PRIu64 " more)\n", hidden[depth].count);
		hidden[depth] = (struct hidden){ 0 };
	}
}

void render_flamegraph_text(const struct tree *tree, double min_share, struct strbuf *out)
{
	struct hidden *hidden = mem_new_array(struct hidden, (size_t)tree->depth_max + 2);
	double smallest = min_share * fabs((double)tree->total);
	uint32_t below = UINT32_MAX; /* depth of the hidden node that we are below */
	uint32_t last = 0;	     /* depth of the node before */

	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->depth > below)
			continue;
		below = UINT32_MAX;
		print_hidden(tree, hidden, last, node->depth, out);
		last = node->depth;
		if (i && fabs((double)node->total) < smallest) {
			hidden[node->depth].count++;
			hidden[node->depth].value =
				work_add(hidden[node->depth].value, node->total);
			below = node->depth;
			continue;
		}
		print_line(tree, node->depth, node->total, out);
		printable_add(out, tree->functions[node->function].name);
		strbuf_add_text(out, node->inlined ? " (inline)\n" : "\n");
	}
	print_hidden(tree, hidden, last, 0, out);
	free(hidden);
}

static double percent_of(int64_t value, int64_t total)
{
	return total ? 100.0 * (double)value / (double)total : 0;
}

void render_unresolved_text(const struct tree *tree, struct strbuf *out)
{
	if (!tree->unresolved_count)
		return;
	strbuf_addf(out, "Leaf unnamed %.2f%%, some frame unnamed %.2f%% of samples:\n",
		    percent_of(tree->unresolved_leaf, tree->total),
		    percent_of(tree->unresolved_value, tree->total));
	for (uint32_t i = 0; i < tree->unresolved_count; i++) {
		const struct tree_unresolved *item = &tree->unresolved[i];

		if (i == REASONS_MAX) {
			strbuf_addf(out, "         (%u more; JSON names %u)\n",
				    tree->unresolved_count - i, UNRESOLVED_SHOWN_MAX);
			break;
		}
		strbuf_addf(out, "%7.2f%%  ", percent_of(item->value, tree->total));
		printable_add(out, item->mapping);
		strbuf_add_text(out, item->mapping.len ? ": " : "");
		printable_add(out, item->text);
		strbuf_add_byte(out, '\n');
	}
}
