/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/dictionary_merge.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

#define NONE UINT32_MAX

/*
 * First everything is gathered in one set of tables, whose hash maps find what is equal. Then
 * nodes, frames and series are put in the order that is wanted.
 */
struct dictionary_merge {
	struct tables gathered;
	uint64_t *rows; /* by gathered node */
	size_t rows_capacity;
};

void dictionary_free(struct dictionary *dictionary)
{
	tables_free(&dictionary->gathered);
	free(dictionary->nodes);
	free(dictionary->frames);
	free(dictionary->series);
	free(dictionary->rows_of_node);
	free(dictionary->node_numbers);
	free(dictionary->series_numbers);
}

void dictionary_input_free_maps(struct dictionary_input *input)
{
	free(input->series);
	free(input->nodes);
	free(input->label_sets);
	input->series = input->nodes = input->label_sets = NULL;
}

static int text_order(const struct tables_view *view, uint32_t a, uint32_t b)
{
	return a == b ? 0 : slice_compare(tables_text(view, a), tables_text(view, b));
}

int dictionary_label_set_order(const struct tables_view *view, uint32_t left, uint32_t right)
{
	const struct label_set *a = &view->label_sets[left], *b = &view->label_sets[right];

	for (uint32_t i = 0; i < a->label_count && i < b->label_count; i++) {
		const struct label *x = &view->labels[a->label_first + i];
		const struct label *y = &view->labels[b->label_first + i];
		int order = text_order(view, x->name, y->name);

		if (!order)
			order = text_order(view, x->value, y->value);
		if (order)
			return order;
	}
	return (a->label_count > b->label_count) - (a->label_count < b->label_count);
}

/* Gathering. */

static uint32_t *new_map(uint32_t count)
{
	uint32_t *map = mem_realloc(NULL, count ? count : 1, sizeof(*map));

	memset(map, 0xff, count * sizeof(*map));
	return map;
}

/* Marks every node with rows at or below it; parents come before their children. */
static uint8_t *used_nodes(const struct dictionary_input *input)
{
	uint8_t *used = mem_new_array(uint8_t, input->view->nodes_count);

	for (uint32_t i = input->view->nodes_count; i-- > 1;) {
		used[i] |= input->rows_of_node[i] != 0;
		if (used[i])
			used[input->view->nodes[i].parent] = 1;
	}
	used[0] = 1;
	return used;
}

static void add_rows(struct dictionary_merge *merge, uint32_t node, uint64_t rows)
{
	if (node >= merge->rows_capacity) {
		size_t capacity = 2 * (size_t)node + 64;

		merge->rows = mem_realloc(merge->rows, capacity, sizeof(*merge->rows));
		memset(merge->rows + merge->rows_capacity, 0,
		       (capacity - merge->rows_capacity) * sizeof(*merge->rows));
		merge->rows_capacity = capacity;
	}
	merge->rows[node] += rows;
}

static bool gather_nodes(struct dictionary_merge *merge, struct dictionary_input *input,
			 struct tables_copy *copy)
{
	uint8_t *used = used_nodes(input);
	bool fits = true;

	for (uint32_t i = 0; fits && i < input->view->nodes_count; i++) {
		if (!used[i])
			continue;
		input->nodes[i] = tables_copy_node(copy, i);
		fits = input->nodes[i] != TABLES_FULL;
		if (fits)
			add_rows(merge, input->nodes[i], input->rows_of_node[i]);
	}
	free(used);
	return fits;
}

static bool gather(struct dictionary_merge *merge, struct dictionary_input *input)
{
	const struct tables_view *view = input->view;
	struct tables_copy copy;
	bool fits = true;

	assert(input->rows_of_node && input->series_used && view->nodes_count);
	tables_copy_begin(&copy, &merge->gathered, view);
	input->series = new_map(view->series_count);
	input->nodes = new_map(view->nodes_count);
	input->label_sets = new_map(view->label_sets_count);
	for (uint32_t i = 0; fits && i < view->series_count; i++) {
		if (!input->series_used[i])
			continue;
		input->series[i] = tables_copy_series(&copy, i);
		fits = input->series[i] != TABLES_FULL;
	}
	for (uint32_t i = 0; fits && i < view->label_sets_count; i++) {
		if (i && (!input->label_sets_used || !input->label_sets_used[i]))
			continue;
		input->label_sets[i] = tables_copy_label_set(&copy, i);
		fits = input->label_sets[i] != TABLES_FULL;
	}
	fits = fits && gather_nodes(merge, input, &copy);
	tables_copy_end(&copy);
	return fits;
}

/* Arranging: ids in the wanted order, for arrays that replace the gathered ones. */

/* Children of each node, heaviest first: list[first[node]] .. list[first[node + 1]]. */
struct forest {
	uint64_t *weights; /* rows at or below the node */
	uint32_t *sizes;   /* nodes at or below it */
	uint32_t *first, *list;
};

static int weight_order(const void *left, const void *right, void *context)
{
	const uint64_t *weights = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (weights[a] != weights[b])
		return weights[a] > weights[b] ? -1 : 1;
	return (a > b) - (a < b);
}

static void list_children(const struct tables_view *view, struct forest *forest)
{
	uint32_t count = view->nodes_count;

	for (uint32_t i = 1; i < count; i++)
		forest->first[view->nodes[i].parent + 1]++;
	for (uint32_t i = 0; i < count; i++)
		forest->first[i + 1] += forest->first[i];
	for (uint32_t i = count; i-- > 1;) /* fills each list from its end, and moves that down */
		forest->list[--forest->first[view->nodes[i].parent + 1]] = i;
	/* Now first[node + 1] is where the list of the node begins. */
	memmove(forest->first, forest->first + 1, count * sizeof(*forest->first));
	forest->first[count] = count - 1;
}

static void make_forest(const struct tables_view *view, const uint64_t *rows, struct forest *forest)
{
	uint32_t count = view->nodes_count;

	forest->weights = mem_new_array(uint64_t, count);
	forest->sizes = mem_new_array(uint32_t, count);
	forest->first = mem_new_array(uint32_t, (size_t)count + 1);
	forest->list = mem_new_array(uint32_t, count);
	for (uint32_t i = count; i-- > 1;) {
		uint32_t parent = view->nodes[i].parent;

		forest->weights[i] += rows[i];
		forest->weights[parent] += forest->weights[i];
		forest->sizes[i]++;
		forest->sizes[parent] += forest->sizes[i];
	}
	list_children(view, forest);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t children = forest->first[i + 1] - forest->first[i];

		if (children > 1)
			qsort_r(forest->list + forest->first[i], children, sizeof(*forest->list),
				weight_order, forest->weights);
	}
}

static void free_forest(struct forest *forest)
{
	free(forest->weights);
	free(forest->sizes);
	free(forest->first);
	free(forest->list);
}

/* Depth-first numbers: a subtree follows those of the siblings before it. */
static uint32_t *number_nodes(const struct tables_view *view, const uint64_t *rows)
{
	uint32_t *numbers = mem_new_array(uint32_t, view->nodes_count);
	struct forest forest;

	make_forest(view, rows, &forest);
	for (uint32_t i = 0; i < view->nodes_count; i++) {
		uint32_t next = numbers[i] + 1;

		for (uint32_t c = forest.first[i]; c < forest.first[i + 1]; c++) {
			numbers[forest.list[c]] = next;
			next += forest.sizes[forest.list[c]];
		}
	}
	assert(forest.first[view->nodes_count] == view->nodes_count - 1);
	free_forest(&forest);
	return numbers;
}

/* Nodes by their new numbers, frames in the order in which those use them. */
static void arrange_nodes(const struct tables_view *view, const uint64_t *rows,
			  const uint32_t *numbers, struct dictionary *ret)
{
	uint32_t *frames = new_map(view->frames_count), frames_count = 0;

	assert(!numbers[0]); /* the root stays first */
	ret->nodes = mem_new_array(struct node, view->nodes_count);
	ret->frames = mem_new_array(struct frame, view->frames_count);
	ret->rows_of_node = mem_new_array(uint64_t, view->nodes_count);
	for (uint32_t i = 0; i < view->nodes_count; i++) {
		ret->nodes[numbers[i]] =
			(struct node){ numbers[view->nodes[i].parent], view->nodes[i].frame };
		ret->rows_of_node[numbers[i]] = rows[i];
	}
	ret->nodes[0] = (struct node){ 0 };
	for (uint32_t i = 1; i < view->nodes_count; i++) {
		uint32_t *number = &frames[ret->nodes[i].frame];

		if (*number == NONE) {
			ret->frames[frames_count] = view->frames[ret->nodes[i].frame];
			*number = frames_count++;
		}
		ret->nodes[i].frame = *number;
	}
	assert(frames_count == view->frames_count); /* no more were gathered */
	free(frames);
}

static int series_order(const void *left, const void *right, void *context)
{
	const struct tables_view *view = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return dictionary_label_set_order(view, view->series[a].label_set,
					  view->series[b].label_set);
}

/* Returns the new numbers. */
static uint32_t *arrange_series(struct tables_view *view, struct dictionary *ret)
{
	uint32_t *order = mem_new_array(uint32_t, view->series_count);
	uint32_t *numbers = mem_new_array(uint32_t, view->series_count);

	ret->series = mem_new_array(struct series, view->series_count);
	for (uint32_t i = 0; i < view->series_count; i++)
		order[i] = i;
	if (view->series_count)
		qsort_r(order, view->series_count, sizeof(*order), series_order, view);
	for (uint32_t i = 0; i < view->series_count; i++) {
		ret->series[i] = view->series[order[i]];
		numbers[order[i]] = i;
	}
	free(order);
	return numbers;
}

static void map_through(uint32_t *map, uint32_t count, const uint32_t *then)
{
	for (uint32_t i = 0; i < count; i++)
		if (map[i] != TABLES_FULL)
			map[i] = then[map[i]];
}

void dictionary_map_nodes(const struct dictionary *dictionary, uint32_t *map, uint32_t count)
{
	map_through(map, count, dictionary->node_numbers);
}

void dictionary_map_series(const struct dictionary *dictionary, uint32_t *map, uint32_t count)
{
	map_through(map, count, dictionary->series_numbers);
}

struct dictionary_merge *dictionary_merge_new(void)
{
	struct dictionary_merge *merge = mem_new(struct dictionary_merge);

	tables_init(&merge->gathered);
	add_rows(merge, 0, 0);
	return merge;
}

void dictionary_merge_free(struct dictionary_merge *merge)
{
	if (!merge)
		return;
	tables_free(&merge->gathered);
	free(merge->rows);
	free(merge);
}

int dictionary_merge_add(struct dictionary_merge *merge, struct dictionary_input *input,
			 struct err *err)
{
	int rc = 0;

	if (!gather(merge, input))
		rc = err_set(err, ERR_LIMIT,
			     "more than %zu stacks or %zu frames or strings together",
			     TABLES_NODES_MAX, TABLES_IDS_MAX);
	else if (merge->gathered.groups.count > 1)
		rc = err_set(err, ERR_INVALID, "different groups of sample types cannot be merged");
	if (rc)
		dictionary_input_free_maps(input);
	return rc;
}

size_t dictionary_merge_bytes(const struct dictionary_merge *merge)
{
	return tables_bytes(&merge->gathered) + merge->rows_capacity * sizeof(*merge->rows);
}

void dictionary_merge_finish(struct dictionary_merge *merge, struct dictionary *ret)
{
	struct tables_view view = tables_view_of(&merge->gathered);

	assert(view.groups_count <= 1);
	assert(view.nodes_count <= merge->rows_capacity);
	*ret = (struct dictionary){ .gathered = merge->gathered };
	ret->node_numbers = number_nodes(&view, merge->rows);
	ret->series_numbers = arrange_series(&view, ret);
	arrange_nodes(&view, merge->rows, ret->node_numbers, ret);
	ret->view = view;
	ret->view.nodes = ret->nodes;
	ret->view.frames = ret->frames;
	ret->view.series = ret->series;
	free(merge->rows);
	free(merge);
}
