/* SPDX-License-Identifier: Apache-2.0 */
/*
 * puc_calls - by which names a function of PUC-Rio's Lua calls others, as in debug.getinfo: that of
 * the variable, field or method.
 *
 * Bounds: those of puc_code, LUA_CALLS_MAX names, PUC_CALLS_BACK_MAX instructions before a call,
 * and some 16 million steps in all.
 */
#ifndef FIRN_AGENT_RUNTIME_PUC_PUC_CALLS_H
#define FIRN_AGENT_RUNTIME_PUC_PUC_CALLS_H

#include "agent/runtime/lua/lua_prototype.h"
#include "agent/runtime/memory_reader.h"
#include "agent/runtime/puc/puc_layout.h"

#define PUC_CALLS_BACK_MAX 512u
#define PUC_NAMES_MAX 4096u /* constants, local variables, captured ones, of each */

/* What a prototype points at. */
struct puc_names_source {
	uint64_t code, constants, locals, captured; /* addresses */
	uint32_t code_count, constants_count, locals_count, captured_count;
};

/* Sets calls and calls_count, the caller's. */
void puc_calls_read(const struct memory_reader *memory, enum puc_instructions form,
		    const struct puc_names_source *source, struct lua_prototype *ret);

#endif
