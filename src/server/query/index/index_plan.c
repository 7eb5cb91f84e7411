/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/index/index_plan.h"

#include <assert.h>
#include <stdlib.h>

/* An index that some candidates have. */
struct index_group {
	const struct function_index *index;
	uint32_t found; /* of its segments */
	uint64_t slots; /* of all of them */
};

static int candidate_order(const void *left, const void *right)
{
	const struct index_candidate *a = left, *b = right;
	const struct segment *a_segment = a->in->segment, *b_segment = b->in->segment;

	if (a_segment->partition_key_hash != b_segment->partition_key_hash)
		return a_segment->partition_key_hash < b_segment->partition_key_hash ? -1 : 1;
	if (a_segment->id != b_segment->id)
		return a_segment->id < b_segment->id ? -1 : 1;
	return (int)b->due - (int)a->due;
}

void index_plan_sort(struct index_candidate *candidates, size_t count)
{
	if (count)
		qsort(candidates, count, sizeof(*candidates), candidate_order);
}

size_t index_plan_partition(const struct index_candidate *candidates, size_t count)
{
	uint64_t key_hash = candidates[0].in->segment->partition_key_hash;
	size_t end = 1;

	assert(count > 0);
	while (end < count && key_hash &&
	       candidates[end].in->segment->partition_key_hash == key_hash)
		end++;
	return end;
}

/* Levels of one partition are segments with the same stacks. */
static bool is_again(const struct index_plan *plan, size_t at)
{
	return at &&
	       plan->candidates[at].in->segment->id == plan->candidates[at - 1].in->segment->id;
}

static size_t find_groups(const struct index_plan *plan, struct index_group *groups)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->candidates_count; i++) {
		const struct function_index *index = plan->candidates[i].index;
		size_t at = 0;

		if (!index || is_again(plan, i))
			continue;
		while (at < count && groups[at].index != index)
			at++;
		if (at == count)
			groups[count++] = (struct index_group){ .index = index };
		groups[at].found++;
		groups[at].slots += plan->candidates[i].in->segment->slots_count;
	}
	return count;
}

static int group_order(const void *left, const void *right)
{
	const struct index_group *a = left, *b = right;

	return (a->slots > b->slots) - (a->slots < b->slots);
}

/* Chooses the smallest groups that are complete, as long as none outweighs all before it. */
static void choose_groups(struct index_plan *plan, struct index_group *groups, size_t count,
			  uint64_t due_slots)
{
	uint64_t slots = due_slots;

	assert(groups || !count);
	if (count)
		qsort(groups, count, sizeof(*groups), group_order);
	for (size_t i = 0; i < count && groups[i].slots / 2 <= slots; i++) {
		if (groups[i].found < groups[i].index->members_count)
			continue;
		slots += groups[i].slots;
		plan->olds[plan->olds_count++] = groups[i].index;
	}
	if (slots - due_slots > due_slots && plan->olds_count + 1 < INDEX_PLAN_OLDS_MIN)
		plan->olds_count = 0;
}

bool index_plan_joins(const struct index_plan *plan, const struct function_index *index)
{
	for (size_t i = 0; i < plan->olds_count; i++)
		if (plan->olds[i] == index)
			return true;
	return false;
}

static void take_segments(struct index_plan *plan)
{
	size_t bytes = 0;

	plan->count = plan->due_count;
	for (size_t i = 0; i < plan->candidates_count; i++)
		if (plan->candidates[i].index && !is_again(plan, i) &&
		    index_plan_joins(plan, plan->candidates[i].index))
			plan->segments[plan->count++] = plan->candidates[i].in->segment;
	for (size_t i = 0; i < plan->count; i++)
		bytes += plan->segments[i]->stacks_bytes;
	if (bytes <= INDEX_PLAN_BYTES_MAX)
		return;
	plan->count = plan->due_count;
	plan->olds_count = 0;
}

bool index_plan_make(struct index_plan *plan, struct arena *arena)
{
	size_t most = plan->candidates_count, count;
	struct index_group *groups = arena_new_array(arena, struct index_group, most);
	uint64_t due_slots = 0;

	assert(plan->candidates || !plan->candidates_count);
	plan->segments = arena_new_array(arena, struct segment *, most);
	plan->olds = arena_new_array(arena, const struct function_index *, most);
	plan->count = plan->due_count = plan->olds_count = 0;
	if (!groups || !plan->segments || !plan->olds)
		return false;
	for (size_t i = 0; i < plan->candidates_count; i++) {
		if (!plan->candidates[i].due)
			continue;
		plan->segments[plan->due_count++] = plan->candidates[i].in->segment;
		due_slots += plan->candidates[i].in->segment->slots_count;
	}
	if (!plan->due_count)
		return true;
	count = find_groups(plan, groups);
	choose_groups(plan, groups, count, due_slots);
	take_segments(plan);
	return true;
}

/* A node has 8 bytes of the stacks' memory, a frame 48. Stacks of further segments are few. */
size_t index_plan_bytes(struct segment *const *segments, size_t count)
{
	size_t largest = 0, stacks = 0, slots = 0;

	for (size_t i = 0; i < count; i++) {
		stacks += segments[i]->stacks_bytes;
		slots += segments[i]->slots_count;
		if (segments[i]->stacks_bytes > largest)
			largest = segments[i]->stacks_bytes;
	}
	return largest / 2 + (stacks - largest) / 8 + (slots + largest / 16) * sizeof(uint32_t);
}
