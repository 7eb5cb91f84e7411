/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many different stacks there are. Each part and memtable has stacks of its own, and most of
 * them are in others too: a stack is known by a keyed hash of its frames' texts and places, so that
 * numbers of different dictionaries do not matter. Hashes are gathered in a list, which is sorted
 * and rid of what it has twice whenever it doubles: 16 bytes of memory per distinct stack. That two
 * of 2^27 stacks have one hash has a chance of one in a thousand, and then the count is one less.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/store_admin.h"
#include "server/persist/store_int.h"

#define LIST_MIN ((size_t)1 << 16)

struct stacks {
	uint64_t *list;
	size_t count, capacity;
	size_t distinct; /* of the list, from its start on: sorted, each once */
};

static int hash_order(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static void make_distinct(struct stacks *stacks)
{
	size_t kept = 0;

	if (stacks->count > 1)
		qsort(stacks->list, stacks->count, sizeof(*stacks->list), hash_order);
	for (size_t i = 0; i < stacks->count; i++)
		if (!kept || stacks->list[kept - 1] != stacks->list[i])
			stacks->list[kept++] = stacks->list[i];
	stacks->count = stacks->distinct = kept;
}

static void add(struct stacks *stacks, uint64_t hash)
{
	if (stacks->count >= LIST_MIN && stacks->count >= 2 * stacks->distinct)
		make_distinct(stacks);
	mem_grow(stacks->list, stacks->count, stacks->capacity);
	stacks->list[stacks->count++] = hash;
}

static uint64_t hash_text(const struct tables_view *view, uint32_t string)
{
	struct slice text = tables_text(view, string);

	return hash_bytes(text.data, text.len);
}

static uint64_t hash_frame(const struct tables_view *view, const struct frame *frame)
{
	struct frame identity = frame_identity(frame);
	uint64_t hash = hash_mix((uint64_t)identity.kind << 32 | identity.flags, identity.address);

	hash = hash_mix(hash, hash_text(view, identity.mapping_file));
	hash = hash_mix(hash, hash_text(view, identity.build_id));
	hash = hash_mix(hash, hash_text(view, identity.function));
	hash = hash_mix(hash, hash_text(view, identity.system_name));
	return hash_mix(hash_mix(hash, hash_text(view, identity.file)), identity.line);
}

/* By node; parents come before their children. */
static uint64_t *hash_nodes(const struct tables_view *view)
{
	uint64_t *frames = mem_new_array(uint64_t, view->frames_count);
	uint64_t *nodes = mem_new_array(uint64_t, view->nodes_count);

	for (uint32_t i = 0; i < view->frames_count; i++)
		frames[i] = hash_frame(view, &view->frames[i]);
	for (uint32_t i = 1; i < view->nodes_count; i++) {
		assert(view->nodes[i].parent < i);
		nodes[i] = hash_pair(nodes[view->nodes[i].parent], frames[view->nodes[i].frame]);
	}
	free(frames);
	return nodes;
}

/* In parts each slot is the end of some row; in plain tables the rows say which nodes are. */
static void add_segment(struct stacks *stacks, const struct segment *segment)
{
	const struct tables_view *view = &segment->view;
	uint64_t *nodes = hash_nodes(view);

	if (segment->ops)
		for (uint32_t slot = 0; slot < segment->slots_count; slot++)
			add(stacks, nodes[segment_node(segment, slot)]);
	else
		for (uint64_t i = 0; i < view->rows_count; i++)
			add(stacks, nodes[view->rows[i].stack]);
	free(nodes);
}

int store_count_stacks(struct store *store, uint64_t *ret, struct err *err)
{
	const struct store_query all = { .from_ns = INT64_MIN,
					 .to_ns = INT64_MAX,
					 .by_series = true };
	struct store_snapshot snapshot;
	struct stacks stacks = { 0 };
	int rc = store_snapshot(store, &all, &snapshot, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < snapshot.count; i++) {
		struct segment *segment = &snapshot.segments[i];

		if (segment_load_stacks(segment, NULL))
			continue; /* it cannot be read: stat and verify say so */
		add_segment(&stacks, segment);
		segment_drop_stacks(segment);
	}
	store_snapshot_release(store, &snapshot);
	make_distinct(&stacks);
	*ret = stacks.count;
	free(stacks.list);
	return 0;
}
