/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsc_layout - offsets in JavaScriptCore's objects, in bytes from an object's start. Plain data,
 * made by jsc_file, used by jsc_code.
 */
#ifndef FIRN_AGENT_RUNTIME_JSC_JSC_LAYOUT_H
#define FIRN_AGENT_RUNTIME_JSC_JSC_LAYOUT_H

#include <stdint.h>

struct jsc_layout {
	/*
	 * Kinds of cells: of the executables of scripts, modules, evaluated text and functions; of
	 * what executables of functions are made from; of CodeBlocks.
	 */
	uint8_t script_kind, module_kind, eval_kind, function_kind, unlinked_kind, code_kind;
	uint16_t owner, jit;	       /* in a CodeBlock: its executable, its machine code */
	uint16_t source, unlinked;     /* in the executable of a function */
	uint16_t name;		       /* in what that is made from */
	uint16_t url;		       /* in a source */
	uint16_t tier;		       /* in machine code */
	uint16_t dfg_calls, ftl_calls; /* ... by its tier: {inlined calls, call sites} */
	/* Of the interpreter: the addresses of its code, by instruction. Virtual. */
	uint64_t opcodes;
	uint32_t opcodes_count;
};

#endif
