/* SPDX-License-Identifier: Apache-2.0 */
/* render_speedscope - speedscope.app's JSON: one sampled profile, a sample per stack. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

#include "codec/wire/json.h"
#include "server/query/render/render.h"

static const char *unit_of(struct slice unit)
{
	static const char *const known[] = { "nanoseconds", "microseconds", "milliseconds",
					     "seconds", "bytes" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (slice_is(unit, known[i]))
			return known[i];
	return "none";
}

static void put_frames(const struct tree *tree, struct json *json)
{
	json_member_object(json, "shared");
	json_member_array(json, "frames");
	for (uint32_t i = 0; i < tree->functions_count; i++) {
		const struct tree_function *function = &tree->functions[i];

		json_open_object(json);
		json_member_string(json, "name", function->name);
		if (function->file.len)
			json_member_string(json, "file", function->file);
		if (function->start_line)
			json_member_int(json, "line", function->start_line);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

/* The functions from below the root to the node. */
static void put_stack(const struct tree *tree, uint32_t at, uint32_t *path, struct json *json)
{
	uint32_t depth = tree->nodes[at].depth;

	assert(at < tree->nodes_count);
	for (; at; at = tree->nodes[at].parent)
		path[tree->nodes[at].depth - 1] = tree->nodes[at].function;
	json_open_array(json);
	for (uint32_t i = 0; i < depth; i++)
		json_put_uint(json, path[i]);
	json_close_array(json);
}

void render_speedscope(const struct tree *tree, struct strbuf *out)
{
	uint32_t *path = mem_new_array(uint32_t, (size_t)tree->depth_max + 1);
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	json_member_text(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_member_text(&json, "exporter", "firn " FIRN_VERSION);
	json_member_string(&json, "name", tree->query);
	put_frames(tree, &json);
	json_member_array(&json, "profiles");
	json_open_object(&json);
	json_member_text(&json, "type", "sampled");
	json_member_string(&json, "name", tree->type.sample_type);
	json_member_text(&json, "unit", unit_of(tree->type.sample_unit));
	json_member_int(&json, "startValue", 0);
	json_member_int(&json, "endValue", tree->total);
	json_member_array(&json, "samples");
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		if (tree->nodes[i].self > 0)
			put_stack(tree, i, path, &json);
	json_close_array(&json);
	json_member_array(&json, "weights");
	for (uint32_t i = 0; i < tree->nodes_count; i++)
		if (tree->nodes[i].self > 0)
			json_put_int(&json, tree->nodes[i].self);
	json_close_array(&json);
	json_close_object(&json);
	json_close_array(&json);
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
	free(path);
}
