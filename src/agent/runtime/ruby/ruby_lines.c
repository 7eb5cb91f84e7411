/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: Ruby's iseq.c, struct succ_index_table. For the first 54 words it says the entry's
 * number itself, nine words in a number of 64 bits; for those that follow, in blocks of 512, a bit
 * is set where another entry begins, and bits are counted.
 */
#include "agent/runtime/ruby/ruby_lines.h"

#include <stdlib.h>
#include <string.h>

#include "agent/runtime/line_table.h"
#include "base/mem.h"

#define NEAR_WORDS 54u
#define NEAR_PER_NUMBER 9u
#define NEAR_BITS 7u
#define BLOCK_WORDS 512u
#define RANK_BITS 9u
#define BLOCKS_MAX ((RUBY_WORDS_MAX + BLOCK_WORDS - 1) / BLOCK_WORDS)
#define ENTRY_BYTES_MAX 12u
#define WORD_BYTES 8u

struct block {
	uint32_t rank; /* entries before the block */
	uint32_t padding;
	uint64_t ranks; /* ... before each of its numbers but the first, in the block */
	uint64_t bits[BLOCK_WORDS / 64];
};

struct index {
	uint64_t near[NEAR_WORDS / NEAR_PER_NUMBER];
	struct block blocks[BLOCKS_MAX];
};

/* The number of a word's entry, from 1 on. */
static uint32_t entry_of(const struct index *index, uint32_t word)
{
	const struct block *block;
	uint32_t bit, number;
	uint64_t below;

	if (word < NEAR_WORDS)
		return index->near[word / NEAR_PER_NUMBER] >> word % NEAR_PER_NUMBER * NEAR_BITS &
		       ((1u << NEAR_BITS) - 1);
	block = &index->blocks[(word - NEAR_WORDS) / BLOCK_WORDS];
	bit = (word - NEAR_WORDS) % BLOCK_WORDS;
	number = bit / 64;
	below = number ? block->ranks >> (number - 1) * RANK_BITS & ((1u << RANK_BITS) - 1) : 0;
	return block->rank + (uint32_t)below +
	       (uint32_t)__builtin_popcountll(block->bits[number] << (63 - bit % 64));
}

static bool read_index(const struct memory_reader *memory, const struct ruby_line_source *source,
		       struct index *ret)
{
	size_t blocks = 0;

	if (source->words > NEAR_WORDS)
		blocks = (source->words - NEAR_WORDS + BLOCK_WORDS - 1) / BLOCK_WORDS;
	return memory_read(memory, source->index, ret,
			   sizeof(ret->near) + blocks * sizeof(struct block));
}

static void fill(const struct ruby_line_source *source, const struct index *index,
		 const uint8_t *entries, struct line_table *table)
{
	for (uint32_t word = 0; word < source->words; word++) {
		uint32_t entry = index ? entry_of(index, word) - 1 : 0, line = 0;

		if (entry < source->entries_count)
			memcpy(&line, entries + (size_t)entry * source->entry_bytes, sizeof(line));
		line_table_add(table, word, line);
	}
}

uint8_t *ruby_lines_read(const struct memory_reader *memory, const struct ruby_line_source *source,
			 size_t *ret_len)
{
	size_t bytes = (size_t)source->entries_count * source->entry_bytes;
	struct index *index = NULL;
	struct line_table table = { .numbers = NULL };
	uint8_t *entries;

	if (!source->words || source->words > RUBY_WORDS_MAX || !source->entries_count ||
	    source->entries_count > RUBY_LINES_MAX || source->entry_bytes < sizeof(uint32_t) ||
	    source->entry_bytes > ENTRY_BYTES_MAX)
		return NULL;
	if (source->entries_count > 1)
		index = mem_new(struct index);
	entries = mem_new_array(uint8_t, bytes);
	if (memory_read(memory, source->entries, entries, bytes) &&
	    (!index || read_index(memory, source, index))) {
		line_table_begin(&table, source->code, source->words);
		fill(source, index, entries, &table);
	}
	free(index);
	free(entries);
	return table.numbers ? line_table_take(&table, ret_len) : NULL;
}

uint32_t ruby_line(struct slice table, uint32_t pc)
{
	return line_table_line_before(table, pc, WORD_BYTES);
}
