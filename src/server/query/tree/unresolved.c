/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/tree/unresolved.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"

static const char *const codes[UNRESOLVED_REASONS] = {
	[UNRESOLVED_NO_FILE] = "no_file",
	[UNRESOLVED_NO_SYMBOLS] = "no_symbols",
	[UNRESOLVED_OUTSIDE_FILE] = "outside_file",
	[UNRESOLVED_BAD_FILE] = "bad_file",
	[UNRESOLVED_NO_BUILD_ID] = "no_build_id",
	[UNRESOLVED_PENDING] = "pending",
	[UNRESOLVED_GENERATED] = "generated",
	[UNRESOLVED_KERNEL] = "kernel",
	[UNRESOLVED_UNKNOWN_PLACE] = "unknown_place",
};

void unresolved_begin(struct unresolved_list *list, struct work *work, struct arena *strings)
{
	*list = (struct unresolved_list){ .work = work, .strings = strings };
	work_add_map(work, &list->map);
}

static bool item_equal(const void *context, uint32_t id, const void *key)
{
	const struct unresolved_list *list = context;
	const struct tree_unresolved *item = &list->items[id], *sought = key;

	return item->code == sought->code && slice_equal(item->mapping, sought->mapping) &&
	       slice_equal(item->build_id, sought->build_id);
}

static void write_text(struct strbuf *out, const struct unresolved_place *place)
{
	struct slice file = place->mapping.len ? place->mapping : SLICE_LITERAL("FILE");

	switch (place->reason) {
	case UNRESOLVED_NO_FILE:
		strbuf_addf(out, "no debuginfo for build id %.*s", SLICE_FMT(place->build_id));
		if (file.data[0] != '[') /* [vdso] and the like are no files */
			strbuf_addf(out, ": run `firn debuginfo upload %.*s`", SLICE_FMT(file));
		break;
	case UNRESOLVED_NO_SYMBOLS:
		if (place->detail.len) {
			strbuf_addf(out, "the debug information of the file is left out: %.*s",
				    SLICE_FMT(place->detail));
			break;
		}
		strbuf_addf(out,
			    "the file with build id %.*s is stripped: run `firn debuginfo upload` "
			    "with the debug file of %.*s",
			    SLICE_FMT(place->build_id), SLICE_FMT(file));
		break;
	case UNRESOLVED_OUTSIDE_FILE:
		strbuf_add_text(out, "the address is outside of the file");
		break;
	case UNRESOLVED_BAD_FILE:
		strbuf_addf(out, "the file could not be parsed: %.*s", SLICE_FMT(place->detail));
		break;
	case UNRESOLVED_NO_BUILD_ID:
		strbuf_add_text(out, "the binary has no build id: link it with -Wl,--build-id");
		break;
	case UNRESOLVED_PENDING:
		strbuf_add_text(out, "its symbols are being read");
		break;
	case UNRESOLVED_GENERATED:
		strbuf_add_text(out, "code that the process has made itself: let its runtime write "
				     "a perf map or a jitdump");
		break;
	case UNRESOLVED_KERNEL:
		strbuf_add_text(out, "the agent could not see the kernel's symbols: set sysctl "
				     "kernel.kptr_restrict to 0 or 1");
		break;
	default:
		strbuf_add_text(out, "the address lies in no known file");
	}
}

static struct slice text_of(struct unresolved_list *list, const struct unresolved_place *place)
{
	struct strbuf text = { 0 };
	struct slice copy;

	write_text(&text, place);
	copy = arena_copy(list->strings, strbuf_slice(&text));
	strbuf_free(&text);
	return copy;
}

static uint64_t hash_of(const struct tree_unresolved *item)
{
	uint64_t hash =
		hash_mix((uintptr_t)item->code, hash_bytes(item->mapping.data, item->mapping.len));

	return hash_mix(hash, hash_bytes(item->build_id.data, item->build_id.len));
}

/* `item` is not in the list; its text lives as long as the tree. */
static uint32_t add_new(struct unresolved_list *list, const struct tree_unresolved *item)
{
	uint32_t id = (uint32_t)list->count;

	assert(list->count <= list->capacity);
	if (!WORK_GROW(&list->work->arena, list->items, list->count, list->capacity))
		return IDMAP_NONE;
	list->items[id] = (struct tree_unresolved){
		.code = item->code,
		.text = item->text,
		.mapping = arena_copy(list->strings, item->mapping),
		.build_id = arena_copy(list->strings, item->build_id),
	};
	if (list->strings->over_budget)
		return IDMAP_NONE;
	list->count++;
	idmap_add(&list->map, hash_of(item), id);
	return id + 1;
}

uint32_t unresolved_add(struct unresolved_list *list, const struct unresolved_place *place)
{
	struct tree_unresolved item = { .code = codes[place->reason],
					.mapping = place->mapping,
					.build_id = place->build_id };
	uint32_t id = idmap_find(&list->map, hash_of(&item), item_equal, list, &item);

	if (id != IDMAP_NONE)
		return id + 1;
	item.text = text_of(list, place);
	return add_new(list, &item);
}

uint32_t unresolved_add_item(struct unresolved_list *list, const struct tree_unresolved *sought)
{
	struct tree_unresolved item = *sought;
	uint32_t id = idmap_find(&list->map, hash_of(&item), item_equal, list, &item);

	if (id != IDMAP_NONE)
		return id + 1;
	item.text = arena_copy(list->strings, item.text);
	return add_new(list, &item);
}

/*
 * A stack counts where the first frame of the kind is met on the way from the root: what is below
 * that node is in its total. open[0] is for all kinds together, open[i + 1] for item i: the end of
 * the subtree that is counted already.
 */
static void count_values(struct tree *tree, struct tree_unresolved *items, uint32_t *open,
			 const uint32_t *ends)
{
	for (uint32_t i = 1; i < tree->nodes_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint32_t item = tree->functions[node->function].unresolved;

		if (!item)
			continue;
		tree->unresolved_leaf = work_add(tree->unresolved_leaf, node->self);
		items[item - 1].leaf = work_add(items[item - 1].leaf, node->self);
		if (i >= open[0]) {
			open[0] = ends[i];
			tree->unresolved_value = work_add(tree->unresolved_value, node->total);
		}
		if (i >= open[item]) {
			open[item] = ends[i];
			items[item - 1].value = work_add(items[item - 1].value, node->total);
		}
	}
}

/* Behind each node's subtree, in pre-order. */
static uint32_t *subtree_ends(const struct tree *tree, struct arena *arena)
{
	uint32_t *ends = arena_new_array(arena, uint32_t, tree->nodes_count);

	for (uint32_t i = tree->nodes_count; ends && i-- > 0;) {
		uint32_t parent = tree->nodes[i].parent;

		if (!ends[i])
			ends[i] = i + 1;
		if (i && ends[parent] < ends[i])
			ends[parent] = ends[i];
	}
	return ends;
}

static int by_value(const void *a, const void *b, void *context)
{
	const struct tree_unresolved *items = context;
	const struct tree_unresolved *left = &items[*(const uint32_t *)a];
	const struct tree_unresolved *right = &items[*(const uint32_t *)b];
	int order;

	if (left->value != right->value)
		return left->value > right->value ? -1 : 1;
	order = slice_compare(left->mapping, right->mapping);
	return order ? order : slice_compare(left->text, right->text);
}

int unresolved_into(struct tree *tree, const struct unresolved_list *list, struct err *err)
{
	struct arena *arena = &list->work->arena;
	uint32_t *open = arena_new_array(arena, uint32_t, list->count + 1);
	uint32_t *order = arena_new_array(arena, uint32_t, list->count + 1);
	uint32_t *places = arena_new_array(arena, uint32_t, list->count + 1);
	uint32_t *ends;

	assert(list->items || !list->count);
	if (!list->count)
		return 0;
	ends = subtree_ends(tree, arena);
	tree->unresolved = arena_new_array(&tree->arena, struct tree_unresolved, list->count);
	if (!open || !order || !places || !ends || !tree->unresolved)
		return work_over_budget(list->work, err);
	if (!tree->cut)
		count_values(tree, list->items, open, ends);
	for (uint32_t i = 0; i < list->count; i++)
		order[i] = i;
	qsort_r(order, list->count, sizeof(*order), by_value, list->items);
	for (uint32_t i = 0; i < list->count; i++) {
		tree->unresolved[i] = list->items[order[i]];
		places[order[i] + 1] = i + 1;
	}
	tree->unresolved_count = (uint32_t)list->count;
	for (uint32_t i = 0; i < tree->functions_count; i++)
		tree->functions[i].unresolved = places[tree->functions[i].unresolved];
	return 0;
}
