/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/symbol_texts.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "server/resolve/symbol_format.h"

#define PACKED_TEXT_BYTES_MAX (SYMBOL_TEXT_BYTES_MAX + 10) /* with its two lengths */

/* The texts of one block, each with a NUL after it. */
struct text_block {
	char *bytes; /* NULL: it cannot be read */
	uint32_t at[SYMBOL_TEXTS_PER_BLOCK], lens[SYMBOL_TEXTS_PER_BLOCK];
	unsigned count;
};

struct symbol_texts {
	const struct symbol_table *table;
	struct text_block **blocks;
	uint32_t blocks_count;
	size_t bytes; /* in blocks */
	ZSTD_DCtx *decoder;
};

struct symbol_texts *symbol_texts_new(const struct symbol_table *table)
{
	struct symbol_texts *texts = mem_new(struct symbol_texts);

	texts->table = table;
	texts->blocks_count =
		(uint32_t)(((uint64_t)table->texts_count + SYMBOL_TEXTS_PER_BLOCK - 1) /
			   SYMBOL_TEXTS_PER_BLOCK);
	texts->blocks = mem_new_array(struct text_block *, texts->blocks_count);
	return texts;
}

void symbol_texts_trim(struct symbol_texts *texts, size_t max_bytes)
{
	if (texts->bytes <= max_bytes)
		return;
	for (uint32_t i = 0; i < texts->blocks_count; i++) {
		if (texts->blocks[i])
			free(texts->blocks[i]->bytes);
		free(texts->blocks[i]);
		texts->blocks[i] = NULL;
	}
	texts->bytes = 0;
}

void symbol_texts_free(struct symbol_texts *texts)
{
	if (!texts)
		return;
	symbol_texts_trim(texts, 0);
	ZSTD_freeDCtx(texts->decoder);
	free(texts->blocks);
	free(texts);
}

/* The packed bytes of a block; empty when they are out of bounds. */
static struct slice packed_block(const struct symbol_table *table, uint32_t number)
{
	const uint8_t *part = table->bytes + table->text_blocks.offset;
	uint32_t start = symbol_u32(part + 4 * (uint64_t)number);
	uint32_t end = symbol_u32(part + 4 * (uint64_t)number + 4);

	if (start > end || end > table->text_blocks.bytes)
		return (struct slice){ "", 0 };
	return slice_from(part + start, end - start);
}

/* What a block unpacks to; `len` is 0 when it cannot be. Free the data. */
static struct slice unpack(struct symbol_texts *texts, struct slice packed)
{
	unsigned long long bytes = ZSTD_getFrameContentSize(packed.data, packed.len);
	size_t len;
	char *raw;

	if (!texts->decoder)
		texts->decoder = ZSTD_createDCtx();
	if (!texts->decoder || !packed.len || !bytes ||
	    bytes > SYMBOL_TEXTS_PER_BLOCK * PACKED_TEXT_BYTES_MAX)
		return (struct slice){ NULL, 0 };
	raw = mem_calloc(1, (size_t)bytes);
	len = ZSTD_decompressDCtx(texts->decoder, raw, (size_t)bytes, packed.data, packed.len);
	return slice_from(raw, ZSTD_isError(len) ? 0 : len);
}

static bool take_varint(struct slice *from, uint32_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 35 && from->len; shift += 7) {
		uint8_t byte = (uint8_t)*from->data;

		*from = slice_tail(*from, 1);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = (uint32_t)value;
			return value <= SYMBOL_TEXT_BYTES_MAX;
		}
	}
	return false;
}

/* Goes through the texts of a block: their lengths, and with `out` the texts themselves. */
static size_t expand(struct text_block *block, unsigned count, struct slice raw, char *out)
{
	uint32_t shared, more, at = 0, last = 0;

	block->count = 0;
	while (block->count < count && take_varint(&raw, &shared) && take_varint(&raw, &more)) {
		unsigned i = block->count;

		if (shared > (i ? block->lens[i - 1] : 0) || more > raw.len ||
		    shared + more > SYMBOL_TEXT_BYTES_MAX)
			break;
		if (out) {
			memcpy(out + at, out + last, shared);
			memcpy(out + at + shared, raw.data, more);
			out[at + shared + more] = 0;
		}
		block->at[i] = last = at;
		block->lens[i] = shared + more;
		at += shared + more + 1;
		raw = slice_tail(raw, more);
		block->count++;
	}
	return at;
}

static struct text_block *read_block(struct symbol_texts *texts, uint32_t number)
{
	struct text_block *block = mem_new(struct text_block);
	uint32_t left = texts->table->texts_count - number * SYMBOL_TEXTS_PER_BLOCK;
	unsigned count = left < SYMBOL_TEXTS_PER_BLOCK ? left : SYMBOL_TEXTS_PER_BLOCK;
	struct slice raw = { NULL, 0 };
	size_t bytes = 0;

	texts->bytes += sizeof(*block);
	if (texts->bytes < SYMBOL_TEXTS_BYTES_MAX)
		raw = unpack(texts, packed_block(texts->table, number));
	if (raw.len)
		bytes = expand(block, count, raw, NULL);
	if (bytes && bytes <= SYMBOL_TEXTS_BYTES_MAX - texts->bytes) {
		block->bytes = mem_calloc(1, bytes);
		texts->bytes += expand(block, count, raw, block->bytes);
	}
	free((char *)raw.data);
	return block;
}

struct slice symbol_texts_get(struct symbol_texts *texts, uint32_t text)
{
	uint32_t number = text / SYMBOL_TEXTS_PER_BLOCK, index = text % SYMBOL_TEXTS_PER_BLOCK;
	struct text_block *block;

	if (!text || text >= texts->table->texts_count)
		return (struct slice){ "", 0 };
	if (!texts->blocks[number])
		texts->blocks[number] = read_block(texts, number);
	block = texts->blocks[number];
	if (!block->bytes || index >= block->count)
		return (struct slice){ "", 0 };
	return slice_from(block->bytes + block->at[index], block->lens[index]);
}

size_t symbol_texts_lookup(struct symbol_texts *texts, uint64_t address,
			   struct symbol_line ret_lines[SYMBOL_CHAIN_MAX])
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	size_t count = symbol_table_lookup(texts->table, address, frames);

	for (size_t i = 0; i < count; i++) {
		struct symbol_function function =
			symbol_table_function(texts->table, frames[i].function);

		ret_lines[i] = (struct symbol_line){
			.name = symbol_texts_get(texts, function.name),
			.linkage_name = symbol_texts_get(texts, function.linkage_name),
			.file = symbol_texts_get(texts, frames[i].file),
			.line = frames[i].line,
			.column = frames[i].column,
			.start_line = function.line,
		};
	}
	return count;
}
