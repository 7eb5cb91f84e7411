/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_file - which CoreCLR a binary is: libcoreclr.so, or a program that has it inside.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_DOTNET_FILE_H
#define FIRN_AGENT_RUNTIME_DOTNET_DOTNET_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* `dac`: the symbol g_dacTable. Fills in version, source or problem, and the layout's symbols. */
void dotnet_file_read(const struct elf_exports *symbols, const struct elf_export *dac,
		      struct runtime_file *ret);

#endif
