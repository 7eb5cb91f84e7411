/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/index/function_index.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"

size_t function_index_bytes(const struct function_index *index)
{
	return sizeof(*index) + index->memory_bytes;
}

void function_index_free(struct function_index *index)
{
	free(index);
}

/* Where the parts of an index go when it is packed: NULL, they are only counted. */
struct packing {
	char *at;
	size_t bytes;
};

static void *pack(struct packing *packing, const void *from, size_t bytes)
{
	char *to = packing->at ? packing->at + packing->bytes : NULL;

	packing->bytes += (bytes + 7) & ~(size_t)7;
	if (!to)
		return (void *)from;
	if (bytes)
		memcpy(to, from, bytes);
	return to;
}

static void pack_text(struct packing *packing, struct slice *text)
{
	text->data = pack(packing, text->data, text->len);
}

#define PACK(packing, array, count) ((array) = pack((packing), (array), (count) * sizeof(*(array))))

static void pack_index(struct packing *packing, struct function_index *index)
{
	PACK(packing, index->members, index->members_count);
	for (uint32_t i = 0; i < index->members_count; i++)
		PACK(packing, index->members[i].stack_of_slot, index->members[i].slots_count);
	PACK(packing, index->row_of_stack, index->stacks_count);
	PACK(packing, index->keys, index->rows_count);
	PACK(packing, index->binaries, index->rows_count);
	PACK(packing, index->unnamed, index->rows_count);
	PACK(packing, index->places, index->rows_count);
	PACK(packing, index->bytes, index->bytes_count);
	PACK(packing, index->names, index->names_count);
	PACK(packing, index->items, index->items_count);
	PACK(packing, index->item_places, index->items_count + 1ull);
	PACK(packing, index->looked_in, index->looked_in_count);
	for (uint32_t i = 0; i < index->names_count; i++)
		pack_text(packing, &index->names[i].text);
	for (uint32_t i = 0; i < index->items_count; i++) {
		pack_text(packing, &index->items[i].text);
		pack_text(packing, &index->items[i].mapping);
		pack_text(packing, &index->items[i].build_id);
	}
	for (uint32_t i = 0; i < index->looked_in_count; i++) {
		pack_text(packing, &index->looked_in[i].build_id);
		pack_text(packing, &index->looked_in[i].mapping);
	}
}

struct function_index *function_index_pack(struct function_index *made)
{
	struct packing packing = { 0 };
	struct function_index *index;

	pack_index(&packing, made);
	made->memory_bytes = packing.bytes;
	index = mem_realloc(NULL, 1, sizeof(*index) + packing.bytes);
	*index = *made;
	packing = (struct packing){ .at = (char *)(index + 1) };
	pack_index(&packing, index);
	return index;
}

static uint64_t hash_at(const struct function_index *index, uint32_t row)
{
	uint64_t hash;

	function_index_key(index, row, &hash);
	return hash;
}

/* Among rows first .. end - 1, which are in the order of their hashes. */
static uint32_t first_from(const struct function_index *index, uint32_t first, uint32_t end,
			   uint64_t hash)
{
	return bisect(first, end, i, hash_at(index, i) < hash);
}

uint32_t function_index_from(const struct function_index *index, uint64_t hash)
{
	return first_from(index, 0, index->flat_rows_count, hash);
}

static uint32_t find_among(const struct function_index *index, uint32_t first, uint32_t end,
			   const struct row_key *key, uint64_t hash)
{
	assert(first <= end && end <= index->rows_count);
	for (uint32_t row = first_from(index, first, end, hash); row < end; row++) {
		uint64_t found;
		struct row_key at = function_index_key(index, row, &found);

		if (found != hash)
			break;
		if (row_key_equal(&at, key))
			return row;
	}
	return FUNCTION_INDEX_NONE;
}

uint32_t function_index_find(const struct function_index *index, const struct row_key *key,
			     uint64_t hash)
{
	uint32_t flat = index->flat_rows_count;
	uint32_t row = find_among(index, 0, flat, key, hash);

	assert(index->flat_rows_count <= index->rows_count);
	return row != FUNCTION_INDEX_NONE ? row
					  : find_among(index, flat, index->rows_count, key, hash);
}

/* The bytes are our own: numbers are whole. */
static uint64_t next_number(struct function_occurrences *occurrences)
{
	uint64_t number = 0;

	pb_varint(&occurrences->from, &number);
	return number;
}

static struct function_occurrences occurrences_at(const struct function_index *index,
						  uint32_t place)
{
	struct slice bytes;
	struct function_occurrences list;
	uint64_t header;

	assert(place < index->bytes_count);
	bytes = (struct slice){ index->bytes + place, index->bytes_count - place };
	list = (struct function_occurrences){ .from = pb_reader_of(bytes) };
	header = next_number(&list);
	list.left = (uint32_t)(header >> 1);
	list.has_callers = header & 1;
	return list;
}

struct function_occurrences function_index_of_row(const struct function_index *index, uint32_t row)
{
	return occurrences_at(index, index->places[row]);
}

struct function_occurrences function_index_of_item(const struct function_index *index,
						   uint32_t item)
{
	return occurrences_at(index, index->item_places[item]);
}

bool function_occurrences_next(struct function_occurrences *occurrences,
			       struct function_occurrence *ret)
{
	uint64_t call = 0;

	if (!occurrences->left)
		return false;
	occurrences->left--;
	occurrences->first += (uint32_t)next_number(occurrences);
	*ret = (struct function_occurrence){ .first = occurrences->first };
	ret->end = ret->first + (uint32_t)next_number(occurrences) + 1;
	if (occurrences->has_callers)
		call = next_number(occurrences);
	ret->caller = (uint32_t)(call >> 1) - 1; /* 0: none */
	ret->inlined = call & 1;
	return true;
}
