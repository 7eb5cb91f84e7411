/* SPDX-License-Identifier: Apache-2.0 */
#include "config/label_set.h"

#include <stdlib.h>

#include "base/mem.h"

void label_set_init(struct label_set *set)
{
	*set = (struct label_set){ 0 };
	arena_init(&set->arena, LABEL_SET_BYTES_MAX);
}

void label_set_free(struct label_set *set)
{
	free(set->labels);
	arena_free(&set->arena);
	label_set_init(set);
}

static struct label *find(const struct label_set *set, struct slice name)
{
	for (size_t i = 0; i < set->count; i++)
		if (slice_equal(set->labels[i].name, name))
			return &set->labels[i];
	return NULL;
}

struct slice label_set_get(const struct label_set *set, struct slice name)
{
	const struct label *label = find(set, name);

	return label ? label->value : (struct slice){ "", 0 };
}

static void remove_at(struct label_set *set, struct label *label)
{
	size_t after = set->count - (size_t)(label - set->labels) - 1;

	memmove(label, label + 1, after * sizeof(*label));
	set->count--;
}

void label_set_remove(struct label_set *set, struct slice name)
{
	struct label *label = find(set, name);

	if (label)
		remove_at(set, label);
}

void label_set_put(struct label_set *set, struct slice name, struct slice value)
{
	struct label made = { .is_added = true }, *old = find(set, name);

	if (!value.len) {
		label_set_remove(set, name);
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

void label_set_copy(struct label_set *to, const struct label_set *from)
{
	for (size_t i = 0; i < from->count; i++)
		label_set_put(to, from->labels[i].name, from->labels[i].value);
	to->is_cut |= from->is_cut;
}

static int compare(const void *a, const void *b)
{
	return slice_compare(((const struct label *)a)->name, ((const struct label *)b)->name);
}

void label_set_sort(struct label_set *set)
{
	if (set->count)
		qsort(set->labels, set->count, sizeof(*set->labels), compare);
	for (size_t i = 0; i < set->count; i++)
		set->labels[i].is_added = false;
}

bool label_set_equal(const struct label_set *a, const struct label_set *b)
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

bool label_set_is_name(struct slice name)
{
	if (!name.len || !is_letter(name.data[0]))
		return false;
	for (size_t i = 1; i < name.len; i++)
		if (!is_letter(name.data[i]) && (name.data[i] < '0' || name.data[i] > '9'))
			return false;
	return true;
}
