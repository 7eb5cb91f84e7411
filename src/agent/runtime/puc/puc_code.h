/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puc_code - reads a prototype of PUC-Rio's Lua from a process: its file, its lines, and by which
 * names it calls others. It has no name of its own: where none is known, it is called by the place
 * where it begins.
 *
 * Bounds: PUC_INSTRUCTIONS_MAX, and those of puc_text and puc_calls.
 */
#ifndef FIRN_AGENT_RUNTIME_PUC_PUC_CODE_H
#define FIRN_AGENT_RUNTIME_PUC_PUC_CODE_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/puc/puc_layout.h"
#include "agent/runtime/script_code.h"
#include "base/slice.h"

#define PUC_INSTRUCTIONS_MAX 65536u

/* Nothing is to be freed unless SCRIPT_CODE_READ. */
enum script_code_result puc_code_read(const struct memory_reader *memory,
				      const struct puc_layout *layout, uint64_t address,
				      struct script_code *ret);

/* The name of the function that was called before the position; NULL = none. */
const char *puc_callee(const struct script_code *code, uint32_t position);

/* By the low half of the address of the next instruction; 0 = not known. */
uint32_t puc_line(struct slice lines, uint32_t position);

#endif
