/* SPDX-License-Identifier: Apache-2.0 */
#include "model/identity.h"

#include <assert.h>
#include <xxhash.h>

#include "base/strbuf.h"

struct identity identity_of_bytes(const void *data, size_t len)
{
	XXH128_hash_t hash = XXH3_128bits(len ? data : "", len);

	return (struct identity){ hash.low64, hash.high64 };
}

struct identity identity_mix(struct identity identity, uint64_t a, uint64_t b)
{
	const uint64_t words[] = { identity.low, identity.high, a, b };

	return identity_of_bytes(words, sizeof(words));
}

static void add_text(struct strbuf *out, const struct tables_view *view, uint32_t string)
{
	struct slice text = tables_text(view, string);

	strbuf_add_varint(out, text.len);
	strbuf_add_slice(out, text);
}

static void add_label_set(struct strbuf *out, const struct tables_view *view, uint32_t id)
{
	const struct label_set *set = &view->label_sets[id];

	assert(id < view->label_sets_count);
	strbuf_add_varint(out, set->label_count);
	for (uint32_t i = 0; i < set->label_count; i++) {
		const struct label *label = &view->labels[set->label_first + i];

		add_text(out, view, label->name);
		add_text(out, view, label->value);
		add_text(out, view, label->unit);
		strbuf_add_byte(out, (char)label->numeric);
		strbuf_add_zigzag(out, label->number);
	}
}

static void add_group(struct strbuf *out, const struct tables_view *view, uint32_t id)
{
	const struct group *group = &view->groups[id];

	assert(id < view->groups_count);
	add_text(out, view, group->name);
	add_text(out, view, group->period_type);
	add_text(out, view, group->period_unit);
	strbuf_add_zigzag(out, group->period);
	for (uint32_t i = 0; i < group->column_count; i++) {
		const struct column *column = &view->columns[group->column_first + i];

		add_text(out, view, column->sample_type);
		add_text(out, view, column->sample_unit);
		strbuf_add_byte(out, column->kind == COLUMN_GAUGE);
	}
}

static struct identity take(struct strbuf *bytes)
{
	struct identity identity = identity_of_bytes(bytes->data, bytes->len);

	strbuf_free(bytes);
	return identity;
}

struct identity identity_of_series(const struct tables_view *view, uint32_t series)
{
	struct strbuf bytes = { 0 };

	assert(series < view->series_count);
	add_group(&bytes, view, view->series[series].group);
	add_label_set(&bytes, view, view->series[series].label_set);
	return take(&bytes);
}

struct identity identity_of_label_set(const struct tables_view *view, uint32_t label_set)
{
	struct strbuf bytes = { 0 };

	assert(label_set < view->label_sets_count);
	add_label_set(&bytes, view, label_set);
	return take(&bytes);
}

static void add_frame(struct strbuf *out, const struct tables_view *view, const struct frame *from)
{
	const struct frame identity = frame_identity(from), *frame = &identity;

	assert(from->mapping_file < view->strings_count && from->build_id < view->strings_count);
	strbuf_add_varint(out, frame->kind);
	strbuf_add_varint(out, frame->flags);
	strbuf_add_varint(out, frame->address);
	add_text(out, view, frame->mapping_file);
	add_text(out, view, frame->build_id);
	add_text(out, view, frame->function);
	add_text(out, view, frame->system_name);
	add_text(out, view, frame->file);
	strbuf_add_varint(out, frame->line);
}

void identity_of_stacks(const struct tables_view *view, struct identity *ret)
{
	struct strbuf bytes = { 0 };

	assert(view->nodes_count > 0);
	ret[0] = (struct identity){ 0, 0 };
	for (uint32_t i = 1; i < view->nodes_count; i++) {
		struct identity parent = ret[view->nodes[i].parent];

		strbuf_clear(&bytes);
		add_frame(&bytes, view, &view->frames[view->nodes[i].frame]);
		strbuf_add_u64(&bytes, parent.low);
		strbuf_add_u64(&bytes, parent.high);
		ret[i] = identity_of_bytes(bytes.data, bytes.len);
	}
	strbuf_free(&bytes);
}
