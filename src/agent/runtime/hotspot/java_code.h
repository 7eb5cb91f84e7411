/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_code - what a piece of HotSpot's code runs: a method that is interpreted, a compiled method
 * with all that was inlined into it, or a stub.
 *
 * The compiler recorded a scope for some instructions, in order: the bytecode of a method, and the
 * scope into which it is inlined. java_frames says which one another instruction belongs to.
 *
 * Bounds: JAVA_PLACES_MAX instructions, JAVA_METHODS_MAX methods, chains of JAVA_INLINED_MAX.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_CODE_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_CODE_H

#include "agent/runtime/hotspot/java_method.h"

#define JAVA_PLACES_MAX 65536u
#define JAVA_METHODS_MAX 4096u
#define JAVA_INLINED_MAX 128u /* C2 stops a little above MaxForceInlineLevel, 100 */
#define JAVA_NO_SCOPE UINT32_MAX
#define JAVA_DEBUG_BYTES_MAX ((uint32_t)4 << 20)

struct java_scope {
	uint32_t outer;	 /* scope that this one is inlined into; JAVA_NO_SCOPE = none */
	uint32_t method; /* of java_code.methods */
	uint32_t bci;
};

struct java_place {
	uint32_t first, last; /* instructions, as positions from the blob's start */
	uint32_t scope;
};

struct java_code {
	char *stub; /* name of code that is of no method; else NULL */
	bool is_interpreted;
	struct java_method *methods; /* [0]: the outermost */
	uint32_t methods_count;
	struct java_scope *scopes;
	uint32_t scopes_count;
	struct java_place *places;
	uint32_t places_count;
	uint32_t proof;
};

/* NULL when there is no such thing. The caller frees it. */
struct java_code *java_code_read(const struct memory_reader *memory,
				 const struct hotspot_process *process, uint64_t address);

void java_code_free(struct java_code *code); /* accepts NULL */
size_t java_code_bytes(const struct java_code *code);

#endif
