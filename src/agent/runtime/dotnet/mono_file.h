/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mono_file - which Mono a binary is (libmonosgen, or a program that has it inside), and what the
 * code of its small exported functions says of its structures.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_MONO_FILE_H
#define FIRN_AGENT_RUNTIME_DOTNET_MONO_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* Fills in version, source or problem, and the layout's symbols. It does not need `mark`. */
void mono_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		    struct runtime_file *ret);

#endif
