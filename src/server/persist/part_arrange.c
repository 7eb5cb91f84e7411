/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part_arrange.h"

#include <assert.h>

#include "base/mem.h"
#include "server/persist/dictionary_merge.h"

#define NONE UINT32_MAX

/* Ids of one kind in use, each once. */
struct used {
	uint32_t *list, count, capacity;
	uint32_t *epochs; /* by id: in the list when it is the arranger's */
};

struct part_arranger {
	struct tables_view from;
	struct tables into;
	uint32_t epoch;
	struct used series, nodes, label_sets, frames, strings;
	/* By old id. */
	uint32_t *series_ids, *node_ids, *label_set_ids, *frame_ids, *string_ids;
	uint64_t *rows;	   /* of the node itself */
	uint64_t *weights; /* rows at or below it */
	uint32_t *first_child, *next_sibling;
	uint64_t *rows_of_node; /* by new id */
	uint32_t rows_of_node_capacity;
};

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
	arranger->nodes.epochs = mem_new_array(uint32_t, from->nodes_count);
	arranger->label_sets.epochs = mem_new_array(uint32_t, from->label_sets_count);
	arranger->frames.epochs = mem_new_array(uint32_t, from->frames_count);
	arranger->strings.epochs = mem_new_array(uint32_t, from->strings_count);
	arranger->series_ids = new_ids(from->series_count);
	arranger->node_ids = new_ids(from->nodes_count);
	arranger->label_set_ids = new_ids(from->label_sets_count);
	arranger->frame_ids = new_ids(from->frames_count);
	arranger->string_ids = new_ids(from->strings_count);
	arranger->first_child = new_ids(from->nodes_count);
	arranger->next_sibling = new_ids(from->nodes_count);
	arranger->rows = mem_new_array(uint64_t, from->nodes_count);
	arranger->weights = mem_new_array(uint64_t, from->nodes_count);
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
	free_used(&arranger->nodes);
	free_used(&arranger->label_sets);
	free_used(&arranger->frames);
	free_used(&arranger->strings);
	free(arranger->series_ids);
	free(arranger->node_ids);
	free(arranger->label_set_ids);
	free(arranger->frame_ids);
	free(arranger->string_ids);
	free(arranger->first_child);
	free(arranger->next_sibling);
	free(arranger->rows);
	free(arranger->weights);
	free(arranger->rows_of_node);
	free(arranger);
}

/* Whether it is new. */
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

void part_arranger_use_stack(struct part_arranger *arranger, uint32_t node, uint64_t rows)
{
	uint32_t at = node;

	while (use(arranger, &arranger->nodes, at)) {
		arranger->rows[at] = 0;
		arranger->first_child[at] = NONE;
		if (!at)
			break;
		at = arranger->from.nodes[at].parent;
	}
	arranger->rows[node] += rows;
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
	struct frame frame = arranger->from.frames[id];

	if (!use(arranger, &arranger->frames, id))
		return arranger->frame_ids[id];
	frame.mapping_file = copy_string(arranger, frame.mapping_file);
	frame.build_id = copy_string(arranger, frame.build_id);
	frame.function = copy_string(arranger, frame.function);
	frame.system_name = copy_string(arranger, frame.system_name);
	frame.file = copy_string(arranger, frame.file);
	arranger->frame_ids[id] = tables_add_frame(&arranger->into, &frame);
	assert(arranger->frame_ids[id] != TABLES_FULL);
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

static int id_order(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* The heaviest first; they are few, or sorting them is what takes the time. */
static int weight_order(const void *left, const void *right, void *context)
{
	const uint64_t *weights = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (weights[a] != weights[b])
		return weights[a] > weights[b] ? -1 : 1;
	return (a > b) - (a < b);
}

/*
 * Ascending. Where most ids are in use, looking at each is quicker than sorting.
 */
static void sort_ids(const struct part_arranger *arranger, struct used *used, uint32_t ids)
{
	if (ids / 16 > used->count) {
		qsort(used->list, used->count, sizeof(*used->list), id_order);
		return;
	}
	used->count = 0;
	for (uint32_t id = 0; id < ids; id++)
		if (used->epochs[id] == arranger->epoch)
			used->list[used->count++] = id;
}

/* Puts the children of a node in order, the heaviest first; `scratch` has room for all nodes. */
static void order_children(struct part_arranger *arranger, uint32_t node, uint32_t *scratch)
{
	uint32_t count = 0, at = arranger->first_child[node];

	for (; at != NONE; at = arranger->next_sibling[at])
		scratch[count++] = at;
	if (count < 2)
		return;
	if (count > 2 || weight_order(&scratch[0], &scratch[1], arranger->weights) > 0)
		qsort_r(scratch, count, sizeof(*scratch), weight_order, arranger->weights);
	for (uint32_t i = 0; i + 1 < count; i++)
		arranger->next_sibling[scratch[i]] = scratch[i + 1];
	arranger->next_sibling[scratch[count - 1]] = NONE;
	arranger->first_child[node] = scratch[0];
}

/* Children in lists through the nodes, which are made in the order of their ids. */
static void link_children(struct part_arranger *arranger)
{
	struct used *used = &arranger->nodes;
	const struct node *nodes = arranger->from.nodes;

	sort_ids(arranger, used, arranger->from.nodes_count);
	for (uint32_t i = 0; i < used->count; i++)
		arranger->weights[used->list[i]] = arranger->rows[used->list[i]];
	for (uint32_t i = used->count; i-- > 1;) {
		uint32_t id = used->list[i], parent = nodes[id].parent;

		arranger->weights[parent] += arranger->weights[id];
		arranger->next_sibling[id] = arranger->first_child[parent];
		arranger->first_child[parent] = id;
	}
}

static void copy_node(struct part_arranger *arranger, uint32_t id)
{
	const struct node *node = &arranger->from.nodes[id];
	uint32_t made = id ? tables_add_node(&arranger->into, arranger->node_ids[node->parent],
					     copy_frame(arranger, node->frame))
			   : 0;

	assert(made != TABLES_FULL);
	arranger->node_ids[id] = made;
	arranger->rows_of_node[made] += arranger->rows[id];
}

static void arrange_nodes(struct part_arranger *arranger)
{
	uint32_t at = 0, *scratch;

	part_arranger_use_stack(arranger, 0, 0);
	if (arranger->rows_of_node_capacity < arranger->nodes.count) {
		arranger->rows_of_node_capacity = arranger->nodes.count;
		arranger->rows_of_node = mem_realloc(arranger->rows_of_node, arranger->nodes.count,
						     sizeof(uint64_t));
	}
	memset(arranger->rows_of_node, 0, arranger->nodes.count * sizeof(uint64_t));
	link_children(arranger);
	scratch = mem_new_array(uint32_t, arranger->nodes.count);
	while (at != NONE) {
		copy_node(arranger, at);
		order_children(arranger, at, scratch);
		if (arranger->first_child[at] != NONE) {
			at = arranger->first_child[at];
			continue;
		}
		while (at && arranger->next_sibling[at] == NONE)
			at = arranger->from.nodes[at].parent;
		at = at ? arranger->next_sibling[at] : NONE;
	}
	free(scratch);
}

static void forget(struct part_arranger *arranger)
{
	arranger->series.count = 0;
	arranger->nodes.count = 0;
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
