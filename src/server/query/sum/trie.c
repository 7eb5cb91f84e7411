/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/sum/trie.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

#define NONE UINT32_MAX

/* Adding one view: its ids as the trie's, NONE until known. */
struct adding {
	struct trie *trie;
	const struct tables_view *view;
	uint32_t *strings, *frames, *nodes;
	uint32_t string_last, frame_last; /* of the trie; what follows is likely to be next */
};

void trie_init(struct trie *trie)
{
	*trie = (struct trie){ 0 };
	mem_grow(trie->strings, trie->strings_count, trie->strings_capacity);
	children_init(&trie->nodes);
	trie->string_bytes = mem_new_array(char, 1);
	trie->strings[trie->strings_count++] = (struct string_ref){ 0 };
}

void trie_free(struct trie *trie)
{
	free(trie->string_bytes);
	free(trie->strings);
	free(trie->frames);
	free(trie->plain);
	children_free(&trie->nodes);
	idmap_free(&trie->string_map);
	idmap_free(&trie->frame_map);
	*trie = (struct trie){ 0 };
}

static size_t map_bytes(const struct idmap *map)
{
	return map->slots ? ((size_t)map->mask + 1) * sizeof(*map->slots) : 0;
}

size_t trie_bytes(const struct trie *trie)
{
	return trie->string_bytes_capacity + trie->strings_capacity * sizeof(*trie->strings) +
	       trie->frames_capacity * sizeof(*trie->frames) + children_bytes(&trie->nodes) +
	       trie->plain_count * sizeof(*trie->plain) + map_bytes(&trie->string_map) +
	       map_bytes(&trie->frame_map);
}

static bool string_is(const struct trie *trie, uint32_t id, struct slice text)
{
	const struct string_ref *have = &trie->strings[id];

	return have->len == text.len &&
	       !memcmp(trie->string_bytes + have->offset, text.data, text.len);
}

static bool string_same(const void *context, uint32_t id, const void *key)
{
	return string_is(context, id, *(const struct slice *)key);
}

static uint32_t new_string(struct trie *trie, struct slice text)
{
	while (trie->string_bytes_capacity - trie->string_bytes_count < text.len) {
		size_t capacity = 2 * trie->string_bytes_capacity + 4096;

		trie->string_bytes = mem_realloc(trie->string_bytes, capacity, 1);
		trie->string_bytes_capacity = capacity;
	}
	memcpy(trie->string_bytes + trie->string_bytes_count, text.data, text.len);
	mem_grow(trie->strings, trie->strings_count, trie->strings_capacity);
	trie->strings[trie->strings_count] =
		(struct string_ref){ trie->string_bytes_count, (uint32_t)text.len };
	trie->string_bytes_count += text.len;
	return (uint32_t)trie->strings_count++;
}

static uint32_t add_string(struct adding *a, uint32_t id)
{
	struct trie *trie = a->trie;
	struct slice text = tables_text(a->view, id);
	uint32_t target = a->string_last + 1;
	uint64_t hash;

	if (!text.len)
		return 0;
	if (target < trie->strings_count && string_is(trie, target, text))
		return a->string_last = target;
	hash = hash_bytes(text.data, text.len);
	target = idmap_find(&trie->string_map, hash, string_same, trie, &text);
	if (target == IDMAP_NONE) {
		target = new_string(trie, text);
		idmap_add(&trie->string_map, hash, target);
	}
	return a->string_last = target;
}

static uint32_t string_of(struct adding *a, uint32_t id)
{
	if (a->strings[id] == NONE)
		a->strings[id] = add_string(a, id);
	return a->strings[id];
}

static bool frame_is(const struct frame *a, const struct frame *b)
{
	struct frame left = frame_identity(a), right = frame_identity(b);

	return !memcmp(&left, &right, sizeof(left));
}

static bool frame_same(const void *context, uint32_t id, const void *key)
{
	return frame_is(&((const struct trie *)context)->frames[id], key);
}

static uint64_t frame_hash(const struct frame *from)
{
	const struct frame identity = frame_identity(from), *frame = &identity;
	uint64_t hash = hash_mix((uint64_t)frame->kind << 32 | frame->flags, frame->address);

	hash = hash_mix(hash, (uint64_t)frame->mapping_file << 32 | frame->build_id);
	hash = hash_mix(hash, (uint64_t)frame->function << 32 | frame->system_name);
	return hash_mix(hash, (uint64_t)frame->file << 32 | frame->line);
}

static uint32_t add_frame(struct adding *a, uint32_t id)
{
	struct trie *trie = a->trie;
	struct frame frame = a->view->frames[id];
	uint32_t target = a->frame_last + 1;
	uint64_t hash;

	frame.mapping_file = string_of(a, frame.mapping_file);
	frame.build_id = string_of(a, frame.build_id);
	frame.function = string_of(a, frame.function);
	frame.system_name = string_of(a, frame.system_name);
	frame.file = string_of(a, frame.file);
	if (target < trie->frames_count && frame_is(&trie->frames[target], &frame))
		return a->frame_last = target;
	hash = frame_hash(&frame);
	target = idmap_find(&trie->frame_map, hash, frame_same, trie, &frame);
	if (target == IDMAP_NONE) {
		mem_grow(trie->frames, trie->frames_count, trie->frames_capacity);
		target = (uint32_t)trie->frames_count++;
		trie->frames[target] = frame;
		idmap_add(&trie->frame_map, hash, target);
	}
	return a->frame_last = target;
}

static uint32_t frame_of(struct adding *a, uint32_t id)
{
	if (a->frames[id] == NONE)
		a->frames[id] = add_frame(a, id);
	return a->frames[id];
}

/* Marks the stacks with sums and all their callers: 0 instead of NONE. */
static void mark_nodes(struct adding *a, const struct accumulate_sum *sums, size_t count)
{
	assert(a->view->nodes_count > 0);
	for (size_t i = 0; i < count; i++)
		a->nodes[sums[i].stack] = 0;
	for (uint32_t i = a->view->nodes_count; i-- > 1;)
		if (!a->nodes[i])
			a->nodes[a->view->nodes[i].parent] = 0;
}

/* Parents come before their children, in the view as in the trie. */
static int add_nodes(struct adding *a, struct work *work, struct err *err)
{
	const struct node *nodes = a->view->nodes;
	size_t other_bytes = work->other_bytes, before = trie_bytes(a->trie);
	int rc = 0;

	assert(a->trie->nodes.count >= 1);
	a->nodes[0] = 0;
	for (uint32_t i = 1; !rc && i < a->view->nodes_count; i++) {
		if (a->nodes[i] == NONE)
			continue;
		a->nodes[i] = children_of(&a->trie->nodes, a->nodes[nodes[i].parent],
					  frame_of(a, nodes[i].frame));
		if (i % WORK_TICKS_PER_CHECK)
			continue;
		work->other_bytes = other_bytes + trie_bytes(a->trie) - before;
		rc = work_check(work, err);
	}
	work->other_bytes = other_bytes + trie_bytes(a->trie) - before;
	return rc;
}

static uint32_t *new_ids(uint32_t count)
{
	uint32_t *ids = mem_realloc(NULL, (size_t)count + 1, sizeof(*ids));

	memset(ids, 0xff, (size_t)count * sizeof(*ids));
	return ids;
}

int trie_add(struct trie *trie, struct work *work, const struct tables_view *view,
	     struct accumulate_sum *sums, size_t count, struct err *err)
{
	struct adding a = { .trie = trie, .view = view, .frame_last = NONE };
	int rc;

	assert(trie->nodes.count >= 1);
	assert(sums || !count);
	assert(!trie->plain);
	if (!count)
		return 0;
	if (trie->nodes.count + view->nodes_count >= NONE)
		return work_over_budget(work, err);
	a.strings = new_ids(view->strings_count);
	a.frames = new_ids(view->frames_count);
	a.nodes = new_ids(view->nodes_count);
	mark_nodes(&a, sums, count);
	rc = add_nodes(&a, work, err);
	for (size_t i = 0; !rc && i < count; i++)
		sums[i].stack = a.nodes[sums[i].stack];
	free(a.strings);
	free(a.frames);
	free(a.nodes);
	return rc;
}

/* Where the children are, which take twice the room. */
static void flatten(struct trie *trie)
{
	char *bytes = (char *)trie->nodes.nodes;

	assert(!trie->plain && trie->nodes.count >= 1);
	for (size_t i = 0; i < trie->nodes.count; i++) {
		struct child_node from = trie->nodes.nodes[i];
		struct node node = { from.parent, from.key };

		memcpy(bytes + i * sizeof(node), &node, sizeof(node));
	}
	trie->plain_count = trie->nodes.count;
	trie->plain = mem_realloc(bytes, trie->plain_count, sizeof(*trie->plain));
	trie->nodes.nodes = NULL;
	children_free(&trie->nodes);
}

static void *cut(void *array, size_t count, size_t element_bytes, size_t *ret_capacity)
{
	*ret_capacity = count;
	return mem_realloc(array, count, element_bytes);
}

void trie_check(const struct trie *trie)
{
	assert(trie->strings_count >= 1 && trie->strings_count <= trie->strings_capacity);
	assert(trie->string_bytes_count <= trie->string_bytes_capacity);
	assert(trie->frames_count <= trie->frames_capacity);
	assert(trie->nodes.count >= 1 && trie->nodes.count <= trie->nodes.capacity);
	for (size_t i = 1; i < trie->nodes.count; i++) {
		assert(trie->nodes.nodes[i].parent < i);
		assert(trie->nodes.nodes[i].key < trie->frames_count);
	}
}

void trie_finish(struct trie *trie, struct tables_view *ret)
{
	trie_check(trie);
	flatten(trie);
	idmap_free(&trie->string_map);
	idmap_free(&trie->frame_map);
	trie->string_bytes =
		cut(trie->string_bytes, trie->string_bytes_count, 1, &trie->string_bytes_capacity);
	trie->strings = cut(trie->strings, trie->strings_count, sizeof(*trie->strings),
			    &trie->strings_capacity);
	trie->frames = cut(trie->frames, trie->frames_count, sizeof(*trie->frames),
			   &trie->frames_capacity);
	*ret = (struct tables_view){
		.string_bytes = trie->string_bytes,
		.strings = trie->strings,
		.frames = trie->frames,
		.nodes = trie->plain,
		.string_bytes_count = trie->string_bytes_count,
		.strings_count = (uint32_t)trie->strings_count,
		.frames_count = (uint32_t)trie->frames_count,
		.nodes_count = (uint32_t)trie->plain_count,
	};
}

void trie_drop_nodes(struct trie *trie)
{
	free(trie->plain);
	trie->plain = NULL;
	trie->plain_count = 0;
}
