/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions as GCC and clang emit them for x86-64, in the models of the System V ABI's
 * supplement on thread-local storage.
 */
#include "agent/runtime/thread_variable.h"

#include <elf.h>
#include <string.h>

bool function_code_read(const struct elf_exports *symbols, const char *name,
			struct function_code *ret)
{
	struct elf_export symbol;

	if (!elf_exports_find(symbols, name, &symbol))
		return false;
	ret->address = symbol.address;
	return elf_exports_read(symbols, symbol.address, ret->code, sizeof(ret->code));
}

bool function_code_next(const struct function_code *function, const struct code_pattern *pattern,
			size_t *at, uint64_t *ret)
{
	int32_t operand;

	for (size_t i = *at; i + pattern->len + sizeof(operand) <= FUNCTION_CODE_BYTES; i++) {
		if (memcmp(function->code + i, pattern->bytes, pattern->len) != 0)
			continue;
		memcpy(&operand, function->code + i + pattern->len, sizeof(operand));
		*ret = (uint64_t)(int64_t)operand;
		if (pattern->is_relative)
			*ret += function->address + i + pattern->len + sizeof(operand);
		*at = i + 1;
		return true;
	}
	return false;
}

/* Where the operand is a word with this relocation. */
static bool find_relocated(const struct elf_exports *symbols, const struct function_code *function,
			   const struct code_pattern *pattern, uint32_t relocation, uint64_t *ret)
{
	for (size_t at = 0; function_code_next(function, pattern, &at, ret);)
		if (elf_exports_relocation(symbols, *ret) == relocation)
			return true;
	return false;
}

static const struct code_pattern load_thread_word = { { 0x64, 0x48, 0x8b, 0x04, 0x25 }, 5, false };
static const struct code_pattern move_offset = { { 0x48, 0xc7, 0xc0 }, 3, false };
static const struct code_pattern load_through_ax = { { 0x64, 0x48, 0x8b }, 3, false };
static const struct code_pattern lea_di = { { 0x48, 0x8d, 0x3d }, 3, true };
static const struct code_pattern lea_ax = { { 0x48, 0x8d, 0x05 }, 3, true };
static const struct code_pattern load_ax = { { 0x48, 0x8b, 0x05 }, 3, true };

static bool find_variable_in(const struct elf_exports *symbols,
			     const struct function_code *function, struct thread_variable *ret)
{
	uint64_t unused;
	size_t at = 0, after = 0;

	if (find_relocated(symbols, function, &lea_di, R_X86_64_DTPMOD64, &ret->at)) {
		ret->form = SCRIPT_STATE_DYNAMIC;
		return true;
	}
	if (find_relocated(symbols, function, &load_ax, R_X86_64_TPOFF64, &ret->at)) {
		ret->form = SCRIPT_STATE_SLOT;
		return true;
	}
	/* The descriptor's second word: of what was loaded at the start the offset itself. */
	if (find_relocated(symbols, function, &lea_ax, R_X86_64_TLSDESC, &ret->at)) {
		ret->form = SCRIPT_STATE_SLOT;
		ret->at += 8;
		return true;
	}
	ret->form = SCRIPT_STATE_STATIC;
	while (function_code_next(function, &load_thread_word, &at, &ret->at))
		if ((int64_t)ret->at < 0) /* others are glibc's own: the canary of the stack */
			return true;
	at = 0;
	return function_code_next(function, &move_offset, &at, &ret->at) &&
	       function_code_next(function, &load_through_ax, &after, &unused) &&
	       (int64_t)ret->at < 0;
}

bool thread_variable_find(const struct elf_exports *symbols, const char *const *readers,
			  size_t count, struct thread_variable *ret)
{
	struct function_code function;

	for (size_t i = 0; i < count; i++)
		if (function_code_read(symbols, readers[i], &function) &&
		    find_variable_in(symbols, &function, ret))
			return true;
	return false;
}
