/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large_functions - the large functions of a binary, by its unwind information: the loop of an
 * interpreter is one of them, and in stripped files has no name. At most LARGE_FUNCTIONS_MAX.
 */
#ifndef FIRN_AGENT_RUNTIME_LARGE_FUNCTIONS_H
#define FIRN_AGENT_RUNTIME_LARGE_FUNCTIONS_H

#include "agent/runtime/elf_exports.h"
#include "codec/elf/cfi.h"

#define LARGE_FUNCTIONS_MAX 256

struct large_function {
	uint64_t start, end;
	uint64_t cookie; /* for cfi_rows */
};

struct large_function_query {
	const char *what;  /* for messages */
	uint64_t min, max; /* bytes */
	bool (*is_it)(void *context, struct cfi *cfi, const struct large_function *function);
	void *context;
};

/* The first one that is it; false = none is. */
bool large_functions_find(const struct elf_exports *symbols,
			  const struct large_function_query *query, struct large_function *ret);

#endif
