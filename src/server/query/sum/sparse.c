/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/sparse.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

void sparse_free(struct sparse *sparse)
{
	free(sparse->sums);
	idmap_free(&sparse->map);
	*sparse = (struct sparse){ 0 };
}

size_t sparse_bytes(const struct sparse *sparse)
{
	size_t slots = sparse->map.slots ? (size_t)sparse->map.mask + 1 : 0;

	return sparse->capacity * sizeof(*sparse->sums) + slots * sizeof(*sparse->map.slots);
}

static bool is_pair(const void *context, uint32_t id, const void *wanted)
{
	const struct accumulate_sum *have = (const struct accumulate_sum *)context + id;
	const struct accumulate_sum *want = wanted;

	return have->stack == want->stack && have->group == want->group;
}

bool sparse_add(struct sparse *sparse, uint32_t group, uint32_t slot, mean_wide value)
{
	const struct accumulate_sum made = { value, slot, group };
	uint64_t hash = hash_mix(hash_mix(0, group), slot);
	uint32_t id = idmap_find(&sparse->map, hash, is_pair, sparse->sums, &made);

	assert(sparse->count <= sparse->capacity);
	if (id != IDMAP_NONE) {
		sparse->sums[id].value = mean_add(sparse->sums[id].value, value);
		return true;
	}
	if (sparse->count >= IDMAP_NONE / 2)
		return false;
	mem_grow(sparse->sums, sparse->count, sparse->capacity);
	sparse->sums[sparse->count] = made;
	idmap_add(&sparse->map, hash, (uint32_t)sparse->count++);
	return true;
}

static int pair_order(const void *left, const void *right)
{
	const struct accumulate_sum *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

void sparse_sort(struct sparse *sparse)
{
	if (sparse->count)
		qsort(sparse->sums, sparse->count, sizeof(*sparse->sums), pair_order);
}
