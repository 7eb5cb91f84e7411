/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_choice - chooses the symbol of each piece of code that DWARF does not cover.
 *
 * Each address gets the best symbol's name. If no symbol covers it, but unwind information says
 * where the function starts and ends, the function is named by the offset of its start in the file,
 * which is the same wherever the file is seen.
 */
#ifndef FIRN_SERVER_RESOLVE_TABLE_SYMBOL_CHOICE_H
#define FIRN_SERVER_RESOLVE_TABLE_SYMBOL_CHOICE_H

#include "server/resolve/table/symbol_builder.h"

/*
 * Sorts the builder's candidates, adds those of functions without names, and makes the cover; its
 * values are candidates. `info` tells offsets of addresses.
 */
void symbol_choice_make(struct symbol_builder *builder, const struct elf_info *info,
			struct range_cover *ret);

#endif
