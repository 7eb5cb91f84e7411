/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/select/times.h"

#include <assert.h>

void times_begin(struct times *times, const struct select_segment *in,
		 const struct segment_block *block, const struct segment_report *report)
{
	uint32_t column = in->series[report->series].column;

	assert(report->series < in->view->series_count);
	*times = (struct times){ .block = block, .report = report };
	times->value_stride = block->value_stride ? block->value_stride
						  : tables_series_columns(in->view, report->series);
	if (block->values)
		times->values = &block->values[report->value_first + column * block->column_stride];
}

bool times_next(struct times *times, struct times_row *ret)
{
	const struct segment_block *block = times->block;
	const struct segment_report *report = times->report;
	uint32_t row = times->row, count = block->moments ? report->moment_count : 0;
	const struct moment *moments = count ? block->moments + report->moment_first : NULL;

	if (row >= report->row_count)
		return false;
	*ret = (struct times_row){ .number = row,
				   .value = 1,
				   .start_ns = report->start_ns,
				   .links = block->links,
				   .links_count = block->links_count };
	if (times->values)
		ret->value = times->values[row * times->value_stride];
	if (block->label_sets)
		ret->label_set = block->label_sets[(report->row_first + row) * block->row_stride];
	ret->moments = moments ? moments + times->moment : NULL;
	for (; times->moment < count && moments[times->moment].row == row; times->moment++)
		ret->moments_count += times->for_links || moments[times->moment].tick != UINT32_MAX;
	times->row++;
	return true;
}

int64_t times_part(const struct times_row *row, uint32_t i, int64_t *ret_at_ns)
{
	int64_t count = row->moments_count;

	assert(i <= row->moments_count);
	*ret_at_ns = row->start_ns;
	if (!count)
		return row->value;
	if (row->moments[i].tick != UINT32_MAX)
		*ret_at_ns =
			work_add(row->start_ns, (int64_t)row->moments[i].tick * TABLES_TICK_NS);
	return (int64_t)((mean_wide)row->value * (i + 1) / count -
			 (mean_wide)row->value * i / count);
}

bool times_takes(const struct query_params *params, int64_t at_ns)
{
	return at_ns >= params->from_ns && at_ns < params->to_ns &&
	       (!params->spans_count || select_in_spans(params, at_ns));
}

static bool is_any(const uint8_t *id, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (id[i])
			return false;
	return true;
}

static bool is_for(const struct trace_link *wanted, const struct trace_link *link)
{
	const size_t trace = sizeof(link->trace_id), span = sizeof(link->span_id);

	return (is_any(wanted->trace_id, trace) ||
		!memcmp(wanted->trace_id, link->trace_id, trace)) &&
	       (is_any(wanted->span_id, span) || !memcmp(wanted->span_id, link->span_id, span));
}

/* True if that sample was taken for one of the links that are asked for. */
static bool links_take(const struct query_params *params, const struct times_row *row, uint32_t i)
{
	uint32_t link = i < row->moments_count ? row->moments[i].link : 0;

	assert(i <= row->moments_count);
	if (!link || link >= row->links_count)
		return false;
	for (size_t k = 0; k < params->links_count; k++)
		if (is_for(&params->links[k], &row->links[link]))
			return true;
	return false;
}

int64_t times_within(const struct query_params *params, const struct times_row *row)
{
	int64_t sum = 0, at_ns;

	for (uint32_t i = 0; i < times_parts(row); i++) {
		int64_t part = times_part(row, i, &at_ns);

		if (times_takes(params, at_ns) &&
		    (!params->links_count || links_take(params, row, i)))
			sum += part;
	}
	return sum;
}
