/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/cgroup_names.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/slice.h"

static void forget(struct cgroup_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i].text);
	names->count = 0;
	idmap_clear(&names->map);
}

void cgroup_names_fini(struct cgroup_names *names)
{
	forget(names);
	free(names->items);
	idmap_free(&names->map);
	*names = (struct cgroup_names){ 0 };
}

/* True if the unified hierarchy's line ("0::/path", cgroups(7)) names more than its root. */
static bool says_something(const char *text)
{
	struct slice rest = slice_of(text);

	while (rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);

		if (slice_starts_with(line, SLICE_LITERAL("0::/")))
			return line.len > 4;
	}
	return false;
}

static bool id_equal(const void *context, uint32_t index, const void *key)
{
	const struct cgroup_names *names = context;

	return names->items[index].id == *(const uint64_t *)key;
}

static uint32_t find(const struct cgroup_names *names, uint64_t id)
{
	return idmap_find(&names->map, hash_bytes(&id, sizeof(id)), id_equal, names, &id);
}

void cgroup_names_learn(struct cgroup_names *names, uint64_t id, const char *text)
{
	if (!id || !says_something(text) || find(names, id) != IDMAP_NONE)
		return;
	if (names->count >= CGROUP_NAMES_MAX)
		forget(names);
	mem_grow(names->items, names->count, names->capacity);
	names->items[names->count] = (struct cgroup_name){ id, mem_strndup(text, strlen(text)) };
	idmap_add(&names->map, hash_bytes(&id, sizeof(id)), (uint32_t)names->count);
	names->count++;
}

const char *cgroup_names_find(const struct cgroup_names *names, uint64_t id)
{
	uint32_t index = find(names, id);

	return index == IDMAP_NONE ? NULL : names->items[index].text;
}
