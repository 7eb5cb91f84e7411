/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/symbol_texts.h"

#include <assert.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "server/resolve/table/symbol_format.h"

/*
 * The blocks of all tables that share a pool are one list, the last that was used first, so that
 * what was not needed for longest can go. A block without bytes is one that cannot be read.
 */
struct text_block {
	struct text_block *newer, *older;
	struct symbol_texts *owner;
	uint32_t number;
	char *bytes;  /* each text with a NUL after it */
	uint32_t *at; /* of each text, and where the last one ends */
	unsigned count;
	size_t size; /* of all this */
};

struct symbol_text_pool {
	struct text_block *newest, *oldest;
	size_t bytes; /* in blocks */
	ZSTD_DCtx *decoder;
};

struct symbol_texts {
	const struct symbol_table *table;
	struct text_block **blocks; /* by number; NULL: not unpacked */
	uint32_t blocks_count;
	struct symbol_text_pool *pool, own;
};

struct symbol_text_pool *symbol_text_pool_new(void)
{
	return mem_new(struct symbol_text_pool);
}

void symbol_text_pool_free(struct symbol_text_pool *pool)
{
	if (!pool)
		return;
	assert(!pool->newest);
	ZSTD_freeDCtx(pool->decoder);
	free(pool);
}

size_t symbol_text_pool_bytes(const struct symbol_text_pool *pool)
{
	return pool->bytes;
}

struct symbol_texts *symbol_texts_new(const struct symbol_table *table)
{
	struct symbol_texts *texts = mem_new(struct symbol_texts);

	texts->table = table;
	texts->blocks_count =
		(uint32_t)(((uint64_t)table->texts_count + table->texts_per_block - 1) /
			   table->texts_per_block);
	texts->blocks = mem_new_array(struct text_block *, texts->blocks_count);
	texts->pool = &texts->own;
	return texts;
}

void symbol_texts_share(struct symbol_texts *texts, struct symbol_text_pool *pool)
{
	assert(texts->pool == &texts->own && !texts->own.newest);
	texts->pool = pool;
}

static void unlink_block(struct text_block *block)
{
	struct symbol_text_pool *pool = block->owner->pool;

	*(block->newer ? &block->newer->older : &pool->newest) = block->older;
	*(block->older ? &block->older->newer : &pool->oldest) = block->newer;
}

static void link_newest(struct text_block *block)
{
	struct symbol_text_pool *pool = block->owner->pool;

	block->newer = NULL;
	block->older = pool->newest;
	*(pool->newest ? &pool->newest->newer : &pool->oldest) = block;
	pool->newest = block;
}

static void free_block(struct text_block *block)
{
	unlink_block(block);
	assert(block->owner->pool->bytes >= block->size);
	block->owner->pool->bytes -= block->size;
	block->owner->blocks[block->number] = NULL;
	free(block->bytes);
	free(block->at);
	free(block);
}

void symbol_texts_trim(struct symbol_texts *texts, size_t max_bytes)
{
	while (texts->pool->bytes > max_bytes)
		free_block(texts->pool->oldest);
}

void symbol_texts_free(struct symbol_texts *texts)
{
	if (!texts)
		return;
	for (uint32_t i = 0; i < texts->blocks_count; i++)
		if (texts->blocks[i])
			free_block(texts->blocks[i]);
	ZSTD_freeDCtx(texts->own.decoder);
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
static struct slice unpack(struct symbol_text_pool *pool, struct slice packed)
{
	unsigned long long bytes = ZSTD_getFrameContentSize(packed.data, packed.len);
	size_t len;
	char *raw;

	if (!pool->decoder)
		pool->decoder = ZSTD_createDCtx();
	if (!pool->decoder || !packed.len || !bytes || bytes > SYMBOL_TEXT_BLOCK_BYTES_MAX)
		return (struct slice){ NULL, 0 };
	raw = mem_calloc(1, (size_t)bytes);
	len = ZSTD_decompressDCtx(pool->decoder, raw, (size_t)bytes, packed.data, packed.len);
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

	if (texts->pool->bytes < SYMBOL_TEXTS_BYTES_MAX)
		raw = unpack(texts->pool, packed_block(texts->table, number));
	*block = (struct text_block){ .owner = texts, .number = number, .bytes = (char *)raw.data };
	block->size = sizeof(*block) + raw.len;
	if (raw.len) {
		index_texts(block, count, raw.len);
		block->size += (count + 1) * sizeof(*block->at);
	}
	texts->pool->bytes += block->size;
	link_newest(block);
	return block;
}

/* The block, as the last that was used. */
static struct text_block *use_block(struct symbol_texts *texts, uint32_t number)
{
	struct text_block *block = texts->blocks[number];

	if (!block) {
		block = texts->blocks[number] = read_block(texts, number);
	} else if (block->newer) {
		unlink_block(block);
		link_newest(block);
	}
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
	block = use_block(texts, number);
	if (index >= block->count)
		return (struct slice){ "", 0 };
	return slice_from(block->bytes + block->at[index],
			  block->at[index + 1] - block->at[index] - 1);
}

size_t symbol_texts_find(const struct symbol_table *table, uint64_t address,
			 struct symbol_line ret_lines[SYMBOL_CHAIN_MAX])
{
	struct symbol_frame frames[SYMBOL_CHAIN_MAX];
	size_t count = symbol_lookup(table, address, frames);

	for (size_t i = 0; i < count; i++) {
		struct symbol_function function = symbol_table_function(table, frames[i].function);

		ret_lines[i] = (struct symbol_line){
			.of = { function.name, function.linkage_name, frames[i].file },
			.line = frames[i].line,
			.start_line = function.line,
			.is_unnamed = function.is_unnamed,
		};
	}
	return count;
}

void symbol_texts_fill(struct symbol_texts *texts, struct symbol_line *line)
{
	line->name = symbol_texts_get(texts, line->of.name);
	line->linkage_name = symbol_texts_get(texts, line->of.linkage_name);
	line->file = symbol_texts_get(texts, line->of.file);
}

size_t symbol_texts_lookup(struct symbol_texts *texts, uint64_t address,
			   struct symbol_line ret_lines[SYMBOL_CHAIN_MAX])
{
	size_t count = symbol_texts_find(texts->table, address, ret_lines);

	for (size_t i = 0; i < count; i++)
		symbol_texts_fill(texts, &ret_lines[i]);
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
