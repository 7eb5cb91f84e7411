/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_pack - bit-packed blocks of up to 64 records of up to four numbers. A field has as few
 * bits as most of its numbers in the block need; the few larger numbers are stored apart
 * ("patches"). docs/formats/symbol-table.md, "Packs".
 *
 * Reading checks once, at opening, that all of the block lies within its bytes; 8 bytes behind
 * these must be readable.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_PACK_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_PACK_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "server/resolve/table/symbol_format.h"

/* Of a field's word in the block's head: two widths, how many patches, and the width of the base.
 */
#define SYMBOL_PACK_WIDTH_MASK 0x3fu
#define SYMBOL_PACK_COUNT_SHIFT 6
#define SYMBOL_PACK_COUNT_MASK 0x7fu
#define SYMBOL_PACK_PATCH_SHIFT 13
#define SYMBOL_PACK_BASE_SHIFT 19
#define SYMBOL_PACK_BASE_MASK 0x1fu
#define SYMBOL_PACK_INDEX_BITS 6 /* of a record, in a patch */

/* One field of the records of a block. */
struct symbol_pack_field {
	uint8_t width, patches, patch_width; /* bits, patches, bits of a patch */
	uint32_t base;
	uint32_t at, patches_at; /* in bits */
};

struct symbol_pack {
	const uint8_t *bits;
	unsigned count; /* of records */
	struct symbol_pack_field fields[SYMBOL_PACK_FIELDS_MAX];
};

/*
 * False when the block is damaged. `bytes` is what there is from `data` on. Inline, because
 * look-ups spend most of their time here.
 */
static inline bool symbol_pack_open(const uint8_t *data, uint64_t bytes, unsigned fields,
				    struct symbol_pack *ret)
{
	uint64_t end = 8 * bytes, head = 1 + SYMBOL_PACK_FIELD_BYTES * fields, at = 8 * head;

	if (bytes < head)
		return false;
	ret->bits = data;
	ret->count = data[0];
	if (!ret->count || ret->count > SYMBOL_PACK_RECORDS)
		return false;
	for (unsigned i = 0; i < fields; i++) {
		/* The word's last byte is another's. */
		uint32_t word = symbol_u32(data + 1 + (size_t)SYMBOL_PACK_FIELD_BYTES * i);
		struct symbol_pack_field *field = &ret->fields[i];
		unsigned base_width = word >> SYMBOL_PACK_BASE_SHIFT & SYMBOL_PACK_BASE_MASK;
		uint64_t base_at = at;

		field->width = word & SYMBOL_PACK_WIDTH_MASK;
		field->patches = word >> SYMBOL_PACK_COUNT_SHIFT & SYMBOL_PACK_COUNT_MASK;
		field->patch_width = word >> SYMBOL_PACK_PATCH_SHIFT & SYMBOL_PACK_WIDTH_MASK;
		field->at = (uint32_t)at + base_width;
		field->patches_at = field->at + ret->count * field->width;
		at = field->patches_at +
		     field->patches * (SYMBOL_PACK_INDEX_BITS + field->patch_width);
		if (at > end || field->width > 32 || field->patch_width > 32)
			return false;
		field->base = symbol_bits(data, base_at, base_width);
	}
	return true;
}

/* The patch of a record whose bits are all set; false when it has none. */
bool symbol_pack_patch(const struct symbol_pack *pack, const struct symbol_pack_field *field,
		       unsigned record, uint32_t *ret);

/* A number of a record; *ret_is_patch: it was too large, or could not be said otherwise. */
static inline uint32_t symbol_pack_get(const struct symbol_pack *pack, unsigned number,
				       unsigned record, bool *ret_is_patch)
{
	const struct symbol_pack_field *field = &pack->fields[number];
	uint32_t value =
		symbol_bits(pack->bits, field->at + (uint64_t)record * field->width, field->width);
	uint32_t patch;

	*ret_is_patch = field->patches && value == (uint32_t)((1ull << field->width) - 1) &&
			symbol_pack_patch(pack, field, record, &patch);
	return *ret_is_patch ? patch : field->base + value;
}

/* One field of each record, to be written; `patches` has the values of those that become patches.
 */
struct symbol_pack_input {
	uint32_t values[SYMBOL_PACK_RECORDS], patches[SYMBOL_PACK_RECORDS];
	uint64_t must_patch; /* by record, a bit each: `values` cannot say it */
	uint64_t any;	     /* it does not matter what is said */
};

/* Appends a block of `count` records, 1 to 64. */
void symbol_pack_write(struct symbol_pack_input *inputs, unsigned fields, unsigned count,
		       struct strbuf *out);

#endif
