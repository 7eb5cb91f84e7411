/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part_arrange.h"

#include <assert.h>

#include "base/mem.h"

#define NONE UINT32_MAX

/* Children of each node, as lists through the nodes, heaviest first. */
struct forest {
	uint64_t *weights; /* rows at or below the node */
	uint32_t *first_child, *next_sibling;
};

static void weigh(const struct tables_view *view, struct forest *forest)
{
	forest->weights = mem_new_array(uint64_t, view->nodes_count);
	for (uint64_t i = 0; i < view->rows_count; i++)
		forest->weights[view->rows[i].stack]++;
	for (uint32_t i = view->nodes_count; i-- > 1;)
		forest->weights[view->nodes[i].parent] += forest->weights[i];
}

static int weight_order(const void *left, const void *right, void *context)
{
	const uint64_t *weights = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (weights[a] != weights[b])
		return weights[a] < weights[b] ? -1 : 1;
	return (a < b) - (a > b);
}

/* Nodes are pushed to the front of their parents' lists from the lightest to the heaviest. */
static void link_children(const struct tables_view *view, struct forest *forest)
{
	uint32_t *order = mem_new_array(uint32_t, view->nodes_count);
	uint32_t count = 0;

	forest->first_child = mem_realloc(NULL, view->nodes_count, sizeof(uint32_t));
	forest->next_sibling = mem_realloc(NULL, view->nodes_count, sizeof(uint32_t));
	memset(forest->first_child, 0xff, view->nodes_count * sizeof(uint32_t));
	memset(forest->next_sibling, 0xff, view->nodes_count * sizeof(uint32_t));
	for (uint32_t i = 1; i < view->nodes_count; i++)
		if (forest->weights[i])
			order[count++] = i;
	qsort_r(order, count, sizeof(*order), weight_order, forest->weights);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *first = &forest->first_child[view->nodes[order[i]].parent];

		forest->next_sibling[order[i]] = *first;
		*first = order[i];
	}
	free(order);
}

/* Copying a node whose parent was just copied gives it the next id: depth-first order. */
static void copy_nodes(struct tables_copy *copy)
{
	const struct tables_view *view = &copy->from;
	struct forest forest;
	uint32_t node = 0;

	weigh(view, &forest);
	link_children(view, &forest);
	while (node != NONE) {
		uint32_t made = tables_copy_node(copy, node);

		assert(made != TABLES_FULL);
		if (forest.first_child[node] != NONE) {
			node = forest.first_child[node];
			continue;
		}
		while (node && forest.next_sibling[node] == NONE)
			node = view->nodes[node].parent;
		node = node ? forest.next_sibling[node] : NONE;
	}
	free(forest.weights);
	free(forest.first_child);
	free(forest.next_sibling);
}

static int text_order(const struct tables_view *view, uint32_t a, uint32_t b)
{
	return slice_compare(tables_text(view, a), tables_text(view, b));
}

static int label_set_order(const struct tables_view *view, uint32_t left, uint32_t right)
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

static int series_order(const void *left, const void *right, void *context)
{
	const struct tables_view *view = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint32_t group_a = view->series[a].group, group_b = view->series[b].group;
	int order = text_order(view, view->groups[group_a].name, view->groups[group_b].name);

	if (!order)
		order = (group_a > group_b) - (group_a < group_b);
	if (!order)
		order = label_set_order(view, view->series[a].label_set, view->series[b].label_set);
	return order ? order : (a > b) - (a < b);
}

static void copy_series(struct tables_copy *copy)
{
	const struct tables_view *view = &copy->from;
	uint32_t *order = mem_new_array(uint32_t, view->series_count);

	for (uint32_t i = 0; i < view->series_count; i++)
		order[i] = i;
	if (view->series_count)
		qsort_r(order, view->series_count, sizeof(*order), series_order,
			(void *)(uintptr_t)view);
	for (uint32_t i = 0; i < view->series_count; i++)
		tables_copy_series(copy, order[i]);
	free(order);
}

static int report_order(const void *left, const void *right, void *context)
{
	const struct tables_copy *copy = context;
	const struct report *a = &copy->from.reports[*(const uint32_t *)left];
	const struct report *b = &copy->from.reports[*(const uint32_t *)right];
	uint32_t series_a = copy->series[a->series], series_b = copy->series[b->series];

	if (series_a != series_b)
		return series_a < series_b ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->batch_id > b->batch_id) - (a->batch_id < b->batch_id);
}

struct placed_row {
	struct row row; /* with the new ids */
	uint32_t index; /* in the report */
};

static int row_order(const void *left, const void *right)
{
	const struct placed_row *a = left, *b = right;

	if (a->row.stack != b->row.stack)
		return a->row.stack < b->row.stack ? -1 : 1;
	if (a->row.label_set != b->row.label_set)
		return a->row.label_set < b->row.label_set ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

static void copy_report(struct tables_copy *copy, const struct report *report,
			struct placed_row *rows)
{
	uint32_t columns = tables_series_columns(&copy->from, report->series);
	uint32_t id = tables_report_begin(copy->into, copy->series[report->series],
					  report->start_ns, report->duration_ns, report->batch_id);

	assert(id != TABLES_FULL);
	for (uint32_t i = 0; i < report->row_count; i++) {
		const struct row *row = &copy->from.rows[report->row_first + i];

		rows[i].row.stack = copy->nodes[row->stack];
		rows[i].row.label_set = tables_copy_label_set(copy, row->label_set);
		rows[i].index = i;
	}
	if (report->row_count)
		qsort(rows, report->row_count, sizeof(*rows), row_order);
	for (uint32_t i = 0; i < report->row_count; i++) {
		bool fits = tables_row(copy->into, rows[i].row.stack, rows[i].row.label_set,
				       &copy->from.values[report->value_first +
							  (uint64_t)rows[i].index * columns]);

		assert(fits);
	}
}

static void copy_reports(struct tables_copy *copy)
{
	const struct tables_view *view = &copy->from;
	uint32_t *order = mem_new_array(uint32_t, view->reports_count);
	struct placed_row *rows;
	uint32_t rows_max = 0;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		order[i] = i;
		if (view->reports[i].row_count > rows_max)
			rows_max = view->reports[i].row_count;
	}
	rows = mem_new_array(struct placed_row, rows_max);
	if (view->reports_count)
		qsort_r(order, view->reports_count, sizeof(*order), report_order, copy);
	for (uint32_t i = 0; i < view->reports_count; i++)
		copy_report(copy, &view->reports[order[i]], rows);
	free(order);
	free(rows);
}

void part_arrange(const struct tables_view *from, struct tables *into)
{
	struct tables_copy copy;

	tables_copy_begin(&copy, into, from);
	copy_series(&copy);
	copy_nodes(&copy);
	copy_reports(&copy);
	tables_copy_end(&copy);
}
