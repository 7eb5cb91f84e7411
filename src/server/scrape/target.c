/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/target.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/strbuf.h"

struct label_list label_list_of(const struct rule_labels *set)
{
	size_t bytes = set->count * sizeof(struct rule_label);
	struct label_list list = { NULL, set->count };
	char *text;

	for (size_t i = 0; i < set->count; i++)
		bytes += set->labels[i].name.len + set->labels[i].value.len;
	list.labels = mem_calloc(bytes + 1, 1);
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

struct scrape_target *target_new(const struct scrape_job *job, const struct scrape_profile *profile,
				 const struct target_labels *labels)
{
	struct scrape_target *target = mem_new(struct scrape_target);
	struct strbuf url = { 0 };

	target->job = job;
	target->profile = profile;
	target->before = label_list_of(&labels->before);
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
	strbuf_free(&url);
	return target;
}

void target_free(struct scrape_target *target)
{
	label_list_free(&target->before);
	label_list_free(&target->after);
	free(target->url);
	free(target->error);
	free(target);
}
