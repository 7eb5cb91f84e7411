/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mono_file - which Mono a binary is (libmonosgen, or a program that has it inside), and what the
 * code of its small exported functions says of its structures.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_MONO_FILE_H
#define FIRN_AGENT_RUNTIME_DOTNET_MONO_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

#define MONO_MARK "mono_jit_info_get_code_start" /* a symbol that no other runtime exports */

/* Fills in version, source or problem, and the layout's symbols. */
void mono_file_read(const struct elf_exports *symbols, struct runtime_file *ret);

#endif
