/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_texts.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "server/resolve/table/symbol_format.h"

/* The texts of one block, each with a NUL after it. */
struct text_block {
	char *bytes;  /* NULL: it cannot be read */
	uint32_t *at; /* of each text, and where the last one ends */
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
		(uint32_t)(((uint64_t)table->texts_count + table->texts_per_block - 1) /
			   table->texts_per_block);
	texts->blocks = mem_new_array(struct text_block *, texts->blocks_count);
	return texts;
}

void symbol_texts_trim(struct symbol_texts *texts, size_t max_bytes)
{
	if (texts->bytes <= max_bytes)
		return;
	for (uint32_t i = 0; i < texts->blocks_count; i++) {
		if (texts->blocks[i]) {
			free(texts->blocks[i]->bytes);
			free(texts->blocks[i]->at);
		}
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
	if (!texts->decoder || !packed.len || !bytes || bytes > SYMBOL_TEXT_BLOCK_BYTES_MAX)
		return (struct slice){ NULL, 0 };
	raw = mem_calloc(1, (size_t)bytes);
	len = ZSTD_decompressDCtx(texts->decoder, raw, (size_t)bytes, packed.data, packed.len);
	return slice_from(raw, ZSTD_isError(len) ? 0 : len);
}

/* Finds the texts of a block, up to `count`. */
static void index_texts(struct text_block *block, unsigned count, size_t bytes)
{
	size_t at = 0;

	block->at = mem_new_array(uint32_t, count + 1);
	while (block->count < count && at < bytes) {
		const char *end = memchr(block->bytes + at, 0, bytes - at);

		if (!end)
			return;
		at = (size_t)(end - block->bytes) + 1;
		block->at[++block->count] = (uint32_t)at;
	}
}

static struct text_block *read_block(struct symbol_texts *texts, uint32_t number)
{
	struct text_block *block = mem_new(struct text_block);
	uint32_t per_block = texts->table->texts_per_block;
	uint32_t left = texts->table->texts_count - number * per_block;
	unsigned count = left < per_block ? left : per_block;
	struct slice raw = { NULL, 0 };

	texts->bytes += sizeof(*block) + (count + 1) * sizeof(*block->at);
	if (texts->bytes < SYMBOL_TEXTS_BYTES_MAX)
		raw = unpack(texts, packed_block(texts->table, number));
	block->bytes = (char *)raw.data;
	texts->bytes += raw.len;
	if (raw.len)
		index_texts(block, count, raw.len);
	return block;
}

struct slice symbol_texts_get(struct symbol_texts *texts, uint32_t text)
{
	struct text_block *block;
	uint32_t number, index;

	if (!text || text >= texts->table->texts_count)
		return (struct slice){ "", 0 };
	number = text / texts->table->texts_per_block;
	index = text % texts->table->texts_per_block;
	if (!texts->blocks[number])
		texts->blocks[number] = read_block(texts, number);
	block = texts->blocks[number];
	if (index >= block->count)
		return (struct slice){ "", 0 };
	return slice_from(block->bytes + block->at[index],
			  block->at[index + 1] - block->at[index] - 1);
}

size_t symbol_texts_lookup(struct symbol_texts *texts, uint64_t address,
			   struct symbol_line ret_lines[SYMBOL_CHAIN_MAX])
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	size_t count = symbol_lookup(texts->table, address, frames);

	for (size_t i = 0; i < count; i++) {
		struct symbol_function function =
			symbol_table_function(texts->table, frames[i].function);

		ret_lines[i] = (struct symbol_line){
			.name = symbol_texts_get(texts, function.name),
			.linkage_name = symbol_texts_get(texts, function.linkage_name),
			.file = symbol_texts_get(texts, frames[i].file),
			.line = frames[i].line,
			.start_line = function.line,
			.is_unnamed = function.is_unnamed,
		};
	}
	return count;
}

void symbol_unnamed_show(struct strbuf *out, struct slice binary, struct slice name,
			 struct slice linkage_name)
{
	if (!slice_starts_with(name, SLICE_LITERAL(SYMBOL_GUESS_PREFIX))) {
		strbuf_add_slice(out, binary);
		strbuf_add_slice(out, name);
		return;
	}
	strbuf_add_slice(out, name);
	strbuf_add_slice(out, linkage_name);
}
