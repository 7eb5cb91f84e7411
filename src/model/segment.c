/* SPDX-License-Identifier: Apache-2.0 */
#include "model/segment.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

#define TABLES_BLOCK_REPORTS 1024u /* of a window on plain tables */
#define ROW_STRIDE (sizeof(struct row) / sizeof(uint32_t))

_Static_assert(sizeof(struct row) == 2 * sizeof(uint32_t), "rows are read as pairs of ids");

void segment_buffer_free(struct segment_buffer *buffer)
{
	if (buffer->free_decompressor)
		buffer->free_decompressor(buffer->decompressor);
	free(buffer->memory);
	free(buffer->heads);
	*buffer = (struct segment_buffer){ 0 };
}

void *segment_buffer_room(struct segment_buffer *buffer, size_t bytes)
{
	if (buffer->capacity < bytes) {
		free(buffer->memory); /* nothing in it is kept */
		buffer->memory = mem_realloc(NULL, bytes, 1);
		buffer->capacity = bytes;
	}
	return buffer->memory;
}

void segment_of_tables(struct segment *segment, const struct tables_view *view)
{
	*segment = (struct segment){
		.view = *view,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.blocks_count =
			(view->reports_count + TABLES_BLOCK_REPORTS - 1) / TABLES_BLOCK_REPORTS,
		.slots_count = view->nodes_count,
		.has_sample_labels = view->label_sets_count > 1,
		.has_moments = view->moments_count > 0,
	};
}

int segment_load_stacks(struct segment *segment, struct err *err)
{
	return segment->ops ? segment->ops->load_stacks(segment, err) : 0;
}

void segment_drop_stacks(struct segment *segment)
{
	if (segment->ops && segment->ops->drop_stacks)
		segment->ops->drop_stacks(segment);
}

static uint32_t window_count(const struct segment *segment, uint32_t block)
{
	uint32_t rest = segment->view.reports_count - block * TABLES_BLOCK_REPORTS;

	assert(block < segment->blocks_count);
	return rest < TABLES_BLOCK_REPORTS ? rest : TABLES_BLOCK_REPORTS;
}

struct segment_zone segment_zone(const struct segment *segment, uint32_t block)
{
	assert(block < segment->blocks_count);
	if (segment->zones)
		return segment->zones[block];
	/* To know more would cost as much as to read the window. */
	return (struct segment_zone){
		.series_max = UINT32_MAX,
		.reports = window_count(segment, block),
		.start_min_ns = INT64_MIN,
		.start_max_ns = INT64_MAX,
	};
}

static int64_t end_of(const struct report *report)
{
	int64_t end_ns;

	if (__builtin_add_overflow(report->start_ns, report->duration_ns, &end_ns))
		return INT64_MAX;
	return end_ns;
}

static void read_tables(const struct segment *segment, uint32_t block, enum segment_want want,
			struct segment_buffer *buffer, struct segment_block *ret)
{
	const struct tables_view *view = &segment->view;
	const struct report *reports = &view->reports[(size_t)block * TABLES_BLOCK_REPORTS];
	uint32_t count = window_count(segment, block);
	struct segment_report *list =
		segment_buffer_room(buffer, sizeof(*list) * TABLES_BLOCK_REPORTS);

	assert(!segment->ops && want <= SEGMENT_MOMENTS);
	for (uint32_t i = 0; i < count; i++)
		list[i] = (struct segment_report){
			.series = reports[i].series,
			.row_count = reports[i].row_count,
			.row_first = reports[i].row_first,
			.value_first = reports[i].value_first,
			/* Totals of later reports come behind those of earlier ones. */
			.total_first = (uint32_t)(reports[i].total_first - reports[0].total_first),
			.reports_count = 1,
			.start_ns = reports[i].start_ns,
			.duration_ns = reports[i].duration_ns,
			.end_ns = end_of(&reports[i]),
			.moment_first = reports[i].moment_first,
			.moment_count = reports[i].moment_count,
		};
	for (uint32_t i = 0; segment->sums && i < count; i++) {
		const struct segment_sum *sum =
			&segment->sums[(size_t)block * TABLES_BLOCK_REPORTS + i];

		list[i].reports_count = sum->reports_count;
		list[i].end_ns = sum->end_ns;
	}
	*ret = (struct segment_block){
		.reports = list,
		.reports_count = count,
		.totals = view->totals + reports[0].total_first,
	};
	if (want == SEGMENT_HEADERS)
		return;
	ret->slots = &view->rows->stack;
	ret->label_sets = &view->rows->label_set;
	ret->row_stride = ROW_STRIDE;
	ret->values = view->values;
	ret->column_stride = 1;
	if (want == SEGMENT_ROWS || !segment->has_moments)
		return;
	ret->moments = view->moments;
	ret->links = view->links;
	ret->links_count = view->links_count;
}

static bool is_deleted(const struct segment *segment, const struct segment_report *report)
{
	assert(segment->deletions);
	for (uint32_t i = 0; i < segment->deletions_count; i++) {
		const struct segment_deletion *deletion = &segment->deletions[i];

		if (report->start_ns >= deletion->from_ns && report->start_ns < deletion->to_ns &&
		    deletion->series[report->series])
			return true;
	}
	return false;
}

/* Reports lead to their rows themselves, so those that stay can close ranks. */
static void drop_deleted(const struct segment *segment, struct segment_block *block)
{
	struct segment_report *reports = (struct segment_report *)(uintptr_t)block->reports;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < block->reports_count; i++)
		if (!is_deleted(segment, &reports[i]))
			reports[kept++] = reports[i];
	block->reports_count = kept;
}

int segment_read(const struct segment *segment, uint32_t block, enum segment_want want,
		 struct segment_buffer *buffer, struct segment_block *ret, struct err *err)
{
	assert(block < segment->blocks_count);
	if (segment->ops) {
		int rc = segment->ops->read(segment, block, want, buffer, ret, err);

		if (!rc && segment->deletions_count)
			drop_deleted(segment, ret);
		return rc;
	}
	read_tables(segment, block, want, buffer, ret);
	if (segment->deletions_count)
		drop_deleted(segment, ret);
	return 0;
}

/* Where the heads of so many reports lie in a buffer. */
struct head_columns {
	int64_t *starts_ns, *durations_ns, *ends_ns;
	struct segment_run *runs;
	uint32_t *row_counts, *total_firsts, *reports_counts;
};

static struct head_columns heads_room(struct segment_buffer *buffer, size_t reports)
{
	size_t bytes =
		reports * (3 * sizeof(int64_t) + sizeof(struct segment_run) + 3 * sizeof(uint32_t));
	struct head_columns columns;

	if (!buffer->heads || buffer->heads_capacity < bytes) {
		free(buffer->heads);
		buffer->heads = mem_realloc(NULL, bytes, 1);
		buffer->heads_capacity = bytes;
	}
	columns.starts_ns = buffer->heads;
	columns.durations_ns = columns.starts_ns + reports;
	columns.ends_ns = columns.durations_ns + reports;
	columns.runs = (struct segment_run *)(columns.ends_ns + reports);
	columns.row_counts = (uint32_t *)(columns.runs + reports);
	columns.total_firsts = columns.row_counts + reports;
	columns.reports_counts = columns.total_firsts + reports;
	return columns;
}

static void heads_of_block(const struct segment_block *block, struct segment_buffer *buffer,
			   struct segment_heads *ret)
{
	struct head_columns columns = heads_room(buffer, block->reports_count);
	uint32_t runs = 0;

	assert(block->reports || !block->reports_count);
	for (uint32_t i = 0; i < block->reports_count; i++) {
		const struct segment_report *report = &block->reports[i];

		if (!i || report->series != report[-1].series)
			columns.runs[runs++] = (struct segment_run){ .series = report->series,
								     .first = i,
								     .times = i };
		columns.runs[runs - 1].count++;
		columns.starts_ns[i] = report->start_ns;
		columns.durations_ns[i] = report->duration_ns;
		columns.ends_ns[i] = report->end_ns;
		columns.row_counts[i] = report->row_count;
		columns.total_firsts[i] = report->total_first;
		columns.reports_counts[i] = report->reports_count;
	}
	*ret = (struct segment_heads){
		.runs = columns.runs,
		.runs_count = runs,
		.reports_count = block->reports_count,
		.starts_ns = columns.starts_ns,
		.durations_ns = columns.durations_ns,
		.ends_ns = columns.ends_ns,
		.longest_ns = INT64_MAX,
		.row_counts = columns.row_counts,
		.totals = block->totals,
		.total_firsts = columns.total_firsts,
		.reports_counts = columns.reports_counts,
	};
}

int segment_read_heads(const struct segment *segment, uint32_t block, struct segment_buffer *buffer,
		       struct segment_heads *ret, struct err *err)
{
	struct segment_block reports;
	int rc;

	assert(block < segment->blocks_count);
	if (segment->ops && segment->ops->read_heads && !segment->deletions_count)
		return segment->ops->read_heads(segment, block, buffer, ret, err);
	rc = segment_read(segment, block, SEGMENT_HEADERS, buffer, &reports, err);
	if (!rc)
		heads_of_block(&reports, buffer, ret);
	return rc;
}
