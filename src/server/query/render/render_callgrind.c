/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_callgrind - callgrind's profile format
 * (https://valgrind.org/docs/manual/cl-format.html), by source line. Of a call, what counts is the
 * value that was spent in it; how often it was made is not known, and its value stands there, as go
 * tool pprof does. Readers add up a function's calls: of a recursive one only the innermost on each
 * stack is told, so that it has that stack's value once. Group-by values are left out.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"

#include "base/idmap.h"
#include "base/mem.h"
#include "base/printable.h"
#include "server/query/render/render_export.h"
#include "server/query/work.h"

/* What was spent in a line, or (with a callee) in calls from it. */
struct cost {
	uint32_t function, line;
	uint32_t callee; /* 0: none */
	int64_t value;
};

struct callgrind {
	const struct tree *tree;
	struct cost *costs;
	size_t count, capacity;
	struct idmap map;
	uint32_t *seen; /* by function: the last stack that it was on, + 1 */
};

static bool is_same(const void *context, uint32_t id, const void *key)
{
	const struct cost *a = &((const struct callgrind *)context)->costs[id], *b = key;

	return a->function == b->function && a->line == b->line && a->callee == b->callee;
}

static void add(struct callgrind *all, const struct tree_line *line, uint32_t callee, int64_t value)
{
	struct cost wanted = { .function = line->function, .line = line->line, .callee = callee };
	uint64_t hash = hash_mix(hash_mix(wanted.function, wanted.line), callee);
	uint32_t id = idmap_find(&all->map, hash, is_same, all, &wanted);

	assert(line->function < all->tree->functions_count);
	assert(all->count <= all->capacity);
	if (id == IDMAP_NONE) {
		mem_grow(all->costs, all->count, all->capacity);
		id = (uint32_t)all->count++;
		all->costs[id] = wanted;
		idmap_add(&all->map, hash, id);
	}
	all->costs[id].value = work_add(all->costs[id].value, value);
}

static void add_stack(struct callgrind *all, uint32_t number)
{
	const struct tree *tree = all->tree;
	const struct tree_stack *stack = &tree->stacks[number];
	uint32_t callee = 0;

	assert(number < all->tree->stacks_count);
	if (stack->value <= 0)
		return;
	for (uint32_t i = 0; i < stack->location_count; i++) {
		const struct tree_location *location =
			&tree->locations[tree->stack_locations[stack->location_first + i]];

		for (uint32_t at = 0; at < location->line_count; at++) {
			const struct tree_line *line = &tree->lines[location->line_first + at];

			if (all->seen[line->function] != number + 1)
				add(all, line, callee, stack->value);
			all->seen[line->function] = number + 1;
			callee = line->function;
		}
	}
}

static int cost_order(const void *a, const void *b)
{
	const struct cost *left = a, *right = b;

	if (left->function != right->function)
		return left->function < right->function ? -1 : 1;
	if (!left->callee != !right->callee)
		return left->callee ? 1 : -1;
	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	return (left->callee > right->callee) - (left->callee < right->callee);
}

/* "(1) main" would give a name a number, and "(1)" be that name. */
static bool is_numbered(struct slice text)
{
	return text.len > 1 && text.data[0] == '(' && text.data[1] >= '0' && text.data[1] <= '9';
}

static void add_text(struct strbuf *out, struct slice text, const char *otherwise)
{
	if (!text.len)
		text = slice_of(otherwise);
	if (is_numbered(text))
		strbuf_add_byte(out, '_');
	printable_add(out, text);
}

static void put_place(struct strbuf *out, const struct tree_function *function, const char *prefix)
{
	strbuf_addf(out, "%sob=", prefix);
	add_text(out, function->mapping, "???");
	strbuf_addf(out, "\n%s=", *prefix ? "cfi" : "fl");
	add_text(out, function->file, "???");
	strbuf_addf(out, "\n%sfn=", prefix);
	add_text(out, function->name, "???");
	strbuf_add_byte(out, '\n');
}

static void put_costs(const struct callgrind *all, struct strbuf *out)
{
	const struct tree_function *functions = all->tree->functions;

	for (size_t i = 0; i < all->count; i++) {
		const struct cost *cost = &all->costs[i];

		if (!i || cost->function != cost[-1].function) {
			strbuf_add_byte(out, '\n');
			put_place(out, &functions[cost->function], "");
		}
		if (cost->callee) {
			put_place(out, &functions[cost->callee], "c");
			strbuf_addf(out, "calls=%" PRId64 " %u\n", cost->value,
				    functions[cost->callee].start_line);
		}
		strbuf_addf(out, "%u %" PRId64 "\n", cost->line, cost->value);
	}
}

/* "cpu_nanoseconds": an event's name is one word. */
static void put_event(struct strbuf *out, const struct profile_type *type)
{
	size_t begun = out->len;

	strbuf_addf(out, "%.*s_%.*s", SLICE_FMT(type->sample_type), SLICE_FMT(type->sample_unit));
	for (size_t i = begun; i < out->len; i++)
		if (!((out->data[i] | 32) >= 'a' && (out->data[i] | 32) <= 'z') &&
		    !(out->data[i] >= '0' && out->data[i] <= '9'))
			out->data[i] = '_';
}

void render_callgrind(const struct tree *tree, const struct render_export_for *asked,
		      struct strbuf *out)
{
	struct callgrind all = { .tree = tree };
	int64_t total = 0;

	(void)asked;
	all.seen = mem_new_array(uint32_t, (size_t)tree->functions_count + 1);
	for (uint32_t i = 0; i < tree->stacks_count; i++)
		add_stack(&all, i);
	if (all.count)
		qsort(all.costs, all.count, sizeof(*all.costs), cost_order);
	for (size_t i = 0; i < all.count; i++)
		if (!all.costs[i].callee)
			total = work_add(total, all.costs[i].value);
	strbuf_add_text(out,
			"# callgrind format\nversion: 1\ncreator: firn " FIRN_VERSION "\ncmd: ");
	add_text(out, tree->query, "");
	strbuf_add_text(out, "\npositions: line\nevents: ");
	put_event(out, &tree->type);
	strbuf_addf(out, "\nsummary: %" PRId64 "\n", total);
	put_costs(&all, out);
	strbuf_addf(out, "\ntotals: %" PRId64 "\n", total);
	idmap_free(&all.map);
	free(all.costs);
	free(all.seen);
}
