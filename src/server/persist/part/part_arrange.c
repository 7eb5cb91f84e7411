/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_arrange.h"

#include <assert.h>

#include "base/mem.h"
#include "server/persist/part/dictionary_merge.h"

#define NONE UINT32_MAX
#define WORD_BITS 64u

/* Ids of one kind in use, each once. */
struct used {
	uint32_t *list, count, capacity;
	uint32_t *epochs; /* by id: in the list when it is the arranger's */
};

/* A set of ids: a bit for each, and one for each word of these that is not 0. */
struct id_set {
	uint64_t *words, *groups;
};

/* A node in use. They lie together, since putting them in order hops about among them. */
struct used_node {
	uint64_t rows;	 /* of the node itself */
	uint64_t weight; /* rows at or below it */
	uint32_t id;
	uint32_t parent, first_child, next_sibling; /* numbers */
};

struct part_arranger {
	struct tables_view from;
	struct tables into;
	uint32_t epoch;
	struct used series, label_sets, frames, strings;
	struct id_set used_nodes;
	struct used_node *nodes; /* in use, each once, by id */
	uint32_t nodes_count, nodes_capacity;
	/* By old id. Of a node, first its number among those in use. */
	uint32_t *series_ids, *node_ids, *label_set_ids, *frame_ids, *string_ids;
	uint64_t *rows;		/* by node, of itself; 0 when it is not in use */
	uint64_t *rows_of_node; /* by new id */
	uint32_t rows_of_node_capacity;
};

static size_t words_for(size_t bits)
{
	return (bits + WORD_BITS - 1) / WORD_BITS;
}

static uint32_t *new_ids(uint32_t count)
{
	return mem_realloc(NULL, count ? count : 1, sizeof(uint32_t));
}

struct part_arranger *part_arranger_new(const struct tables_view *from)
{
	struct part_arranger *arranger = mem_new(struct part_arranger);

	arranger->from = *from;
	tables_init(&arranger->into);
	arranger->epoch = 1;
	arranger->series.epochs = mem_new_array(uint32_t, from->series_count);
	arranger->label_sets.epochs = mem_new_array(uint32_t, from->label_sets_count);
	arranger->frames.epochs = mem_new_array(uint32_t, from->frames_count);
	arranger->strings.epochs = mem_new_array(uint32_t, from->strings_count);
	arranger->series_ids = new_ids(from->series_count);
	arranger->label_set_ids = new_ids(from->label_sets_count);
	arranger->frame_ids = new_ids(from->frames_count);
	arranger->string_ids = new_ids(from->strings_count);
	arranger->node_ids = mem_map_pages(from->nodes_count * sizeof(uint32_t));
	arranger->rows = mem_map_pages(from->nodes_count * sizeof(uint64_t));
	arranger->used_nodes.words = mem_new_array(uint64_t, words_for(from->nodes_count));
	arranger->used_nodes.groups =
		mem_new_array(uint64_t, words_for(words_for(from->nodes_count)));
	return arranger;
}

static void free_used(struct used *used)
{
	free(used->list);
	free(used->epochs);
}

void part_arranger_free(struct part_arranger *arranger)
{
	if (!arranger)
		return;
	tables_free(&arranger->into);
	free_used(&arranger->series);
	free_used(&arranger->label_sets);
	free_used(&arranger->frames);
	free_used(&arranger->strings);
	free(arranger->series_ids);
	free(arranger->label_set_ids);
	free(arranger->frame_ids);
	free(arranger->string_ids);
	free(arranger->nodes);
	free(arranger->used_nodes.words);
	free(arranger->used_nodes.groups);
	mem_unmap_pages(arranger->node_ids, arranger->from.nodes_count * sizeof(uint32_t));
	mem_unmap_pages(arranger->rows, arranger->from.nodes_count * sizeof(uint64_t));
	free(arranger->rows_of_node);
	free(arranger);
}

/* True if it is new. */
static bool use(const struct part_arranger *arranger, struct used *used, uint32_t id)
{
	if (used->epochs[id] == arranger->epoch)
		return false;
	used->epochs[id] = arranger->epoch;
	mem_grow(used->list, used->count, used->capacity);
	used->list[used->count++] = id;
	return true;
}

void part_arranger_use_series(struct part_arranger *arranger, uint32_t series)
{
	use(arranger, &arranger->series, series);
}

void part_arranger_use_label_set(struct part_arranger *arranger, uint32_t label_set)
{
	use(arranger, &arranger->label_sets, label_set);
}

/* True if it is new. */
static bool add_id(struct id_set *set, uint32_t id)
{
	uint64_t *word = &set->words[id / WORD_BITS], bit = (uint64_t)1 << id % WORD_BITS;

	if (*word & bit)
		return false;
	if (!*word)
		set->groups[id / WORD_BITS / WORD_BITS] |= (uint64_t)1
							   << id / WORD_BITS % WORD_BITS;
	*word |= bit;
	return true;
}

void part_arranger_use_stack(struct part_arranger *arranger, uint32_t node, uint64_t rows)
{
	arranger->rows[node] += rows;
	for (uint32_t at = node; add_id(&arranger->used_nodes, at);) {
		arranger->nodes_count++;
		if (!at)
			break;
		at = arranger->from.nodes[at].parent;
	}
}

/* Copying. */

static uint32_t copy_string(struct part_arranger *arranger, uint32_t id)
{
	if (use(arranger, &arranger->strings, id)) {
		arranger->string_ids[id] =
			tables_string(&arranger->into, tables_text(&arranger->from, id));
		assert(arranger->string_ids[id] != TABLES_FULL);
	}
	return arranger->string_ids[id];
}

static uint32_t copy_label_set(struct part_arranger *arranger, uint32_t id)
{
	const struct label_set *set = &arranger->from.label_sets[id];
	struct label labels[TABLES_LABELS_PER_SET_MAX];

	for (uint32_t i = 0; i < set->label_count; i++) {
		labels[i] = arranger->from.labels[set->label_first + i];
		labels[i].name = copy_string(arranger, labels[i].name);
		labels[i].value = copy_string(arranger, labels[i].value);
		labels[i].unit = copy_string(arranger, labels[i].unit);
	}
	return tables_label_set(&arranger->into, labels, set->label_count);
}

static uint32_t copy_group(struct part_arranger *arranger, uint32_t id)
{
	struct group group = arranger->from.groups[id];
	struct column columns[TABLES_COLUMNS_PER_GROUP_MAX];

	for (uint32_t i = 0; i < group.column_count; i++) {
		columns[i] = arranger->from.columns[group.column_first + i];
		columns[i].sample_type = copy_string(arranger, columns[i].sample_type);
		columns[i].sample_unit = copy_string(arranger, columns[i].sample_unit);
	}
	group.name = copy_string(arranger, group.name);
	group.period_type = copy_string(arranger, group.period_type);
	group.period_unit = copy_string(arranger, group.period_unit);
	return tables_group(&arranger->into, &group, columns);
}

static uint32_t copy_frame(struct part_arranger *arranger, uint32_t id)
{
	const struct frame *from = &arranger->from.frames[id];
	struct frame *frame;

	if (!use(arranger, &arranger->frames, id))
		return arranger->frame_ids[id];
	frame = tables_new_frame(&arranger->into, from, &arranger->frame_ids[id]);
	assert(frame);
	frame->mapping_file = copy_string(arranger, from->mapping_file);
	frame->build_id = copy_string(arranger, from->build_id);
	frame->function = copy_string(arranger, from->function);
	frame->system_name = copy_string(arranger, from->system_name);
	frame->file = copy_string(arranger, from->file);
	return arranger->frame_ids[id];
}

/* Series. */

static int series_order(const void *left, const void *right, void *context)
{
	const struct tables_view *view = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	int order = dictionary_label_set_order(view, view->series[a].label_set,
					       view->series[b].label_set);

	return order ? order : (a > b) - (a < b);
}

static void arrange_series(struct part_arranger *arranger)
{
	const struct used *used = &arranger->series;

	if (used->count)
		qsort_r(used->list, used->count, sizeof(*used->list), series_order,
			&arranger->from);
	for (uint32_t i = 0; i < used->count; i++) {
		const struct series *series = &arranger->from.series[used->list[i]];
		uint32_t label_set = copy_label_set(arranger, series->label_set);

		arranger->series_ids[used->list[i]] = tables_series(
			&arranger->into, label_set, copy_group(arranger, series->group));
	}
}

/* Nodes. */

/* The heaviest first; they are few, or sorting them is what takes the time. */
static int weight_order(const void *left, const void *right, void *context)
{
	const struct used_node *nodes = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (nodes[a].weight != nodes[b].weight)
		return nodes[a].weight > nodes[b].weight ? -1 : 1;
	return (a > b) - (a < b);
}

/* Puts the children of a node in order, the heaviest first; `scratch` has room for all nodes. */
static void order_children(struct used_node *nodes, uint32_t node, uint32_t *scratch)
{
	uint32_t count = 0, at = nodes[node].first_child;

	for (; at != NONE; at = nodes[at].next_sibling)
		scratch[count++] = at;
	if (count < 2)
		return;
	if (count > 2 || weight_order(&scratch[0], &scratch[1], nodes) > 0)
		qsort_r(scratch, count, sizeof(*scratch), weight_order, nodes);
	for (uint32_t i = 0; i + 1 < count; i++)
		nodes[scratch[i]].next_sibling = scratch[i + 1];
	nodes[scratch[count - 1]].next_sibling = NONE;
	nodes[node].first_child = scratch[0];
}

static void gather_node(struct part_arranger *arranger, uint32_t id, uint32_t number)
{
	struct used_node *node = &arranger->nodes[number];

	arranger->node_ids[id] = number;
	node->rows = node->weight = arranger->rows[id];
	node->id = id;
	node->parent = arranger->node_ids[arranger->from.nodes[id].parent];
	node->first_child = node->next_sibling = NONE;
	arranger->rows[id] = 0;
}

/* All in use, by id, so that parents come before their children; none is in use any more. */
static void gather_nodes(struct part_arranger *arranger)
{
	struct id_set *set = &arranger->used_nodes;
	size_t groups = words_for(words_for(arranger->from.nodes_count));
	uint32_t count = 0;

	if (arranger->nodes_capacity < arranger->nodes_count) {
		arranger->nodes_capacity = arranger->nodes_count;
		arranger->nodes = mem_realloc(arranger->nodes, arranger->nodes_capacity,
					      sizeof(*arranger->nodes));
	}
	for (size_t group = 0; group < groups; group++) {
		for (; set->groups[group]; set->groups[group] &= set->groups[group] - 1) {
			size_t at = group * WORD_BITS + (size_t)__builtin_ctzll(set->groups[group]);

			for (; set->words[at]; set->words[at] &= set->words[at] - 1)
				gather_node(arranger,
					    (uint32_t)(at * WORD_BITS) +
						    (uint32_t)__builtin_ctzll(set->words[at]),
					    count++);
		}
	}
	assert(count == arranger->nodes_count);
}

/* Children in lists through the nodes; what is at or below each. */
static void link_children(struct part_arranger *arranger)
{
	struct used_node *nodes = arranger->nodes;

	for (uint32_t i = arranger->nodes_count; i-- > 1;) {
		struct used_node *parent = &nodes[nodes[i].parent];

		parent->weight += nodes[i].weight;
		nodes[i].next_sibling = parent->first_child;
		parent->first_child = i;
	}
}

static void copy_node(struct part_arranger *arranger, uint32_t number)
{
	const struct used_node *used = &arranger->nodes[number];
	const struct node *node = &arranger->from.nodes[used->id];
	uint32_t made = 0;

	if (number)
		made = tables_add_node(&arranger->into, arranger->node_ids[node->parent],
				       copy_frame(arranger, node->frame));
	assert(made != TABLES_FULL);
	arranger->node_ids[used->id] = made;
	arranger->rows_of_node[made] = used->rows;
}

static void arrange_nodes(struct part_arranger *arranger)
{
	struct used_node *nodes;
	uint32_t at = 0, *scratch;

	part_arranger_use_stack(arranger, 0, 0);
	if (arranger->rows_of_node_capacity < arranger->nodes_count) {
		arranger->rows_of_node_capacity = arranger->nodes_count;
		arranger->rows_of_node = mem_realloc(arranger->rows_of_node, arranger->nodes_count,
						     sizeof(uint64_t));
	}
	gather_nodes(arranger);
	link_children(arranger);
	nodes = arranger->nodes;
	scratch = mem_new_array(uint32_t, arranger->nodes_count);
	while (at != NONE) {
		copy_node(arranger, at);
		order_children(nodes, at, scratch);
		if (nodes[at].first_child != NONE) {
			at = nodes[at].first_child;
			continue;
		}
		while (at && nodes[at].next_sibling == NONE)
			at = nodes[at].parent;
		at = at ? nodes[at].next_sibling : NONE;
	}
	free(scratch);
}

static void forget(struct part_arranger *arranger)
{
	arranger->series.count = 0;
	arranger->nodes_count = 0;
	arranger->label_sets.count = 0;
	arranger->frames.count = 0;
	arranger->strings.count = 0;
	assert(arranger->epoch < UINT32_MAX);
	arranger->epoch++;
}

void part_arranger_finish(struct part_arranger *arranger, struct part_arrangement *ret)
{
	tables_reset(&arranger->into);
	arrange_series(arranger);
	for (uint32_t i = 0; i < arranger->label_sets.count; i++) {
		uint32_t id = arranger->label_sets.list[i];

		arranger->label_set_ids[id] = copy_label_set(arranger, id);
	}
	arrange_nodes(arranger);
	*ret = (struct part_arrangement){
		.view = tables_view_of(&arranger->into),
		.rows_of_node = arranger->rows_of_node,
		.series = arranger->series_ids,
		.nodes = arranger->node_ids,
		.label_sets = arranger->label_set_ids,
	};
	forget(arranger);
}
