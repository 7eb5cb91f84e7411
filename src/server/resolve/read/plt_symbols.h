/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plt_symbols - names for the stubs of a procedure linkage table: "memcpy@plt", as debuggers call
 * them. The code of a stub jumps to where a slot of the global offset table points; the relocation
 * of that slot names the function. x86-64 and AArch64.
 *
 * Sources: System V psABI x86-64, 5.2; System V psABI AArch64, PLT sequences.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_PLT_SYMBOLS_H
#define FIRN_SERVER_RESOLVE_READ_PLT_SYMBOLS_H

#include <libelf.h>

#include "server/resolve/table/symbol_builder.h"

/* After symbol_builder_code_done. */
void plt_symbols_read(Elf *elf, uint16_t machine, struct symbol_builder *builder);

#endif
