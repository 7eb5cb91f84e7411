/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clickhouse/ch_import.h"

#include <assert.h>
#include <time.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"

#define BATCH_ROWS ((uint64_t)100000)
#define BATCH_REPORTS 20000u
#define TRIES 60 /* of an append that may succeed later, a second apart */

struct import {
	struct store *to;
	struct ch_import_result *result;
	struct segment *segment; /* that is copied now */
	struct tables batch;
	struct tables_copy copy; /* from the segment's view into the batch */
	/* Identities of the segment's reports. */
	struct idmap map;
	uint64_t *ids;
	size_t ids_count, ids_capacity;
	size_t unreadable; /* parts, or shares of them */
};

static void begin_batch(struct import *import)
{
	tables_reset(&import->batch);
	tables_copy_begin(&import->copy, &import->batch, &import->segment->view);
}

static int append(struct import *import, const struct tables_view *view, struct err *err)
{
	static const struct timespec pause = { .tv_sec = 1 };
	struct append_result appended = { 0 };
	int rc = 0;

	for (int i = 0; i < TRIES; i++) {
		rc = store_append(import->to, view, &appended, err);
		if (rc != -ERR_UNAVAILABLE && rc != -ERR_NO_MEMORY)
			break;
		nanosleep(&pause, NULL);
	}
	if (rc)
		return rc;
	import->result->reports += appended.reports_stored + appended.reports_duplicate;
	import->result->rows += view->rows_count;
	import->result->refused += appended.reports_late + appended.reports_future;
	return 0;
}

static int end_batch(struct import *import, struct err *err)
{
	struct tables_view view = tables_view_of(&import->batch);
	int rc = view.reports_count ? append(import, &view, err) : 0;

	tables_copy_end(&import->copy);
	return rc;
}

static const int64_t *values_of(const struct segment_block *block,
				const struct segment_report *report, uint32_t columns, uint32_t row,
				int64_t *room)
{
	uint64_t stride = block->value_stride ? block->value_stride : columns;

	for (uint32_t c = 0; c < columns; c++)
		room[c] = block->values ? block->values[report->value_first + row * stride +
							c * block->column_stride]
					: 1;
	return room;
}

/* The report's numbers, in whatever order its rows are. */
static uint64_t content_of(const struct segment_block *block, const struct segment_report *report,
			   uint32_t columns)
{
	int64_t room[TABLES_COLUMNS_PER_GROUP_MAX];
	const uint64_t head[] = { (uint64_t)report->duration_ns, report->row_count };
	uint64_t sum = 0;

	for (uint32_t row = 0; row < report->row_count; row++)
		sum += hash_stable(values_of(block, report, columns, row, room),
				   columns * sizeof(*room), 0);
	return hash_stable(head, sizeof(head), sum);
}

static bool is_id(const void *context, uint32_t at, const void *key)
{
	const struct import *import = context;

	return import->ids[at] == *(const uint64_t *)key;
}

/* False: the segment had one with this id already. */
static bool note_id(struct import *import, uint64_t id)
{
	if (idmap_find(&import->map, id, is_id, import, &id) != IDMAP_NONE)
		return false;
	mem_grow(import->ids, import->ids_count, import->ids_capacity);
	import->ids[import->ids_count] = id;
	idmap_add(&import->map, id, (uint32_t)import->ids_count++);
	return true;
}

/* What tells the report from others of its series and start: its content, and how many equal ones
 * came before it. */
static uint64_t batch_id_of(struct import *import, const struct segment_block *block,
			    const struct segment_report *report, uint32_t columns)
{
	uint64_t content = content_of(block, report, columns), id;
	uint64_t twin = 0;

	do {
		const uint64_t parts[] = { report->series, (uint64_t)report->start_ns, content,
					   twin };

		id = hash_stable(parts, sizeof(parts), 0);
	} while (!note_id(import, id) && ++twin);
	return content + twin;
}

static bool copy_row(struct import *import, const struct segment_block *block,
		     const struct segment_report *report, uint32_t columns, uint32_t row)
{
	uint64_t at = (report->row_first + row) * block->row_stride;
	uint32_t set = block->label_sets ? block->label_sets[at] : 0;
	uint32_t node =
		tables_copy_node(&import->copy, segment_node(import->segment, block->slots[at]));
	int64_t room[TABLES_COLUMNS_PER_GROUP_MAX];

	if (set)
		set = tables_copy_label_set(&import->copy, set);
	return node != TABLES_FULL && set != TABLES_FULL &&
	       tables_row(&import->batch, node, set, values_of(block, report, columns, row, room));
}

static int copy_report(struct import *import, const struct segment_block *block,
		       const struct segment_report *report, struct err *err)
{
	uint32_t columns = tables_series_columns(&import->segment->view, report->series);
	uint32_t series = tables_copy_series(&import->copy, report->series);
	bool fits;

	assert(report->reports_count == 1 && columns <= TABLES_COLUMNS_PER_GROUP_MAX);
	fits = series != TABLES_FULL &&
	       tables_report_begin(&import->batch, series, report->start_ns, report->duration_ns,
				   batch_id_of(import, block, report, columns)) != TABLES_FULL;
	for (uint32_t row = 0; fits && row < report->row_count; row++)
		fits = copy_row(import, block, report, columns, row);
	return fits ? 0
		    : err_set(err, ERR_LIMIT, "a report of %u rows does not fit into a batch",
			      report->row_count);
}

static bool is_full(const struct import *import)
{
	struct tables_view view = tables_view_of(&import->batch);

	return view.rows_count >= BATCH_ROWS || view.reports_count >= BATCH_REPORTS;
}

static int copy_block(struct import *import, const struct segment_block *block, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < block->reports_count && !rc; i++) {
		if (!segment_answers_for(import->segment, block->reports[i].start_ns))
			continue;
		rc = copy_report(import, block, &block->reports[i], err);
		if (!rc && is_full(import)) {
			rc = end_batch(import, err);
			begin_batch(import);
		}
	}
	return rc;
}

/* Reports that cannot be read are left out, and counted by their segment. */
static int copy_segment(struct import *import, struct segment *segment, struct err *err)
{
	struct segment_buffer buffer = { 0 };
	int rc = 0;

	if (segment_load_stacks(segment, NULL)) {
		import->unreadable++;
		return 0;
	}
	import->segment = segment;
	import->ids_count = 0;
	idmap_clear(&import->map);
	begin_batch(import);
	for (uint32_t i = 0; i < segment->blocks_count && !rc; i++) {
		struct segment_block block;

		if (segment_read(segment, i, SEGMENT_ROWS, &buffer, &block, NULL)) {
			import->unreadable++;
			break;
		}
		rc = copy_block(import, &block, err);
	}
	if (rc)
		tables_copy_end(&import->copy);
	else
		rc = end_batch(import, err);
	segment_buffer_free(&buffer);
	segment_drop_stacks(segment);
	return rc;
}

int ch_import(struct store *from, struct store *to, struct ch_import_result *ret, struct err *err)
{
	const struct store_query everything = { .from_ns = INT64_MIN,
						.to_ns = INT64_MAX,
						.by_series = true };
	struct import import = { .to = to, .result = ret };
	struct store_snapshot snapshot;
	int rc = store_snapshot(from, &everything, &snapshot, err);

	*ret = (struct ch_import_result){ 0 };
	if (rc)
		return rc;
	tables_init(&import.batch);
	import.unreadable = snapshot.parts_unreadable;
	for (size_t i = 0; i < snapshot.count && !rc; i++)
		rc = copy_segment(&import, &snapshot.segments[i], err);
	if (!rc && import.unreadable)
		rc = err_set(err, ERR_CORRUPT,
			     "%zu parts or shares of them cannot be read; all else is copied. See "
			     "firn store verify",
			     import.unreadable);
	tables_free(&import.batch);
	idmap_free(&import.map);
	free(import.ids);
	store_snapshot_release(from, &snapshot);
	return rc;
}
