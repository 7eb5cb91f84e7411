/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/compact/report_stream.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/heap.h"

struct cursor {
	const struct report_source *source;
	struct segment_buffer buffer;
	struct segment_block block;
	uint32_t next_block; /* to be read */
	uint32_t at;	     /* report of the block */
	uint32_t series;     /* of it, in the new ids */
	int64_t start_ns;
};

struct report_stream {
	struct cursor *cursors;
	size_t count;
	uint32_t columns;
	struct throttle *throttle;
	enum segment_want want;
	size_t *heap; /* cursors with a report, the first in order at the top */
	size_t heap_count;
	bool taken; /* the top's report was handed out */
	size_t failed;
	uint32_t *nodes, *label_sets; /* of the report that was handed out */
	int64_t *values;
	size_t rows_capacity;
};

struct report_stream *report_stream_new(const struct report_source *sources, size_t sources_count,
					uint32_t columns, struct throttle *throttle)
{
	struct report_stream *stream = mem_new(struct report_stream);

	assert(sources_count && columns);
	stream->cursors = mem_new_array(struct cursor, sources_count);
	stream->heap = mem_new_array(size_t, sources_count);
	stream->count = sources_count;
	stream->columns = columns;
	stream->throttle = throttle;
	for (size_t i = 0; i < sources_count; i++)
		stream->cursors[i].source = &sources[i];
	return stream;
}

void report_stream_free(struct report_stream *stream)
{
	if (!stream)
		return;
	for (size_t i = 0; i < stream->count; i++)
		segment_buffer_free(&stream->cursors[i].buffer);
	free(stream->cursors);
	free(stream->heap);
	free(stream->nodes);
	free(stream->label_sets);
	free(stream->values);
	free(stream);
}

size_t report_stream_failed(const struct report_stream *stream)
{
	return stream->failed;
}

/* Goes to the next report, reading blocks. 1, 0 at the end, or an error. */
static int advance(struct report_stream *stream, struct cursor *cursor, struct err *err)
{
	const struct segment *segment = cursor->source->segment;
	const struct segment_report *report;
	uint32_t series;
	int rc;

	assert(cursor->at <= cursor->block.reports_count);
	while (cursor->at == cursor->block.reports_count) {
		if (cursor->next_block == segment->blocks_count)
			return 0;
		rc = throttle_pause(stream->throttle,
				    segment_zone(segment, cursor->next_block).bytes, err);
		if (!rc)
			rc = segment_read(segment, cursor->next_block, stream->want,
					  &cursor->buffer, &cursor->block, err);
		if (rc)
			return rc;
		cursor->next_block++;
		cursor->at = 0;
	}
	report = &cursor->block.reports[cursor->at];
	series = cursor->source->series[report->series];
	if (series == TABLES_FULL || series < cursor->series ||
	    (series == cursor->series && report->start_ns < cursor->start_ns))
		return err_set(err, ERR_CORRUPT, "reports are not in order");
	cursor->series = series;
	cursor->start_ns = report->start_ns;
	return 1;
}

/* Equal ones in the order of the sources, so that the result follows from the inputs. */
static bool before(const struct report_stream *stream, size_t left, size_t right)
{
	const struct cursor *a = &stream->cursors[left], *b = &stream->cursors[right];

	if (a->series != b->series)
		return a->series < b->series;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns;
	return left < right;
}

static void sink(struct report_stream *stream, size_t place)
{
	heap_sink(stream->heap, stream->heap_count, place, a, b, before(stream, a, b));
}

int report_stream_begin(struct report_stream *stream, enum segment_want want, struct err *err)
{
	stream->want = want;
	stream->heap_count = 0;
	stream->taken = false;
	for (size_t i = 0; i < stream->count; i++) {
		struct cursor *cursor = &stream->cursors[i];
		int rc;

		cursor->next_block = cursor->at = cursor->block.reports_count = 0;
		cursor->series = 0;
		cursor->start_ns = INT64_MIN;
		stream->failed = i;
		rc = advance(stream, cursor, err);
		if (rc < 0)
			return rc;
		if (rc)
			stream->heap[stream->heap_count++] = i;
	}
	assert(stream->heap_count <= stream->count);
	for (size_t i = stream->heap_count / 2; i--;)
		sink(stream, i);
	return 0;
}

static void make_room(struct report_stream *stream, size_t rows)
{
	if (rows <= stream->rows_capacity)
		return;
	rows += rows / 2;
	stream->nodes = mem_realloc(stream->nodes, rows, sizeof(*stream->nodes));
	stream->label_sets = mem_realloc(stream->label_sets, rows, sizeof(*stream->label_sets));
	stream->values = mem_realloc(stream->values, rows * stream->columns, sizeof(int64_t));
	stream->rows_capacity = rows;
}

static void take_values(struct report_stream *stream, const struct segment_block *block,
			const struct segment_report *report)
{
	uint64_t stride = block->value_stride ? block->value_stride : stream->columns;
	const int64_t *from = block->values + report->value_first;
	int64_t *into = stream->values;

	for (uint32_t i = 0; i < report->row_count; i++)
		for (uint32_t c = 0; c < stream->columns; c++)
			*into++ = from[i * stride + c * block->column_stride];
}

static void take_ones(struct report_stream *stream, const struct segment_report *report)
{
	for (size_t i = 0; i < (size_t)report->row_count * stream->columns; i++)
		stream->values[i] = 1;
}

static int take_rows(struct report_stream *stream, const struct cursor *cursor,
		     const struct segment_report *report, struct part_report *ret, struct err *err)
{
	const struct segment_block *block = &cursor->block;
	const struct report_source *source = cursor->source;
	uint32_t bad = 0;

	make_room(stream, report->row_count);
	for (uint32_t i = 0; i < report->row_count; i++) {
		uint64_t at = (report->row_first + i) * block->row_stride;

		stream->nodes[i] = source->nodes[block->slots[at]];
		bad |= stream->nodes[i] == TABLES_FULL;
	}
	assert(report->row_count <= stream->rows_capacity);
	ret->nodes = stream->nodes;
	if (block->label_sets && source->label_sets) {
		for (uint32_t i = 0; i < report->row_count; i++) {
			uint64_t at = (report->row_first + i) * block->row_stride;

			stream->label_sets[i] = source->label_sets[block->label_sets[at]];
			bad |= stream->label_sets[i] == TABLES_FULL;
		}
		ret->label_sets = stream->label_sets;
	}
	if (bad)
		return err_set(err, ERR_CORRUPT, "rows have changed since they were counted");
	if (block->values)
		take_values(stream, block, report);
	else
		take_ones(stream, report);
	ret->values = stream->values;
	if (block->moments) {
		ret->moments = &block->moments[report->moment_first];
		ret->moment_count = report->moment_count;
		ret->links = block->links;
	}
	return 0;
}

/* The top was handed out: its source goes on. */
static int leave_top(struct report_stream *stream, struct err *err)
{
	struct cursor *cursor = &stream->cursors[stream->heap[0]];
	int rc;

	assert(stream->heap_count && stream->heap_count <= stream->count);
	cursor->at++;
	rc = advance(stream, cursor, err);
	if (rc < 0)
		return rc;
	if (!rc)
		stream->heap[0] = stream->heap[--stream->heap_count];
	sink(stream, 0);
	return 0;
}

int report_stream_next(struct report_stream *stream, struct part_report *ret, struct err *err)
{
	const struct segment_report *report;
	const struct cursor *cursor;
	int rc;

	if (stream->taken) {
		stream->failed = stream->heap[0];
		rc = leave_top(stream, err);
		if (rc)
			return rc;
	}
	stream->taken = stream->heap_count > 0;
	if (!stream->taken)
		return 0;
	stream->failed = stream->heap[0];
	cursor = &stream->cursors[stream->heap[0]];
	assert(cursor->at < cursor->block.reports_count);
	report = &cursor->block.reports[cursor->at];
	*ret = (struct part_report){
		.series = cursor->series,
		.row_count = report->row_count,
		.start_ns = report->start_ns,
		.duration_ns = report->duration_ns,
		.end_ns = report->end_ns,
		.reports_count = report->reports_count,
	};
	rc = take_rows(stream, cursor, report, ret, err);
	return rc ? rc : 1;
}
