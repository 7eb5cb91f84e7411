/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_index - maps each stack of some segments to the table row that it ends in, and each row
 * to where it occurs in their trie. With it, and a value per stack, a table needs neither frames,
 * nodes nor names: flat is a sum per row, cum the sum over the stacks below the row's occurrences.
 *
 * Segments of one service, day after day, have much the same stacks: an index of all of them has
 * each stack once, and for each segment only the numbers of its slots' stacks.
 *
 * Stacks are numbered in pre-order, so that the stacks below a node are a range. An occurrence is
 * such a range; the occurrences of a row are in pre-order, nested ones after the one that contains
 * them. Rows in which some stack ends come first; within both kinds rows are sorted by hash.
 *
 * Names are those of one demangle mode and one version of the resolver; index_cache.h uses an index
 * for no other. Immutable: any thread may read.
 */
#ifndef FIRN_SERVER_QUERY_INDEX_FUNCTION_INDEX_H
#define FIRN_SERVER_QUERY_INDEX_FUNCTION_INDEX_H

#include "codec/wire/pb.h"
#include "server/query/name/row_key.h"
#include "server/query/work.h"

#define FUNCTION_INDEX_NAMED UINT16_MAX /* as binary: the row has a name */
#define FUNCTION_INDEX_NONE UINT32_MAX

struct resolver;

struct function_index_name {
	struct slice text;
	uint64_t hash;
};

/* A binary in which addresses were looked up. */
struct function_index_binary {
	struct slice build_id, mapping;
	bool by_offset;
};

struct function_index_member {
	uint64_t segment; /* its id */
	uint32_t slots_count;
	uint32_t *stack_of_slot;
};

struct function_index {
	size_t memory_bytes; /* of all that it points to, which lies behind it */
	uint32_t rows_count, flat_rows_count;
	uint32_t stacks_count, nodes_count;
	struct function_index_member *members;
	uint32_t members_count;
	uint32_t *row_of_stack; /* flat_rows_count: of the root, which is no row */
	uint64_t *keys;		/* by row: an address, or which of the names */
	uint16_t *binaries;	/* by row: which of the names, or FUNCTION_INDEX_NAMED */
	uint8_t *unnamed;	/* by row: 1 when it has no name of its own */
	uint32_t *places;	/* by row: of its occurrences in `bytes` */
	char *bytes;
	size_t bytes_count;
	struct function_index_name *names;
	uint32_t names_count;
	/* Why there are addresses: values are not known, `item_places` is of the occurrences. */
	struct tree_unresolved *items;
	uint32_t items_count;
	uint32_t *item_places; /* items_count + 1: the first is of all reasons together */
	struct function_index_binary *looked_in;
	uint32_t looked_in_count;
	void *keeper; /* the cache's */
};

/*
 * Loads the segments one after the other. *ret is NULL, without an error, if names are pending.
 * Errors are those of reading and of `limits`.
 */
int function_index_make(struct segment *const *segments, size_t count, struct resolver *resolver,
			const struct query_params *params, struct function_index **ret,
			struct err *err);

/* A copy in one block of memory of the exact size; consumes `made`. */
struct function_index *function_index_pack(struct function_index *made);
void function_index_free(struct function_index *index); /* accepts NULL */
size_t function_index_bytes(const struct function_index *index);

static inline struct row_key function_index_key(const struct function_index *index, uint32_t row,
						uint64_t *ret_hash)
{
	bool is_named = index->binaries[row] == FUNCTION_INDEX_NAMED;
	const struct function_index_name *name =
		&index->names[is_named ? index->keys[row] : index->binaries[row]];
	struct row_key key = { name->text, is_named ? 0 : index->keys[row], !is_named };

	*ret_hash = row_key_hash(&key, name->hash);
	return key;
}

/* FUNCTION_INDEX_NONE: the row does not occur. `hash` is row_key_hash's. */
uint32_t function_index_find(const struct function_index *index, const struct row_key *key,
			     uint64_t hash);

/* The first row that ends stacks and whose hash is not smaller. */
uint32_t function_index_from(const struct function_index *index, uint64_t hash);

struct function_occurrence {
	uint32_t first, end; /* stacks below it: at least one */
	uint32_t caller;     /* row; FUNCTION_INDEX_NONE: none, or the row has no name */
	bool inlined;	     /* into the caller */
};

struct function_occurrences {
	struct pb_reader from;
	uint32_t left;
	uint32_t first; /* of the last one */
	bool has_callers;
};

struct function_occurrences function_index_of_row(const struct function_index *index, uint32_t row);

/* `item` 0: all items together; i + 1: item i. Not nested. */
struct function_occurrences function_index_of_item(const struct function_index *index,
						   uint32_t item);
bool function_occurrences_next(struct function_occurrences *occurrences,
			       struct function_occurrence *ret);

#endif
