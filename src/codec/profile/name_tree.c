/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/profile/name_tree.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/pb.h"

#define NODE_BYTES_MIN 3u /* two lengths and a value */
#define TREE_DEPTH_MAX 65536u
#define TRIE_TEXT_BYTES_MAX ((size_t)1 << 20) /* of one stack */

/* The nodes above the one at hand. */
struct level {
	uint64_t children_left;
	uint64_t location; /* tree: its frame; 0: the root */
	size_t text_bytes; /* trie: of the text up to and with it */
};

struct walk {
	const char *what;
	struct pb_reader in;
	struct stack_builder *into;
	struct level *levels;
	size_t depth, capacity;
	bool is_trie;
	struct strbuf text; /* trie: of the node at hand */
	size_t text_bytes_left;
	struct err *err;
};

struct node {
	struct slice name;
	uint64_t value, children;
};

static int fail(const struct walk *walk, enum err_code code, const char *why)
{
	return err_set(walk->err, code, "%s: %s at byte %zu", walk->what, why,
		       (size_t)(walk->in.at - walk->in.start));
}

static int read_node(struct walk *walk, struct node *ret)
{
	struct pb_reader *in = &walk->in;
	uint64_t len;

	if (!pb_varint(in, &len))
		return fail(walk, ERR_INVALID, "no length of a name");
	if (len > (uint64_t)(in->end - in->at))
		return fail(walk, ERR_INVALID, "a name exceeds the input");
	ret->name = slice_from(in->at, (size_t)len);
	in->at += len;
	if (!pb_varint(in, &ret->value) || !pb_varint(in, &ret->children))
		return fail(walk, ERR_INVALID, "no value or no count of children");
	if (ret->value > INT64_MAX)
		return fail(walk, ERR_INVALID, "a value beyond 63 bits");
	if (ret->children > (uint64_t)(in->end - in->at) / NODE_BYTES_MIN)
		return fail(walk, ERR_INVALID, "more children than bytes for them");
	return 0;
}

static void add_frame(struct walk *walk, struct slice name)
{
	struct stack_builder_frame frame = { .name = name };

	if (name.len)
		stack_builder_push(walk->into, &frame);
}

/* The stack that ends in the node at hand, the last of the levels. */
static int add_stack(struct walk *walk, int64_t value)
{
	struct slice text = strbuf_slice(&walk->text);

	if (!walk->is_trie) {
		for (size_t i = 0; i < walk->depth; i++)
			stack_builder_push_id(walk->into, walk->levels[i].location);
	} else {
		if (text.len > walk->text_bytes_left)
			return fail(walk, ERR_LIMIT, "too much text of stacks");
		walk->text_bytes_left -= text.len;
		while (text.len)
			add_frame(walk, slice_cut(text, ';', &text));
	}
	stack_builder_sample(walk->into, true, &value);
	return 0;
}

static int enter(struct walk *walk, const struct node *node)
{
	struct level level = { .children_left = node->children };

	if (walk->depth == TREE_DEPTH_MAX)
		return fail(walk, ERR_LIMIT, "nested too deeply");
	if (walk->is_trie) {
		if (node->name.len > TRIE_TEXT_BYTES_MAX - walk->text.len)
			return fail(walk, ERR_LIMIT, "a stack of too much text");
		strbuf_add_slice(&walk->text, node->name);
		level.text_bytes = walk->text.len;
	} else if (node->name.len) {
		struct stack_builder_frame frame = { .name = node->name };

		level.location = stack_builder_location(walk->into, &frame);
	}
	mem_grow(walk->levels, walk->depth, walk->capacity);
	walk->levels[walk->depth++] = level;
	return node->value ? add_stack(walk, (int64_t)node->value) : 0;
}

/* Up to the next node that has children to come. */
static void leave(struct walk *walk)
{
	while (walk->depth && !walk->levels[walk->depth - 1].children_left)
		walk->depth--;
	walk->text.len = walk->depth ? walk->levels[walk->depth - 1].text_bytes : 0;
	if (walk->depth)
		walk->levels[walk->depth - 1].children_left--;
}

static int decode(struct walk *walk)
{
	struct node node;
	int rc;

	stack_builder_type(walk->into, "samples", "count");
	do {
		rc = read_node(walk, &node);
		if (!rc)
			rc = enter(walk, &node);
		leave(walk);
	} while (!rc && walk->depth && !walk->into->full);
	if (!rc && !walk->into->full && walk->in.at != walk->in.end)
		rc = fail(walk, ERR_INVALID, "more bytes than nodes");
	free(walk->levels);
	strbuf_free(&walk->text);
	return rc ? rc : stack_builder_check(walk->into, walk->what, walk->err);
}

int name_tree_decode(struct slice bytes, struct stack_builder *into, struct err *err)
{
	struct walk walk = { .what = "tree", .in = pb_reader_of(bytes), .into = into, .err = err };

	return decode(&walk);
}

int name_trie_decode(struct slice bytes, size_t text_bytes_max, struct stack_builder *into,
		     struct err *err)
{
	struct walk walk = { .what = "trie",
			     .in = pb_reader_of(bytes),
			     .into = into,
			     .is_trie = true,
			     .text_bytes_left = text_bytes_max,
			     .err = err };

	return decode(&walk);
}
