/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/select/groups.h"

#include <assert.h>

#include "base/hash.h"

void groups_init(struct groups *groups, struct work *work, size_t names_count)
{
	*groups = (struct groups){ .arena = &work->arena, .names_count = names_count };
	work_add_map(work, &groups->map);
}

void groups_clear(struct groups *groups)
{
	idmap_clear(&groups->map);
	groups->count = 0;
}

static bool tuple_equal(const void *context, uint32_t id, const void *key)
{
	const struct groups *groups = context;
	const struct groups_tuple *a = &groups->list[id], *b = key;

	if (a->from_rows != b->from_rows || a->series != b->series)
		return false;
	for (size_t i = 0; i < groups->names_count; i++)
		if (!slice_equal(a->values[i], b->values[i]))
			return false;
	return true;
}

uint32_t groups_intern(struct groups *groups, const struct groups_tuple *tuple)
{
	uint64_t hash = hash_mix(tuple->from_rows, tuple->series);
	uint32_t id;

	assert(groups->names_count <= QUERY_GROUP_BY_MAX);
	assert(groups->count <= groups->capacity);
	for (size_t i = 0; i < groups->names_count; i++)
		hash = hash_mix(hash, hash_bytes(tuple->values[i].data, tuple->values[i].len));
	id = idmap_find(&groups->map, hash, tuple_equal, groups, tuple);
	if (id != IDMAP_NONE)
		return id;
	if (!WORK_GROW(groups->arena, groups->list, groups->count, groups->capacity))
		return IDMAP_NONE;
	id = (uint32_t)groups->count;
	groups->list[groups->count++] = *tuple;
	idmap_add(&groups->map, hash, id);
	return id;
}
