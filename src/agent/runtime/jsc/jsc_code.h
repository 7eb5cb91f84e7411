/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsc_code - what a frame of JavaScriptCore runs (bpf/script_jsc.h): the function of its CodeBlock,
 * and, in optimized code, the functions that are inlined where it calls others.
 *
 * Optimized code has a list of its call sites. Each belongs to the function that was compiled, or
 * to a call that was inlined, and that to an outer one. A frame that is in a call has the number of
 * the call site. Where optimized code itself runs, no frame says which function it is in.
 *
 * A frame of C++ may have the words of an older frame of a function in the place of its own. So
 * native code has a frame of a function only where it is the interpreter's, which lies in one
 * piece.
 *
 * Bounds: JSC_SITES_MAX call sites, JSC_CALLS_MAX inlined calls, JSC_INLINED_MAX in one another;
 * what is more is not known.
 */
#ifndef FIRN_AGENT_RUNTIME_JSC_JSC_CODE_H
#define FIRN_AGENT_RUNTIME_JSC_JSC_CODE_H

#include <stdbool.h>

#include "agent/runtime/jsc/jsc_layout.h"
#include "agent/runtime/memory_reader.h"
#include "agent/runtime/script_code.h"

#define JSC_OPCODES_MAX 2048u
#define JSC_SITES_MAX 8192u
#define JSC_CALLS_MAX 512u
#define JSC_INLINED_MAX 64u
#define JSC_NO_CALL 0xffff	/* the function that was compiled */
#define JSC_UNKNOWN_CALL 0xfffe /* of a site */

enum jsc_tier {
	JSC_TIER_DFG = 4,
	JSC_TIER_FTL = 5,
};

/* A call that was inlined. */
struct jsc_call {
	char *function, *file; /* of the callee */
	uint64_t address;      /* of what describes it */
	uint16_t outer;	       /* number of the call that it was inlined into, a lower one */
	uint16_t depth;	       /* 1 = into the function that was compiled */
};

struct jsc_code {
	uint64_t interpreter_start, interpreter_end; /* JavaScriptCore's, in the process */
	uint8_t tier;				     /* enum jsc_tier, or less */
	bool has_inlined;
	struct jsc_call *calls;
	size_t calls_count, calls_capacity;
	uint16_t *sites; /* the innermost inlined call of each call site */
	size_t sites_count;
};

/*
 * Sets the names, and `jsc`. Nothing is to be freed unless SCRIPT_CODE_READ.
 */
enum script_code_result jsc_code_read(const struct memory_reader *memory,
				      const struct jsc_layout *layout, uint64_t bias,
				      uint64_t address, struct script_code *ret);
void jsc_code_free(struct jsc_code *code); /* accepts NULL */
size_t jsc_code_bytes(const struct jsc_code *code);

/* The inlined calls that a call site is in, outermost first: how many; false = not known. */
bool jsc_code_calls(const struct jsc_code *code, uint32_t site,
		    const struct jsc_call *ret[JSC_INLINED_MAX], size_t *ret_count);

#endif
