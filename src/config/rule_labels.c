/* SPDX-License-Identifier: Apache-2.0 */
#include "config/rule_labels.h"

#include <stdlib.h>

#include "base/mem.h"

void rule_labels_init(struct rule_labels *set)
{
	*set = (struct rule_labels){ 0 };
	arena_init(&set->arena, RULE_LABELS_BYTES_MAX);
}

void rule_labels_free(struct rule_labels *set)
{
	free(set->labels);
	arena_free(&set->arena);
	rule_labels_init(set);
}

static struct rule_label *find(const struct rule_labels *set, struct slice name)
{
	for (size_t i = 0; i < set->count; i++)
		if (slice_equal(set->labels[i].name, name))
			return &set->labels[i];
	return NULL;
}

struct slice rule_labels_get(const struct rule_labels *set, struct slice name)
{
	const struct rule_label *label = find(set, name);

	return label ? label->value : (struct slice){ "", 0 };
}

static void remove_at(struct rule_labels *set, struct rule_label *label)
{
	size_t after = set->count - (size_t)(label - set->labels) - 1;

	memmove(label, label + 1, after * sizeof(*label));
	set->count--;
}

void rule_labels_remove(struct rule_labels *set, struct slice name)
{
	struct rule_label *label = find(set, name);

	if (label)
		remove_at(set, label);
}

void rule_labels_put(struct rule_labels *set, struct slice name, struct slice value)
{
	struct rule_label made = { .is_added = true }, *old = find(set, name);

	if (!value.len) {
		rule_labels_remove(set, name);
		return;
	}
	made.value = arena_copy(&set->arena, value);
	made.name = old ? old->name : arena_copy(&set->arena, name);
	if (set->arena.over_budget) {
		set->is_cut = true;
		return;
	}
	if (old && old->is_added) {
		old->value = made.value;
		return;
	}
	if (old)
		remove_at(set, old);
	mem_grow(set->labels, set->count, set->capacity);
	set->labels[set->count++] = made;
}

void rule_labels_copy(struct rule_labels *to, const struct rule_labels *from)
{
	for (size_t i = 0; i < from->count; i++)
		rule_labels_put(to, from->labels[i].name, from->labels[i].value);
	to->is_cut |= from->is_cut;
}

static int compare(const void *a, const void *b)
{
	return slice_compare(((const struct rule_label *)a)->name,
			     ((const struct rule_label *)b)->name);
}

void rule_labels_sort(struct rule_labels *set)
{
	if (set->count)
		qsort(set->labels, set->count, sizeof(*set->labels), compare);
	for (size_t i = 0; i < set->count; i++)
		set->labels[i].is_added = false;
}

bool rule_labels_equal(const struct rule_labels *a, const struct rule_labels *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!slice_equal(a->labels[i].name, b->labels[i].name) ||
		    !slice_equal(a->labels[i].value, b->labels[i].value))
			return false;
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool rule_labels_is_name(struct slice name)
{
	if (!name.len || !is_letter(name.data[0]))
		return false;
	for (size_t i = 1; i < name.len; i++)
		if (!is_letter(name.data[i]) && (name.data[i] < '0' || name.data[i] > '9'))
			return false;
	return true;
}
