/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_bolt - llvm-bolt's profile without branches (bolt/include/bolt/Profile/DataReader.h), as
 * perf2bolt -nl writes it:
 *
 *     no_lbr EVENT
 *     1 SYMBOL OFFSET SAMPLES
 *
 * OFFSET is hexadecimal, from the symbol's start. What counts is where each stack is, its first
 * frame. It is for one binary: the one where most was spent; a filter chooses another.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "base/printable.h"
#include "codec/elf/elf.h"
#include "server/query/query.h"
#include "server/query/render/render_export.h"
#include "server/query/work.h"
#include "server/resolve/resolver.h"

#define REACH_BYTES ((uint64_t)64 << 20) /* functions are shorter */

struct place {
	uint32_t location;
	int64_t samples;
};

static uint32_t leaf_of(const struct tree *tree, uint32_t stack)
{
	return tree->stack_locations[tree->stacks[stack].location_first];
}

static bool is_code(const struct tree *tree, uint32_t stack)
{
	const struct tree_location *leaf;

	assert(stack < tree->stacks_count);
	if (tree->stacks[stack].value <= 0 || !tree->stacks[stack].location_count)
		return false;
	leaf = &tree->locations[leaf_of(tree, stack)];
	return leaf->build_id.len && leaf->address && leaf->kind != FRAME_KERNEL &&
	       leaf->line_count;
}

static bool same_binary(const struct tree_location *a, const struct tree_location *b)
{
	return slice_equal(a->build_id, b->build_id);
}

static bool is_binary(const void *context, uint32_t id, const void *key)
{
	const struct tree *tree = ((const struct tree *const *)context)[0];
	const struct place *binaries = ((const struct place *const *)context)[1];

	return same_binary(&tree->locations[binaries[id].location], key);
}

/* A location of the binary in which most was spent. */
static bool find_binary(const struct tree *tree, uint32_t *ret)
{
	struct place *binaries = mem_new_array(struct place, (size_t)tree->stacks_count + 1);
	const void *context[] = { tree, binaries };
	struct idmap map = { 0 };
	uint32_t count = 0, largest = 0;

	for (uint32_t i = 0; i < tree->stacks_count; i++) {
		const struct tree_location *leaf;
		uint64_t hash;
		uint32_t id;

		if (!is_code(tree, i))
			continue;
		leaf = &tree->locations[leaf_of(tree, i)];
		hash = hash_bytes(leaf->build_id.data, leaf->build_id.len);
		id = idmap_find(&map, hash, is_binary, context, leaf);
		if (id == IDMAP_NONE) {
			id = count++;
			binaries[id].location = leaf_of(tree, i);
			idmap_add(&map, hash, id);
		}
		binaries[id].samples = work_add(binaries[id].samples, tree->stacks[i].value);
		if (binaries[id].samples > binaries[largest].samples)
			largest = id;
	}
	*ret = binaries[largest].location;
	idmap_free(&map);
	free(binaries);
	return count > 0;
}

/* Blanks end words here: they and backslashes are escaped. Nothing can hold the end of a line. */
static void put_name(struct strbuf *out, struct slice name)
{
	struct strbuf shown = { 0 };

	printable_add(&shown, name);
	for (size_t i = 0; i < shown.len; i++) {
		if (shown.data[i] == ' ' || shown.data[i] == '\\')
			strbuf_add_byte(out, '\\');
		strbuf_add_byte(out, shown.data[i]);
	}
	strbuf_free(&shown);
}

struct binary {
	struct resolver_symbols symbols;
	struct elf_info info;
	bool has_info;
};

static void open_binary(const struct render_export_for *asked, const struct tree_location *of,
			struct binary *ret)
{
	const struct query_symbols_of wanted = { .build_id = of->build_id,
						 .mapping = of->mapping,
						 .by_offset = true,
						 .wants_best = true,
						 .until_ns = RESOLVE_WAIT_ALWAYS };
	int fd = resolver_open_binary(asked->resolver, of->build_id, of->mapping, NULL);

	*ret = (struct binary){ 0 };
	if (fd >= 0) {
		ret->has_info = !elf_read_info(fd, "the program", &ret->info, NULL);
		close(fd);
	}
	/* Without symbols nothing is said, and who asked says that it has ended. */
	(void)query_open_symbols(asked->resolver, &wanted, asked->limits, &ret->symbols, NULL);
}

/* The names are those of the binary's symbols, whatever the profile calls them. */
static void put_location(const struct tree_location *location, const struct binary *binary,
			 int64_t samples, struct strbuf *out)
{
	struct symbol_line lines[SYMBOL_CHAIN_MAX];
	uint64_t address = location->address, low, high;
	const struct symbol_line *outermost;
	size_t count;

	if (!samples ||
	    (location->address_is_offset &&
	     (!binary->has_info ||
	      !elf_offset_to_address(&binary->info, location->address, &address))) ||
	    resolver_find(&binary->symbols, address, false, lines, &count) != RESOLVE_OK ||
	    !resolver_find_extent(&binary->symbols, address, REACH_BYTES, &low, &high))
		return;
	outermost = &lines[count - 1];
	strbuf_add_text(out, "1 ");
	put_name(out, outermost->linkage_name.len ? outermost->linkage_name : outermost->name);
	strbuf_addf(out, " %" PRIx64 " %" PRId64 "\n", address - low, samples);
}

void render_bolt(const struct tree *tree, const struct render_export_for *asked, struct strbuf *out)
{
	int64_t *samples = mem_new_array(int64_t, (size_t)tree->locations_count + 1);
	struct binary binary;
	uint32_t at;

	strbuf_add_text(out, "no_lbr ");
	put_name(out, tree->type.sample_type);
	strbuf_add_byte(out, '\n');
	if (asked->resolver && find_binary(tree, &at)) {
		const struct tree_location *of = &tree->locations[at];

		for (uint32_t i = 0; i < tree->stacks_count; i++) {
			uint32_t leaf = tree->stacks[i].location_count ? leaf_of(tree, i) : 0;

			if (is_code(tree, i) && same_binary(&tree->locations[leaf], of))
				samples[leaf] = work_add(samples[leaf], tree->stacks[i].value);
		}
		open_binary(asked, of, &binary);
		for (uint32_t i = 0; i < tree->locations_count; i++)
			put_location(&tree->locations[i], &binary, samples[i], out);
		resolver_close(asked->resolver, &binary.symbols);
	}
	free(samples);
}
