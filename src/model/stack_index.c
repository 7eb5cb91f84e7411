/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In large tables every look-up misses the caches two or three times. So look-ups go in groups: the
 * first round asks for the slots of all, the next for the hashes of the candidates that these name,
 * and only then they are compared.
 */
#include "model/stack_index.h"

#include <assert.h>

#include "base/mem.h"

#define GROUP 32u /* look-ups on their way at once */

_Static_assert(IDMAP_NONE == TABLES_FULL, "what is not found has no id");

enum state { STATE_UNKNOWN, STATE_LISTED, STATE_MISSING };

static void free_kind(struct stack_index_kind *kind)
{
	for (uint32_t i = 0; i < STACK_INDEX_MAPS; i++)
		idmap_free(&kind->maps[i]);
	vmarray_free(&kind->hashes);
	*kind = (struct stack_index_kind){ 0 };
}

void stack_index_free(struct stack_index *index)
{
	free_kind(&index->frames);
	free_kind(&index->nodes);
}

static size_t kind_bytes(const struct stack_index_kind *kind)
{
	size_t slots = 0;

	for (uint32_t i = 0; i < STACK_INDEX_MAPS; i++)
		slots += kind->maps[i].slots ? (size_t)kind->maps[i].mask + 1 : 0;
	return slots * sizeof(*kind->maps[0].slots) + kind->hashes.count * sizeof(uint64_t);
}

size_t stack_index_bytes(const struct stack_index *index)
{
	return kind_bytes(&index->frames) + kind_bytes(&index->nodes);
}

/* Each has a share about a tenth larger than the one before, so that they do not grow at once. */
static uint32_t map_of(const struct hash_wide *hash)
{
	static const uint8_t maps[64] = {
		[5 ... 10] = 1,	 [11 ... 16] = 2, [17 ... 23] = 3, [24 ... 31] = 4,
		[32 ... 40] = 5, [41 ... 51] = 6, [52 ... 63] = 7,
	};

	return maps[hash->high % sizeof(maps)];
}

static bool hash_equal(const void *context, uint32_t id, const void *key)
{
	const struct stack_index_kind *kind = context;

	return ((const uint64_t *)kind->hashes.data)[id] == *(const uint64_t *)key;
}

static uint32_t find(const struct stack_index_kind *kind, const struct hash_wide *hash)
{
	return idmap_find(&kind->maps[map_of(hash)], hash->low, hash_equal, kind, &hash->high);
}

/* `id` is the next of its kind, or TABLES_FULL. */
static void add(struct stack_index_kind *kind, const struct hash_wide *hash, uint32_t id)
{
	if (id == TABLES_FULL)
		return;
	assert(id == kind->hashes.count);
	if (!kind->hashes.data)
		vmarray_init(&kind->hashes, sizeof(uint64_t), TABLES_NODES_MAX);
	*(uint64_t *)vmarray_add(&kind->hashes, 1) = hash->high;
	idmap_add(&kind->maps[map_of(hash)], hash->low, id);
}

static void prefetch(const struct stack_index_kind *kind, const struct hash_wide *hash)
{
	idmap_prefetch(&kind->maps[map_of(hash)], hash->low);
}

/* What the look-up will mostly find, with what it will be compared with on its way here. */
static uint32_t guess(const struct stack_index_kind *kind, const struct hash_wide *hash)
{
	uint32_t id = idmap_guess(&kind->maps[map_of(hash)], hash->low);

	if (id != IDMAP_NONE)
		__builtin_prefetch((const uint64_t *)kind->hashes.data + id);
	return id;
}

static uint32_t find_guessed(const struct stack_index_kind *kind, const struct hash_wide *hash,
			     uint32_t guessed)
{
	bool right = guessed == IDMAP_NONE || hash_equal(kind, guessed, &hash->high);

	return right ? guessed : find(kind, hash);
}

void stack_copier_begin(struct stack_copier *copier, struct stack_index *index,
			struct tables_copy *copy)
{
	const struct hash_wide root = { 0 };

	*copier = (struct stack_copier){ .index = index, .copy = copy };
	if (!index->nodes.hashes.count)
		add(&index->nodes, &root, 0);
	assert(index->nodes.hashes.count == copy->into->nodes.count);
	assert(index->frames.hashes.count == copy->into->frames.count);
}

void stack_copier_end(struct stack_copier *copier)
{
	free(copier->frames);
	free(copier->nodes);
	free(copier->states);
	free(copier->list);
	*copier = (struct stack_copier){ 0 };
}

static struct hash_wide texts_hash(const struct hash_wide *strings, const struct frame *from)
{
	const struct frame identity = frame_identity(from), *frame = &identity;
	struct hash_wide hash =
		hash_wide_mix(strings[frame->mapping_file], strings[frame->build_id]);

	hash = hash_wide_mix(hash, strings[frame->function]);
	hash = hash_wide_mix(hash, strings[frame->system_name]);
	return hash_wide_mix(hash, strings[frame->file]);
}

static bool same_texts(const struct frame *a, const struct frame *b)
{
	return a->mapping_file == b->mapping_file && a->build_id == b->build_id &&
	       a->function == b->function && a->system_name == b->system_name && a->file == b->file;
}

/* Texts of frames that follow each other are mostly the same: a binary without names. */
static void hash_frames(struct stack_copier *copier)
{
	const struct tables_view *from = &copier->copy->from;
	struct hash_wide *strings = mem_new_array(struct hash_wide, from->strings_count);
	struct hash_wide texts = { 0 };

	for (uint32_t i = 0; i < from->strings_count; i++) {
		struct slice text = tables_text(from, i);

		strings[i] = hash_wide_bytes(text.data, text.len);
	}
	copier->frames = mem_realloc(NULL, from->frames_count, sizeof(*copier->frames));
	for (uint32_t i = 0; i < from->frames_count; i++) {
		const struct frame *frame = &from->frames[i];

		if (!i || !same_texts(frame, frame - 1))
			texts = texts_hash(strings, frame);
		copier->frames[i] =
			hash_wide_words(hash_wide_words(texts, frame->address,
							(uint64_t)frame->flags << 32 | frame->kind),
					0, frame->line);
	}
	free(strings);
}

static void hash_nodes(struct stack_copier *copier)
{
	const struct tables_view *from = &copier->copy->from;
	struct hash_wide *nodes = mem_realloc(NULL, from->nodes_count, sizeof(*nodes));

	nodes[0] = (struct hash_wide){ 0 };
	for (uint32_t i = 1; i < from->nodes_count; i++) {
		assert(from->nodes[i].parent < i);
		nodes[i] = hash_wide_mix(nodes[from->nodes[i].parent],
					 copier->frames[from->nodes[i].frame]);
	}
	copier->nodes = nodes;
}

static void prepare(struct stack_copier *copier)
{
	uint32_t nodes = copier->copy->from.nodes_count;

	assert(copier->copy->from.nodes_count > 0);
	assert(copier->index);
	if (copier->nodes)
		return;
	hash_frames(copier);
	hash_nodes(copier);
	copier->states = mem_new_array(uint8_t, nodes);
	copier->list = mem_realloc(NULL, nodes, sizeof(*copier->list));
}

/* Puts a node on the list, unless it is there or known. Returns the new length of the list. */
static uint32_t want(struct stack_copier *copier, uint32_t id, uint32_t count)
{
	assert(id < copier->copy->from.nodes_count);
	if (copier->states[id] != STATE_UNKNOWN || copier->copy->nodes[id] != TABLES_FULL)
		return count;
	copier->states[id] = STATE_LISTED;
	copier->list[count] = id;
	return count + 1;
}

/* Looks up all nodes of the list; it then has the parents of those that are missing. */
static uint32_t look_up(struct stack_copier *copier, uint32_t count)
{
	const struct stack_index_kind *known = &copier->index->nodes;
	const struct node *nodes = copier->copy->from.nodes;
	uint32_t next = 0;

	assert(count <= copier->copy->from.nodes_count);
	for (uint32_t first = 0; first < count; first += GROUP) {
		uint32_t group[GROUP], guesses[GROUP];
		uint32_t size = count - first < GROUP ? count - first : GROUP;

		memcpy(group, copier->list + first, size * sizeof(*group));
		for (uint32_t i = 0; i < size; i++)
			prefetch(known, &copier->nodes[group[i]]);
		for (uint32_t i = 0; i < size; i++)
			guesses[i] = guess(known, &copier->nodes[group[i]]);
		for (uint32_t i = 0; i < size; i++) {
			uint32_t id = find_guessed(known, &copier->nodes[group[i]], guesses[i]);

			copier->copy->nodes[group[i]] = id;
			copier->states[group[i]] = STATE_MISSING;
			if (id == IDMAP_NONE)
				next = want(copier, nodes[group[i]].parent, next);
		}
	}
	return next;
}

/* The frame with its texts in the other tables, or TABLES_FULL. */
static uint32_t new_frame(struct tables_copy *copy, const struct frame *from)
{
	uint32_t mapping_file = tables_copy_string(copy, from->mapping_file);
	uint32_t build_id = tables_copy_string(copy, from->build_id);
	uint32_t function = tables_copy_string(copy, from->function);
	uint32_t system_name = tables_copy_string(copy, from->system_name);
	uint32_t file = tables_copy_string(copy, from->file), id;
	struct frame *made;

	if (mapping_file == TABLES_FULL || build_id == TABLES_FULL || function == TABLES_FULL ||
	    system_name == TABLES_FULL || file == TABLES_FULL)
		return TABLES_FULL;
	made = tables_new_frame(copy->into, from, &id);
	if (!made)
		return TABLES_FULL;
	made->mapping_file = mapping_file;
	made->build_id = build_id;
	made->function = function;
	made->system_name = system_name;
	made->file = file;
	return id;
}

static uint32_t copy_frame(struct stack_copier *copier, uint32_t id)
{
	struct tables_copy *copy = copier->copy;
	const struct hash_wide *hash = &copier->frames[id];
	uint32_t made;

	assert(id < copier->copy->from.frames_count);
	if (copy->frames[id] != TABLES_FULL)
		return copy->frames[id];
	made = find(&copier->index->frames, hash);
	if (made == IDMAP_NONE) {
		made = new_frame(copy, &copy->from.frames[id]);
		add(&copier->index->frames, hash, made);
	}
	copy->frames[id] = made;
	return made;
}

/* Its parent is there. Two nodes of the batch may say the same, so it is looked up once more. */
static void make_node(struct stack_copier *copier, uint32_t id)
{
	struct tables_copy *copy = copier->copy;
	const struct node *node = &copy->from.nodes[id];
	uint32_t made = find(&copier->index->nodes, &copier->nodes[id]);

	assert(id < copier->copy->from.nodes_count);
	if (made == IDMAP_NONE) {
		made = tables_add_node(copy->into, copy->nodes[node->parent],
				       copy_frame(copier, node->frame));
		add(&copier->index->nodes, &copier->nodes[id], made);
	}
	copy->nodes[id] = made;
}

static void make_group(struct stack_copier *copier, const uint32_t *ids, uint32_t count)
{
	const struct tables_copy *copy = copier->copy;
	const struct stack_index_kind *known = &copier->index->frames;

	for (uint32_t i = 0; i < count; i++) {
		prefetch(known, &copier->frames[copy->from.nodes[ids[i]].frame]);
		prefetch(&copier->index->nodes, &copier->nodes[ids[i]]);
	}
	for (uint32_t i = 0; i < count; i++)
		guess(known, &copier->frames[copy->from.nodes[ids[i]].frame]);
	for (uint32_t i = 0; i < count; i++)
		make_node(copier, ids[i]);
}

/* In the order of the batch: parents come first, and the same log makes the same tables. */
static void make_missing(struct stack_copier *copier)
{
	uint32_t group[GROUP], count = 0, nodes = copier->copy->from.nodes_count;

	for (uint32_t id = 1; id < nodes; id++) {
		if (copier->states[id] == STATE_UNKNOWN || copier->copy->nodes[id] != TABLES_FULL)
			continue;
		group[count++] = id;
		if (count < GROUP)
			continue;
		make_group(copier, group, count);
		count = 0;
	}
	make_group(copier, group, count);
}

void stack_copier_take(struct stack_copier *copier, bool (*takes)(void *context, uint32_t report),
		       void *context)
{
	const struct tables_view *from = &copier->copy->from;
	uint32_t count = 0;

	prepare(copier);
	for (uint32_t i = 0; i < from->reports_count; i++) {
		const struct row *rows = &from->rows[from->reports[i].row_first];

		if (!takes(context, i))
			continue;
		for (uint32_t j = 0; j < from->reports[i].row_count; j++)
			count = want(copier, rows[j].stack, count);
	}
	if (!count)
		return;
	while (count)
		count = look_up(copier, count);
	make_missing(copier);
}

uint32_t stack_copier_node(struct stack_copier *copier, uint32_t id)
{
	const struct tables_copy *copy = copier->copy;
	uint32_t count = 0;

	assert(id < copier->copy->from.nodes_count);
	prepare(copier);
	for (uint32_t at = id; copy->nodes[at] == TABLES_FULL; at = copy->from.nodes[at].parent) {
		copy->nodes[at] = find(&copier->index->nodes, &copier->nodes[at]);
		if (copy->nodes[at] == TABLES_FULL)
			copier->list[count++] = at;
	}
	while (count)
		make_node(copier, copier->list[--count]);
	return copy->nodes[id];
}
