/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/found.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define SHARED_TEXT_BYTES_MAX 512u /* longer ones are rarely the same */
#define PAY_BYTES ((size_t)64 << 10)

struct budget discovery_memory = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX };

int discovery_memory_fail(struct err *err)
{
	return err_set(
		err, ERR_LIMIT,
		"what all discoveries have found takes more than %lld MiB of memory together; "
		"let them find less (namespaces, selectors, filters)",
		(long long)(DISCOVERY_MEMORY_BYTES_MAX >> 20));
}

struct found *found_new(void)
{
	struct found *found = mem_new(struct found);

	atomic_init(&found->refs, 1);
	arena_init(&found->arena, FOUND_BYTES_MAX);
	return found;
}

struct found *found_share(struct found *found)
{
	atomic_fetch_add(&found->refs, 1);
	return found;
}

static void forget_building(struct found *found)
{
	free(found->adding);
	free(found->texts);
	idmap_free(&found->texts_ids);
	found->adding = NULL;
	found->texts = NULL;
	found->adding_count = found->adding_capacity = 0;
	found->texts_count = found->texts_capacity = 0;
}

void found_free(struct found *found)
{
	if (!found || atomic_fetch_sub(&found->refs, 1) > 1)
		return;
	forget_building(found);
	arena_free(&found->arena);
	free(found->targets);
	budget_give(&discovery_memory, found->paid_bytes);
	free(found);
}

/* Pays for what it holds now, in steps of PAY_BYTES. */
static void pay(struct found *found)
{
	size_t bytes = found->arena.used_bytes + found->capacity * sizeof(struct found_target) +
		       found->adding_capacity * sizeof(struct found_label) +
		       found->texts_capacity * (sizeof(struct slice) + IDMAP_ENTRY_BYTES_MAX);
	size_t paid = (bytes + PAY_BYTES - 1) / PAY_BYTES * PAY_BYTES;

	if (paid < found->paid_bytes)
		budget_give(&discovery_memory, found->paid_bytes - paid);
	else if (paid > found->paid_bytes &&
		 !budget_take(&discovery_memory, paid - found->paid_bytes))
		found->is_refused = true;
	if (!found->is_refused)
		found->paid_bytes = paid;
}

void found_seal(struct found *found)
{
	forget_building(found);
	found->filter = NULL;
	found->stops = NULL;
	if (!found->is_refused)
		pay(found);
}

static bool has_text(const void *context, uint32_t id, const void *key)
{
	const struct found *found = context;

	return slice_equal(found->texts[id], *(const struct slice *)key);
}

/* Its one copy. */
static struct slice keep_text(struct found *found, struct slice text)
{
	uint64_t hash;
	uint32_t id;

	if (text.len > SHARED_TEXT_BYTES_MAX)
		return arena_copy(&found->arena, text);
	hash = hash_bytes(text.data, text.len);
	id = idmap_find(&found->texts_ids, hash, has_text, found, &text);
	if (id != IDMAP_NONE)
		return found->texts[id];
	text = arena_copy(&found->arena, text);
	if (found->arena.over_budget)
		return text;
	mem_grow(found->texts, found->texts_count, found->texts_capacity);
	idmap_add(&found->texts_ids, hash, (uint32_t)found->texts_count);
	found->texts[found->texts_count++] = text;
	return text;
}

void found_label(struct found *found, struct slice name, struct slice value)
{
	struct found_label label;

	if (found->is_refused)
		return;
	label.name = keep_text(found, name);
	label.value = keep_text(found, value);
	mem_grow(found->adding, found->adding_count, found->adding_capacity);
	found->adding[found->adding_count++] = label;
	pay(found);
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

/* False: there is no room for it. */
static bool add_target(struct found *found)
{
	const struct found_target waiting = { found->adding, found->adding_count };
	struct found_label *labels;
	size_t bytes = 0;

	if (found->count >= FOUND_UNASKED_MAX && found->filter &&
	    !found->filter->wants(found->filter->context, &waiting)) {
		found->left_out++;
		return true;
	}
	for (size_t i = 0; i < waiting.count; i++)
		bytes += waiting.labels[i].name.len + waiting.labels[i].value.len;
	if (found->count == FOUND_TARGETS_MAX || found->full_bytes + bytes > FOUND_BYTES_MAX)
		return false;
	labels = arena_new_array(&found->arena, struct found_label, waiting.count + 1);
	if (!labels)
		return false;
	if (waiting.count)
		memcpy(labels, waiting.labels, waiting.count * sizeof(*labels));
	mem_grow(found->targets, found->count, found->capacity);
	found->targets[found->count++] = (struct found_target){ labels, waiting.count };
	found->full_bytes += bytes;
	pay(found);
	return true;
}

void found_target(struct found *found, size_t keep)
{
	if (found_is_over(found) || found->arena.over_budget || !add_target(found))
		found->is_cut = true;
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
	found->is_refused |= from->is_refused;
	found->left_out += from->left_out;
}
