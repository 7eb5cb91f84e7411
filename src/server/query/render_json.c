/* SPDX-License-Identifier: Apache-2.0 */
/* render_json - trees and time series as JSON; the shapes are in docs/api.md. */
#include "base/clock.h"
#include "base/mem.h"
#include "codec/json.h"
#include "server/query/render.h"
#include "server/query/unresolved.h"

static int64_t whole_ms(int64_t ns)
{
	int64_t rest = ns % CLOCK_NS_PER_MS;

	return (ns - (rest < 0 ? rest + CLOCK_NS_PER_MS : rest)) / CLOCK_NS_PER_MS;
}

static void write_text(struct json *json, const char *key, struct slice text)
{
	json_put_key(json, key);
	json_put_string(json, text);
}

static void write_number(struct json *json, const char *key, int64_t value)
{
	json_put_key(json, key);
	json_put_int(json, value);
}

static void write_type(struct json *json, const struct profile_type *type, int64_t period)
{
	struct strbuf text = { 0 };

	profile_type_format(&text, type);
	write_text(json, "type", strbuf_slice(&text));
	strbuf_free(&text);
	write_text(json, "unit", type->sample_unit);
	write_number(json, "period", period);
	write_text(json, "period_unit", type->period_unit);
	json_put_key(json, "delta");
	json_put_bool(json, type->delta);
}

void render_unresolved_json(const struct tree *tree, struct json *json)
{
	json_open_object(json);
	write_number(json, "value", tree->unresolved_value);
	write_number(json, "reasons_total", tree->unresolved_count);
	json_put_key(json, "reasons");
	json_open_array(json);
	for (uint32_t i = 0; i < tree->unresolved_count && i < UNRESOLVED_SHOWN_MAX; i++) {
		const struct tree_unresolved *item = &tree->unresolved[i];

		json_open_object(json);
		write_text(json, "code", slice_of(item->code));
		write_text(json, "text", item->text);
		write_text(json, "mapping", item->mapping);
		write_text(json, "build_id", item->build_id);
		write_number(json, "value", item->value);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

static void write_header(struct json *json, const struct tree *tree)
{
	write_text(json, "query", tree->query);
	write_type(json, &tree->type, tree->period);
	json_put_key(json, "group_by");
	json_open_array(json);
	for (uint32_t i = 0; i < tree->group_names_count; i++)
		json_put_string(json, tree->group_names[i]);
	json_close_array(json);
	write_number(json, "from_ms", whole_ms(tree->from_ns));
	write_number(json, "to_ms", whole_ms(tree->to_ns));
	write_number(json, "start_ms", whole_ms(tree->start_ns));
	write_number(json, "duration_ms", whole_ms(tree->duration_ns));
	write_number(json, "total", tree->total);
	write_number(json, "filtered", tree->filtered);
	write_text(json, "filters", tree->filters);
	if (tree->base) {
		write_text(json, "base_query", tree->base_query);
		write_number(json, "base_total", tree->base_total);
		write_number(json, "base_filtered", tree->base_filtered);
		write_number(json, "base_duration_ms", whole_ms(tree->base_duration_ns));
	}
	json_put_key(json, "reports");
	json_put_uint(json, tree->reports);
	json_put_key(json, "rows");
	json_put_uint(json, tree->samples_rows);
	json_put_key(json, "partial");
	json_put_bool(json, tree->parts_unreadable != 0);
	json_put_key(json, "parts_unreadable");
	json_put_uint(json, tree->parts_unreadable);
	json_put_key(json, "pending");
	json_put_uint(json, tree->names_pending);
	json_put_key(json, "unresolved");
	render_unresolved_json(tree, json);
}

static void write_function(struct json *json, const struct tree *tree,
			   const struct tree_function *function)
{
	json_open_object(json);
	write_text(json, "name", function->name);
	if (function->is_label) {
		json_put_key(json, "label");
		json_put_bool(json, true);
	} else {
		write_text(json, "kind", slice_of(frame_kind_name(function->kind)));
	}
	if (function->system_name.len)
		write_text(json, "system_name", function->system_name);
	if (function->file.len)
		write_text(json, "file", function->file);
	if (function->start_line)
		write_number(json, "start_line", function->start_line);
	if (function->mapping.len)
		write_text(json, "mapping", function->mapping);
	if (function->build_id.len)
		write_text(json, "build_id", function->build_id);
	if (function->unresolved)
		write_text(json, "unresolved", tree->unresolved[function->unresolved - 1].text);
	json_close_object(json);
}

static void write_node(struct json *json, const struct tree *tree, uint32_t number)
{
	const struct tree_node *node = &tree->nodes[number];

	json_open_object(json);
	write_number(json, "function", node->function);
	write_number(json, "parent", node->parent);
	write_number(json, "depth", node->depth);
	write_number(json, "self", node->self);
	write_number(json, "total", node->total);
	if (tree->base) {
		write_number(json, "base_self", tree->base[number].self);
		write_number(json, "base_total", tree->base[number].total);
	}
	if (node->inlined) {
		json_put_key(json, "inlined");
		json_put_bool(json, true);
	}
	json_close_object(json);
}

void render_json(const struct tree *tree, struct strbuf *out)
{
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	write_header(&json, tree);
	json_put_key(&json, "functions");
	json_open_array(&json);
	for (uint32_t i = 0; i < tree->functions_count; i++)
		write_function(&json, tree, &tree->functions[i]);
	json_close_array(&json);
	json_put_key(&json, "nodes");
	json_open_array(&json);
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		write_node(&json, tree, i);
	json_close_array(&json);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
}

static void write_series(struct json *json, const struct query_series *series)
{
	json_open_object(json);
	json_put_key(json, "labels");
	json_open_object(json);
	for (size_t i = 0; i < series->labels_count; i++) {
		json_put_key_slice(json, series->labels[i].name);
		json_put_string(json, series->labels[i].value);
	}
	json_close_object(json);
	json_put_key(json, "points");
	json_open_array(json);
	for (size_t i = 0; i < series->points_count; i++) {
		const struct query_point *point = &series->points[i];

		json_open_array(json);
		json_put_int(json, whole_ms(point->at_ns));
		json_put_int(json, point->value);
		json_put_double(json, point->per_second);
		json_put_uint(json, point->reports);
		json_close_array(json);
	}
	json_close_array(json);
	json_close_object(json);
}

void render_series_json(const struct query_series_set *set, struct strbuf *out)
{
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	write_type(&json, &set->type, set->period);
	write_number(&json, "step_ms", whole_ms(set->step_ns));
	json_put_key(&json, "series");
	json_open_array(&json);
	for (size_t i = 0; i < set->series_count; i++)
		write_series(&json, &set->series[i]);
	json_close_array(&json);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
}
