/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/dictionary_merge.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

#define NONE UINT32_MAX

/*
 * First everything is gathered in one set of tables, whose hash maps find what is equal. Then it
 * is copied once more, in the order that is wanted.
 */
struct merge {
	struct dictionary_input *inputs;
	size_t inputs_count;
	struct tables gathered;
	uint64_t *rows; /* by gathered node */
	size_t rows_capacity;
};

void dictionary_free(struct dictionary *dictionary)
{
	tables_free(&dictionary->tables);
	free(dictionary->rows_of_node);
	dictionary->rows_of_node = NULL;
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

static void add_rows(struct merge *merge, uint32_t node, uint64_t rows)
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

static bool gather_nodes(struct merge *merge, struct dictionary_input *input,
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

static bool gather(struct merge *merge, struct dictionary_input *input)
{
	const struct tables_view *view = input->view;
	struct tables_copy copy;
	bool fits = true;

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

/* Arranging. */

/* Children of each node as lists through the nodes, heaviest first. */
struct forest {
	uint64_t *weights; /* rows at or below the node */
	uint32_t *first_child, *next_sibling;
};

static int weight_order(const void *left, const void *right, void *context)
{
	const uint64_t *weights = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (weights[a] != weights[b])
		return weights[a] < weights[b] ? -1 : 1;
	return (a < b) - (a > b);
}

/* Nodes are pushed to the front of their parents' lists from the lightest to the heaviest. */
static void make_forest(const struct tables_view *view, const uint64_t *rows, struct forest *forest)
{
	uint32_t count = view->nodes_count;
	uint32_t *order = mem_new_array(uint32_t, count);

	forest->weights = mem_new_array(uint64_t, count);
	forest->first_child = new_map(count);
	forest->next_sibling = new_map(count);
	for (uint32_t i = count; i-- > 1;) {
		forest->weights[i] += rows[i];
		forest->weights[view->nodes[i].parent] += forest->weights[i];
		order[i] = i;
	}
	if (count > 1)
		qsort_r(order + 1, count - 1, sizeof(*order), weight_order, forest->weights);
	for (uint32_t i = 1; i < count; i++) {
		uint32_t *first = &forest->first_child[view->nodes[order[i]].parent];

		forest->next_sibling[order[i]] = *first;
		*first = order[i];
	}
	free(order);
}

static void free_forest(struct forest *forest)
{
	free(forest->weights);
	free(forest->first_child);
	free(forest->next_sibling);
}

/* Copying a node whose parent was just copied gives it the next id: depth-first order. */
static void arrange_nodes(struct tables_copy *copy, const uint64_t *rows)
{
	const struct tables_view *view = &copy->from;
	struct forest forest;
	uint32_t node = 0;

	make_forest(view, rows, &forest);
	while (node != NONE) {
		uint32_t made = tables_copy_node(copy, node);

		assert(made != TABLES_FULL); /* there are no more than were gathered */
		if (forest.first_child[node] != NONE) {
			node = forest.first_child[node];
			continue;
		}
		while (node && forest.next_sibling[node] == NONE)
			node = view->nodes[node].parent;
		node = node ? forest.next_sibling[node] : NONE;
	}
	free_forest(&forest);
}

static int series_order(const void *left, const void *right, void *context)
{
	const struct tables_view *view = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return dictionary_label_set_order(view, view->series[a].label_set,
					  view->series[b].label_set);
}

static void arrange_series(struct tables_copy *copy)
{
	struct tables_view *view = &copy->from;
	uint32_t *order = mem_new_array(uint32_t, view->series_count);

	for (uint32_t i = 0; i < view->series_count; i++)
		order[i] = i;
	if (view->series_count)
		qsort_r(order, view->series_count, sizeof(*order), series_order, view);
	for (uint32_t i = 0; i < view->series_count; i++)
		tables_copy_series(copy, order[i]);
	free(order);
}

static void map_through(uint32_t *map, uint32_t count, const uint32_t *then)
{
	for (uint32_t i = 0; i < count; i++)
		if (map[i] != TABLES_FULL)
			map[i] = then[map[i]];
}

static void map_input(struct dictionary_input *input, struct tables_copy *copy)
{
	const struct tables_view *view = input->view;

	map_through(input->series, view->series_count, copy->series);
	map_through(input->nodes, view->nodes_count, copy->nodes);
	/* Label sets of series that no row carries are not asked for. */
	for (uint32_t i = 0; i < view->label_sets_count; i++)
		if (input->label_sets[i] != TABLES_FULL)
			input->label_sets[i] = tables_copy_label_set(copy, input->label_sets[i]);
}

static void arrange(struct merge *merge, struct dictionary *ret)
{
	struct tables_view view = tables_view_of(&merge->gathered);
	struct tables_copy copy;

	tables_init(&ret->tables);
	ret->rows_of_node = mem_new_array(uint64_t, view.nodes_count);
	tables_copy_begin(&copy, &ret->tables, &view);
	arrange_series(&copy);
	arrange_nodes(&copy, merge->rows);
	for (uint32_t i = 0; i < view.nodes_count; i++)
		ret->rows_of_node[copy.nodes[i]] = merge->rows[i];
	for (size_t i = 0; i < merge->inputs_count; i++)
		map_input(&merge->inputs[i], &copy);
	tables_copy_end(&copy);
}

int dictionary_merge(struct dictionary_input *inputs, size_t inputs_count, struct dictionary *ret,
		     struct err *err)
{
	struct merge merge = { .inputs = inputs, .inputs_count = inputs_count };
	size_t made = 0;
	bool fits = true;
	int rc = 0;

	tables_init(&merge.gathered);
	add_rows(&merge, 0, 0);
	while (fits && made < inputs_count)
		fits = gather(&merge, &inputs[made++]);
	if (!fits)
		rc = err_set(err, ERR_LIMIT, "more than %zu stacks, frames or strings together",
			     TABLES_IDS_MAX);
	else if (merge.gathered.groups.count > 1)
		rc = err_set(err, ERR_INVALID, "different groups of sample types cannot be merged");
	else
		arrange(&merge, ret);
	for (size_t i = 0; rc && i < made; i++)
		dictionary_input_free_maps(&inputs[i]);
	tables_free(&merge.gathered);
	free(merge.rows);
	return rc;
}
