/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_parts - the parts of a function that its compiler put elsewhere ("f.cold"), in files
 * whose symbols were stripped, too.
 *
 * Such a part has unwind information of its own, by which its frame is there from its first
 * instruction on, as no function's is; and the function jumps into it. Which of the two is the
 * larger is not said: the loop of an interpreter may have next to all of its code in the part.
 *
 * For x86-64. Reads .eh_frame_hdr (at most FUNCTION_PARTS_TABLE_MAX bytes) and the function's code
 * (at most FUNCTION_PARTS_CODE_MAX). Format: LSB 5, chapter 10.6. One thread at a time.
 */
#ifndef FIRN_AGENT_RUNTIME_FUNCTION_PARTS_H
#define FIRN_AGENT_RUNTIME_FUNCTION_PARTS_H

#include "agent/runtime/elf_exports.h"

#define FUNCTION_PARTS_TABLE_MAX ((uint64_t)16 << 20)
#define FUNCTION_PARTS_CODE_MAX ((uint64_t)4 << 20)

/* The function, or part of one, that begins at the address. */
bool function_extent_find(const struct elf_exports *symbols, uint64_t address,
			  struct elf_export *ret);

/* At most `max`, each once. How many. */
size_t function_parts_find(const struct elf_exports *symbols, const struct elf_export *function,
			   struct elf_export *ret, size_t max);

#endif
