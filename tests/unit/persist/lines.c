/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/strbuf.h"

static void add(struct lines *lines, struct strbuf *line)
{
	mem_grow(lines->items, lines->count, lines->capacity);
	lines->items[lines->count++] = mem_strndup(line->data, line->len);
}

static void put_text(struct strbuf *out, const struct tables_view *view, uint32_t string)
{
	strbuf_addf(out, "%.*s|", SLICE_FMT(tables_text(view, string)));
}

static void put_label_set(struct strbuf *out, const struct tables_view *view, uint32_t label_set)
{
	const struct label_set *set = &view->label_sets[label_set];

	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		put_text(out, view, label->name);
		if (label->numeric)
			strbuf_addf(out, "%lld ", (long long)label->number);
		put_text(out, view, label->numeric ? label->unit : label->value);
	}
}

static void put_type(struct strbuf *out, const struct tables_view *view, uint32_t group_id)
{
	const struct group *group = &view->groups[group_id];

	put_text(out, view, group->name);
	put_text(out, view, group->period_type);
	put_text(out, view, group->period_unit);
	strbuf_addf(out, "%lld|", (long long)group->period);
	for (uint32_t i = 0; i < group->column_count; i++) {
		const struct column *column = &view->columns[group->column_first + i];

		put_text(out, view, column->sample_type);
		put_text(out, view, column->sample_unit);
		strbuf_addf(out, "%u|", column->kind);
	}
}

static void put_stack(struct strbuf *out, const struct tables_view *view, uint32_t node)
{
	for (; node; node = view->nodes[node].parent) {
		const struct frame *frame = &view->frames[view->nodes[node].frame];
		const uint32_t texts[] = { frame->mapping_file, frame->build_id, frame->function,
					   frame->system_name, frame->file };

		strbuf_addf(out, " <- %u,%u,%llx,", frame->kind, frame->flags,
			    (unsigned long long)frame->address);
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
			put_text(out, view, texts[i]);
		strbuf_addf(out, "%u,%u,%u", frame->line, frame->column, frame->start_line);
	}
}

/* A line for each moment of the row, behind what `line` says of the row. */
static void add_moments(struct lines *lines, const struct segment_block *block,
			const struct segment_report *report, uint64_t row, struct strbuf *line)
{
	size_t head = line->len;

	for (uint32_t i = 0; block->moments && i < report->moment_count; i++) {
		const struct moment *moment = &block->moments[report->moment_first + i];
		const uint8_t *link = moment->link ? (const uint8_t *)&block->links[moment->link]
						   : (const uint8_t *)"";

		if (moment->row != row)
			continue;
		line->len = head;
		strbuf_addf(line, " ^%lld ", moment->tick == UINT32_MAX ? -1ll : moment->tick);
		for (size_t j = 0; moment->link && j < sizeof(struct trace_link); j++)
			strbuf_addf(line, "%02x", link[j]);
		add(lines, line);
	}
}

static void add_report(struct lines *lines, const struct segment *segment,
		       const struct segment_block *block, const struct segment_report *report)
{
	const struct tables_view *view = &segment->view;
	const struct series *series = &view->series[report->series];
	uint32_t columns = view->groups[series->group].column_count;
	uint64_t stride = block->value_stride ? block->value_stride : columns;
	struct strbuf line = { 0 };
	size_t head;

	put_type(&line, view, series->group);
	put_label_set(&line, view, series->label_set);
	strbuf_addf(&line, " @%lld+%lld-%lld x%u", (long long)report->start_ns,
		    (long long)report->duration_ns, (long long)report->end_ns,
		    report->reports_count);
	head = line.len;
	strbuf_addf(&line, " %u rows", report->row_count);
	for (uint32_t i = 0; i < columns; i++)
		strbuf_addf(&line, " %lld", (long long)block->totals[report->total_first + i]);
	add(lines, &line);
	for (uint64_t i = 0; i < report->row_count; i++) {
		uint64_t row = (report->row_first + i) * block->row_stride;

		line.len = head;
		put_stack(&line, view, segment_node(segment, block->slots[row]));
		strbuf_addf(&line, " {");
		put_label_set(&line, view, block->label_sets ? block->label_sets[row] : 0);
		strbuf_addf(&line, "}");
		for (uint32_t column = 0; column < columns; column++)
			strbuf_addf(&line, " %lld",
				    block->values
					    ? (long long)block
						      ->values[report->value_first + i * stride +
							       column * block->column_stride]
					    : 1ll);
		add(lines, &line);
		add_moments(lines, block, report, i, &line);
	}
	strbuf_free(&line);
}

/* One report as the heads of its block say it. */
static void check_head(const struct segment_heads *heads, const struct segment_run *run, uint32_t i,
		       const struct segment_report *report, const int64_t *totals, uint32_t columns)
{
	uint32_t time = run->times + i, at = run->first + i;
	const int64_t *own = &heads->totals[heads->total_firsts ? heads->total_firsts[at]
								: at * heads->total_stride];

	assert_int_equal(run->series, report->series);
	assert_int_equal(heads->starts_ns[time], report->start_ns);
	assert_int_equal(heads->durations_ns[time], report->duration_ns);
	assert_int_equal(heads->ends_ns[time], report->end_ns);
	assert_true(report->duration_ns <= heads->longest_ns);
	if (run->ordered && i)
		assert_true(heads->starts_ns[time - 1] <= report->start_ns &&
			    heads->ends_ns[time - 1] <= report->end_ns);
	assert_int_equal(heads->row_counts[at], report->row_count);
	assert_int_equal(heads->reports_counts ? heads->reports_counts[at] : 1,
			 report->reports_count);
	for (uint32_t column = 0; column < columns; column++)
		assert_int_equal(own[column], totals[report->total_first + column]);
}

static void check_heads(const struct segment *segment, uint32_t number,
			const struct segment_block *block)
{
	struct segment_buffer buffer = { 0 };
	struct segment_heads heads;
	struct err err = { 0 };
	uint32_t seen = 0;

	if (segment_read_heads(segment, number, &buffer, &heads, &err))
		fail_msg("read heads of block %u: %s", number, err.message);
	assert_int_equal(heads.reports_count, block->reports_count);
	for (uint32_t i = 0; i < heads.runs_count; i++)
		for (uint32_t j = 0; j < heads.runs[i].count; j++, seen++)
			check_head(&heads, &heads.runs[i], j, &block->reports[seen], block->totals,
				   tables_series_columns(&segment->view, heads.runs[i].series));
	assert_int_equal(seen, block->reports_count);
	segment_buffer_free(&buffer);
}

void lines_add(struct lines *lines, struct segment *segment)
{
	struct segment_buffer buffer = { 0 };
	struct err err = { 0 };

	if (segment_load_stacks(segment, &err))
		fail_msg("load stacks: %s", err.message);
	for (uint32_t i = 0; i < segment->blocks_count; i++) {
		struct segment_block block;

		if (segment_read(segment, i, SEGMENT_MOMENTS, &buffer, &block, &err))
			fail_msg("read block %u: %s", i, err.message);
		check_heads(segment, i, &block);
		for (uint32_t j = 0; j < block.reports_count; j++)
			if (segment_answers_for(segment, block.reports[j].start_ns))
				add_report(lines, segment, &block, &block.reports[j]);
	}
	segment_buffer_free(&buffer);
}

void lines_add_tables(struct lines *lines, const struct tables_view *view)
{
	struct segment segment;

	segment_of_tables(&segment, view);
	lines_add(lines, &segment);
}

static int line_order(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

void lines_free(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->items[i]);
	free(lines->items);
	*lines = (struct lines){ 0 };
}

void lines_assert_equal(struct lines *a, struct lines *b)
{
	qsort(a->items, a->count, sizeof(*a->items), line_order);
	qsort(b->items, b->count, sizeof(*b->items), line_order);
	for (size_t i = 0; i < a->count && i < b->count; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			fail_msg("line %zu differs:\n%s\n%s", i, a->items[i], b->items[i]);
	assert_int_equal(a->count, b->count);
	lines_free(a);
	lines_free(b);
}
