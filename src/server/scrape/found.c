/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/found.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/strbuf.h"

struct found *found_new(void)
{
	struct found *found = mem_new(struct found);

	arena_init(&found->arena, FOUND_BYTES_MAX);
	return found;
}

void found_free(struct found *found)
{
	if (!found)
		return;
	arena_free(&found->arena);
	free(found->targets);
	free(found->adding);
	free(found);
}

static void add(struct found *found, struct slice name, struct slice value)
{
	mem_grow(found->adding, found->adding_count, found->adding_capacity);
	found->adding[found->adding_count++] = (struct rule_label){ .name = name, .value = value };
}

void found_label(struct found *found, struct slice name, struct slice value)
{
	name = arena_copy(&found->arena, name);
	add(found, name, arena_copy(&found->arena, value));
}

void found_label_of(struct found *found, const char *prefix, struct slice name, struct slice value)
{
	struct strbuf text = { 0 };

	strbuf_add_text(&text, prefix);
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '_';

		strbuf_add_byte(&text, plain ? c : '_');
	}
	found_label(found, (struct slice){ strbuf_text(&text), text.len }, value);
	strbuf_free(&text);
}

void found_labelf(struct found *found, const char *name, const char *format, ...)
{
	struct strbuf text = { 0 };
	va_list args;

	va_start(args, format);
	strbuf_addv(&text, format, args);
	va_end(args);
	found_label(found, slice_of(name), (struct slice){ strbuf_text(&text), text.len });
	strbuf_free(&text);
}

void found_target(struct found *found, size_t keep)
{
	struct found_target target = { .count = found->adding_count };

	if (found->count == FOUND_TARGETS_MAX || found->arena.over_budget) {
		found->is_cut = true;
		found->adding_count = keep;
		return;
	}
	target.labels = arena_new_array(&found->arena, struct rule_label, target.count + 1);
	if (!target.labels) {
		found->is_cut = true;
		found->adding_count = keep;
		return;
	}
	if (target.count)
		memcpy(target.labels, found->adding, target.count * sizeof(*target.labels));
	mem_grow(found->targets, found->count, found->capacity);
	found->targets[found->count++] = target;
	found->adding_count = keep;
}

void found_add_all(struct found *found, const struct found *from)
{
	for (size_t i = 0; i < from->count; i++) {
		for (size_t j = 0; j < from->targets[i].count; j++)
			found_label(found, from->targets[i].labels[j].name,
				    from->targets[i].labels[j].value);
		found_target(found, 0);
	}
	found->is_cut |= from->is_cut;
}
