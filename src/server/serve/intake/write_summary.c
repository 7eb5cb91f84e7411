/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/intake/write_summary.h"

#include <inttypes.h>

#include "model/profile_type.h"
#include "server/ingest/repairs.h"

#define REPORTS_MAX 32 /* told one by one */

static uint32_t rows_with(const struct tables_view *batch, const struct report *report,
			  uint32_t columns, uint32_t column)
{
	const int64_t *values = batch->values + report->value_first + column;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < report->row_count; i++)
		rows += values[(uint64_t)i * columns] != 0;
	return rows;
}

static void add_column(const struct tables_view *batch, const struct report *report,
		       uint32_t column, bool snapshot, struct strbuf *out)
{
	uint32_t group = batch->series[report->series].group;
	const struct group *g = &batch->groups[group];
	struct profile_type type = profile_type_of(batch, group, column);
	bool cumulative = batch->columns[g->column_first + column].kind == COLUMN_CUMULATIVE;

	type.delta |= cumulative && !snapshot;
	strbuf_add_text(out, "  ");
	profile_type_format(out, &type);
	strbuf_addf(out, ": %" PRIu32 " rows, %" PRId64 " %.*s",
		    rows_with(batch, report, g->column_count, column),
		    batch->totals[report->total_first + column], SLICE_FMT(type.sample_unit));
	if (cumulative)
		strbuf_add_text(out, snapshot ? " since the program started, stored as a snapshot"
					      : " since the program started; what the profile "
						"before had is taken off");
	strbuf_add_byte(out, '\n');
}

static void add_repairs(struct strbuf *out)
{
	for (int i = 0; i < REPAIR_KINDS; i++) {
		int64_t count = repairs_in_request((enum repair)i);

		if (count)
			strbuf_addf(out, "  repaired: %" PRId64 " %s\n", count,
				    repairs_text((enum repair)i));
	}
}

void write_summary_add(const struct tables_view *batch, const struct append_result *result,
		       struct strbuf *out)
{
	if (batch->reports_count && result->reports_duplicate == batch->reports_count) {
		strbuf_add_text(out, "  was there already, and counts once\n");
		return;
	}
	if (result->reports_duplicate)
		strbuf_addf(out, "  %" PRIu32 " of %" PRIu32 " reports were there already\n",
			    result->reports_duplicate, batch->reports_count);
	for (uint32_t i = 0; i < batch->reports_count && i < REPORTS_MAX; i++) {
		const struct report *report = &batch->reports[i];
		uint32_t columns = tables_series_columns(batch, report->series);

		for (uint32_t c = 0; c < columns; c++)
			add_column(batch, report, c, result->snapshots > 0, out);
	}
	if (batch->reports_count > REPORTS_MAX)
		strbuf_addf(out, "  and %" PRIu32 " more reports\n",
			    batch->reports_count - REPORTS_MAX);
	add_repairs(out);
}
