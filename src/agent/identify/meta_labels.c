/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/meta_labels.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"

void meta_labels_free(struct meta_labels *labels)
{
	strbuf_free(&labels->text);
	free(labels->items);
	*labels = (struct meta_labels){ 0 };
}

struct slice meta_labels_name(const struct meta_labels *labels, size_t index)
{
	const struct meta_label *item = &labels->items[index];

	return slice_from(labels->text.data + item->name_at, item->name_len);
}

struct slice meta_labels_value(const struct meta_labels *labels, size_t index)
{
	const struct meta_label *item = &labels->items[index];

	return slice_from(labels->text.data + item->value_at, item->value_len);
}

/* The count when it is not there. */
static size_t find(const struct meta_labels *labels, struct slice name)
{
	size_t index = 0;

	while (index < labels->count && !slice_equal(meta_labels_name(labels, index), name))
		index++;
	return index;
}

static void add(struct meta_labels *labels, struct slice name, struct slice value)
{
	size_t index;
	struct meta_label item = { .name_len = (uint32_t)name.len,
				   .value_len = (uint32_t)value.len };

	if (!value.len || value.len > META_LABELS_VALUE_MAX || name.len > META_LABELS_NAME_MAX ||
	    labels->text.len + name.len + value.len > META_LABELS_BYTES_MAX ||
	    labels->count >= META_LABELS_MAX || !slice_is_utf8(value))
		return;
	index = find(labels, name);
	item.name_at = (uint32_t)labels->text.len;
	strbuf_add_slice(&labels->text, name);
	item.value_at = (uint32_t)labels->text.len;
	strbuf_add_slice(&labels->text, value);
	if (index == labels->count) {
		mem_grow(labels->items, labels->count, labels->capacity);
		labels->count++;
	}
	labels->items[index] = item;
}

void meta_labels_add(struct meta_labels *labels, const char *name, struct slice value)
{
	add(labels, slice_of(name), value);
}

void meta_labels_add_of(struct meta_labels *labels, const char *prefix, struct slice key,
			struct slice value)
{
	struct strbuf name = { 0 };

	if (!key.len || key.len > META_LABELS_NAME_MAX)
		return;
	strbuf_add_text(&name, prefix);
	for (size_t i = 0; i < key.len; i++) {
		unsigned char c = (unsigned char)key.data[i];

		strbuf_add_byte(&name, c < 0x80 && isalnum(c) ? (char)c : '_');
	}
	add(labels, strbuf_slice(&name), value);
	strbuf_free(&name);
}

void meta_labels_copy(struct meta_labels *to, const struct meta_labels *from)
{
	for (size_t i = 0; i < from->count; i++)
		add(to, meta_labels_name(from, i), meta_labels_value(from, i));
}

void meta_labels_fill(struct meta_labels *to, const struct meta_labels *from)
{
	for (size_t i = 0; i < from->count; i++)
		if (find(to, meta_labels_name(from, i)) == to->count)
			add(to, meta_labels_name(from, i), meta_labels_value(from, i));
}

struct slice meta_labels_find(const struct meta_labels *labels, const char *name)
{
	size_t index = find(labels, slice_of(name));

	return index < labels->count ? meta_labels_value(labels, index) : (struct slice){ 0 };
}
