/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/known_binaries.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/unwind/table_file.h"
#include "base/hash.h"
#include "base/mem.h"

static uint64_t hash_of(const struct file_key *key)
{
	return hash_bytes(key, sizeof(*key));
}

static bool key_equal(const void *context, uint32_t id, const void *key)
{
	const struct known_binaries *known = context;

	return !memcmp(&known->items[id]->key, key, sizeof(struct file_key));
}

static void free_binary(struct known_binary *binary)
{
	if (binary->fd >= 0)
		close(binary->fd);
	free(binary->path);
	free(binary->build_id);
	free(binary->cache_name);
	free(binary->reason);
	free(binary);
}

void known_binaries_free(struct known_binaries *known)
{
	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++)
		if (known->items[id])
			free_binary(known->items[id]);
	idmap_free(&known->map);
	*known = (struct known_binaries){ 0 };
}

struct known_binary *known_find(const struct known_binaries *known, const struct file_key *key,
				uint32_t *ret_id)
{
	uint32_t id = idmap_find(&known->map, hash_of(key), key_equal, known, key);

	if (id == IDMAP_NONE)
		return NULL;
	*ret_id = id;
	return known->items[id];
}

uint32_t known_add(struct known_binaries *known, const struct file_key *key)
{
	struct known_binary *binary = mem_new(struct known_binary);
	uint32_t id = known->free_hint;

	assert(known->free_hint <= UNWIND_BINARIES_MAX);
	assert(known->count < UNWIND_BINARIES_MAX);
	while (known->items[id])
		id++;
	binary->key = *key;
	binary->fd = -1;
	known->items[id] = binary;
	known->count++;
	known->free_hint = id + 1;
	idmap_add(&known->map, hash_of(key), id);
	return id;
}

static int by_last_use(const void *a, const void *b, void *context)
{
	const struct known_binaries *known = context;
	int64_t x = known_last_use_ns(known->items[*(const uint32_t *)a]);
	int64_t y = known_last_use_ns(known->items[*(const uint32_t *)b]);

	return x < y ? -1 : x > y;
}

uint32_t known_list_forgettable(const struct known_binaries *known, uint32_t *ret_ids)
{
	uint32_t count = 0;

	assert(known->count <= UNWIND_BINARIES_MAX);
	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++) {
		const struct known_binary *binary = known->items[id];

		if (binary && binary->state != UNWIND_WAITING && !known_is_vdso(binary))
			ret_ids[count++] = id;
	}
	qsort_r(ret_ids, count, sizeof(*ret_ids), by_last_use, (void *)known);
	return count;
}

void known_forget(struct known_binaries *known, const uint32_t *ids, uint32_t count)
{
	assert(count <= known->count);
	assert(ids || !count);
	for (uint32_t i = 0; i < count; i++) {
		free_binary(known->items[ids[i]]);
		known->items[ids[i]] = NULL;
	}
	known->count -= count;
	known->free_hint = 0;
	idmap_clear(&known->map);
	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++)
		if (known->items[id])
			idmap_add(&known->map, hash_of(&known->items[id]->key), id);
	known_check(known);
}

void known_check(const struct known_binaries *known)
{
	uint32_t count = 0;

	for (uint32_t id = 0; id < UNWIND_BINARIES_MAX; id++) {
		const struct known_binary *binary = known->items[id];

		assert(binary || id >= known->free_hint);
		assert(!binary || binary->fd < 0 || binary->state == UNWIND_WAITING);
		count += !!binary;
	}
	assert(count == known->count);
}

bool known_is_settled(const struct known_binary *binary, int64_t now_ns)
{
	if (binary->state == UNWIND_FAILED)
		return now_ns < binary->retry_at_ns || known_is_homeless(binary);
	return binary->state != UNWIND_EVICTED;
}

bool known_is_vdso(const struct known_binary *binary)
{
	return !memcmp(&binary->key, &FILE_KEY_VDSO, sizeof(binary->key));
}

bool known_is_homeless(const struct known_binary *binary)
{
	return binary->state == UNWIND_FAILED && binary->missing == TABLE_MISSING_NO_ROOM &&
	       binary->cache_name && binary->retry_at_ns != INT64_MAX;
}

int64_t known_last_use_ns(const struct known_binary *binary)
{
	return binary->used_at_ns > binary->settled_at_ns ? binary->used_at_ns
							  : binary->settled_at_ns;
}

void known_set_text(char **text, const char *by)
{
	free(*text);
	*text = by && by[0] ? mem_strndup(by, strlen(by)) : NULL;
}

static void copy_end(char *to, size_t room, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len >= room)
		text += len - (room - 1);
	snprintf(to, room, "%s", text ? text : "");
}

void known_describe(const struct known_binary *binary, struct unwind_binary *ret)
{
	*ret = (struct unwind_binary){
		.key = binary->key,
		.state = binary->state,
		.cached = binary->cached,
		.rows = binary->rows,
		.bytes = binary->bytes,
		.build_ns = binary->build_ns,
		.loads = binary->loads,
		.used_at_ns = binary->used_at_ns,
	};
	copy_end(ret->path, sizeof(ret->path), binary->path);
	copy_end(ret->build_id, sizeof(ret->build_id), binary->build_id);
	snprintf(ret->reason, sizeof(ret->reason), "%s", binary->reason ? binary->reason : "");
	table_file_sources(binary->sources, ret->sources);
}
