/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_code - reads a code object of CPython out of a process.
 *
 * Bounds: names of PYTHON_TEXT_MAX characters (longer ones are cut), tables of lines of
 * PYTHON_LINES_MAX bytes (longer ones are left out), and some seven reads, whatever is there.
 */
#ifndef FIRN_AGENT_RUNTIME_PYTHON_PYTHON_CODE_H
#define FIRN_AGENT_RUNTIME_PYTHON_PYTHON_CODE_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/python/python_layout.h"
#include "agent/runtime/script_code.h"
#include "base/strbuf.h"

#define PYTHON_TEXT_MAX 1024u
#define PYTHON_LINES_MAX 65536u

/*
 * `bias` is what the binary's virtual addresses are moved by in the process; `proof_words` as in
 * the script_layout. Nothing is to be freed unless SCRIPT_CODE_READ.
 */
enum script_code_result python_code_read(const struct memory_reader *memory,
					 const struct python_layout *layout, uint64_t bias,
					 uint32_t proof_words, uint64_t address,
					 struct script_code *ret);

/* The module name of a file, by its path alone: "json.decoder", "app". */
void python_module_name(const char *file, struct strbuf *out);

#endif
