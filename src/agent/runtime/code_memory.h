/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code_memory - reads another process's memory by whole pages and caches the last ones, because
 * methods and their names lie side by side.
 *
 * It reads no page but those that hold what is asked for.
 *
 * Bounds: CODE_MEMORY_READS_MAX, against structures that are cyclic or endless. Loops ask
 * code_memory_is_spent.
 */
#ifndef FIRN_AGENT_RUNTIME_CODE_MEMORY_H
#define FIRN_AGENT_RUNTIME_CODE_MEMORY_H

#include "agent/runtime/memory_reader.h"

#define CODE_MEMORY_PAGE 4096u
#define CODE_MEMORY_PAGES 128u /* a power of two */
#define CODE_MEMORY_READS_MAX (1u << 25)
#define CODE_MEMORY_PAGE_READS 64u /* that a page counts for */

struct code_memory {
	const struct memory_reader *memory; /* borrowed */
	uint64_t addresses[CODE_MEMORY_PAGES];
	bool is_there[CODE_MEMORY_PAGES];
	uint32_t reads_left;
	uint8_t pages[CODE_MEMORY_PAGES][CODE_MEMORY_PAGE];
};

/* The cache is never refreshed: make a new one for each look (free() it), or begin again. */
struct code_memory *code_memory_new(const struct memory_reader *memory);

/* Forgets all pages, and reads this memory from now on. `memory` may be zero bytes before. */
void code_memory_begin(struct code_memory *memory, const struct memory_reader *from);

/*
 * For readers that know no pages. What crosses into another page, or cannot be read by pages, is
 * read as it is asked for: nothing fails that the memory itself would give.
 */
struct memory_reader code_memory_reader(struct code_memory *memory);

/* Nothing can be read any more, and what was read last may be missing. */
bool code_memory_is_spent(const struct code_memory *memory);

/* All of the bytes, or false. */
bool code_memory_read(struct code_memory *memory, uint64_t address, void *to, size_t len);

uint64_t code_memory_u64(struct code_memory *memory, uint64_t address); /* 0 = not there */
uint32_t code_memory_u32(struct code_memory *memory, uint64_t address);
uint16_t code_memory_u16(struct code_memory *memory, uint64_t address);
uint8_t code_memory_u8(struct code_memory *memory, uint64_t address);

#define CODE_TEXT_MAX 512u

/* A text that ends with NUL, of 1 to CODE_TEXT_MAX - 1 bytes; false = there is none. */
bool code_memory_text(struct code_memory *memory, uint64_t address, char ret[CODE_TEXT_MAX]);

#endif
