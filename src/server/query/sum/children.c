/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/children.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

#define RING_MAX 4u /* children that are walked */

void children_init(struct children *children)
{
	*children = (struct children){ 0 };
	mem_grow(children->nodes, children->count, children->capacity);
	children->nodes[children->count++] = (struct child_node){ .key = CHILDREN_NONE };
}

void children_free(struct children *children)
{
	free(children->nodes);
	idmap_free(&children->map);
	*children = (struct children){ 0 };
}

size_t children_bytes(const struct children *children)
{
	size_t slots = children->map.slots ? (size_t)children->map.mask + 1 : 0;

	return children->capacity * sizeof(*children->nodes) + slots * sizeof(uint64_t);
}

static bool is_same(const void *context, uint32_t id, const void *wanted)
{
	const struct child_node *have = &((const struct children *)context)->nodes[id];
	const struct child_node *want = wanted;

	return have->parent == want->parent && have->key == want->key;
}

static uint64_t hash_of(uint32_t parent, uint32_t key)
{
	return hash_mix(hash_mix(0, parent), key);
}

/* `length` is the ring's before, at most RING_MAX + 1 = it is long. */
static uint32_t add(struct children *children, uint32_t parent, uint32_t key, uint32_t length)
{
	uint32_t id = (uint32_t)children->count, last = children->nodes[parent].child;

	if (children->count >= CHILDREN_NONE - 1)
		return CHILDREN_NONE;
	mem_grow(children->nodes, children->count, children->capacity);
	children->count++;
	children->nodes[id] = (struct child_node){ .parent = parent, .key = key, .next = id };
	if (last) {
		children->nodes[id].next = children->nodes[last].next;
		children->nodes[last].next = id;
	}
	children->nodes[parent].child = id;
	if (length > RING_MAX) {
		idmap_add(&children->map, hash_of(parent, key), id);
		return id;
	}
	/* The ring becomes long: all of it is hashed from now on. */
	for (uint32_t at = id; length == RING_MAX;) {
		idmap_add(&children->map, hash_of(parent, children->nodes[at].key), at);
		at = children->nodes[at].next;
		if (at == id)
			break;
	}
	return id;
}

uint32_t children_of(struct children *children, uint32_t parent, uint32_t key)
{
	const struct child_node wanted = { .parent = parent, .key = key };
	uint32_t first = children->nodes[parent].child, id = first, length = 0;

	while (id && length < RING_MAX) {
		if (children->nodes[id].key == key)
			return children->nodes[parent].child = id;
		length++;
		id = children->nodes[id].next;
		if (id == first)
			return add(children, parent, key, length);
	}
	if (!id)
		return add(children, parent, key, 0);
	id = idmap_find(&children->map, hash_of(parent, key), is_same, children, &wanted);
	if (id == IDMAP_NONE)
		return add(children, parent, key, RING_MAX + 1);
	return children->nodes[parent].child = id;
}
