/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_table - Go's function table in an ELF file: by the name of its section, else, in a Go program
 * whose linker or stripper left no such name, by searching its segments; and the address of the
 * program's text where the table does not tell it.
 *
 * Part of unwind_sources.
 */
#ifndef FIRN_AGENT_UNWIND_GO_TABLE_H
#define FIRN_AGENT_UNWIND_GO_TABLE_H

#include "agent/unwind/elf_sections.h"
#include "agent/unwind/table_build.h"
#include "codec/elf/gopclntab.h"

/*
 * *ret is to be freed with free(), and NULL when this is no Go program. ERR_INVALID,
 * ERR_UNSUPPORTED and ERR_NOT_FOUND as gopclntab has them, ERR_LIMIT when the named section has
 * more than `bytes_max`.
 */
int go_table_open(const struct table_input *input, const struct elf_layout *layout,
		  uint64_t bytes_max, struct gopclntab **ret, struct err *err);

#endif
