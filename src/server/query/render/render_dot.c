/* SPDX-License-Identifier: Apache-2.0 */
/* render_dot - the call graph for Graphviz. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

#include "base/printable.h"
#include "server/query/render/measure.h"
#include "server/query/render/render_export.h"
#include "server/query/tree/report_functions.h"

#define FUNCTIONS_MAX 80 /* as go tool pprof */
#define FONT_MIN 8.0
#define FONT_MORE 16.0

/* Inside of double quotes. */
static void add_quoted(struct strbuf *out, struct slice text)
{
	struct strbuf shown = { 0 };

	printable_add(&shown, text);
	for (size_t i = 0; i < shown.len; i++) {
		if (shown.data[i] == '"' || shown.data[i] == '\\')
			strbuf_add_byte(out, '\\');
		strbuf_add_byte(out, shown.data[i]);
	}
	strbuf_free(&shown);
}

static void add_value(const struct tree *tree, int64_t value, struct strbuf *out)
{
	measure_value_auto(out, value, tree->type.sample_unit);
}

/* 0 to 1, also where values below zero make a part more than the whole. */
static double share_of(const struct tree *tree, int64_t value)
{
	double share = tree->total > 0 ? (double)value / (double)tree->total : 0;

	return share < 0 ? 0 : share < 1 ? share : 1;
}

static void put_function(const struct tree *tree, const struct report_functions *functions,
			 uint32_t id, struct strbuf *out)
{
	assert(id < tree->functions_count);
	strbuf_addf(out, "\tf%u [label=\"", id);
	add_quoted(out, tree->functions[id].name);
	strbuf_add_text(out, "\\n");
	add_value(tree, functions->flat[id], out);
	strbuf_add_text(out, " of ");
	add_value(tree, functions->cumulative[id], out);
	strbuf_addf(out, "\", fontsize=%.1f];\n",
		    FONT_MIN + FONT_MORE * share_of(tree, functions->flat[id]));
}

static void put_edge(const struct tree *tree, const struct report_edge *edge, struct strbuf *out)
{
	double share = share_of(tree, edge->value);

	strbuf_addf(out, "\tf%u -> f%u [label=\"", edge->caller, edge->callee);
	add_value(tree, edge->value, out);
	strbuf_addf(out, "\", weight=%d, penwidth=%.1f];\n", 1 + (int)(100 * share), 1 + 4 * share);
}

void render_dot(const struct tree *tree, const struct render_export_for *asked, struct strbuf *out)
{
	struct report_functions functions;
	uint8_t *shown = mem_new_array(uint8_t, (size_t)tree->functions_count + 1);
	size_t count;

	(void)asked;
	report_functions_make(tree, &functions);
	report_functions_by_cumulative(&functions);
	count = functions.count < FUNCTIONS_MAX ? functions.count : FUNCTIONS_MAX;
	strbuf_add_text(out, "digraph \"");
	add_quoted(out, tree->query);
	strbuf_add_text(out, "\" {\n\tnode [shape=box, fontname=\"sans-serif\"];\n");
	for (size_t i = 0; i < count; i++) {
		shown[functions.order[i]] = functions.cumulative[functions.order[i]] > 0;
		if (shown[functions.order[i]])
			put_function(tree, &functions, functions.order[i], out);
	}
	for (size_t i = 0; i < functions.edges_count; i++) {
		const struct report_edge *edge = &functions.edges[i];

		if (shown[edge->caller] && shown[edge->callee] && edge->value > 0)
			put_edge(tree, edge, out);
	}
	strbuf_add_text(out, "}\n");
	report_functions_free(&functions);
	free(shown);
}
