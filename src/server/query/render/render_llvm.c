/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_llvm - LLVM's sample profile as text (llvm/include/llvm/ProfileData/SampleProfReader.h):
 *
 *     function:total:head
 *      offset: samples
 *      offset: inlined_function:total
 *       offset: samples
 *
 * An offset is a line less the function's first line. What counts is the innermost frame of each
 * stack, within the functions that it is inlined into; names are those of the binary. Code that is
 * not native, or whose functions have no first line, is not for this compiler and left out, and so
 * is what is inlined more than SYMBOL_CHAIN_MAX deep: no compiler does that, and each line is
 * indented by its depth. How often functions were entered is not known: head is 0.
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
#include "server/resolve/resolver.h"

#define NONE UINT32_MAX
#define OFFSET_MASK 0xffffu /* as LLVM's */

/*
 * A function: by itself, or inlined into `outer` at an offset; or (with function 0) the samples of
 * an offset of `outer`.
 */
struct entry {
	uint32_t outer;
	uint32_t offset;
	uint32_t function;
	uint32_t depth;
	int64_t samples; /* total of a function */
};

struct llvm {
	const struct tree *tree;
	struct entry *entries;
	size_t count, capacity;
	struct idmap map;
};

static bool is_same(const void *context, uint32_t id, const void *key)
{
	const struct entry *a = &((const struct llvm *)context)->entries[id], *b = key;

	return a->outer == b->outer && a->offset == b->offset && a->function == b->function;
}

/* Finds or makes it, and counts. */
static uint32_t count(struct llvm *all, uint32_t outer, uint32_t offset, uint32_t function,
		      int64_t samples)
{
	struct entry wanted = { .outer = outer, .offset = offset, .function = function };
	uint64_t hash = hash_mix(hash_mix(outer, offset), function);
	uint32_t id = idmap_find(&all->map, hash, is_same, all, &wanted);

	assert(all->count <= all->capacity);
	if (id == IDMAP_NONE) {
		mem_grow(all->entries, all->count, all->capacity);
		id = (uint32_t)all->count++;
		wanted.depth = outer == NONE ? 0 : all->entries[outer].depth + 1;
		all->entries[id] = wanted;
		idmap_add(&all->map, hash, id);
	}
	all->entries[id].samples = work_add(all->entries[id].samples, samples);
	return id;
}

static bool is_compiled(const struct tree_function *function)
{
	return (function->kind == FRAME_NATIVE || function->kind == FRAME_RUST ||
		function->kind == FRAME_PYTHON_RUNTIME || function->kind == FRAME_V8_RUNTIME ||
		function->kind == FRAME_RUBY_RUNTIME || function->kind == FRAME_DOTNET_RUNTIME ||
		function->kind == FRAME_PHP_RUNTIME || function->kind == FRAME_BEAM_RUNTIME ||
		function->kind == FRAME_PERL_RUNTIME || function->kind == FRAME_LUA_RUNTIME) &&
	       function->start_line && !function->unresolved;
}

/* Where the stack ends, if the compiler can use it; else NULL. */
static const struct tree_location *leaf_of(const struct tree *tree, const struct tree_stack *stack)
{
	const struct tree_location *leaf;

	assert(stack->location_first + stack->location_count <= tree->stack_locations_count);
	if (!stack->location_count || stack->value <= 0)
		return NULL;
	leaf = &tree->locations[tree->stack_locations[stack->location_first]];
	if (leaf->line_count > SYMBOL_CHAIN_MAX)
		return NULL;
	for (uint32_t i = 0; i < leaf->line_count; i++) {
		const struct tree_line *line = &tree->lines[leaf->line_first + i];

		if (!is_compiled(&tree->functions[line->function]) || !line->line)
			return NULL;
	}
	return leaf->line_count ? leaf : NULL;
}

const char *render_llvm_refuses(const struct tree *tree)
{
	for (uint32_t i = 0; i < tree->stacks_count; i++)
		if (leaf_of(tree, &tree->stacks[i]))
			return NULL;
	return "no stack ends in compiled code whose function, first line and line are known: that "
	       "needs debug information (compile with -g, see docs/symbols.md)";
}

static void count_stack(struct llvm *all, const struct tree_stack *stack)
{
	const struct tree *tree = all->tree;
	const struct tree_location *leaf = leaf_of(tree, stack);
	uint32_t outer = NONE, offset = 0;

	if (!leaf)
		return;
	for (uint32_t i = leaf->line_count; i-- > 0;) {
		const struct tree_line *line = &tree->lines[leaf->line_first + i];

		outer = count(all, outer, offset, line->function, stack->value);
		offset = (line->line - tree->functions[line->function].start_line) & OFFSET_MASK;
	}
	count(all, outer, offset, 0, stack->value);
}

/* The largest functions first; inside of one, offsets, samples before inlined functions. */
static int entry_order(const void *a, const void *b, void *context)
{
	const struct entry *entries = context;
	uint32_t left_id = *(const uint32_t *)a, right_id = *(const uint32_t *)b;
	const struct entry *left = &entries[left_id], *right = &entries[right_id];

	if (left->outer != right->outer)
		return left->outer + 1 < right->outer + 1 ? -1 : 1; /* NONE first */
	if (left->outer == NONE && left->samples != right->samples)
		return left->samples > right->samples ? -1 : 1;
	if (!left->function != !right->function)
		return left->function ? 1 : -1;
	if (left->offset != right->offset)
		return left->offset < right->offset ? -1 : 1;
	return (left_id > right_id) - (left_id < right_id);
}

struct writing {
	const struct llvm *all;
	const uint32_t *order;	  /* entries, those of one function side by side */
	const uint32_t *first_of; /* by entry: its first part in `order` */
	struct strbuf *out;
};

static void put_name(struct strbuf *out, const struct tree_function *function)
{
	struct slice name = function->system_name.len ? function->system_name : function->name;

	size_t from = out->len;

	printable_add(out, name);
	for (size_t i = from; i < out->len; i++)
		if (out->data[i] == ' ')
			out->data[i] = '_';
}

static void put_parts(const struct writing *w, uint32_t of)
{
	const struct entry *entries = w->all->entries;

	assert(of < w->all->count);
	for (size_t i = w->first_of[of]; i < w->all->count; i++) {
		const struct entry *entry = &entries[w->order[i]];

		if (entry->outer != of)
			break;
		for (uint32_t depth = 0; depth < entry->depth; depth++)
			strbuf_add_byte(w->out, ' ');
		strbuf_addf(w->out, "%u: ", entry->offset);
		if (entry->function) {
			put_name(w->out, &w->all->tree->functions[entry->function]);
			strbuf_add_byte(w->out, ':');
		}
		strbuf_addf(w->out, "%" PRId64 "\n", entry->samples);
		if (entry->function)
			put_parts(w, w->order[i]);
	}
}

static void put_all(const struct llvm *all, struct strbuf *out)
{
	uint32_t *order = mem_new_array(uint32_t, all->count + 1);
	uint32_t *first_of = mem_new_array(uint32_t, all->count + 1);
	struct writing w = { all, order, first_of, out };

	for (size_t i = 0; i < all->count; i++)
		order[i] = (uint32_t)i;
	if (all->count)
		qsort_r(order, all->count, sizeof(*order), entry_order, all->entries);
	for (size_t i = all->count; i-- > 0;)
		if (all->entries[order[i]].outer != NONE)
			first_of[all->entries[order[i]].outer] = (uint32_t)i;
	for (size_t i = 0; i < all->count; i++) {
		const struct entry *entry = &all->entries[order[i]];

		if (entry->outer != NONE)
			break;
		put_name(out, &all->tree->functions[entry->function]);
		strbuf_addf(out, ":%" PRId64 ":0\n", entry->samples);
		put_parts(&w, order[i]);
	}
	free(order);
	free(first_of);
}

void render_llvm(const struct tree *tree, const struct render_export_for *asked, struct strbuf *out)
{
	struct llvm all = { .tree = tree };

	(void)asked;
	for (uint32_t i = 0; i < tree->stacks_count; i++)
		count_stack(&all, &tree->stacks[i]);
	put_all(&all, out);
	idmap_free(&all.map);
	free(all.entries);
}
