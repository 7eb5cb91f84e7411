/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for tables that ingest filled, whatever the request was. */
#ifndef FIRN_TESTS_INGEST_FUZZ_H
#define FIRN_TESTS_INGEST_FUZZ_H

#include <assert.h>

#include "server/ingest/ingest.h"

#define FUZZ_NOW_NS (1700000000ll * CLOCK_NS_PER_S)

/* Small, so that the fuzzer reaches every limit. */
static const struct ingest_limits fuzz_limits = {
	.decompressed_bytes_max = 1 << 20,
	.samples_max = 500,
	.stack_depth_max = 20,
	.string_bytes_max = 64,
	.labels_max = 8,
	.moments_max = 100,
};

/* Nothing goes over it. */
static struct budget fuzz_budget = { .max_bytes = 6 << 20 };

static inline void check_frames(const struct tables_view *view)
{
	for (uint32_t i = 0; i < view->frames_count; i++) {
		const struct frame *frame = &view->frames[i];

		assert(frame->kind < FRAME_KINDS);
		assert(frame->mapping_file < view->strings_count &&
		       frame->build_id < view->strings_count &&
		       frame->function < view->strings_count &&
		       frame->system_name < view->strings_count &&
		       frame->file < view->strings_count);
	}
	for (uint32_t i = 1; i < view->nodes_count; i++)
		assert(view->nodes[i].parent < i && view->nodes[i].frame < view->frames_count);
}

static inline void check_tables(const struct tables *tables)
{
	struct tables_view view = tables_view_of(tables);

	check_frames(&view);
	for (uint32_t i = 0; i < view.strings_count; i++) {
		assert(slice_is_utf8(tables_text(&view, i)));
		assert(tables_text(&view, i).len <= 3 * fuzz_limits.string_bytes_max + 2);
	}
	for (uint32_t i = 0; i < view.labels_count; i++)
		assert(view.labels[i].name && view.labels[i].name < view.strings_count &&
		       view.labels[i].value < view.strings_count &&
		       view.labels[i].unit < view.strings_count);
	for (uint32_t i = 0; i < view.reports_count; i++) {
		const struct report *report = &view.reports[i];

		assert(report->series < view.series_count && report->duration_ns >= 0);
		assert(report->row_first + report->row_count <= view.rows_count);
	}
	for (uint64_t i = 0; i < view.rows_count; i++)
		assert(view.rows[i].stack < view.nodes_count &&
		       view.rows[i].label_set < view.label_sets_count);
	for (uint64_t i = 0; i < view.values_count; i++)
		assert(view.values[i] >= 0);
}

#endif
