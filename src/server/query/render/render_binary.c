/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_binary - the UI's format: docs/formats/flamegraph.md.
 *
 * Boxes narrower than half a pixel are summed into one trimmed box per parent; only the functions
 * and strings of what is left are sent.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#include "base/hash.h"
#include "base/mem.h"
#include "codec/wire/json.h"
#include "server/query/render/render.h"
#include "server/query/work.h"

#define FORMAT_VERSION 1u
#define SECTIONS 5u
#define SECTION_ALIGN 8u
#define HEADER_BYTES (12 + SECTIONS * 12)

enum section {
	SECTION_HEADER = 1,
	SECTION_STRINGS,
	SECTION_FUNCTIONS,
	SECTION_NODES,
	SECTION_DETAILS
};
enum node_flag { NODE_INLINED = 1, NODE_LABEL = 2, NODE_TRIMMED = 4 };

#define NOT_SENT UINT32_MAX

struct sending {
	const struct tree *tree;
	struct strbuf sections[SECTIONS];
	struct slice *strings; /* distinct; 0 is "" */
	size_t strings_count, strings_capacity;
	struct idmap string_map;
	uint32_t *function_ids; /* as sent, or NOT_SENT */
	uint32_t functions_count;
	int64_t *trimmed; /* by depth: siblings left out so far, not yet written */
	uint64_t nodes_count;
	uint32_t depth;
	int64_t trimmed_total;
};

static bool string_equal(const void *context, uint32_t id, const void *key)
{
	return slice_equal(((const struct sending *)context)->strings[id],
			   *(const struct slice *)key);
}

static uint32_t string_id(struct sending *s, struct slice text)
{
	uint64_t hash = hash_bytes(text.data, text.len);
	uint32_t id = idmap_find(&s->string_map, hash, string_equal, s, &text);

	assert(s->strings_count <= s->strings_capacity);
	if (id != IDMAP_NONE)
		return id;
	mem_grow(s->strings, s->strings_count, s->strings_capacity);
	id = (uint32_t)s->strings_count;
	s->strings[s->strings_count++] = text;
	idmap_add(&s->string_map, hash, id);
	return id;
}

static uint32_t function_id(struct sending *s, uint32_t function)
{
	const struct tree_function *from = &s->tree->functions[function];
	struct strbuf *out = &s->sections[SECTION_FUNCTIONS - 1];
	struct strbuf *details = &s->sections[SECTION_DETAILS - 1];

	assert(function < s->tree->functions_count);
	assert(s->functions_count <= s->tree->functions_count);
	if (s->function_ids[function] != NOT_SENT)
		return s->function_ids[function];
	strbuf_add_varint(out, string_id(s, from->name));
	strbuf_add_varint(out, string_id(s, from->file));
	strbuf_add_varint(out, string_id(s, from->mapping));
	strbuf_add_varint(out, string_id(s, from->build_id));
	strbuf_add_varint(out, from->kind);
	strbuf_add_varint(out, from->start_line);
	strbuf_add_varint(details, string_id(s, from->system_name));
	strbuf_add_varint(details,
			  from->unresolved
				  ? string_id(s, s->tree->unresolved[from->unresolved - 1].text)
				  : 0);
	s->function_ids[function] = s->functions_count;
	return s->functions_count++;
}

static void write_node(struct sending *s, uint32_t depth, uint32_t function, int64_t self,
		       uint8_t flags)
{
	struct strbuf *out = &s->sections[SECTION_NODES - 1];

	assert(function < s->tree->functions_count);
	strbuf_add_varint(out, depth);
	strbuf_add_varint(out, function);
	strbuf_add_zigzag(out, self);
	strbuf_add_byte(out, (char)flags);
	s->nodes_count++;
	if (depth > s->depth)
		s->depth = depth;
}

/* Writes what was trimmed below the depth, the deepest first: siblings stay together. */
static void write_trimmed(struct sending *s, uint32_t depth_from, uint32_t depth_above)
{
	for (uint32_t depth = depth_from; depth > depth_above; depth--) {
		if (!s->trimmed[depth])
			continue;
		write_node(s, depth, 0, s->trimmed[depth], NODE_TRIMMED);
		s->trimmed[depth] = 0;
	}
}

static bool is_narrow(const struct tree *tree, const struct tree_node *node, uint32_t width_px)
{
	__int128 width = (__int128)node->total * 2 * width_px;
	__int128 half_pixel = tree->total;

	return (width < 0 ? -width : width) < (half_pixel < 0 ? -half_pixel : half_pixel);
}

static void add_trimmed(struct sending *s, uint32_t depth, int64_t value)
{
	s->trimmed[depth] = work_add(s->trimmed[depth], value);
	s->trimmed_total = work_add(s->trimmed_total, value);
}

static void write_nodes(struct sending *s, uint32_t width_px)
{
	const struct tree *tree = s->tree;
	uint32_t below = UINT32_MAX; /* depth of the trimmed node that we are below */
	uint32_t last = 0;	     /* depth of the node before */

	for (uint32_t i = 0; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint8_t flags = node->inlined ? NODE_INLINED : 0;

		if (node->depth > below)
			continue;
		below = UINT32_MAX;
		write_trimmed(s, last + (tree->cut != NULL), node->depth);
		last = node->depth;
		if (i && width_px && is_narrow(tree, node, width_px)) {
			add_trimmed(s, node->depth, node->total);
			below = node->depth;
			continue;
		}
		if (tree->functions[node->function].is_label)
			flags |= NODE_LABEL;
		write_node(s, node->depth, function_id(s, node->function), node->self, flags);
		if (tree->cut)
			add_trimmed(s, node->depth + 1, tree->cut[i]);
	}
	write_trimmed(s, last + (tree->cut != NULL), 0);
}

static void write_strings(struct sending *s)
{
	struct strbuf *out = &s->sections[SECTION_STRINGS - 1];
	uint32_t end = 0;

	strbuf_add_u32(out, (uint32_t)s->strings_count);
	for (size_t i = 0; i < s->strings_count; i++) {
		end += (uint32_t)s->strings[i].len;
		strbuf_add_u32(out, end);
	}
	for (size_t i = 0; i < s->strings_count; i++)
		strbuf_add_slice(out, s->strings[i]);
}

static void write_number(struct json *json, const char *key, int64_t value)
{
	json_put_key(json, key);
	json_put_int(json, value);
}

static void write_header(struct sending *s)
{
	const struct tree *tree = s->tree;
	struct strbuf type = { 0 };
	struct json json;

	profile_type_format(&type, &tree->type);
	json_begin(&json, &s->sections[SECTION_HEADER - 1]);
	json_open_object(&json);
	json_put_key(&json, "type");
	json_put_string(&json, strbuf_slice(&type));
	json_put_key(&json, "unit");
	json_put_string(&json, tree->type.sample_unit);
	write_number(&json, "period", tree->period);
	json_put_key(&json, "period_unit");
	json_put_string(&json, tree->type.period_unit);
	json_put_key(&json, "delta");
	json_put_bool(&json, tree->type.delta);
	write_number(&json, "from_ms", tree->from_ns / CLOCK_NS_PER_MS);
	write_number(&json, "to_ms", tree->to_ns / CLOCK_NS_PER_MS);
	write_number(&json, "duration_ms", tree->duration_ns / CLOCK_NS_PER_MS);
	write_number(&json, "total", tree->total);
	write_number(&json, "filtered", tree->filtered);
	write_number(&json, "nodes", (int64_t)s->nodes_count);
	write_number(&json, "nodes_total",
		     tree->cut ? (int64_t)tree->nodes_untrimmed : (int64_t)tree->nodes_count);
	write_number(&json, "depth", s->depth);
	write_number(&json, "functions", s->functions_count);
	write_number(&json, "trimmed", s->trimmed_total);
	write_number(&json, "reports", (int64_t)tree->reports);
	json_put_key(&json, "partial");
	json_put_bool(&json, tree->parts_unreadable != 0);
	write_number(&json, "parts_unreadable", (int64_t)tree->parts_unreadable);
	write_number(&json, "pending", (int64_t)tree->names_pending);
	json_put_key(&json, "unresolved");
	render_unresolved_json(tree, &json);
	json_close_object(&json);
	strbuf_free(&type);
}

static uint32_t aligned(size_t bytes)
{
	return (uint32_t)((bytes + SECTION_ALIGN - 1) & ~(size_t)(SECTION_ALIGN - 1));
}

static void assemble(const struct sending *s, struct strbuf *out)
{
	uint32_t offset = aligned(HEADER_BYTES);
	size_t start = out->len;

	strbuf_add_text(out, "FRNF");
	strbuf_add_u32(out, FORMAT_VERSION);
	strbuf_add_u32(out, SECTIONS);
	for (uint32_t i = 0; i < SECTIONS; i++) {
		strbuf_add_u32(out, i + 1);
		strbuf_add_u32(out, offset);
		strbuf_add_u32(out, (uint32_t)s->sections[i].len);
		offset += aligned(s->sections[i].len);
	}
	for (uint32_t i = 0; i < SECTIONS; i++) {
		while ((out->len - start) % SECTION_ALIGN)
			strbuf_add_byte(out, 0);
		strbuf_add_slice(out, strbuf_slice(&s->sections[i]));
	}
}

void render_binary(const struct tree *tree, uint32_t width_px, struct strbuf *out)
{
	struct sending s = { .tree = tree };

	assert(tree->nodes_count > 0);
	s.function_ids = mem_realloc(NULL, tree->functions_count, sizeof(*s.function_ids));
	memset(s.function_ids, 0xff, tree->functions_count * sizeof(*s.function_ids));
	s.trimmed = mem_new_array(int64_t, (size_t)tree->depth_max + 2);
	string_id(&s, SLICE_LITERAL(""));
	write_nodes(&s, width_px);
	write_strings(&s);
	write_header(&s);
	assemble(&s, out);
	for (uint32_t i = 0; i < SECTIONS; i++)
		strbuf_free(&s.sections[i]);
	free(s.function_ids);
	free(s.trimmed);
	free(s.strings);
	idmap_free(&s.string_map);
}
