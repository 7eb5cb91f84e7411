/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions as GCC and clang emit them for x86-64, in the models of the System V ABI's
 * supplement on thread-local storage.
 */
#include "agent/runtime/python/python_state.h"

#include <elf.h>
#include <string.h>

#define CODE_BYTES 64u
#define PATTERN_BYTES 8u

/* An instruction with a 32-bit operand behind `len` bytes. */
struct pattern {
	uint8_t bytes[PATTERN_BYTES];
	uint8_t len;
	bool is_relative; /* to the end of the instruction */
};

struct function {
	uint64_t address;
	uint8_t code[CODE_BYTES];
};

static bool read_function(const struct elf_exports *symbols, const char *name, struct function *ret)
{
	struct elf_export symbol;

	if (!elf_exports_find(symbols, name, &symbol))
		return false;
	ret->address = symbol.address;
	return elf_exports_read(symbols, symbol.address, ret->code, sizeof(ret->code));
}

/* The operands of an instruction in the function, one after the other; *at starts from 0. */
static bool next_operand(const struct function *function, const struct pattern *pattern, size_t *at,
			 uint64_t *ret)
{
	int32_t operand;

	for (size_t i = *at; i + pattern->len + sizeof(operand) <= CODE_BYTES; i++) {
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
static bool find_relocated(const struct elf_exports *symbols, const struct function *function,
			   const struct pattern *pattern, uint32_t relocation, uint64_t *ret)
{
	for (size_t at = 0; next_operand(function, pattern, &at, ret);)
		if (elf_exports_relocation(symbols, *ret) == relocation)
			return true;
	return false;
}

static const struct pattern load_thread_word = { { 0x64, 0x48, 0x8b, 0x04, 0x25 }, 5, false };
static const struct pattern move_offset = { { 0x48, 0xc7, 0xc0 }, 3, false };
static const struct pattern load_through_ax = { { 0x64, 0x48, 0x8b }, 3, false };
static const struct pattern lea_di = { { 0x48, 0x8d, 0x3d }, 3, true };
static const struct pattern lea_ax = { { 0x48, 0x8d, 0x05 }, 3, true };
static const struct pattern load_ax = { { 0x48, 0x8b, 0x05 }, 3, true };

static bool find_variable_in(const struct elf_exports *symbols, const struct function *function,
			     struct python_state *ret)
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
	if (next_operand(function, &load_thread_word, &at, &ret->at))
		return true;
	at = 0;
	return next_operand(function, &move_offset, &at, &ret->at) &&
	       next_operand(function, &load_through_ax, &after, &unused) && (int64_t)ret->at < 0;
}

static bool find_variable(const struct elf_exports *symbols, struct python_state *ret)
{
	static const char *const readers[] = { "_PyThreadState_GetCurrent",
					       "PyThreadState_GetUnchecked",
					       "_PyThreadState_UncheckedGet" };
	struct function function;

	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (read_function(symbols, readers[i], &function) &&
		    find_variable_in(symbols, &function, ret))
			return true;
	return false;
}

static bool is_in(const struct elf_export *symbol, uint64_t address)
{
	return address - symbol->address < symbol->bytes;
}

/* The pair {is it created, number} in _PyRuntime. */
static bool find_key(const struct elf_exports *symbols, const struct elf_export *runtime,
		     uint64_t *ret)
{
	static const struct {
		struct pattern pattern;
		uint8_t into;					       /* the pair */
	} by_address[] = { { { { 0x8b, 0x3d }, 2, true }, 4 },	       /* mov number, %edi */
			   { { { 0x48, 0x8d, 0x3d }, 3, true }, 0 } }; /* lea pair, %rdi */
	static const struct pattern by_base[] = { { { 0x48, 0x8d, 0xb8 }, 3, false },
						  { { 0x48, 0x8d, 0x98 }, 3, false } };
	struct function function;

	if (!read_function(symbols, "PyGILState_GetThisThreadState", &function))
		return false;
	for (size_t i = 0; i < 2; i++)
		for (size_t at = 0; next_operand(&function, &by_address[i].pattern, &at, ret);)
			if (is_in(runtime, *ret)) {
				*ret -= by_address[i].into;
				return true;
			}
	for (size_t i = 0; i < 2; i++)
		for (size_t at = 0; next_operand(&function, &by_base[i], &at, ret);)
			if (*ret && *ret < runtime->bytes) {
				*ret += runtime->address;
				return true;
			}
	return false;
}

bool python_state_find(const struct elf_exports *symbols, const struct elf_export *runtime,
		       uint16_t version, uint64_t key_at, struct python_state *ret)
{
	if (version >= PYTHON_VERSION(3, 12) && find_variable(symbols, ret))
		return true;
	ret->form = SCRIPT_STATE_KEY;
	if (find_key(symbols, runtime, &ret->at))
		return true;
	ret->at = runtime->address + key_at;
	return key_at != 0;
}
