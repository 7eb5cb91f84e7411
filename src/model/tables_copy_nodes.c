/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying many stacks at once (tables.h). In large tables every look-up misses the caches two or
 * three times, one miss after the other. So look-ups go in groups: the first round asks for the
 * slots of all, the next for the candidates that these name, and only then they are compared. Nodes
 * go level by level, as a node needs the id of its parent.
 */
#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/tables_int.h"

#define GROUP 32u /* look-ups on their way at once */

struct lookups {
	uint64_t hashes[GROUP];
	uint32_t ids[GROUP];	 /* in `from` */
	uint32_t guesses[GROUP]; /* in `into`, or IDMAP_NONE; mostly right */
	uint32_t count;
};

/* Asks for the objects that the map names. */
static void fetch_candidates(const struct idmap *map, struct lookups *group,
			     const struct vmarray *array)
{
	for (uint32_t i = 0; i < group->count; i++) {
		group->guesses[i] = idmap_guess(map, group->hashes[i]);
		if (group->guesses[i] != IDMAP_NONE)
			__builtin_prefetch((const char *)array->data +
					   group->guesses[i] * array->element_bytes);
	}
}

static void flush_strings(struct tables_copy *copy, struct lookups *group)
{
	const struct tables *into = copy->into;
	const struct string_ref *refs = into->strings.data;

	fetch_candidates(&into->string_map, group, &into->strings);
	for (uint32_t i = 0; i < group->count; i++)
		if (group->guesses[i] != IDMAP_NONE)
			__builtin_prefetch((const char *)into->string_bytes.data +
					   refs[group->guesses[i]].offset);
	for (uint32_t i = 0; i < group->count; i++)
		tables_copy_string(copy, group->ids[i]);
	group->count = 0;
}

static void add_string(struct tables_copy *copy, struct lookups *group, uint32_t id)
{
	struct slice text;

	if (copy->strings[id] != TABLES_FULL)
		return;
	text = tables_text(&copy->from, id);
	group->hashes[group->count] = hash_bytes(text.data, text.len);
	group->ids[group->count] = id;
	idmap_prefetch(&copy->into->string_map, group->hashes[group->count]);
	if (++group->count == GROUP)
		flush_strings(copy, group);
}

static void copy_strings(struct tables_copy *copy, const uint8_t *frames)
{
	struct lookups group = { .count = 0 };

	for (uint32_t i = 0; i < copy->from.frames_count; i++) {
		const struct frame *frame = &copy->from.frames[i];

		if (!frames[i])
			continue;
		add_string(copy, &group, frame->mapping_file);
		add_string(copy, &group, frame->build_id);
		add_string(copy, &group, frame->function);
		add_string(copy, &group, frame->system_name);
		add_string(copy, &group, frame->file);
	}
	flush_strings(copy, &group);
}

static void flush_frames(struct tables_copy *copy, struct lookups *group,
			 const struct frame *frames)
{
	const struct frame *known = copy->into->frames.data;

	fetch_candidates(&copy->into->frame_map, group, &copy->into->frames);
	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t guess = group->guesses[i];
		bool right =
			guess != IDMAP_NONE && !memcmp(&known[guess], &frames[i], sizeof(*known));

		copy->frames[group->ids[i]] = right ? guess : tables_frame(copy->into, &frames[i]);
	}
	group->count = 0;
}

static void copy_frames(struct tables_copy *copy, const uint8_t *wanted)
{
	struct lookups group = { .count = 0 };
	struct frame frames[GROUP];

	for (uint32_t i = 0; i < copy->from.frames_count; i++) {
		struct frame *frame = &frames[group.count];

		if (!wanted[i] || copy->frames[i] != TABLES_FULL)
			continue;
		*frame = copy->from.frames[i];
		frame->mapping_file = copy->strings[frame->mapping_file];
		frame->build_id = copy->strings[frame->build_id];
		frame->function = copy->strings[frame->function];
		frame->system_name = copy->strings[frame->system_name];
		frame->file = copy->strings[frame->file];
		group.hashes[group.count] = tables_hash_frame(frame);
		group.ids[group.count] = i;
		idmap_prefetch(&copy->into->frame_map, group.hashes[group.count]);
		if (++group.count == GROUP)
			flush_frames(copy, &group, frames);
	}
	flush_frames(copy, &group, frames);
}

static void flush_nodes(struct tables_copy *copy, struct lookups *group, const struct node *nodes)
{
	const struct node *known = copy->into->nodes.data;

	fetch_candidates(&copy->into->node_map, group, &copy->into->nodes);
	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t guess = group->guesses[i];
		bool right = guess != IDMAP_NONE && known[guess].parent == nodes[i].parent &&
			     known[guess].frame == nodes[i].frame;

		copy->nodes[group->ids[i]] =
			right ? guess : tables_node(copy->into, nodes[i].parent, nodes[i].frame);
	}
	group->count = 0;
}

/* Nodes of one level. */
static void copy_level(struct tables_copy *copy, const uint32_t *ids, uint32_t count)
{
	struct lookups group = { .count = 0 };
	struct node nodes[GROUP];

	for (uint32_t i = 0; i < count; i++) {
		struct node *node = &nodes[group.count];

		if (copy->nodes[ids[i]] != TABLES_FULL)
			continue;
		*node = copy->from.nodes[ids[i]];
		node->parent = copy->nodes[node->parent];
		node->frame = copy->frames[node->frame];
		group.hashes[group.count] = tables_hash_node(node);
		group.ids[group.count] = ids[i];
		idmap_prefetch(&copy->into->node_map, group.hashes[group.count]);
		if (++group.count == GROUP)
			flush_nodes(copy, &group, nodes);
	}
	flush_nodes(copy, &group, nodes);
}

/* Orders the wanted nodes by their depth, and copies them. */
static void copy_levels(struct tables_copy *copy, const uint8_t *wanted)
{
	const struct tables_view *from = &copy->from;
	uint32_t *depths = mem_new_array(uint32_t, from->nodes_count);
	uint32_t *order = mem_new_array(uint32_t, from->nodes_count);
	uint32_t *ends, deepest = 0, first = 0;

	for (uint32_t i = 1; i < from->nodes_count; i++) {
		depths[i] = depths[from->nodes[i].parent] + 1;
		deepest = depths[i] > deepest ? depths[i] : deepest;
	}
	ends = mem_new_array(uint32_t, deepest + (size_t)2);
	for (uint32_t i = 1; i < from->nodes_count; i++)
		ends[depths[i] + 1] += wanted[i];
	for (uint32_t depth = 1; depth <= deepest + 1; depth++)
		ends[depth] += ends[depth - 1];
	for (uint32_t i = 1; i < from->nodes_count; i++)
		if (wanted[i])
			order[ends[depths[i]]++] = i;
	for (uint32_t depth = 1; depth <= deepest; depth++) {
		copy_level(copy, order + first, ends[depth] - first);
		first = ends[depth];
	}
	free(depths);
	free(order);
	free(ends);
}

void tables_copy_nodes(struct tables_copy *copy, bool (*takes)(void *context, uint32_t report),
		       void *context)
{
	const struct tables_view *from = &copy->from;
	uint8_t *wanted = mem_new_array(uint8_t, from->nodes_count);
	uint8_t *frames = mem_new_array(uint8_t, from->frames_count + (size_t)1);

	for (uint32_t i = 0; i < from->reports_count; i++) {
		const struct row *rows = &from->rows[from->reports[i].row_first];

		for (uint32_t j = 0; takes(context, i) && j < from->reports[i].row_count; j++)
			wanted[rows[j].stack] = 1;
	}
	for (uint32_t i = from->nodes_count - 1; i; i--) {
		if (!wanted[i])
			continue;
		assert(from->nodes[i].parent < i);
		wanted[from->nodes[i].parent] = 1;
		frames[from->nodes[i].frame] = 1;
	}
	copy_strings(copy, frames);
	copy_frames(copy, frames);
	copy_levels(copy, wanted);
	free(wanted);
	free(frames);
}
