/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index: Ruby's iseq.c, struct succ_index_table. For the first 54 words it says the entry's
 * number itself, nine words in a number of 64 bits; for those that follow, in blocks of 512, a bit
 * is set where another entry begins, and bits are counted.
 */
#include "agent/runtime/ruby/ruby_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NEAR_WORDS 54u
#define NEAR_PER_NUMBER 9u
#define NEAR_BITS 7u
#define BLOCK_WORDS 512u
#define RANK_BITS 9u
#define BLOCKS_MAX ((RUBY_WORDS_MAX + BLOCK_WORDS - 1) / BLOCK_WORDS)
#define ENTRY_BYTES_MAX 12u

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

struct table {
	uint32_t *numbers;
	size_t count;
};

static void fill(const struct ruby_line_source *source, const struct index *index,
		 const uint8_t *entries, struct table *table)
{
	uint32_t last = UINT32_MAX;

	for (uint32_t word = 0; word < source->words; word++) {
		uint32_t entry = index ? entry_of(index, word) - 1 : 0, line = 0;

		if (entry < source->entries_count)
			memcpy(&line, entries + (size_t)entry * source->entry_bytes, sizeof(line));
		if (line > INT32_MAX)
			line = 0;
		if (line == last || table->count + 2 > 2 + 2 * RUBY_LINES_MAX)
			continue;
		table->numbers[table->count++] = word;
		table->numbers[table->count++] = line;
		last = line;
	}
}

uint8_t *ruby_lines_read(const struct memory_reader *memory, const struct ruby_line_source *source,
			 size_t *ret_len)
{
	size_t bytes = (size_t)source->entries_count * source->entry_bytes;
	struct index *index = NULL;
	struct table table = { 0 };
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
		table.numbers = mem_new_array(uint32_t, 2 + 2 * RUBY_LINES_MAX);
		table.numbers[table.count++] = (uint32_t)source->code;
		table.numbers[table.count++] = source->words;
		fill(source, index, entries, &table);
	}
	free(index);
	free(entries);
	if (!table.numbers)
		return NULL;
	*ret_len = table.count * sizeof(uint32_t);
	return mem_realloc(table.numbers, table.count, sizeof(uint32_t));
}

static uint32_t number_at(struct slice table, size_t index)
{
	uint32_t number;

	memcpy(&number, table.data + index * sizeof(number), sizeof(number));
	return number;
}

uint32_t ruby_line(struct slice table, uint32_t pc)
{
	size_t count = table.len / sizeof(uint32_t);
	uint32_t into, word, line = 0;

	if (count < 2)
		return 0;
	into = pc - number_at(table, 0);
	word = into / 8;
	if (into % 8 || word > number_at(table, 1))
		return 0;
	word -= word > 0;
	for (size_t i = 2; i + 1 < count && number_at(table, i) <= word; i += 2)
		line = number_at(table, i + 1);
	return line;
}
