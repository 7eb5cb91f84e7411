/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/series/flamechart.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "server/query/work.h"

#define NARROW 4000 /* of the whole range */
#define ARENA_BYTES ((size_t)256 << 20)
#define NONE UINT32_MAX

/* The boxes of a lane that end where the last step ended, by depth. */
struct edge {
	uint32_t *boxes;
	size_t count, capacity;
};

struct charting {
	struct flamechart *chart;
	size_t functions_capacity, lanes_capacity, boxes_capacity;
	struct idmap function_map, lane_map;
	struct edge *edges; /* by lane */
	size_t edges_capacity;
	uint32_t above; /* nodes on a path above the first frame: root, lane */
	int64_t narrow_ns;
	/* The step's tree: by node. */
	const struct tree *tree;
	uint32_t *ends;	     /* behind its last descendant */
	uint32_t *functions; /* by the tree's function: the chart's; NONE = not known yet */
};

static bool same_function(const void *context, uint32_t id, const void *key)
{
	const struct tree_function *a = &((const struct flamechart *)context)->functions[id];
	const struct tree_function *b = key;

	return a->kind == b->kind && a->address == b->address && slice_equal(a->name, b->name) &&
	       slice_equal(a->mapping, b->mapping) && slice_equal(a->file, b->file);
}

static struct slice copy(struct charting *charting, struct slice text)
{
	return arena_copy(&charting->chart->arena, text);
}

static uint32_t function_of(struct charting *charting, uint32_t number)
{
	const struct tree_function *from = &charting->tree->functions[number];
	struct flamechart *chart = charting->chart;
	uint64_t hash = hash_mix(hash_bytes(from->name.data, from->name.len),
				 hash_bytes(from->mapping.data, from->mapping.len) ^ from->address);
	struct tree_function *to;
	uint32_t id = charting->functions[number];

	assert(number < charting->tree->functions_count);
	assert(charting->chart->functions_count <= charting->functions_capacity);
	if (id != NONE)
		return id;
	id = idmap_find(&charting->function_map, hash, same_function, chart, from);
	if (id == IDMAP_NONE) {
		id = (uint32_t)chart->functions_count;
		mem_grow(chart->functions, chart->functions_count, charting->functions_capacity);
		to = &chart->functions[chart->functions_count++];
		*to = *from;
		to->name = copy(charting, from->name);
		to->system_name = copy(charting, from->system_name);
		to->file = copy(charting, from->file);
		to->mapping = copy(charting, from->mapping);
		to->build_id = copy(charting, from->build_id);
		idmap_add(&charting->function_map, hash, id);
	}
	charting->functions[number] = id;
	return id;
}

static bool same_lane(const void *context, uint32_t id, const void *key)
{
	const struct slice *name = key;

	return slice_equal(((const struct flamechart *)context)->lanes[id].name, *name);
}

static uint32_t lane_of(struct charting *charting, struct slice name)
{
	struct flamechart *chart = charting->chart;
	uint64_t hash = hash_bytes(name.data, name.len);
	uint32_t id = idmap_find(&charting->lane_map, hash, same_lane, chart, &name);

	assert(charting->chart->lanes_count <= charting->lanes_capacity);
	if (id != IDMAP_NONE)
		return id;
	id = (uint32_t)chart->lanes_count;
	mem_grow(chart->lanes, chart->lanes_count, charting->lanes_capacity);
	chart->lanes[chart->lanes_count] = (struct flamechart_lane){ copy(charting, name), 0 };
	mem_grow(charting->edges, chart->lanes_count, charting->edges_capacity);
	charting->edges[chart->lanes_count++] = (struct edge){ 0 };
	idmap_add(&charting->lane_map, hash, id);
	return id;
}

/* The box that the edge has at a depth, or NONE. */
static uint32_t at_edge(const struct edge *edge, size_t depth)
{
	return depth < edge->count ? edge->boxes[depth] : NONE;
}

static void set_edge(struct edge *edge, size_t depth, uint32_t box)
{
	while (edge->count <= depth) {
		mem_grow(edge->boxes, edge->count, edge->capacity);
		edge->boxes[edge->count++] = NONE;
	}
	edge->boxes[depth] = box;
}

struct laying {
	struct charting *charting;
	uint32_t lane;
	const struct edge *before; /* of the last step, when it is the neighbour */
	struct edge *after;
	int64_t from_ns, to_ns; /* of the step */
	int64_t total;
};

static int64_t place_in(const struct laying *laying, int64_t value)
{
	double share = (double)value / (double)laying->total;

	return laying->from_ns + (int64_t)(share * (double)(laying->to_ns - laying->from_ns));
}

/* `start` is the sum of what lies before it. `goes_on`: its callers did. */
static void lay(struct laying *laying, uint32_t node, int64_t start, bool goes_on);

/* The child that was last in the step before comes first. */
static void lay_children(struct laying *laying, uint32_t node, int64_t start, bool goes_on)
{
	struct charting *charting = laying->charting;
	const struct tree *tree = charting->tree;
	uint32_t depth = tree->nodes[node].depth + 1 - charting->above; /* of children's boxes */
	uint32_t before = goes_on ? at_edge(laying->before, depth) : NONE, first = NONE;

	assert(node < laying->charting->tree->nodes_count);
	for (uint32_t c = node + 1; before != NONE && c < charting->ends[node];
	     c = charting->ends[c])
		if (function_of(charting, tree->nodes[c].function) ==
		    charting->chart->boxes[before].function)
			first = c;
	if (first != NONE) {
		lay(laying, first, start, true);
		start = work_add(start, tree->nodes[first].total);
	}
	for (uint32_t c = node + 1; c < charting->ends[node]; c = charting->ends[c]) {
		if (c == first)
			continue;
		lay(laying, c, start, false);
		start = work_add(start, tree->nodes[c].total);
	}
}

static void lay(struct laying *laying, uint32_t number, int64_t start, bool goes_on)
{
	struct charting *charting = laying->charting;
	struct flamechart *chart = charting->chart;
	const struct tree_node *node = &charting->tree->nodes[number];
	uint32_t depth = node->depth - charting->above, box;
	struct flamechart_box made = { .lane = laying->lane,
				       .depth = depth,
				       .from_ns = place_in(laying, start),
				       .to_ns = place_in(laying, work_add(start, node->total)),
				       .value = node->total };

	assert(number < laying->charting->tree->nodes_count);
	assert(laying->charting->chart->boxes_count <= laying->charting->boxes_capacity);
	goes_on = goes_on && made.from_ns == laying->from_ns;
	if (node->total <= 0 || (!goes_on && made.to_ns - made.from_ns < charting->narrow_ns) ||
	    chart->boxes_count > FLAMECHART_BOXES_MAX)
		return;
	made.function = function_of(charting, node->function);
	box = goes_on ? at_edge(laying->before, depth) : NONE;
	if (box != NONE) {
		chart->boxes[box].to_ns = made.to_ns;
		chart->boxes[box].value = work_add(chart->boxes[box].value, made.value);
	} else {
		box = (uint32_t)chart->boxes_count;
		mem_grow(chart->boxes, chart->boxes_count, charting->boxes_capacity);
		chart->boxes[chart->boxes_count++] = made;
	}
	if (made.to_ns == laying->to_ns)
		set_edge(laying->after, depth, box);
	lay_children(laying, number, start, goes_on);
}

static void find_ends(struct charting *charting)
{
	const struct tree *tree = charting->tree;

	for (uint32_t i = 0; i < tree->nodes_count; i++)
		charting->ends[i] = i + 1;
	for (uint32_t i = tree->nodes_count; i-- > 1;) {
		uint32_t parent = tree->nodes[i].parent;

		if (charting->ends[parent] < charting->ends[i])
			charting->ends[parent] = charting->ends[i];
	}
}

static void lay_lane(struct charting *charting, uint32_t node, int64_t from_ns, int64_t to_ns)
{
	const struct tree *tree = charting->tree;
	struct edge after = { 0 };
	struct laying laying = { .charting = charting,
				 .after = &after,
				 .from_ns = from_ns,
				 .to_ns = to_ns,
				 .total = tree->nodes[node].total };

	assert(node < charting->tree->nodes_count);
	laying.lane = lane_of(charting, node ? tree->functions[tree->nodes[node].function].name
					     : (struct slice){ 0 });
	laying.before = &charting->edges[laying.lane];
	charting->chart->lanes[laying.lane].total =
		work_add(charting->chart->lanes[laying.lane].total, laying.total);
	if (laying.total > 0)
		lay_children(&laying, node, 0, true);
	free(charting->edges[laying.lane].boxes);
	charting->edges[laying.lane] = after;
}

/* Boxes end with their step unless the next one takes them up. */
static void forget_edges(struct charting *charting, int64_t at_ns)
{
	for (size_t i = 0; i < charting->chart->lanes_count; i++) {
		struct edge *edge = &charting->edges[i];

		if (edge->count && edge->boxes[0] != NONE &&
		    charting->chart->boxes[edge->boxes[0]].to_ns != at_ns)
			edge->count = 0;
	}
}

static void add_step(struct charting *charting, const struct tree *tree, int64_t from_ns,
		     int64_t to_ns)
{
	assert(tree->nodes_count > 0);
	charting->tree = tree;
	charting->ends = mem_new_array(uint32_t, tree->nodes_count + 1);
	charting->functions = mem_new_array(uint32_t, tree->functions_count + 1);
	memset(charting->functions, 0xff, tree->functions_count * sizeof(uint32_t));
	find_ends(charting);
	forget_edges(charting, from_ns);
	if (charting->above == 1)
		lay_lane(charting, 0, from_ns, to_ns);
	for (uint32_t i = 1; charting->above == 2 && i < tree->nodes_count; i = charting->ends[i])
		lay_lane(charting, i, from_ns, to_ns);
	free(charting->ends);
	free(charting->functions);
}

static int run_step(struct charting *charting, const struct query_source *source,
		    const struct query_params *params, int64_t from_ns, int64_t to_ns,
		    struct err *err)
{
	struct query_params step = *params;
	struct flamechart *chart = charting->chart;
	struct tree *tree = NULL;
	int rc;

	step.from_ns = from_ns > params->from_ns ? from_ns : params->from_ns;
	step.to_ns = to_ns < params->to_ns ? to_ns : params->to_ns;
	rc = query_tree(source, &step, &tree, err);
	if (rc)
		return rc;
	if (!chart->query.data) {
		chart->query = copy(charting, tree->query);
		chart->type = profile_type_copy(&tree->type, &chart->arena);
	}
	if (tree->period > chart->period)
		chart->period = tree->period;
	if (tree->report_ns > chart->report_ns)
		chart->report_ns = tree->report_ns;
	chart->has_times |= tree->has_times;
	chart->total = work_add(chart->total, tree->total);
	chart->filtered = work_add(chart->filtered, tree->filtered);
	chart->reports += tree->reports;
	if (tree->parts_unreadable > chart->parts_unreadable)
		chart->parts_unreadable = tree->parts_unreadable;
	add_step(charting, tree, from_ns, to_ns);
	tree_free(tree);
	if (chart->arena.over_budget || chart->boxes_count > FLAMECHART_BOXES_MAX)
		return err_set(err, ERR_LIMIT, "flame chart: more than %d boxes; narrow the range",
			       FLAMECHART_BOXES_MAX);
	return 0;
}

static int by_lane_total(const void *a, const void *b, void *context)
{
	const struct flamechart_lane *lanes = context;
	const struct flamechart_lane *left = &lanes[*(const uint32_t *)a];
	const struct flamechart_lane *right = &lanes[*(const uint32_t *)b];

	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return slice_compare(left->name, right->name);
}

static int box_order(const void *a, const void *b)
{
	const struct flamechart_box *left = a, *right = b;

	if (left->lane != right->lane)
		return left->lane < right->lane ? -1 : 1;
	if (left->from_ns != right->from_ns)
		return left->from_ns < right->from_ns ? -1 : 1;
	return (left->depth > right->depth) - (left->depth < right->depth);
}

/* The largest lanes, numbered by size, and their boxes. */
static void sort_lanes(struct flamechart *chart)
{
	size_t count = chart->lanes_count, kept = 0;
	uint32_t *order = mem_new_array(uint32_t, count + 1);
	uint32_t *rank = mem_new_array(uint32_t, count + 1);
	struct flamechart_lane *lanes = mem_new_array(struct flamechart_lane, count + 1);

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), by_lane_total, chart->lanes);
	for (size_t i = 0; i < count; i++) {
		lanes[i] = chart->lanes[order[i]];
		rank[order[i]] = (uint32_t)i;
	}
	for (size_t i = 0; i < chart->boxes_count; i++) {
		chart->boxes[i].lane = rank[chart->boxes[i].lane];
		if (chart->boxes[i].lane < FLAMECHART_LANES_MAX)
			chart->boxes[kept++] = chart->boxes[i];
	}
	chart->boxes_count = kept;
	if (kept)
		qsort(chart->boxes, kept, sizeof(*chart->boxes), box_order);
	if (count > FLAMECHART_LANES_MAX) {
		chart->lanes_left_out = count - FLAMECHART_LANES_MAX;
		chart->lanes_count = FLAMECHART_LANES_MAX;
	}
	free(chart->lanes);
	free(order);
	free(rank);
	chart->lanes = lanes;
}

static void end(struct charting *charting)
{
	for (size_t i = 0; i < charting->chart->lanes_count; i++)
		free(charting->edges[i].boxes);
	free(charting->edges);
	idmap_free(&charting->function_map);
	idmap_free(&charting->lane_map);
}

int64_t flamechart_round_step(int64_t range_ns, int64_t parts)
{
	static const int64_t steps_ms[] = { 1,	    10,	    100,     1000,    2000,   5000,
					    10000,  15000,  30000,   60000,   120000, 300000,
					    600000, 900000, 1800000, 3600000, 7200000 };

	for (size_t i = 0; i < sizeof(steps_ms) / sizeof(steps_ms[0]); i++)
		if (range_ns / parts <= steps_ms[i] * CLOCK_NS_PER_MS)
			return steps_ms[i] * CLOCK_NS_PER_MS;
	return (range_ns / parts / (86400 * CLOCK_NS_PER_S) + 1) * 86400 * CLOCK_NS_PER_S;
}

int flamechart_make(const struct query_source *source, const struct query_params *params,
		    int64_t step_ns, struct flamechart *ret, struct err *err)
{
	struct charting charting = { .chart = ret, .above = 1 + (uint32_t)params->group_by_count };
	int64_t first_ns, rest;
	int rc = 0;

	*ret = (struct flamechart){ 0 };
	if (step_ns <= 0 || params->group_by_count > 1 || params->at_moment)
		return err_set(err, ERR_INVALID,
			       "flame chart: a step, a range and at most one label");
	rest = params->from_ns % step_ns;
	first_ns = params->from_ns - (rest < 0 ? rest + step_ns : rest);
	if ((uint64_t)params->to_ns - (uint64_t)first_ns > (uint64_t)step_ns * FLAMECHART_STEPS_MAX)
		return err_set(err, ERR_LIMIT,
			       "flame chart: more than %d steps; take a larger step",
			       FLAMECHART_STEPS_MAX);
	arena_init(&ret->arena, ARENA_BYTES);
	if (params->group_by_count)
		ret->lane_label = arena_copy(&ret->arena, params->group_by[0]);
	charting.narrow_ns = (params->to_ns - first_ns) / NARROW;
	for (int64_t at = first_ns; !rc && at < params->to_ns; at += step_ns)
		rc = run_step(&charting, source, params, at, at + step_ns, err);
	end(&charting);
	if (rc)
		flamechart_free(ret);
	else
		sort_lanes(ret);
	return rc;
}

void flamechart_free(struct flamechart *chart)
{
	free(chart->functions);
	free(chart->lanes);
	free(chart->boxes);
	arena_free(&chart->arena);
	*chart = (struct flamechart){ 0 };
}
