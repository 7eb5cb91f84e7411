/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_parts - finds the parts of a function that the compiler put elsewhere ("f.cold"), in
 * stripped files, too.
 *
 * Such a part has unwind information of its own, in which the frame exists from the first
 * instruction on, unlike in any function; and the function jumps into it. Either may be the larger:
 * nearly all of an interpreter's loop may be in the part.
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
