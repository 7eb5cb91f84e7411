/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/manifest/tombstones.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

static void free_set(struct tombstones *tombstones)
{
	for (size_t i = 0; i < tombstones->count; i++)
		selector_free(&tombstones->items[i].selector);
	free(tombstones->items);
	free(tombstones);
}

int tombstones_of(const struct manifest_state *state, struct tombstones **ret, struct err *err)
{
	struct tombstones *made = mem_new(struct tombstones);

	made->items = mem_new_array(struct tombstone, state->tombstones_count);
	atomic_init(&made->references, 1);
	for (size_t i = 0; i < state->tombstones_count; i++) {
		const struct manifest_tombstone *from = &state->tombstones[i];
		struct tombstone *into = &made->items[made->count];
		struct err cause;

		if (from->done_ns)
			continue;
		if (selector_parse(slice_of(from->selector), &into->selector, &cause)) {
			free_set(made);
			return err_set(err, ERR_CORRUPT, "tombstone %llu: %s",
				       (unsigned long long)from->number, cause.message);
		}
		into->number = from->number;
		into->from_ns = from->from_ns;
		into->to_ns = from->to_ns;
		made->count++;
		assert(made->count <= state->tombstones_count);
	}
	*ret = made;
	return 0;
}

struct tombstones *tombstones_ref(struct tombstones *tombstones)
{
	if (tombstones)
		atomic_fetch_add(&tombstones->references, 1);
	return tombstones;
}

void tombstones_unref(struct tombstones *tombstones)
{
	if (tombstones && atomic_fetch_sub(&tombstones->references, 1) == 1)
		free_set(tombstones);
}

bool tombstone_meets(uint64_t number, int64_t from_ns, int64_t to_ns, const struct part_info *part)
{
	return number > part->number && number > part->deleted_to &&
	       part->max_start_ns >= from_ns && part->min_start_ns < to_ns;
}

/* True if some column of the group is of the type. ":delta" may be left out, as in queries. */
static bool type_matches(const struct selector *selector, const struct tables_view *view,
			 uint32_t group)
{
	if (!selector->has_type)
		return true;
	for (uint32_t i = 0; i < view->groups[group].column_count; i++) {
		struct profile_type type = profile_type_of(view, group, i);

		if (!selector->type.delta)
			type.delta = false;
		if (profile_type_equal(&type, &selector->type))
			return true;
	}
	return false;
}

bool tombstone_selects(const struct selector *selector, const struct tables_view *view,
		       uint32_t series)
{
	return type_matches(selector, view, view->series[series].group) &&
	       selector_matches(selector, view, view->series[series].label_set);
}

/* The series that a tombstone means, or NULL. */
static uint8_t *mark_series(const struct tombstone *tombstone, const struct tables_view *view)
{
	uint8_t *marks = NULL;

	for (uint32_t i = 0; i < view->series_count; i++) {
		if (!tombstone_selects(&tombstone->selector, view, i))
			continue;
		if (!marks)
			marks = mem_new_array(uint8_t, view->series_count);
		marks[i] = 1;
	}
	return marks;
}

void tombstones_apply(const struct tombstones *tombstones, const struct part_info *part,
		      const struct tables_view *series, struct tombstone_deletions *ret)
{
	size_t capacity = 0;

	*ret = (struct tombstone_deletions){ 0 };
	for (size_t i = 0; tombstones && i < tombstones->count; i++) {
		const struct tombstone *tombstone = &tombstones->items[i];
		uint8_t *marks;

		if (!tombstone_meets(tombstone->number, tombstone->from_ns, tombstone->to_ns, part))
			continue;
		marks = mark_series(tombstone, series);
		if (!marks)
			continue;
		mem_grow(ret->items, ret->count, capacity);
		ret->items[ret->count++] =
			(struct segment_deletion){ marks, tombstone->from_ns, tombstone->to_ns };
	}
}

void tombstone_deletions_free(struct tombstone_deletions *deletions)
{
	for (uint32_t i = 0; i < deletions->count; i++)
		free((void *)(uintptr_t)deletions->items[i].series);
	free(deletions->items);
	*deletions = (struct tombstone_deletions){ 0 };
}
