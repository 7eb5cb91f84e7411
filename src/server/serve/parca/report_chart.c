/* SPDX-License-Identifier: Apache-2.0 */
/* report - stacks over time, and the older forms of the flame graph. */
#include "base/idmap.h"
#include "base/mem.h"
#include "codec/wire/pb.h"
#include "server/serve/parca/report.h"
#include "server/serve/parca/report_diff.h"
#include "server/serve/parca/report_texts.h"

#define PERCENT 100.0
#define CHART_BYTES ((size_t)256 << 20)

/* Boxes as nodes below a root; those of a lane follow one another, callers first at any time. */
struct chart_tree {
	struct tree tree;
	int64_t *timestamps;
	uint32_t *open; /* by depth: the box that may hold the next one; 0 = none */
	int64_t *ends;	/* likewise: where it ends */
	uint32_t open_count;
};

static uint32_t add_node(struct chart_tree *into, uint32_t parent, uint32_t function, int64_t value,
			 int64_t at_ns)
{
	struct tree *tree = &into->tree;
	uint32_t id = tree->nodes_count++;

	tree->nodes[id] = (struct tree_node){ .parent = parent,
					      .depth = id ? tree->nodes[parent].depth + 1 : 0,
					      .function = function,
					      .self = value,
					      .total = value };
	if (id)
		tree->nodes[parent].self -= value;
	into->timestamps[id] = at_ns;
	return id;
}

/* A label's value is a function of its own, behind those of the chart. */
static uint32_t add_lane(struct chart_tree *into, const struct flamechart *chart, uint32_t lane)
{
	struct tree *tree = &into->tree;
	uint32_t function = 1 + (uint32_t)chart->functions_count + lane;

	into->open_count = 0;
	if (!tree->group_names_count)
		return 0;
	tree->functions[function] =
		(struct tree_function){ .name = chart->lanes[lane].name, .is_label = 1 };
	return add_node(into, 0, function, chart->lanes[lane].total, 0);
}

static void add_box(struct chart_tree *into, uint32_t top, const struct flamechart_box *box)
{
	uint32_t depth = box->depth, parent = top, id;

	if (depth && depth <= into->open_count && into->ends[depth - 1] >= box->to_ns)
		parent = into->open[depth - 1];
	id = add_node(into, parent, box->function + 1, box->value, box->from_ns);
	into->open[depth] = id;
	into->ends[depth] = box->to_ns;
	into->open_count = depth + 1;
}

static bool make_room(struct chart_tree *into, const struct flamechart *chart)
{
	size_t nodes = chart->boxes_count + chart->lanes_count + 1;
	size_t functions = chart->functions_count + chart->lanes_count + 1;
	struct arena *arena = &into->tree.arena;
	uint32_t depth = 0;

	for (size_t i = 0; i < chart->boxes_count; i++)
		if (chart->boxes[i].depth > depth)
			depth = chart->boxes[i].depth;
	into->tree.nodes = arena_new_array(arena, struct tree_node, nodes);
	into->tree.functions = arena_new_array(arena, struct tree_function, functions);
	into->timestamps = arena_new_array(arena, int64_t, nodes);
	into->open = arena_new_array(arena, uint32_t, (size_t)depth + 1);
	into->ends = arena_new_array(arena, int64_t, (size_t)depth + 1);
	into->tree.functions_count = (uint32_t)functions;
	into->tree.depth_max = depth + 2;
	return !arena->over_budget;
}

/* What group-by columns are made of: each lane is a group. */
static void name_lanes(struct tree *tree, const struct flamechart *chart)
{
	tree->groups = arena_new_array(&tree->arena, struct slice, chart->lanes_count + 1);
	tree->group_names = arena_new_array(&tree->arena, struct slice, 1);
	if (!tree->groups || !tree->group_names || !chart->lane_label.len)
		return;
	for (size_t i = 0; i < chart->lanes_count; i++)
		tree->groups[i] = chart->lanes[i].name;
	tree->group_values = tree->groups;
	tree->groups_count = (uint32_t)chart->lanes_count;
	tree->group_names[0] = chart->lane_label;
	tree->group_names_count = 1;
}

void report_flamechart(const struct flamechart *chart, struct strbuf *out)
{
	struct chart_tree into = { .tree = { .type = chart->type, .period = chart->period } };
	size_t box = 0;

	arena_init(&into.tree.arena, CHART_BYTES);
	name_lanes(&into.tree, chart);
	if (make_room(&into, chart)) {
		for (size_t i = 0; i < chart->functions_count; i++)
			into.tree.functions[i + 1] = chart->functions[i];
		add_node(&into, 0, 0, chart->total, 0);
		for (uint32_t lane = 0; lane < chart->lanes_count; lane++) {
			uint32_t top = add_lane(&into, chart, lane);

			for (; box < chart->boxes_count && chart->boxes[box].lane == lane; box++)
				add_box(&into, top, &chart->boxes[box]);
		}
		report_flamegraph_arrow(&into.tree, 0, into.timestamps, out);
	}
	arena_free(&into.tree.arena);
}

/* The older forms. */

struct old_form {
	const struct tree *tree;
	double trim_percent;
	bool tables;
	struct strbuf *out;
	struct report_texts texts; /* of string_table; 0 is "" */
	int64_t trimmed;
	uint32_t height;
	size_t *begun; /* by depth: the message that is open */
};

static bool is_trimmed(const struct old_form *form, uint32_t node)
{
	const struct tree *tree = form->tree;
	int64_t whole = tree->nodes[tree->nodes[node].parent].total, part = tree->nodes[node].total;

	if (tree->base && tree->base[node].total > part)
		part = tree->base[node].total;
	if (tree->base && tree->base[tree->nodes[node].parent].total > whole)
		whole = tree->base[tree->nodes[node].parent].total;
	return form->trim_percent > 0 &&
	       (double)part <= (double)whole * form->trim_percent / PERCENT;
}

/* FlamegraphNode{ meta = 1; cumulative = 2; diff = 3; children = 4 }: children follow. */
static void open_node(struct old_form *form, uint32_t number)
{
	const struct tree_node *node = &form->tree->nodes[number];
	size_t meta;

	form->begun[node->depth] = pb_begin(form->out, node->depth == 1 ? 3 : 4);
	if (form->tables) {
		meta = pb_begin(form->out, 1);
		pb_put_varint(form->out, 5, node->function); /* location_index, from 1 */
		pb_end(form->out, meta);
	} else {
		report_meta(&form->tree->functions[node->function], 1, form->out);
	}
	pb_put_varint(form->out, 2, (uint64_t)node->total);
	pb_put_varint(form->out, 3, (uint64_t)report_node_diff(form->tree, number));
	if (node->depth + 1 > form->height)
		form->height = node->depth + 1;
}

/* FlamegraphRootNode{ cumulative = 1; diff = 2; children = 3 } */
static void put_nodes(struct old_form *form)
{
	const struct tree *tree = form->tree;
	uint32_t depth = 0, hidden = UINT32_MAX; /* depth of the trimmed node we are below */

	form->begun[0] = pb_begin(form->out, 1);
	pb_put_varint(form->out, 1, (uint64_t)tree->total);
	pb_put_varint(form->out, 2, (uint64_t)report_node_diff(tree, 0));
	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		if (tree->nodes[i].depth > hidden)
			continue;
		hidden = UINT32_MAX;
		if (is_trimmed(form, i)) {
			form->trimmed += tree->nodes[i].total;
			hidden = tree->nodes[i].depth;
			continue;
		}
		for (; depth >= tree->nodes[i].depth; depth--)
			pb_end(form->out, form->begun[depth]);
		depth = tree->nodes[i].depth;
		open_node(form, i);
	}
	for (; depth > 0; depth--)
		pb_end(form->out, form->begun[depth]);
	pb_end(form->out, form->begun[0]);
}

/*
 * Entry n of each table is function n: Location{ address = 2; lines = 6 { function_index = 3 };
 * mapping_index = 7 }, Mapping{ file = 11; build id = 12 }, Function{ start_line = 2; name = 6;
 * system name = 7; file = 8 }, texts by number, indexes from 1.
 */
static void put_tables(struct old_form *form)
{
	const struct tree *tree = form->tree;

	for (uint32_t f = 1; f < tree->functions_count; f++) {
		const struct tree_function *function = &tree->functions[f];
		size_t begun = pb_begin(form->out, 6), line;

		if (function->is_address)
			pb_put_varint(form->out, 2, report_address(function->name));
		line = pb_begin(form->out, 6);
		pb_put_varint(form->out, 3, function->is_address ? 0 : f);
		pb_end(form->out, line);
		pb_put_varint(form->out, 7, f);
		pb_end(form->out, begun);
		begun = pb_begin(form->out, 7);
		pb_put_varint(form->out, 11,
			      (uint64_t)report_text(&form->texts, function->mapping));
		pb_put_varint(form->out, 12,
			      (uint64_t)report_text(&form->texts, function->build_id));
		pb_end(form->out, begun);
		begun = pb_begin(form->out, 8);
		pb_put_varint(form->out, 2, function->start_line);
		pb_put_varint(form->out, 6, (uint64_t)report_text(&form->texts, function->name));
		pb_put_varint(form->out, 7,
			      (uint64_t)report_text(&form->texts, function->system_name));
		pb_put_varint(form->out, 8, (uint64_t)report_text(&form->texts, function->file));
		pb_end(form->out, begun);
	}
	for (size_t i = 0; i < form->texts.count; i++)
		pb_put_bytes_always(form->out, 5, form->texts.list[i]);
}

void report_flamegraph(const struct tree *tree, double trim_percent, bool tables,
		       struct strbuf *out)
{
	struct old_form form = { .tree = tree,
				 .trim_percent = trim_percent,
				 .tables = tables,
				 .out = out,
				 .height = 1 };
	size_t begun = pb_begin(out, 5);

	form.begun = mem_new_array(size_t, (size_t)tree->depth_max + 2);
	report_text(&form.texts, (struct slice){ "", 0 });
	put_nodes(&form);
	pb_put_varint(out, 2, (uint64_t)tree->total);
	pb_put_bytes(out, 3, tree->type.sample_unit);
	pb_put_varint(out, 4, form.height);
	if (tables)
		put_tables(&form);
	pb_put_varint(out, 9, (uint64_t)tree->total);
	pb_put_varint(out, 10, (uint64_t)form.trimmed);
	pb_end(out, begun);
	report_texts_free(&form.texts);
	free(form.begun);
}
