/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_file - reads from a binary with CPython: its version, how threads find their state,
 * offsets in its structures, and the evaluation loop.
 *
 * Offsets come from the interpreter's own table (_Py_DebugOffsets, from 3.13 on), from the code of
 * small exported functions, and for older versions from a table by version. Needs exported symbols
 * only, no debug information.
 */
#ifndef FIRN_AGENT_RUNTIME_PYTHON_PYTHON_FILE_H
#define FIRN_AGENT_RUNTIME_PYTHON_PYTHON_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/*
 * `runtime` is the symbol _PyRuntime, or, of a version before 3.7, _PyThreadState_Current. Sets all
 * but the kind; ret->problem where it fails.
 */
void python_file_read(const struct elf_exports *symbols, const struct elf_export *runtime,
		      struct runtime_file *ret);

#endif
