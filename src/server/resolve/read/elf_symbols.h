/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf_symbols - hands code sections and function symbols of an ELF file to a symbol_builder.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_ELF_SYMBOLS_H
#define FIRN_SERVER_RESOLVE_READ_ELF_SYMBOLS_H

#include <libelf.h>

#include "server/resolve/table/symbol_builder.h"

/* Names the executable sections; false when there are none. */
bool elf_symbols_code(Elf *elf, struct symbol_builder *builder);

/* Reads .symtab and .dynsym, after symbol_builder_code_done. */
void elf_symbols_read(Elf *elf, struct symbol_builder *builder);

#endif
