/* SPDX-License-Identifier: Apache-2.0 */
/* render_json - trees and time series as JSON; the shapes are in docs/api.md. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#include "base/mem.h"
#include "codec/wire/json.h"
#include "server/query/render/render.h"
#include "server/query/diff/series_noise.h"
#include "server/query/tree/unresolved.h"

/* About; with their keys and usual numbers. */
#define NODE_BYTES 80u
#define NODE_DIFF_BYTES 130u
#define FUNCTION_BYTES 60u

static int64_t whole_ms(int64_t ns)
{
	int64_t rest = ns % CLOCK_NS_PER_MS;

	return (ns - (rest < 0 ? rest + CLOCK_NS_PER_MS : rest)) / CLOCK_NS_PER_MS;
}

void render_type_json(struct json *json, const struct profile_type *type, int64_t period)
{
	struct strbuf text = { 0 };

	profile_type_format(&text, type);
	json_member_string(json, "type", strbuf_slice(&text));
	strbuf_free(&text);
	json_member_string(json, "unit", type->sample_unit);
	json_member_int(json, "period", period);
	json_member_string(json, "period_unit", type->period_unit);
	json_member_bool(json, "delta", type->delta);
}

void render_unresolved_json(const struct tree *tree, struct json *json)
{
	json_open_object(json);
	json_member_int(json, "value", tree->unresolved_value);
	json_member_int(json, "leaf", tree->unresolved_leaf);
	json_member_int(json, "reasons_total", tree->unresolved_count);
	json_member_array(json, "reasons");
	for (uint32_t i = 0; i < tree->unresolved_count && i < UNRESOLVED_SHOWN_MAX; i++) {
		const struct tree_unresolved *item = &tree->unresolved[i];

		json_open_object(json);
		json_member_string(json, "code", slice_of(item->code));
		json_member_string(json, "text", item->text);
		json_member_string(json, "mapping", item->mapping);
		json_member_string(json, "build_id", item->build_id);
		json_member_int(json, "value", item->value);
		json_member_int(json, "leaf", item->leaf);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

void render_header_json(struct json *json, const struct tree *tree)
{
	json_member_string(json, "query", tree->query);
	render_type_json(json, &tree->type, tree->period);
	json_member_int(json, "total", tree->total);
	json_member_int(json, "filtered", tree->filtered);
	json_member_bool(json, "partial", tree->parts_unreadable != 0);
}

static void write_header(struct json *json, const struct tree *tree)
{
	json_member_string(json, "query", tree->query);
	render_type_json(json, &tree->type, tree->period);
	json_member_array(json, "group_by");
	for (uint32_t i = 0; i < tree->group_names_count; i++)
		json_put_string(json, tree->group_names[i]);
	json_close_array(json);
	json_member_int(json, "from_ms", whole_ms(tree->from_ns));
	json_member_int(json, "to_ms", whole_ms(tree->to_ns));
	json_member_int(json, "start_ms", whole_ms(tree->start_ns));
	json_member_int(json, "duration_ms", whole_ms(tree->duration_ns));
	json_member_int(json, "total", tree->total);
	json_member_int(json, "filtered", tree->filtered);
	json_member_string(json, "filters", tree->filters);
	if (tree->base) {
		json_member_string(json, "base_query", tree->base_query);
		json_member_int(json, "base_total", tree->base_total);
		json_member_int(json, "base_filtered", tree->base_filtered);
		json_member_int(json, "base_duration_ms", whole_ms(tree->base_duration_ns));
	}
	json_member_uint(json, "reports", tree->reports);
	json_member_uint(json, "rows", tree->samples_rows);
	json_member_bool(json, "partial", tree->parts_unreadable != 0);
	json_member_uint(json, "parts_unreadable", tree->parts_unreadable);
	json_member_uint(json, "pending", tree->names_pending);
	json_put_key(json, "unresolved");
	render_unresolved_json(tree, json);
	if (tree->comparison) {
		json_put_key(json, "significance");
		render_significance_json(tree->comparison, json);
	}
	if (tree->intervals) {
		json_put_key(json, "intervals");
		render_intervals_json(tree, json);
	}
}

void render_function_json(struct json *json, const struct tree *tree,
			  const struct tree_function *function)
{
	json_member_string(json, "name", function->name);
	if (function->is_label)
		json_member_bool(json, "label", true);
	else
		json_member_text(json, "kind", frame_kind_name(function->kind));
	if (function->system_name.len)
		json_member_string(json, "system_name", function->system_name);
	if (function->file.len)
		json_member_string(json, "file", function->file);
	if (function->start_line)
		json_member_int(json, "start_line", function->start_line);
	if (function->mapping.len)
		json_member_string(json, "mapping", function->mapping);
	if (function->build_id.len)
		json_member_string(json, "build_id", function->build_id);
	if (tree && function->unresolved)
		json_member_string(json, "unresolved",
				   tree->unresolved[function->unresolved - 1].text);
}

static void write_node(struct json *json, const struct tree *tree, uint32_t number)
{
	const struct tree_node *node = &tree->nodes[number];
	const struct json_number members[] = {
		{ SLICE_LITERAL("function"), node->function },
		{ SLICE_LITERAL("parent"), node->parent },
		{ SLICE_LITERAL("depth"), node->depth },
		{ SLICE_LITERAL("self"), node->self },
		{ SLICE_LITERAL("total"), node->total },
	};

	assert(number < tree->nodes_count);
	json_open_object(json);
	json_members_int(json, members, sizeof(members) / sizeof(members[0]));
	if (tree->base) {
		json_member_int(json, "base_self", tree->base[number].self);
		json_member_int(json, "base_total", tree->base[number].total);
	}
	if (node->inlined)
		json_member_bool(json, "inlined", true);
	json_close_object(json);
}

size_t render_json_bytes(const struct tree *tree)
{
	size_t bytes = (size_t)tree->nodes_count * (tree->base ? NODE_DIFF_BYTES : NODE_BYTES);

	for (uint32_t i = 0; i < tree->functions_count; i++)
		bytes += tree->functions[i].name.len + tree->functions[i].file.len + FUNCTION_BYTES;
	return bytes;
}

void render_json(const struct tree *tree, struct strbuf *out)
{
	const struct comparison *comparison = tree->comparison, *intervals = tree->intervals;
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	write_header(&json, tree);
	json_member_array(&json, "functions");
	for (uint32_t i = 0; i < tree->functions_count; i++) {
		json_open_object(&json);
		render_function_json(&json, tree, &tree->functions[i]);
		if (comparison && comparison->functions.row_of[i] != FUNCTIONS_NO_ROW)
			render_change_json(comparison, comparison->functions.row_of[i], &json);
		if (intervals && intervals->functions.row_of[i] != FUNCTIONS_NO_ROW)
			render_interval_json(intervals, intervals->functions.row_of[i], &json);
		json_close_object(&json);
	}
	json_close_array(&json);
	json_member_array(&json, "nodes");
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		write_node(&json, tree, i);
	json_close_array(&json);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
}

static int64_t largest_change(const struct functions_row *row)
{
	int64_t flat = llabs(row->value.flat - row->base.flat);
	int64_t cum = llabs(row->value.cum - row->base.cum);

	return flat > cum ? flat : cum;
}

static int change_order(const void *left, const void *right, void *context)
{
	const struct functions_row *rows = context;
	const struct functions_row *a = &rows[*(const uint32_t *)left];
	const struct functions_row *b = &rows[*(const uint32_t *)right];

	if (largest_change(a) != largest_change(b))
		return largest_change(a) > largest_change(b) ? -1 : 1;
	return slice_compare(a->name, b->name);
}

/* False of a function that filters hide. */
static bool has_value(const struct functions_row *row)
{
	return row->value.flat || row->value.cum || row->base.flat || row->base.cum;
}

static void write_row(struct json *json, const struct functions_row *row,
		      const struct comparison *comparison, uint32_t number)
{
	json_open_object(json);
	json_member_string(json, "name", row->name);
	json_member_int(json, "flat", row->value.flat);
	json_member_int(json, "cum", row->value.cum);
	json_member_int(json, "base_flat", row->base.flat);
	json_member_int(json, "base_cum", row->base.cum);
	if (comparison)
		render_change_json(comparison, number, json);
	json_close_object(json);
}

void render_table_json(const struct tree *tree, struct strbuf *out)
{
	struct functions functions;
	uint32_t *order, count = 0;
	struct json json;

	functions_make(&functions, tree);
	order = mem_new_array(uint32_t, (size_t)functions.rows_count + 1);
	for (uint32_t i = 0; i < functions.rows_count; i++)
		if (has_value(&functions.rows[i]))
			order[count++] = i;
	qsort_r(order, count, sizeof(*order), change_order, functions.rows);
	json_begin(&json, out);
	json_open_object(&json);
	write_header(&json, tree);
	json_member_array(&json, "functions");
	for (uint32_t i = 0; i < count; i++)
		write_row(&json, &functions.rows[order[i]], tree->comparison, order[i]);
	json_close_array(&json);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
	free(order);
	functions_free(&functions);
}

static void write_noise(struct json *json, const struct series_noise *noise)
{
	json_member_object(json, "intervals");
	json_member_text(json, "method", render_method_name(noise->method));
	if (noise->method != SIGNIFICANCE_NONE) {
		json_put_key(json, "dispersion");
		json_put_double(json, noise->dispersion);
	}
	json_close_object(json);
}

/* noise: NULL when it was not asked for. */
static void write_series(struct json *json, const struct query_series *series,
			 const struct series_noise *noise)
{
	bool has_intervals = noise && noise->method != SIGNIFICANCE_NONE;

	assert(series->labels || !series->labels_count);
	assert(series->points || !series->points_count);
	json_open_object(json);
	json_member_object(json, "labels");
	for (size_t i = 0; i < series->labels_count; i++) {
		json_put_key_slice(json, series->labels[i].name);
		json_put_string(json, series->labels[i].value);
	}
	json_close_object(json);
	json_member_array(json, "points");
	for (size_t i = 0; i < series->points_count; i++) {
		const struct query_point *point = &series->points[i];

		json_open_array(json);
		json_put_int(json, whole_ms(point->at_ns));
		json_put_int(json, point->value);
		json_put_double(json, point->per_second);
		json_put_uint(json, point->reports);
		if (has_intervals) {
			double low, high;

			series_noise_interval(noise, point->value, &low, &high);
			json_put_double(json, low);
			json_put_double(json, high);
		}
		json_close_array(json);
	}
	json_close_array(json);
	if (noise)
		write_noise(json, noise);
	json_close_object(json);
}

void render_series_json(const struct query_series_set *set, bool intervals, struct strbuf *out)
{
	double samples_per_value = series_noise_samples(set);
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	render_type_json(&json, &set->type, set->period);
	json_member_int(&json, "step_ms", whole_ms(set->step_ns));
	json_member_array(&json, "series");
	for (size_t i = 0; i < set->series_count; i++) {
		struct series_noise noise = series_noise_of(&set->series[i], samples_per_value);

		write_series(&json, &set->series[i], intervals ? &noise : NULL);
	}
	json_close_array(&json);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
}
