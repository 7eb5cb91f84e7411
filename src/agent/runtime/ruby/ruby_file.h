/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruby_file - reads from a binary with Ruby: its version, how threads find their execution context,
 * offsets in its structures, and the evaluation loop.
 *
 * The layout comes from a table by version; the thread's variable and the table of names from the
 * code of small exported functions. Works in stripped files.
 */
#ifndef FIRN_AGENT_RUNTIME_RUBY_RUBY_FILE_H
#define FIRN_AGENT_RUNTIME_RUBY_RUBY_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* Sets all but the kind; ret->problem where it fails. It does not need `mark`. */
void ruby_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		    struct runtime_file *ret);

#endif
