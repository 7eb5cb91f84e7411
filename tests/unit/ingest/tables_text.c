/* SPDX-License-Identifier: Apache-2.0 */
#include "tables_text.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/profile_type.h"

static void add_string(struct strbuf *out, const struct tables_view *view, uint32_t string)
{
	strbuf_add_slice(out, tables_text(view, string));
}

static void add_label_set(struct strbuf *out, const struct tables_view *view, uint32_t id)
{
	const struct label_set *set = &view->label_sets[id];

	strbuf_add_byte(out, '{');
	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		add_string(out, view, label->name);
		if (label->numeric)
			strbuf_addf(out, "=%" PRId64, label->number);
		else
			strbuf_addf(out, "=\"%.*s\"", SLICE_FMT(tables_text(view, label->value)));
		add_string(out, view, label->unit);
		strbuf_add_byte(out, ' ');
	}
	strbuf_add_byte(out, '}');
}

void tables_text_add_frame(struct strbuf *out, const struct tables_view *view, uint32_t frame)
{
	const struct frame *f = &view->frames[frame];

	strbuf_addf(out, "%s %u 0x%" PRIx64 " ", frame_kind_name((enum frame_kind)f->kind),
		    f->flags, f->address);
	add_string(out, view, f->mapping_file);
	strbuf_add_byte(out, ' ');
	add_string(out, view, f->build_id);
	strbuf_add_byte(out, ' ');
	add_string(out, view, f->function);
	strbuf_add_text(out, " (");
	add_string(out, view, f->system_name);
	strbuf_add_text(out, ") ");
	add_string(out, view, f->file);
	strbuf_addf(out, ":%u:%u %u", f->line, f->column, f->start_line);
}

static void add_report(struct strbuf *out, const struct tables_view *view,
		       const struct report *report)
{
	const struct series *series = &view->series[report->series];

	for (uint32_t i = 0; i < view->groups[series->group].column_count; i++) {
		struct profile_type type = profile_type_of(view, series->group, i);

		profile_type_format(out, &type);
		strbuf_add_byte(out, ' ');
	}
	strbuf_addf(out, "%" PRId64 " ", view->groups[series->group].period);
	add_label_set(out, view, series->label_set);
	strbuf_addf(out, " %" PRId64 "+%" PRId64, report->start_ns, report->duration_ns);
}

static void add_values(struct strbuf *out, const int64_t *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		strbuf_addf(out, " %" PRId64, values[i]);
}

static int line_order(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void add_row(struct strbuf *out, const struct tables_view *view, const struct row *row)
{
	add_label_set(out, view, row->label_set);
	for (uint32_t node = row->stack; node; node = view->nodes[node].parent) {
		strbuf_add_text(out, " | ");
		tables_text_add_frame(out, view, view->nodes[node].frame);
	}
}

static void add_ticks(struct strbuf *out, const struct tables_view *view,
		      const struct report *report, uint32_t row)
{
	const struct moment *moments = view->moments + report->moment_first;

	for (uint32_t i = 0; i < report->moment_count; i++)
		if (moments[i].row == row && moments[i].tick != UINT32_MAX)
			strbuf_addf(out, " @%u", moments[i].tick);
}

void tables_text_add(struct strbuf *out, const struct tables *tables)
{
	struct tables_view view = tables_view_of(tables);
	size_t count = 0, lines_max = (size_t)(view.rows_count + view.reports_count);
	char **lines = calloc(lines_max + 1, sizeof(*lines));

	for (uint32_t i = 0; i < view.reports_count; i++) {
		const struct report *report = &view.reports[i];
		uint32_t columns = tables_series_columns(&view, report->series);

		for (uint32_t r = 0; r <= report->row_count; r++) {
			struct strbuf line = { 0 };

			add_report(&line, &view, report);
			if (r < report->row_count) {
				add_row(&line, &view, &view.rows[report->row_first + r]);
				add_values(&line, view.values + report->value_first + r * columns,
					   columns);
				add_ticks(&line, &view, report, r);
			} else {
				strbuf_add_text(&line, " in all");
				add_values(&line, view.totals + report->total_first, columns);
			}
			lines[count++] = line.data;
		}
	}
	qsort(lines, count, sizeof(*lines), line_order);
	for (size_t i = 0; i < count; i++) {
		strbuf_addf(out, "%s\n", lines[i]);
		free(lines[i]);
	}
	free(lines);
}

void assert_same_tables(const struct tables *expected, const struct tables *found)
{
	struct strbuf a = { 0 }, b = { 0 };
	struct slice left, right;
	bool same;

	tables_text_add(&a, expected);
	tables_text_add(&b, found);
	left = strbuf_slice(&a);
	right = strbuf_slice(&b);
	same = slice_equal(left, right);
	while (left.len || right.len) {
		struct slice one = slice_cut(left, '\n', &left),
			     two = slice_cut(right, '\n', &right);

		if (slice_equal(one, two))
			continue;
		print_error("expected %.*s\nfound    %.*s\n", SLICE_FMT(one), SLICE_FMT(two));
		break;
	}
	strbuf_free(&a);
	strbuf_free(&b);
	assert_true(same);
}
