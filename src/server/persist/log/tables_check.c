/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/log/tables_check.h"

static int broken(struct err *err, const char *what, uint64_t id, const char *rule)
{
	return err_set(err, ERR_CORRUPT, "%s %llu: %s", what, (unsigned long long)id, rule);
}

static int check_strings(const struct tables_view *view, struct err *err)
{
	if (!view->strings_count || view->strings[0].len)
		return broken(err, "string", 0, "is not the empty one");
	for (uint32_t i = 0; i < view->strings_count; i++) {
		const struct string_ref *ref = &view->strings[i];

		if (ref->offset > view->string_bytes_count ||
		    ref->len > view->string_bytes_count - ref->offset)
			return broken(err, "string", i, "lies outside the string bytes");
	}
	return 0;
}

static int order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* The order of tables_label_set. */
static int label_order(const struct tables_view *view, const struct label *a, const struct label *b)
{
	int order = slice_compare(tables_text(view, a->name), tables_text(view, b->name));

	if (!order)
		order = slice_compare(tables_text(view, a->value), tables_text(view, b->value));
	if (!order)
		order = order_of(a->numeric, b->numeric);
	if (!order)
		order = (a->number > b->number) - (a->number < b->number);
	return order ? order : order_of(a->unit, b->unit);
}

static int check_labels(const struct tables_view *view, struct err *err)
{
	for (uint32_t i = 0; i < view->labels_count; i++) {
		const struct label *label = &view->labels[i];

		if (label->name >= view->strings_count || label->value >= view->strings_count ||
		    label->unit >= view->strings_count)
			return broken(err, "label", i, "names a string that is not there");
		if (label->numeric > 1)
			return broken(err, "label", i, "is neither text nor number");
	}
	return 0;
}

static int check_label_sets(const struct tables_view *view, struct err *err)
{
	if (!view->label_sets_count || view->label_sets[0].label_count)
		return broken(err, "label set", 0, "is not the empty one");
	for (uint32_t i = 0; i < view->label_sets_count; i++) {
		const struct label_set *set = &view->label_sets[i];

		if (set->label_count > TABLES_LABELS_PER_SET_MAX ||
		    set->label_first > view->labels_count ||
		    set->label_count > view->labels_count - set->label_first)
			return broken(err, "label set", i, "has too many labels");
		for (uint32_t j = set->label_first; j + 1 < set->label_first + set->label_count;
		     j++)
			if (label_order(view, &view->labels[j], &view->labels[j + 1]) >= 0)
				return broken(err, "label set", i, "is not in ascending order");
	}
	return 0;
}

static int check_groups(const struct tables_view *view, struct err *err)
{
	for (uint32_t i = 0; i < view->columns_count; i++) {
		const struct column *column = &view->columns[i];

		if (column->sample_type >= view->strings_count ||
		    column->sample_unit >= view->strings_count)
			return broken(err, "column", i, "names a string that is not there");
		if (column->kind > COLUMN_CUMULATIVE)
			return broken(err, "column", i, "has an unknown kind");
	}
	for (uint32_t i = 0; i < view->groups_count; i++) {
		const struct group *group = &view->groups[i];

		if (group->name >= view->strings_count ||
		    group->period_type >= view->strings_count ||
		    group->period_unit >= view->strings_count)
			return broken(err, "group", i, "names a string that is not there");
		if (!group->column_count || group->column_count > TABLES_COLUMNS_PER_GROUP_MAX ||
		    group->column_first > view->columns_count ||
		    group->column_count > view->columns_count - group->column_first)
			return broken(err, "group", i, "has columns that are not there");
	}
	for (uint32_t i = 0; i < view->series_count; i++)
		if (view->series[i].label_set >= view->label_sets_count ||
		    view->series[i].group >= view->groups_count)
			return broken(err, "series", i,
				      "names a label set or group that is not there");
	return 0;
}

static int check_frames(const struct tables_view *view, struct err *err)
{
	for (uint32_t i = 0; i < view->frames_count; i++) {
		const struct frame *frame = &view->frames[i];
		uint32_t count = view->strings_count;

		if (frame->mapping_file >= count || frame->build_id >= count ||
		    frame->function >= count || frame->system_name >= count || frame->file >= count)
			return broken(err, "frame", i, "names a string that is not there");
		if (frame->kind >= FRAME_KINDS)
			return broken(err, "frame", i, "has an unknown kind");
	}
	return 0;
}

static int check_nodes(const struct tables_view *view, struct err *err)
{
	if (!view->nodes_count)
		return broken(err, "node", 0, "is missing");
	for (uint32_t i = 1; i < view->nodes_count; i++) {
		if (view->nodes[i].parent >= i)
			return broken(err, "node", i, "does not come after its parent");
		if (view->nodes[i].frame >= view->frames_count)
			return broken(err, "node", i, "names a frame that is not there");
	}
	return 0;
}

static int check_rows(const struct tables_view *view, struct err *err)
{
	for (uint64_t i = 0; i < view->rows_count; i++)
		if (view->rows[i].stack >= view->nodes_count ||
		    view->rows[i].label_set >= view->label_sets_count)
			return broken(err, "row", i,
				      "names a stack or label set that is not there");
	return 0;
}

static bool totals_are_sums(const struct tables_view *view, const struct report *report,
			    uint32_t columns)
{
	const int64_t *values = &view->values[report->value_first];
	int64_t sums[TABLES_COLUMNS_PER_GROUP_MAX] = { 0 };

	for (uint32_t row = 0; row < report->row_count; row++, values += columns)
		for (uint32_t i = 0; i < columns; i++)
			if (__builtin_add_overflow(sums[i], values[i], &sums[i]))
				sums[i] = values[i] > 0 ? INT64_MAX : INT64_MIN;
	return !memcmp(sums, &view->totals[report->total_first], columns * sizeof(*sums));
}

static int check_reports(const struct tables_view *view, struct err *err)
{
	uint64_t row = 0, value = 0, total = 0;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		uint32_t columns;

		if (report->series >= view->series_count)
			return broken(err, "report", i, "names a series that is not there");
		columns = tables_series_columns(view, report->series);
		if (report->row_first != row || report->value_first != value ||
		    report->total_first != total)
			return broken(err, "report", i, "does not follow the one before it");
		row += report->row_count;
		value += (uint64_t)report->row_count * columns;
		total += columns;
		if (row > view->rows_count || value > view->values_count ||
		    total > view->totals_count)
			return broken(err, "report", i, "has rows that are not there");
		if (!totals_are_sums(view, report, columns))
			return broken(err, "report", i,
				      "has totals that are not the sums of its values");
	}
	if (row != view->rows_count || value != view->values_count || total != view->totals_count)
		return err_set(err, ERR_CORRUPT, "rows or values belong to no report");
	return 0;
}

static int check_moments(const struct tables_view *view, struct err *err)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		const struct moment *at = view->moments ? &view->moments[first] : NULL;

		if (report->moment_first != first ||
		    report->moment_count > view->moments_count - first)
			return broken(err, "report", i, "has moments that are not there");
		for (uint32_t j = 0; j < report->moment_count; j++) {
			bool ordered = !j || at[j].row > at[j - 1].row ||
				       (at[j].row == at[j - 1].row && at[j].tick >= at[j - 1].tick);

			if (!ordered || at[j].row >= report->row_count ||
			    (at[j].link && at[j].link >= view->links_count))
				return broken(err, "report", i,
					      "has a moment out of order or of nothing");
		}
		first += report->moment_count;
	}
	return first == view->moments_count
		       ? 0
		       : err_set(err, ERR_CORRUPT, "moments belong to no report");
}

int tables_check(const struct tables_view *view, struct err *err)
{
	typedef int check_f(const struct tables_view *view, struct err *err);
	static check_f *const checks[] = { check_strings, check_labels,	 check_label_sets,
					   check_groups,  check_frames,	 check_nodes,
					   check_rows,	  check_reports, check_moments };

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		int rc = checks[i](view, err);

		if (rc)
			return rc;
	}
	return 0;
}
