/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/dense_sums.h"

#include <assert.h>

#include "base/mem.h"

/* The counters of one group, all pieces together: one kind of them. */
struct dense_sum {
	const uint32_t *ones;
	const int64_t *plain;
	const mean_wide *wide;
};

static bool is_empty(const struct dense_sum *sum)
{
	return !sum->ones && !sum->plain && !sum->wide;
}

static mean_wide counted(const struct dense_sum *sum, uint32_t slot)
{
	if (sum->ones)
		return sum->ones[slot];
	return sum->plain ? sum->plain[slot] : sum->wide[slot];
}

static void add_to_wide(mean_wide *total, const struct dense_sums_counters *counters,
			uint32_t group)
{
	uint32_t count = counters->slots_count;

	for (uint32_t i = 0; counters->ones[group] && i < count; i++)
		total[i] = mean_add(total[i], counters->ones[group][i]);
	for (uint32_t i = 0; counters->plain[group] && i < count; i++)
		total[i] = mean_add(total[i], counters->plain[group][i]);
	for (uint32_t i = 0; counters->wide[group] && i < count; i++)
		total[i] = mean_add(total[i], counters->wide[group][i]);
}

static size_t kinds_of(const struct dense_sum *sum)
{
	return (sum->ones != NULL) + (sum->plain != NULL) + (sum->wide != NULL);
}

/* False when over budget. */
static bool dense_sums_of(const struct dense_sums_piece *pieces, size_t count, uint32_t group,
			  struct arena *scratch, struct dense_sum *ret)
{
	struct dense_sum found = { 0 };
	mean_wide *total;
	size_t kinds = 0;

	for (size_t i = 0; i < count; i++) {
		const struct dense_sums_counters *counters = &pieces[i].counters;
		struct dense_sum sum;

		if (group >= counters->groups_capacity)
			continue;
		sum = (struct dense_sum){ counters->ones[group], counters->plain[group],
					  counters->wide[group] };
		kinds += kinds_of(&sum);
		if (kinds_of(&sum))
			found = sum;
	}
	*ret = found;
	if (kinds < 2)
		return true;
	total = arena_new_array(scratch, mean_wide, pieces[0].counters.slots_count);
	for (size_t i = 0; total && i < count; i++)
		if (group < pieces[i].counters.groups_capacity)
			add_to_wide(total, &pieces[i].counters, group);
	*ret = (struct dense_sum){ .wide = total };
	return total;
}

/* Adds what is not zero to `ret`, which has room. */
static void take_sums(const struct dense_sum *sum, uint32_t slots_count, uint32_t group,
		      int64_t weight, struct accumulate_sums *ret)
{
	for (uint32_t slot = 0; !is_empty(sum) && slot < slots_count; slot++) {
		mean_wide value = counted(sum, slot);

		if (value)
			ret->list[ret->count++] =
				(struct accumulate_sum){ value * weight, slot, group };
	}
}

static size_t count_sums(const struct dense_sum *sum, uint32_t slots_count)
{
	size_t count = 0;

	for (uint32_t i = 0; sum->ones && i < slots_count; i++)
		count += sum->ones[i] != 0;
	for (uint32_t i = 0; sum->plain && i < slots_count; i++)
		count += sum->plain[i] != 0;
	for (uint32_t i = 0; sum->wide && i < slots_count; i++)
		count += sum->wide[i] != 0;
	return count;
}

/* All that is not zero, in `into`; what is only needed on the way in `scratch`. */
static bool gather_sums(const struct dense_sums_piece *pieces, size_t pieces_count, int64_t weight,
			struct arena *scratch, struct arena *into, struct accumulate_sums *ret)
{
	uint32_t groups_count = 0, slots_count = pieces[0].counters.slots_count;
	struct dense_sum *group_sums;
	size_t count = 0;

	assert(pieces_count > 0);
	for (size_t i = 0; i < pieces_count; i++) {
		const struct dense_sums_piece *piece = &pieces[i];

		ret->rows += piece->rows;
		if (piece->counters.groups_capacity > groups_count)
			groups_count = (uint32_t)piece->counters.groups_capacity;
	}
	group_sums = arena_new_array(scratch, struct dense_sum, groups_count);
	for (uint32_t group = 0; group < groups_count; group++) {
		if (!group_sums ||
		    !dense_sums_of(pieces, pieces_count, group, scratch, &group_sums[group]))
			return false;
		count += count_sums(&group_sums[group], slots_count);
	}
	ret->list = arena_new_array(into, struct accumulate_sum, count);
	if (!ret->list)
		return false;
	mem_prefer_huge_pages(ret->list, count * sizeof(*ret->list));
	for (uint32_t group = 0; group < groups_count; group++)
		take_sums(&group_sums[group], slots_count, group, weight, ret);
	return true;
}

static void add_dense_sum(struct sparse *sparse, const struct dense_sum *sum, uint32_t group,
			  uint32_t slots_count, bool *ret_full)
{
	for (uint32_t slot = 0; !is_empty(sum) && slot < slots_count; slot++) {
		mean_wide value = counted(sum, slot);

		if (value && !sparse_add(sparse, group, slot, value))
			*ret_full = true;
	}
}

/* All pieces' sums in the first one's sparse counters; false when there are too many. */
static bool join_pieces(struct dense_sums_piece *pieces, size_t pieces_count, uint32_t slots_count)
{
	struct sparse *into = &pieces[0].sparse;
	bool full = false;

	assert(pieces_count > 0);
	for (size_t i = 0; i < pieces_count; i++) {
		const struct dense_sums_counters *counters = &pieces[i].counters;

		for (size_t j = 0; i && j < pieces[i].sparse.count; j++) {
			const struct accumulate_sum *sum = &pieces[i].sparse.sums[j];

			full |= !sparse_add(into, sum->group, sum->stack, sum->value);
		}
		for (uint32_t group = 0; group < counters->groups_capacity; group++) {
			const struct dense_sum kinds[] = { { .ones = counters->ones[group] },
							   { .plain = counters->plain[group] },
							   { .wide = counters->wide[group] } };

			for (size_t kind = 0; kind < 3; kind++)
				add_dense_sum(into, &kinds[kind], group, slots_count, &full);
		}
	}
	return !full;
}

/* The same where some piece is sparse. */
static bool gather_sparse(struct dense_sums_piece *pieces, size_t pieces_count, int64_t weight,
			  struct arena *into, struct accumulate_sums *ret)
{
	struct sparse *sparse = &pieces[0].sparse;

	assert(pieces_count > 0);
	if (join_pieces(pieces, pieces_count, pieces[0].counters.slots_count))
		ret->list = arena_new_array(into, struct accumulate_sum, sparse->count);
	if (!ret->list)
		return false;
	sparse_sort(sparse);
	for (size_t i = 0; i < sparse->count; i++) {
		struct accumulate_sum sum = sparse->sums[i];

		sum.value *= weight;
		if (sum.value)
			ret->list[ret->count++] = sum;
	}
	for (size_t i = 0; i < pieces_count; i++)
		ret->rows += pieces[i].rows;
	return true;
}

bool dense_sums_collect(struct dense_sums_piece *pieces, size_t pieces_count, int64_t weight,
			size_t limit_bytes, struct arena *into, struct accumulate_sums *ret)
{
	struct arena scratch;
	bool fits;

	assert(pieces_count > 0);
	for (size_t i = 0; i < pieces_count; i++)
		if (pieces[i].is_sparse)
			return gather_sparse(pieces, pieces_count, weight, into, ret);
	arena_init(&scratch, limit_bytes);
	fits = gather_sums(pieces, pieces_count, weight, &scratch, into, ret);
	arena_free(&scratch);
	return fits;
}

void dense_sums_drop(struct dense_sums_piece *piece)
{
	arena_free(&piece->counters.arena);
	sparse_free(&piece->sparse);
	piece->counters = (struct dense_sums_counters){ 0 };
	piece->rows = 0;
	piece->overflowed = false;
	piece->too_many = false;
}

size_t dense_sums_bytes(const struct dense_sums_piece *piece)
{
	return piece->counters.arena.used_bytes + sparse_bytes(&piece->sparse);
}
