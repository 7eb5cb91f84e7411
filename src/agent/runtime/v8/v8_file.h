/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_file - reads from a binary with V8: its version, and the offsets in its objects.
 *
 * V8 exports them for debuggers (v8dbg_...), in Node.js from 14 on; most other programs do not:
 * then they follow from V8's version (v8_versions.h).
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_FILE_H
#define FIRN_AGENT_RUNTIME_V8_V8_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/* Sets all but the kind; ret->problem where it fails. It does not need `mark`. */
void v8_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		  struct runtime_file *ret);

/* The same of a file that exports nothing of V8: false when V8 is not in it (v8_content.h). */
bool v8_file_find(const struct elf_exports *symbols, struct runtime_file *ret);

#endif
