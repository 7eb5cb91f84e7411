/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/target.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define TARGET_BYTES (sizeof(struct scrape_target) + 96) /* with what the heap and lists have */

static size_t label_list_bytes(const struct rule_labels *set)
{
	size_t bytes = set->count * sizeof(struct rule_label);

	for (size_t i = 0; i < set->count; i++)
		bytes += set->labels[i].name.len + set->labels[i].value.len;
	return bytes;
}

struct label_list label_list_of(const struct rule_labels *set)
{
	struct label_list list = { NULL, set->count };
	char *text;

	list.labels = mem_calloc(label_list_bytes(set) + 1, 1);
	text = (char *)(list.labels + set->count);
	for (size_t i = 0; i < set->count; i++) {
		const struct rule_label *from = &set->labels[i];
		struct rule_label *to = &list.labels[i];

		memcpy(text, from->name.data, from->name.len);
		to->name = slice_from(text, from->name.len);
		text += from->name.len;
		memcpy(text, from->value.data, from->value.len);
		to->value = slice_from(text, from->value.len);
		text += from->value.len;
	}
	return list;
}

void label_list_free(struct label_list *list)
{
	free(list->labels);
	*list = (struct label_list){ NULL, 0 };
}

struct slice label_list_get(const struct label_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (slice_is(list->labels[i].name, name))
			return list->labels[i].value;
	return (struct slice){ "", 0 };
}

static uint64_t hash_slice(uint64_t hash, struct slice text)
{
	return hash_mix(hash_mix(hash, text.len), hash_bytes(text.data, text.len));
}

struct label_list scrape_origin_labels(const struct scrape_origin *origin,
				       const struct scrape_job *job, size_t told_bytes)
{
	struct rule_labels labels;
	struct label_list list = { NULL, 0 };

	if (told_bytes >= SCRAPE_TOLD_BYTES_MAX)
		return list;
	target_labels_discovered(job, origin->profile, origin->target, &labels);
	list = label_list_of(&labels);
	rule_labels_free(&labels);
	return list;
}

struct scrape_target *target_new(const struct scrape_job *job, const struct scrape_origin *origin,
				 const struct target_labels *labels)
{
	struct scrape_target *target = mem_new(struct scrape_target);
	struct strbuf url = { 0 };

	target->job = job;
	target->origin = *origin;
	target->origin.found = found_share(origin->found);
	target->after = label_list_of(&labels->after);
	target_labels_url(&labels->after, job, &url);
	target->url = mem_strndup(strbuf_text(&url), url.len);
	target->key = hash_slice(1, strbuf_slice(&url));
	for (size_t i = 0; i < target->after.count; i++) {
		target->key = hash_slice(target->key, target->after.labels[i].name);
		target->key = hash_slice(target->key, target->after.labels[i].value);
	}
	target->interval_ns = labels->interval_ns;
	target->timeout_ns = labels->timeout_ns;
	target->refs = 1;
	target->paid_bytes = TARGET_BYTES + url.len + label_list_bytes(&labels->after);
	strbuf_free(&url);
	if (budget_take(&discovery_memory, target->paid_bytes))
		return target;
	target->paid_bytes = 0;
	target_free(target);
	return NULL;
}

void target_move_origin(struct scrape_target *target, struct scrape_target *from)
{
	struct scrape_origin old = target->origin;

	/* Not the profile, which a scrape that runs reads: it is the same. */
	target->origin.found = from->origin.found;
	target->origin.target = from->origin.target;
	from->origin = old;
}

void target_free(struct scrape_target *target)
{
	budget_give(&discovery_memory, target->paid_bytes);
	found_free(target->origin.found);
	label_list_free(&target->after);
	free(target->url);
	free(target->error);
	free(target);
}
