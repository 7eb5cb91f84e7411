/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/shape/stacks.h"

#include <assert.h>

#include "base/hash.h"

/* A run of frames from the innermost towards the root; `inner` is the run without its last frame.
 */
struct run {
	uint32_t inner; /* IDMAP_NONE: none */
	uint32_t frame;
	uint64_t before;   /* what callers say to filters that show stacks from a frame on */
	uint32_t location; /* + 1; 0 = is not known to end a location; or HIDDEN */
};

#define HIDDEN UINT32_MAX

struct detailing {
	struct work *work;
	const struct merge_trie *merge;
	struct name_table *names;
	struct filter_apply *applied;
	struct tree *tree;
	struct run *runs;
	size_t runs_count, runs_capacity;
	struct idmap map;
	uint32_t *shown; /* scratch: lines of a location, outermost first */
	size_t shown_capacity;
	size_t lines_capacity, locations_capacity, stack_locations_capacity;
	size_t lines_count, locations_count, stack_locations_count;
	struct slice *texts; /* by string id: copies that live with the tree */
	struct err *err;
};

static bool run_equal(const void *context, uint32_t id, const void *key)
{
	const struct run *a = &((const struct detailing *)context)->runs[id], *b = key;

	return a->inner == b->inner && a->frame == b->frame && a->before == b->before;
}

static uint32_t run_of(struct detailing *d, uint32_t inner, uint32_t frame, uint64_t before)
{
	struct run made = { .inner = inner, .frame = frame, .before = before };
	uint64_t hash = hash_mix(hash_mix(hash_mix(0, inner), frame), before);
	uint32_t id = idmap_find(&d->map, hash, run_equal, d, &made);

	if (id != IDMAP_NONE)
		return id;
	if (!WORK_GROW(&d->work->arena, d->runs, d->runs_count, d->runs_capacity))
		return IDMAP_NONE;
	id = (uint32_t)d->runs_count++;
	d->runs[id] = made;
	idmap_add(&d->map, hash, id);
	return id;
}

static struct slice text(struct detailing *d, uint32_t string)
{
	if (!d->texts[string].data)
		d->texts[string] =
			arena_copy(&d->tree->arena, tables_text(&d->merge->view, string));
	return d->texts[string];
}

/* Adds the lines of a frame that are shown to `shown`, outermost first. */
static bool find_lines(struct detailing *d, uint32_t frame, uint64_t *path, size_t *count)
{
	const struct name_chain *chain = name_frame(d->names, frame);

	if (!chain)
		return false;
	for (uint32_t i = chain->line_count; i > 0; i--) {
		uint32_t line = chain->line_first + i - 1;
		bool shown = true;

		if (!filter_apply_is_idle(d->applied) &&
		    !filter_apply_line(d->applied, frame, line, path, &shown))
			return false;
		if (!shown)
			continue;
		if (!WORK_GROW(&d->work->arena, d->shown, *count, d->shown_capacity))
			return false;
		d->shown[(*count)++] = line;
	}
	return true;
}

/* Innermost first. */
static bool add_lines(struct detailing *d, size_t count)
{
	while (count) {
		const struct name_line *line = &d->names->lines[d->shown[--count]];

		if (!WORK_GROW(&d->tree->arena, d->tree->lines, d->lines_count, d->lines_capacity))
			return false;
		d->tree->lines[d->lines_count++] =
			(struct tree_line){ line->function, line->line, line->column };
	}
	return true;
}

/* The location of a whole run; its last frame is the physical one. */
static bool add_location(struct detailing *d, uint32_t run)
{
	const struct frame *frame = &d->merge->view.frames[d->runs[run].frame];
	struct tree *tree = d->tree;
	struct tree_location location = {
		.line_first = (uint32_t)d->lines_count,
		.mapping = text(d, frame->mapping_file),
		.build_id = text(d, frame->build_id),
		.address = frame->address,
		.address_is_offset = !!(frame->flags & FRAME_ADDR_OFFSET),
		.kind = frame->kind < FRAME_KINDS ? (enum frame_kind)frame->kind : FRAME_UNKNOWN,
	};
	uint64_t path = d->runs[run].before;
	size_t count = 0;

	for (uint32_t at = run; at != IDMAP_NONE; at = d->runs[at].inner)
		if (!find_lines(d, d->runs[at].frame, &path, &count))
			return false;
	if (!count) {
		d->runs[run].location = HIDDEN;
		return true;
	}
	if (!add_lines(d, count))
		return false;
	location.unresolved = !name_frame(d->names, d->runs[run].frame)->resolved;
	location.line_count = (uint32_t)d->lines_count - location.line_first;
	if (!WORK_GROW(&tree->arena, tree->locations, d->locations_count, d->locations_capacity))
		return false;
	tree->locations[d->locations_count++] = location;
	d->runs[run].location = (uint32_t)d->locations_count;
	return true;
}

/*
 * True if the frame of `stack` was inlined into its caller's, at the same address. Paths of the
 * binary do not tell: each of the two frames has the one that came first with it (frame_identity).
 */
static bool goes_on(const struct tables_view *view, uint32_t stack)
{
	const struct frame *frame = &view->frames[view->nodes[stack].frame];
	uint32_t parent = view->nodes[stack].parent;
	const struct frame *caller;

	if (!(frame->flags & FRAME_INLINED) || !parent)
		return false;
	caller = &view->frames[view->nodes[parent].frame];
	return caller->address == frame->address && caller->build_id == frame->build_id;
}

/* What the callers of `stack` say, as far as it decides on what is shown of a location. */
static bool callers_say(struct detailing *d, uint32_t stack, uint64_t *ret)
{
	*ret = 0;
	if (filter_apply_is_idle(d->applied))
		return true;
	if (!filter_apply_stack(d->applied, d->merge->view.nodes[stack].parent, ret))
		return false;
	*ret &= d->applied->from;
	return true;
}

static bool add_stack_location(struct detailing *d, uint32_t run)
{
	struct tree *tree = d->tree;

	if (!d->runs[run].location && !add_location(d, run))
		return false;
	if (d->runs[run].location == HIDDEN)
		return true;
	if (d->stack_locations_count == UINT32_MAX ||
	    !WORK_GROW(&tree->arena, tree->stack_locations, d->stack_locations_count,
		       d->stack_locations_capacity))
		return false;
	tree->stack_locations[d->stack_locations_count++] = d->runs[run].location - 1;
	return true;
}

static bool add_stack(struct detailing *d, const struct merge_value *value)
{
	const struct tables_view *view = &d->merge->view;
	struct tree_stack *into = &d->tree->stacks[d->tree->stacks_count];
	uint32_t run = IDMAP_NONE;
	uint64_t say = 0;

	if (!filter_apply_is_idle(d->applied)) {
		if (!filter_apply_stack(d->applied, value->stack, &say))
			return false;
		if (!filter_apply_shows_stack(d->applied, say))
			return true;
	}
	*into = (struct tree_stack){ .location_first = (uint32_t)d->stack_locations_count,
				     .group = value->group,
				     .value = value->value };
	for (uint32_t at = value->stack; at; at = view->nodes[at].parent) {
		bool inner = goes_on(view, at);

		if (!inner && !callers_say(d, at, &say))
			return false;
		run = run_of(d, run, view->nodes[at].frame, inner ? 0 : say);
		if (run == IDMAP_NONE)
			return false;
		if (inner)
			continue;
		if (!add_stack_location(d, run))
			return false;
		run = IDMAP_NONE;
	}
	into->location_count = (uint32_t)d->stack_locations_count - into->location_first;
	d->tree->stacks_count++;
	return true;
}

int stacks_into(struct tree *tree, struct work *work, const struct merge_trie *merge,
		struct name_table *names, struct filter_apply *applied, struct err *err)
{
	struct detailing d = { .work = work,
			       .merge = merge,
			       .names = names,
			       .applied = applied,
			       .tree = tree,
			       .err = err };
	int rc = 0;

	assert(merge->values || !merge->values_count);
	d.texts = arena_new_array(&work->arena, struct slice, merge->view.strings_count);
	tree->stacks = arena_new_array(&tree->arena, struct tree_stack, merge->values_count);
	if (!d.texts || !tree->stacks)
		return work_over_budget(work, err);
	work_add_map(work, &d.map);
	for (size_t i = 0; !rc && i < merge->values_count; i++) {
		if (!add_stack(&d, &merge->values[i]) || tree->arena.over_budget)
			rc = work_over_budget(work, err);
		else
			rc = work_tick(work, 32, err);
	}
	work_drop_map(work, &d.map);
	tree->stack_locations_count = (uint32_t)d.stack_locations_count;
	tree->locations_count = (uint32_t)d.locations_count;
	tree->lines_count = (uint32_t)d.lines_count;
	return rc;
}
