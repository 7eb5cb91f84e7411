/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/python/python_state.h"

static bool is_in(const struct elf_export *symbol, uint64_t address)
{
	return address - symbol->address < symbol->bytes;
}

static const char key_reader[] = "PyGILState_GetThisThreadState";

#define LOAD_NUMBER                                                                                \
	{                                                                                          \
		{ 0x8b, 0x3d }, 2, true                                                            \
	} /* mov number, %edi */

/* Before 3.7: the number alone, a variable of its own. */
static bool find_key_number(const struct elf_exports *symbols, struct thread_variable *ret)
{
	static const struct code_pattern load = LOAD_NUMBER;
	struct function_code function;
	size_t at = 0;

	ret->form = SCRIPT_STATE_KEY_NUMBER;
	return function_code_read(symbols, key_reader, &function) &&
	       function_code_next(&function, &load, &at, &ret->at);
}

/* The pair {is it created, number} in _PyRuntime. */
static bool find_key(const struct elf_exports *symbols, const struct elf_export *runtime,
		     uint64_t *ret)
{
	static const struct {
		struct code_pattern pattern;
		uint8_t into; /* the pair */
	} by_address[] = {
		{ LOAD_NUMBER, 4 },
		{ { { 0x48, 0x8d, 0x3d }, 3, true }, 0 }, /* lea pair, %rdi */
		{ { { 0x48, 0x8d, 0x1d }, 3, true }, 0 }, /* ... %rbx, kept over a call */
		{ { { 0x48, 0x8d, 0x2d }, 3, true }, 0 }, /* ... %rbp */
		{ { { 0xbf }, 1, false }, 0 },		  /* mov $pair, %edi */
		{ { { 0xbb }, 1, false }, 0 },		  /* ... %ebx */
	};
	static const struct code_pattern by_base[] = { { { 0x48, 0x8d, 0xb8 }, 3, false },
						       { { 0x48, 0x8d, 0x98 }, 3, false } };
	struct function_code function;

	if (!function_code_read(symbols, key_reader, &function))
		return false;
	for (size_t i = 0; i < sizeof(by_address) / sizeof(by_address[0]); i++)
		for (size_t at = 0;
		     function_code_next(&function, &by_address[i].pattern, &at, ret);)
			if (is_in(runtime, *ret)) {
				*ret -= by_address[i].into;
				return true;
			}
	for (size_t i = 0; i < 2; i++)
		for (size_t at = 0; function_code_next(&function, &by_base[i], &at, ret);)
			if (*ret && *ret < runtime->bytes) {
				*ret += runtime->address;
				return true;
			}
	return false;
}

/* Before 3.7: {what has the lock, the newest interpreter}, which are variables of their own. */
static void find_variables(const struct elf_exports *symbols, const struct elf_export *current,
			   struct python_state *ret)
{
	static const struct code_pattern load = { { 0x48, 0x8b, 0x05 }, 3, true }; /* mov , %rax */
	struct function_code function;
	size_t at = 0;

	ret->current = current->address;
	if (!function_code_read(symbols, "PyInterpreterState_Head", &function) ||
	    !function_code_next(&function, &load, &at, &ret->interpreters))
		ret->interpreters = 0;
}

/* Up to 3.11. The key and what has the lock lie in one structure. */
static void find_others(const struct elf_export *runtime, const struct python_places *places,
			struct python_state *ret)
{
	if (!places || !places->current)
		return;
	ret->current = ret->named.at - (places->key - places->current);
	ret->interpreters = runtime->address + places->interpreters;
}

bool python_state_find(const struct elf_exports *symbols, const struct elf_export *runtime,
		       uint16_t version, const struct python_places *places,
		       struct python_state *ret)
{
	static const char *const readers[] = { "_PyThreadState_GetCurrent",
					       "PyThreadState_GetUnchecked",
					       "_PyThreadState_UncheckedGet" };
	static const char *const detached_readers[] = { key_reader };
	uint64_t key;

	*ret = (struct python_state){ 0 };
	if (version < PYTHON_VERSION(3, 7)) {
		find_variables(symbols, runtime, ret);
		return find_key_number(symbols, &ret->named);
	}
	if (!find_key(symbols, runtime, &key))
		key = places && places->key ? runtime->address + places->key : 0;
	if (version >= PYTHON_VERSION(3, 12) &&
	    thread_variable_find(symbols, readers, 3, &ret->named)) {
		if (key)
			ret->detached = (struct thread_variable){ SCRIPT_STATE_KEY, key };
		else if (!thread_variable_find(symbols, detached_readers, 1, &ret->detached))
			ret->detached = (struct thread_variable){ 0 };
		return true;
	}
	ret->named = (struct thread_variable){ SCRIPT_STATE_KEY, key };
	find_others(runtime, places, ret);
	return key != 0;
}
