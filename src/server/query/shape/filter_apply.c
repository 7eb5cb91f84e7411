/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/shape/filter_apply.h"

#include <assert.h>
#include <ctype.h>
#include <strings.h>

#include "base/regex.h"

#define KNOWN (1ull << 63)

/* One function of a frame's chain. */
struct place {
	const struct tree_function *function;
	struct slice mapping; /* path of the binary */
	uint64_t address;
	uint32_t line;
};

static bool is_of_stacks(const struct filter *filter)
{
	return filter->action == FILTER_SHOW_STACK || filter->action == FILTER_HIDE_STACK;
}

static bool is_path(const struct filter_condition *condition)
{
	return condition->text.len && memchr(condition->text.data, '/', condition->text.len);
}

/* A function has one base name of binaries, but any number of their paths. */
static bool is_by_line(const struct filter *filter)
{
	for (size_t i = 0; i < filter->conditions_count; i++) {
		const struct filter_condition *condition = &filter->conditions[i];

		if (condition->field == FILTER_ADDRESS || condition->field == FILTER_LINE ||
		    (condition->field == FILTER_BINARY && is_path(condition)))
			return true;
	}
	return false;
}

void filter_apply_begin(struct filter_apply *applied, struct work *work,
			const struct filter_list *filters, struct name_table *names)
{
	assert(!filters || filters->count <= FILTERS_MAX);
	*applied = (struct filter_apply){ .work = work, .names = names };
	if (!filters || !filters->count)
		return;
	applied->filters = filters;
	for (size_t i = 0; i < filters->count; i++) {
		uint64_t bit = 1ull << i;

		if (filters->list[i].action == FILTER_SHOW_FROM)
			applied->from |= bit;
		else if (filters->list[i].action == FILTER_SHOW_FRAME)
			applied->only |= bit;
		else if (filters->list[i].action == FILTER_HIDE_FRAME)
			applied->hidden |= bit;
	}
}

int filter_apply_view(struct filter_apply *applied, struct err *err)
{
	struct arena *arena = &applied->work->arena;

	applied->view = applied->names->view;
	if (filter_apply_is_idle(applied))
		return 0;
	applied->frames = arena_new_array(arena, uint64_t, applied->view->frames_count);
	applied->nodes = arena_new_array(arena, uint64_t, applied->view->nodes_count);
	if (!applied->frames || !applied->nodes)
		return work_over_budget(applied->work, err);
	applied->nodes[0] = KNOWN; /* the root: no frame, nothing to say */
	return 0;
}

static struct slice base_name(struct slice path)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;

	if (!slash)
		return path;
	return slice_from(slash + 1, (size_t)(path.data + path.len - slash - 1));
}

static struct slice text_of(const struct filter_condition *condition, const struct place *place)
{
	const struct tree_function *function = place->function;

	switch (condition->field) {
	case FILTER_SYSTEM_NAME:
		return function->system_name.len ? function->system_name : function->name;
	case FILTER_BINARY:
		return is_path(condition) ? place->mapping : base_name(place->mapping);
	case FILTER_FILE:
		return function->file;
	case FILTER_KIND:
		return slice_of(frame_kind_name(function->kind));
	default:
		return function->name;
	}
}

static bool same(const struct filter_condition *condition, const char *text)
{
	if (condition->any_case)
		return !strncasecmp(text, condition->text.data, condition->text.len);
	return !memcmp(text, condition->text.data, condition->text.len);
}

static bool contains(const struct filter_condition *condition, struct slice text)
{
	for (size_t at = 0; at + condition->text.len <= text.len; at++)
		if (same(condition, text.data + at))
			return true;
	return false;
}

/* True if the condition, taken without its negation, fits. */
static bool fits(struct work *work, const struct filter_condition *condition,
		 const struct place *place)
{
	struct slice text;

	if (condition->field == FILTER_ADDRESS)
		return place->address == condition->number;
	if (condition->field == FILTER_LINE)
		return place->line == condition->number;
	text = text_of(condition, place);
	switch (condition->op) {
	case FILTER_IS:
		return text.len == condition->text.len && (!text.len || same(condition, text.data));
	case FILTER_STARTS_WITH:
		return text.len >= condition->text.len &&
		       (!condition->text.len || same(condition, text.data));
	case FILTER_REGEX:
		work_note(work, regex_steps(condition->regex, text.len));
		return regex_matches_whole(condition->regex, text.data, text.len);
	default:
		return !condition->text.len || contains(condition, text);
	}
}

/* Filters on stacks keep negated conditions apart: every frame has to meet them. */
static uint64_t bits_of(struct work *work, const struct filter *filter, size_t number,
			const struct place *place)
{
	size_t positive = 0, matched = 0;
	bool broken = false;

	assert(number < FILTERS_MAX);
	assert(filter->conditions_count <= FILTER_CONDITIONS_MAX);
	for (size_t i = 0; i < filter->conditions_count; i++) {
		const struct filter_condition *condition = &filter->conditions[i];
		bool apart = condition->negated && is_of_stacks(filter);
		bool fit = fits(work, condition, place);

		positive += !apart;
		matched += !apart && fit != condition->negated;
		broken |= apart && fit;
	}
	return (uint64_t)(positive && matched == positive) << number |
	       (uint64_t)broken << (FILTER_APPLY_BROKEN + number);
}

static uint64_t bits_of_all(const struct filter_apply *applied, const struct place *place,
			    bool by_line)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < applied->filters->count; i++)
		if (is_by_line(&applied->filters->list[i]) == by_line)
			bits |= bits_of(applied->work, &applied->filters->list[i], i, place);
	return bits;
}

/* What a function says to filters that need no more than it. */
static bool function_bits(struct filter_apply *applied, uint32_t function, uint64_t *ret)
{
	struct place place = { .function = &applied->names->functions[function] };

	assert(function < applied->names->functions_count);
	place.mapping = place.function->mapping;
	while (applied->functions_capacity <= function) {
		size_t count = applied->functions_capacity;

		applied->functions = work_grown(&applied->work->arena, applied->functions,
						sizeof(*applied->functions), count,
						&applied->functions_capacity);
		if (!applied->functions)
			return false;
	}
	if (!(applied->functions[function] & KNOWN))
		applied->functions[function] = bits_of_all(applied, &place, false) | KNOWN;
	*ret = applied->functions[function] & ~KNOWN;
	return true;
}

static bool line_bits(struct filter_apply *applied, uint32_t frame, uint32_t line, uint64_t *ret)
{
	const struct name_line *at = &applied->names->lines[line];
	const struct frame *of = &applied->view->frames[frame];
	struct place place = { .function = &applied->names->functions[at->function],
			       .mapping = tables_text(applied->view, of->mapping_file),
			       .address = of->address,
			       .line = at->line };

	assert(frame < applied->view->frames_count);
	if (!function_bits(applied, at->function, ret))
		return false;
	*ret |= bits_of_all(applied, &place, true);
	return true;
}

static bool frame_bits(struct filter_apply *applied, uint32_t frame, uint64_t *ret)
{
	const struct name_chain *chain;
	uint64_t bits = KNOWN;

	assert(frame < applied->view->frames_count);
	if (!(applied->frames[frame] & KNOWN)) {
		chain = name_frame(applied->names, frame);
		if (!chain)
			return false;
		for (uint32_t i = 0; i < chain->line_count; i++) {
			uint64_t line;

			if (!line_bits(applied, frame, chain->line_first + i, &line))
				return false;
			bits |= line;
		}
		applied->frames[frame] = bits;
	}
	*ret = applied->frames[frame];
	return true;
}

bool filter_apply_stack(struct filter_apply *applied, uint32_t stack, uint64_t *ret)
{
	const struct node *nodes = applied->view->nodes;
	size_t trail = 0;

	assert(stack < applied->view->nodes_count);
	for (; !(applied->nodes[stack] & KNOWN); stack = nodes[stack].parent) {
		if (!WORK_GROW(&applied->work->arena, applied->trail, trail,
			       applied->trail_capacity))
			return false;
		applied->trail[trail++] = stack;
	}
	*ret = applied->nodes[stack];
	while (trail) {
		uint64_t frame;

		stack = applied->trail[--trail];
		if (!frame_bits(applied, nodes[stack].frame, &frame))
			return false;
		*ret |= frame;
		applied->nodes[stack] = *ret;
	}
	*ret &= ~KNOWN;
	return true;
}

static bool meets(const struct filter *filter, size_t number, uint64_t bits)
{
	bool positive = false;

	for (size_t i = 0; i < filter->conditions_count; i++)
		positive |= !filter->conditions[i].negated;
	return (!positive || bits >> number & 1) && !(bits >> (FILTER_APPLY_BROKEN + number) & 1);
}

bool filter_apply_shows_stack(const struct filter_apply *applied, uint64_t bits)
{
	if ((bits & applied->from) != applied->from)
		return false;
	for (size_t i = 0; i < applied->filters->count; i++) {
		const struct filter *filter = &applied->filters->list[i];

		if (filter->action == FILTER_SHOW_STACK && !meets(filter, i, bits))
			return false;
		if (filter->action == FILTER_HIDE_STACK && meets(filter, i, bits))
			return false;
	}
	return true;
}

bool filter_apply_line(struct filter_apply *applied, uint32_t frame, uint32_t line, uint64_t *path,
		       bool *ret)
{
	uint64_t bits;

	assert(frame < applied->view->frames_count);
	if (!line_bits(applied, frame, line, &bits))
		return false;
	*path |= bits;
	*ret = (*path & applied->from) == applied->from && !(bits & applied->hidden) &&
	       (bits & applied->only) == applied->only;
	return true;
}
