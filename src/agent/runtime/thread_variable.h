/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_variable - finds a thread-local variable in a binary, from the code of small exported
 * functions that read it: it shows which word of the global offset table is used, and the
 * relocation of that word shows how. Needs exported symbols only.
 */
#ifndef FIRN_AGENT_RUNTIME_THREAD_VARIABLE_H
#define FIRN_AGENT_RUNTIME_THREAD_VARIABLE_H

#include "agent/bpf/shared.h"
#include "agent/runtime/elf_exports.h"

#define FUNCTION_CODE_BYTES 64u
#define CODE_PATTERN_BYTES 8u

/* An instruction with a 32-bit operand behind `len` bytes. */
struct code_pattern {
	uint8_t bytes[CODE_PATTERN_BYTES];
	uint8_t len;
	bool is_relative; /* to the end of the instruction */
};

/* How an exported function begins. */
struct function_code {
	uint64_t address;
	uint8_t code[FUNCTION_CODE_BYTES];
};

bool function_code_read(const struct elf_exports *symbols, const char *name,
			struct function_code *ret);

/* The operands of an instruction in the function, one after the other; *at starts from 0. */
bool function_code_next(const struct function_code *function, const struct code_pattern *pattern,
			size_t *at, uint64_t *ret);

struct thread_variable {
	enum script_state_form form;
	uint64_t at; /* as state_at of struct script_process, with virtual addresses */
};

/* Uses the first of these exported functions that exists and reads such a variable. */
bool thread_variable_find(const struct elf_exports *symbols, const char *const *readers,
			  size_t count, struct thread_variable *ret);

#endif
