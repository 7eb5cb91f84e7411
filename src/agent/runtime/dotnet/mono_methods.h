/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mono_methods - methods that Mono has compiled in a process, and its trampolines:
 *
 *   domains -> table of chunks -> a MonoJitInfo each -> code, MonoMethod -> name
 *                                                   -> number -> unwind information -> rows
 *
 * Where the table and the unwind information are no symbol says; both are known by their form.
 * Bounds: MONO_METHODS_MAX, and the budget of code_memory.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_MONO_METHODS_H
#define FIRN_AGENT_RUNTIME_DOTNET_MONO_METHODS_H

#include "agent/runtime/dotnet/dotnet_layout.h"
#include "agent/runtime/dotnet/mono_rows.h"

#define MONO_METHODS_MAX 65536u
#define MONO_NAME_MAX 1024u

struct mono_method {
	uint64_t info; /* address of its MonoJitInfo */
	uint64_t start, end;
	uint64_t method; /* of a trampoline something else */
	uint32_t bits, unwind;
	bool is_trampoline;
};

struct mono_methods {
	struct mono_method *items;
	size_t count, capacity;
	bool is_whole; /* nothing was changed while it was read */
};

/* What lies in the memory of files of machine code is left out: those files have unwind tables. */
enum dotnet_answer mono_methods_read(struct code_memory *memory, const struct mono_symbols *symbols,
				     uint64_t bias, struct mono_methods *ret);
void mono_methods_fini(struct mono_methods *methods);

/* The variable that leads to unwind information; false = there is none (yet). */
bool mono_unwinds_find(struct code_memory *memory, const struct mono_symbols *symbols,
		       uint64_t bias, uint64_t *ret);

/* False = it cannot be read, or has none. */
bool mono_method_name(struct code_memory *memory, const struct mono_symbols *symbols,
		      const struct mono_method *method, char ret[MONO_NAME_MAX]);

/* `unwinds`: the variable. False: they are not known, or not as we understand them. */
bool mono_method_rows(struct code_memory *memory, const struct mono_symbols *symbols,
		      uint64_t unwinds, const struct mono_method *method, struct mono_rows *ret);

#endif
