/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function_extents - where functions start and end according to an ELF file's unwind information,
 * which stripping leaves. Hands them to a symbol_builder.
 *
 * Compilers move unlikely code out of functions ("f.cold"), with unwind information of its own. It
 * belongs to the function that jumps into it, if there is exactly one, and either the frame at its
 * first instruction differs from that after a call, or a jump into it is conditional and nothing
 * calls it. This needs the code itself, which separate debug files and the agents' extracts lack:
 * there such a part stays a function of its own.
 *
 * In hand-written assembly, unwind information may begin after the landing pad (endbr64, bti): the
 * pad belongs to the function.
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
