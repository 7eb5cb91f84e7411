/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/part/part_arrange.h"
#include "server/persist/part/part_writer.h"

/* Plain tables on their way into partitions. */
struct split {
	const struct tables_view *view;
	struct part_key *keys; /* by series */
	uint32_t *partitions;  /* by series */
	uint32_t partitions_count;
	uint32_t *reports; /* by partition */
	uint32_t *firsts;  /* by partition and one more: its first of `reports` */
	struct part_arranger *arranger;
	struct part_arrangement arrangement; /* of the partition at hand */
	/* The rows of one report, with the new ids. */
	uint32_t *nodes, *label_sets;
};

static int partition_order(const void *left, const void *right, void *context)
{
	const struct split *split = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct tables_view *view = split->view;
	uint32_t group_a = view->series[a].group, group_b = view->series[b].group;
	int order = part_key_compare(&split->keys[a], &split->keys[b]);

	/* Types first: neighbours then share stripes. */
	if (group_a != group_b)
		return group_a < group_b ? -1 : 1;
	return order ? order : (a > b) - (a < b);
}

static bool is_same_partition(const struct split *split, uint32_t a, uint32_t b)
{
	return split->view->series[a].group == split->view->series[b].group &&
	       !part_key_compare(&split->keys[a], &split->keys[b]);
}

static void number_partitions(struct split *split)
{
	uint32_t count = split->view->series_count;
	uint32_t *order = mem_new_array(uint32_t, count);

	split->keys = mem_new_array(struct part_key, count);
	split->partitions = mem_new_array(uint32_t, count);
	for (uint32_t i = 0; i < count; i++) {
		order[i] = i;
		split->keys[i] = part_key_of(split->view, split->view->series[i].label_set, NULL);
	}
	qsort_r(order, count, sizeof(*order), partition_order, split);
	for (uint32_t i = 0; i < count; i++) {
		if (!i || !is_same_partition(split, order[i - 1], order[i]))
			split->partitions_count++;
		split->partitions[order[i]] = split->partitions_count - 1;
	}
	assert(split->partitions_count <= count);
	free(order);
}

static void gather_reports(struct split *split)
{
	const struct tables_view *view = split->view;
	uint32_t rows_max = 0;

	split->firsts = mem_new_array(uint32_t, (size_t)split->partitions_count + 1);
	split->reports = mem_new_array(uint32_t, view->reports_count);
	for (uint32_t i = 0; i < view->reports_count; i++) {
		split->firsts[split->partitions[view->reports[i].series]]++;
		if (view->reports[i].row_count > rows_max)
			rows_max = view->reports[i].row_count;
	}
	for (uint32_t i = 0, first = 0; i <= split->partitions_count; i++) {
		first += split->firsts[i];
		split->firsts[i] = first; /* its end, until all are in their places */
	}
	for (uint32_t i = view->reports_count; i--;)
		split->reports[--split->firsts[split->partitions[view->reports[i].series]]] = i;
	assert(!split->firsts[0]);
	assert(split->firsts[split->partitions_count] == view->reports_count);
	split->nodes = mem_new_array(uint32_t, rows_max);
	split->label_sets = mem_new_array(uint32_t, rows_max);
}

static void split_begin(struct split *split, const struct tables_view *view)
{
	*split = (struct split){ .view = view, .arranger = part_arranger_new(view) };
	number_partitions(split);
	gather_reports(split);
}

static void split_end(struct split *split)
{
	part_arranger_free(split->arranger);
	free(split->keys);
	free(split->partitions);
	free(split->reports);
	free(split->firsts);
	free(split->nodes);
	free(split->label_sets);
}

static int report_order(const void *left, const void *right, void *context)
{
	const struct split *split = context;
	const struct report *a = &split->view->reports[*(const uint32_t *)left];
	const struct report *b = &split->view->reports[*(const uint32_t *)right];
	uint32_t series_a = split->arrangement.series[a->series];
	uint32_t series_b = split->arrangement.series[b->series];

	if (series_a != series_b)
		return series_a < series_b ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->batch_id > b->batch_id) - (a->batch_id < b->batch_id);
}

static void arrange(struct split *split, uint32_t *reports, uint32_t count)
{
	const struct tables_view *view = split->view;

	for (uint32_t i = 0; i < count; i++) {
		const struct report *report = &view->reports[reports[i]];

		part_arranger_use_series(split->arranger, report->series);
		for (uint32_t j = 0; j < report->row_count; j++) {
			const struct row *row = &view->rows[report->row_first + j];

			part_arranger_use_stack(split->arranger, row->stack, 1);
			if (row->label_set)
				part_arranger_use_label_set(split->arranger, row->label_set);
		}
	}
	part_arranger_finish(split->arranger, &split->arrangement);
	qsort_r(reports, count, sizeof(*reports), report_order, split);
}

static int64_t end_of(const struct report *report)
{
	int64_t end_ns;

	if (__builtin_add_overflow(report->start_ns, report->duration_ns, &end_ns))
		return report->duration_ns < 0 ? INT64_MIN : INT64_MAX;
	return end_ns;
}

static int write_report(struct split *split, const struct report *report,
			struct part_writer *writer, struct err *err)
{
	struct part_report out = {
		.series = split->arrangement.series[report->series],
		.row_count = report->row_count,
		.start_ns = report->start_ns,
		.duration_ns = report->duration_ns,
		.end_ns = end_of(report),
		.reports_count = 1,
		.nodes = split->nodes,
		.values = split->view->values + report->value_first,
		.moments = split->view->moments + report->moment_first,
		.moment_count = report->moment_count,
		.links = split->view->links,
	};

	for (uint32_t i = 0; i < report->row_count; i++) {
		const struct row *row = &split->view->rows[report->row_first + i];

		split->nodes[i] = split->arrangement.nodes[row->stack];
		split->label_sets[i] =
			row->label_set ? split->arrangement.label_sets[row->label_set] : 0;
		if (row->label_set)
			out.label_sets = split->label_sets;
	}
	return part_writer_report(writer, SEGMENT_RAW, &out, err);
}

static int write_partition(struct split *split, uint32_t partition, struct part_writer *writer,
			   struct err *err)
{
	uint32_t *reports = split->reports + split->firsts[partition];
	uint32_t count = split->firsts[partition + 1] - split->firsts[partition];
	struct part_dictionary dictionary;
	int rc;

	if (!count)
		return 0; /* series whose reports were all dropped */
	arrange(split, reports, count);
	dictionary = (struct part_dictionary){
		.key = split->keys[split->view->reports[reports[0]].series],
		.view = &split->arrangement.view,
		.rows_of_node = split->arrangement.rows_of_node,
	};
	rc = part_writer_begin_partition(writer, &dictionary, err);
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = write_report(split, &split->view->reports[reports[i]], writer, err);
	return rc ? rc : part_writer_end_partition(writer, err);
}

int part_write(const struct vfs *vfs, const char *dir, const struct tables_view *view,
	       uint64_t number, struct part_info *ret, struct err *err)
{
	struct part_writer *writer;
	struct split split;
	int rc = part_writer_open(vfs, dir, number, PART_QUICK, NULL, &writer, err);

	assert(view->reports_count);
	if (rc)
		return rc;
	split_begin(&split, view);
	for (uint32_t i = 0; i < split.partitions_count && !rc; i++)
		rc = write_partition(&split, i, writer, err);
	split_end(&split);
	if (rc) {
		part_writer_abort(writer);
		return rc;
	}
	return part_writer_commit(writer, ret, err);
}
