/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_extents - where functions start and end by an ELF file's unwind information: what is
 * left of them when the symbols are stripped off. Hands them to a symbol_builder.
 *
 * Compilers move unlikely code out of functions ("f.cold"), and give it unwind information of its
 * own. Its function is the one that jumps into it, when there is exactly one, and either the frame
 * at its first instruction is not as a call leaves it, or a jump into it is conditional and nobody
 * calls it. That takes the code itself, which separate debug files and what agents send lack: there
 * such a part stays a function of its own.
 *
 * Hand-written assembly may have its unwind information begin behind the landing pad that it begins
 * with (endbr64, bti): the pad is the function's.
 *
 * x86-64 and AArch64.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_FUNCTION_EXTENTS_H
#define FIRN_SERVER_RESOLVE_READ_FUNCTION_EXTENTS_H

#include <libelf.h>

#include "server/resolve/table/symbol_builder.h"

/* Reads .eh_frame, or .debug_frame, after symbol_builder_code_done. */
void function_extents_read(Elf *elf, uint16_t machine, struct symbol_builder *builder);

#endif
