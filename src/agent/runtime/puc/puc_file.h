/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puc_file - reads from a binary with PUC-Rio's Lua which version it is, and where its loop is: the
 * large function that takes the constants of the prototype of a call's closure as it begins.
 */
#ifndef FIRN_AGENT_RUNTIME_PUC_PUC_FILE_H
#define FIRN_AGENT_RUNTIME_PUC_PUC_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* Sets all that is not 0 in `ret` beside the kind; `problem`, if something is not as expected. */
void puc_file_read(const struct elf_exports *symbols, const struct elf_export *ident,
		   struct runtime_file *ret);

#endif
