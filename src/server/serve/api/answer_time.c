/* SPDX-License-Identifier: Apache-2.0 */
/* answer_time - when it was spent: a heatmap, and stacks over time. */
#include "config/units.h"
#include "server/query/series/flamechart.h"
#include "server/query/render/render.h"
#include "server/serve/api/query_request.h"

#define ROWS_DEFAULT 20
#define ROWS_MAX 200
#define COLUMNS_DEFAULT 120

static int duration(struct query_request *query, const struct net_request *request,
		    const char *name, int64_t parts, int64_t *ret_ns, struct err *err)
{
	struct slice text = parameters_text(&query->asked, request, name, "");

	*ret_ns = flamechart_round_step(query->asked.params.to_ns - query->asked.params.from_ns,
					parts);
	if (text.len && units_parse_duration(text, ret_ns, err))
		return err_wrap(err, "parameter \"%s\"", name);
	if (*ret_ns <= 0 || *ret_ns % CLOCK_NS_PER_MS)
		return err_set(err, ERR_INVALID, "parameter \"%s\": no whole milliseconds", name);
	return 0;
}

static int64_t floor_to(int64_t at_ns, int64_t step_ns)
{
	int64_t rest = at_ns % step_ns;

	return at_ns - (rest < 0 ? rest + step_ns : rest);
}

struct heatmap {
	int64_t from_ns, to_ns, column_ns;
	uint64_t rows;
	struct query_range_params range;
};

static int read_heatmap(struct query_request *query, const struct net_request *request,
			struct heatmap *ret, struct err *err)
{
	struct slice rows = parameters_text(&query->asked, request, "rows", "");
	int rc = duration(query, request, "column", COLUMNS_DEFAULT, &ret->column_ns, err);

	if (rc)
		return rc;
	ret->rows = ROWS_DEFAULT;
	if (rows.len && (!slice_parse_u64(rows, &ret->rows) || !ret->rows || ret->rows > ROWS_MAX))
		return err_set(err, ERR_INVALID, "parameter \"rows\" is not 1 to %d", ROWS_MAX);
	if (ret->column_ns % (int64_t)ret->rows ||
	    ret->column_ns / (int64_t)ret->rows < CLOCK_NS_PER_MS) {
		if (rows.len)
			return err_set(err, ERR_INVALID,
				       "a column of %lld ms has no %llu rows of whole milliseconds",
				       (long long)(ret->column_ns / CLOCK_NS_PER_MS),
				       (unsigned long long)ret->rows);
		ret->rows = 1;
	}
	ret->from_ns = floor_to(query->asked.params.from_ns, ret->column_ns);
	ret->to_ns = query->asked.params.to_ns;
	ret->range = (struct query_range_params){ .base = query->asked.params, .sum_all = true };
	ret->range.step_ns = ret->column_ns / (int64_t)ret->rows;
	parameters_times(&query->asked, request, ret->range.step_ns);
	ret->range.base.by_times = query->asked.params.by_times;
	return 0;
}

static void put_cells(struct json *json, const struct heatmap *heatmap,
		      const struct query_series *series)
{
	int64_t total = 0, max = 0;

	json_member_array(json, "cells");
	for (size_t i = 0; series && i < series->points_count; i++) {
		const struct query_point *point = &series->points[i];
		int64_t at = (point->at_ns - heatmap->from_ns) / heatmap->range.step_ns;

		json_open_array(json);
		json_put_int(json, at / (int64_t)heatmap->rows);
		json_put_int(json, at % (int64_t)heatmap->rows);
		json_put_int(json, point->value);
		json_put_uint(json, point->reports);
		json_close_array(json);
		total += point->value;
		max = point->value > max ? point->value : max;
	}
	json_close_array(json);
	json_member_int(json, "total", total);
	json_member_int(json, "max", max);
}

static void put_resolution(struct json *json, const struct query_request *query, bool has_times,
			   int64_t report_ns)
{
	json_member_bool(json, "times", query->asked.params.by_times);
	json_member_int(json, "resolution_ms",
			has_times ? TABLES_TICK_NS / CLOCK_NS_PER_MS : report_ns / CLOCK_NS_PER_MS);
}

static void put_heatmap(const struct query_request *query, const struct heatmap *heatmap,
			const struct query_series_set *set, struct strbuf *out)
{
	struct strbuf text = { 0 };
	struct json json;

	selector_format(&text, &query->asked.selector);
	json_begin(&json, out);
	json_open_object(&json);
	json_member_string(&json, "query", strbuf_slice(&text));
	render_type_json(&json, &set->type, set->period);
	json_member_int(&json, "from_ms", heatmap->from_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "to_ms", heatmap->to_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "column_ms", heatmap->column_ns / CLOCK_NS_PER_MS);
	json_member_uint(&json, "rows", heatmap->rows);
	put_resolution(&json, query, set->has_times, set->report_ns);
	json_member_bool(&json, "partial", set->parts_unreadable != 0);
	put_cells(&json, heatmap, set->series_count ? &set->series[0] : NULL);
	json_close_object(&json);
	strbuf_free(&text);
}

void answer_heatmap(void *context, const struct net_request *request, struct net_response *response)
{
	struct query_series_set set;
	struct query_request query;
	struct heatmap heatmap;
	struct err err;
	int rc = query_request_read(context, request, PARAMETERS_TYPE_NEEDED, &query, &err);

	if (rc) {
		net_response_error(request, response, &err);
		return;
	}
	rc = read_heatmap(&query, request, &heatmap, &err);
	if (!rc)
		rc = query_request_series(&query, &heatmap.range, &set, &err);
	if (rc) {
		net_response_error(request, response, &err);
	} else {
		response->content_type = "application/json";
		put_heatmap(&query, &heatmap, &set, &response->body);
		query_series_free(&set);
	}
	query_request_end(&query);
}

static void put_lane(struct json *json, const struct flamechart *chart, size_t lane, size_t *box)
{
	json_open_object(json);
	json_member_string(json, "name", chart->lanes[lane].name);
	json_member_int(json, "total", chart->lanes[lane].total);
	json_member_array(json, "boxes");
	for (; *box < chart->boxes_count && chart->boxes[*box].lane == lane; ++*box) {
		const struct flamechart_box *at = &chart->boxes[*box];

		json_open_array(json);
		json_put_uint(json, at->depth);
		json_put_double(json, (double)(at->from_ns / 1000) / 1000);
		json_put_double(json, (double)((at->to_ns - at->from_ns) / 1000) / 1000);
		json_put_uint(json, at->function);
		json_put_int(json, at->value);
		json_close_array(json);
	}
	json_close_array(json);
	json_close_object(json);
}

static void put_chart(const struct query_request *query, const struct flamechart *chart,
		      int64_t step_ns, struct strbuf *out)
{
	struct json json;
	size_t box = 0;

	json_begin(&json, out);
	json_open_object(&json);
	json_member_string(&json, "query", chart->query);
	render_type_json(&json, &chart->type, chart->period);
	json_member_int(&json, "from_ms", query->asked.params.from_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "to_ms", query->asked.params.to_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "step_ms", step_ns / CLOCK_NS_PER_MS);
	put_resolution(&json, query, chart->has_times, chart->report_ns);
	json_member_int(&json, "total", chart->total);
	json_member_bool(&json, "partial", chart->parts_unreadable != 0);
	json_member_uint(&json, "lanes_left_out", chart->lanes_left_out);
	json_member_array(&json, "functions");
	for (size_t i = 0; i < chart->functions_count; i++) {
		json_open_object(&json);
		render_function_json(&json, NULL, &chart->functions[i]);
		json_close_object(&json);
	}
	json_close_array(&json);
	json_member_array(&json, "lanes");
	for (size_t i = 0; i < chart->lanes_count; i++)
		put_lane(&json, chart, i, &box);
	json_close_array(&json);
	json_close_object(&json);
}

static int read_chart(struct query_request *query, const struct net_request *request,
		      int64_t *ret_step_ns, struct err *err)
{
	int rc = duration(query, request, "step", FLAMECHART_STEPS_DEFAULT, ret_step_ns, err);

	if (rc)
		return rc;
	if (query->asked.params.at_moment)
		return err_set(err, ERR_INVALID, "a flame chart is of a range, not of a moment");
	parameters_times(&query->asked, request, *ret_step_ns);
	query->asked.params.nodes_only = true;
	query->asked.params.group_by_count = 0;
	return parameters_group_by(
		&query->asked, parameters_text(&query->asked, request, "by", "thread_name"), err);
}

void answer_flamechart(void *context, const struct net_request *request,
		       struct net_response *response)
{
	struct query_request query;
	struct flamechart chart;
	int64_t step_ns = 0;
	struct err err;
	int rc = query_request_read(context, request, PARAMETERS_TYPE_NEEDED, &query, &err);

	if (rc) {
		net_response_error(request, response, &err);
		return;
	}
	rc = read_chart(&query, request, &step_ns, &err);
	if (!rc)
		rc = query_request_chart(&query, step_ns, &chart, &err);
	if (rc) {
		net_response_error(request, response, &err);
	} else {
		response->content_type = "application/json";
		put_chart(&query, &chart, step_ns, &response->body);
		flamechart_free(&chart);
	}
	query_request_end(&query);
}
