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

/* What is known of a node, together: a partition's nodes lie scattered among those of others. */
struct place {
	uint64_t rows;	 /* of the node itself */
	uint64_t weight; /* rows at or below it */
	uint32_t first_child, next_sibling;
	uint32_t epoch; /* in use when it is the arranger's */
};

struct part_arranger {
	struct tables_view from;
	struct tables into;
	uint32_t epoch;
	struct used series, label_sets, frames, strings;
	uint32_t *nodes, nodes_count, nodes_capacity; /* in use, each once */
	/* By old id. */
	uint32_t *series_ids, *node_ids, *label_set_ids, *frame_ids, *string_ids;
	struct place *places;
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
	arranger->label_sets.epochs = mem_new_array(uint32_t, from->label_sets_count);
	arranger->frames.epochs = mem_new_array(uint32_t, from->frames_count);
	arranger->strings.epochs = mem_new_array(uint32_t, from->strings_count);
	arranger->series_ids = new_ids(from->series_count);
	arranger->label_set_ids = new_ids(from->label_sets_count);
	arranger->frame_ids = new_ids(from->frames_count);
	arranger->string_ids = new_ids(from->strings_count);
	arranger->node_ids = new_ids(from->nodes_count);
	arranger->places = mem_new_array(struct place, from->nodes_count);
	mem_prefer_huge_pages(arranger->places, from->nodes_count * sizeof(struct place));
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
	free(arranger->node_ids);
	free(arranger->places);
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

	while (arranger->places[at].epoch != arranger->epoch) {
		arranger->places[at] =
			(struct place){ .first_child = NONE, .epoch = arranger->epoch };
		mem_grow(arranger->nodes, arranger->nodes_count, arranger->nodes_capacity);
		arranger->nodes[arranger->nodes_count++] = at;
		if (!at)
			break;
		at = arranger->from.nodes[at].parent;
	}
	arranger->places[node].rows += rows;
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
	const struct place *places = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (places[a].weight != places[b].weight)
		return places[a].weight > places[b].weight ? -1 : 1;
	return (a > b) - (a < b);
}

/* Ascending. Where most nodes are in use, looking at each is quicker than sorting. */
static void sort_nodes(struct part_arranger *arranger)
{
	uint32_t ids = arranger->from.nodes_count;

	if (ids / 16 > arranger->nodes_count) {
		qsort(arranger->nodes, arranger->nodes_count, sizeof(uint32_t), id_order);
		return;
	}
	arranger->nodes_count = 0;
	for (uint32_t id = 0; id < ids; id++)
		if (arranger->places[id].epoch == arranger->epoch)
			arranger->nodes[arranger->nodes_count++] = id;
}

/* Puts the children of a node in order, the heaviest first; `scratch` has room for all nodes. */
static void order_children(struct place *places, uint32_t node, uint32_t *scratch)
{
	uint32_t count = 0, at = places[node].first_child;

	for (; at != NONE; at = places[at].next_sibling)
		scratch[count++] = at;
	if (count < 2)
		return;
	if (count > 2 || weight_order(&scratch[0], &scratch[1], places) > 0)
		qsort_r(scratch, count, sizeof(*scratch), weight_order, places);
	for (uint32_t i = 0; i + 1 < count; i++)
		places[scratch[i]].next_sibling = scratch[i + 1];
	places[scratch[count - 1]].next_sibling = NONE;
	places[node].first_child = scratch[0];
}

/* Children in lists through the nodes, which are made in the order of their ids. */
static void link_children(struct part_arranger *arranger)
{
	struct place *places = arranger->places;

	sort_nodes(arranger);
	for (uint32_t i = arranger->nodes_count; i-- > 1;) {
		uint32_t id = arranger->nodes[i];
		struct place *place = &places[id];
		struct place *parent = &places[arranger->from.nodes[id].parent];

		place->weight += place->rows;
		parent->weight += place->weight;
		place->next_sibling = parent->first_child;
		parent->first_child = id;
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
	arranger->rows_of_node[made] += arranger->places[id].rows;
}

static void arrange_nodes(struct part_arranger *arranger)
{
	struct place *places = arranger->places;
	uint32_t at = 0, *scratch;

	part_arranger_use_stack(arranger, 0, 0);
	if (arranger->rows_of_node_capacity < arranger->nodes_count) {
		arranger->rows_of_node_capacity = arranger->nodes_count;
		arranger->rows_of_node = mem_realloc(arranger->rows_of_node, arranger->nodes_count,
						     sizeof(uint64_t));
	}
	memset(arranger->rows_of_node, 0, arranger->nodes_count * sizeof(uint64_t));
	link_children(arranger);
	scratch = mem_new_array(uint32_t, arranger->nodes_count);
	while (at != NONE) {
		copy_node(arranger, at);
		order_children(places, at, scratch);
		if (places[at].first_child != NONE) {
			at = places[at].first_child;
			continue;
		}
		while (at && places[at].next_sibling == NONE)
			at = arranger->from.nodes[at].parent;
		at = at ? places[at].next_sibling : NONE;
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
