/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions: Lua's lopcodes.h. Names of what is in a register: ldebug.c.
 */
#include "agent/runtime/puc/puc_calls.h"

#include <stdlib.h>

#include "agent/runtime/puc/puc_text.h"
#include "base/mem.h"

#define NONE 0xff
#define CONSTANT_FLAG 0x100u /* of an operand, before 5.4 */
#define CONSTANT_BYTES 16u
#define STEPS_MAX (1u << 24) /* instructions and variables that are looked at for all names */

/* Numbers of operations, and which of them set the register that they name first. */
struct form {
	uint8_t move, load_nil, get_captured, get_of_captured, get, get_field, self;
	uint8_t call, tail_call, for_call;
	uint64_t sets[2];
};

static const struct form forms[] = {
	[PUC_INSTRUCTIONS_5_2] = { 0, 4, 5, 6, 7, NONE, 12, 29, 30, 34, { 0x6b707ff8ffull, 0 } },
	[PUC_INSTRUCTIONS_5_3] = { 0, 4, 5, 6, 7, NONE, 12, 36, 37, 41, { 0x35b83ffff8ffull, 0 } },
	[PUC_INSTRUCTIONS_5_4] = { 0,
				   8,
				   9,
				   11,
				   12,
				   14,
				   20,
				   68,
				   69,
				   76,
				   { 0x3e3ffffff87bffull, 0x3a638 } },
};

/* A local variable, as Lua keeps it. */
struct local {
	uint64_t name;
	uint32_t first, end; /* instructions */
};

struct captured {
	uint64_t name, kind;
};

struct function {
	const struct memory_reader *memory;
	const struct form *form;
	enum puc_instructions kind;
	const struct puc_names_source *source;
	uint32_t *code;
	struct local *locals;
	uint32_t steps_left; /* of STEPS_MAX */
};

static bool take_step(struct function *function)
{
	if (!function->steps_left)
		return false;
	function->steps_left--;
	return true;
}

/* ---- instructions ---- */

static uint8_t operation_of(const struct function *function, uint32_t word)
{
	return word & (function->kind == PUC_INSTRUCTIONS_5_4 ? 0x7f : 0x3f);
}

static uint32_t first_of(const struct function *function, uint32_t word)
{
	return (function->kind == PUC_INSTRUCTIONS_5_4 ? word >> 7 : word >> 6) & 0xff;
}

static uint32_t second_of(const struct function *function, uint32_t word)
{
	return function->kind == PUC_INSTRUCTIONS_5_4 ? word >> 16 & 0xff : word >> 23;
}

static uint32_t third_of(const struct function *function, uint32_t word)
{
	return function->kind == PUC_INSTRUCTIONS_5_4 ? word >> 24 : word >> 14 & 0x1ff;
}

/* ---- names ---- */

static char *name_of_local(struct function *function, uint32_t slot, uint32_t position)
{
	for (uint32_t i = 0; i < function->source->locals_count && take_step(function); i++) {
		const struct local *local = &function->locals[i];

		if (local->first > position)
			break;
		if (position < local->end && slot-- == 0)
			return puc_text_read(function->memory, local->name);
	}
	return NULL;
}

static char *name_of_captured(const struct function *function, uint32_t index)
{
	struct captured captured;

	if (index >= function->source->captured_count ||
	    !memory_read(function->memory,
			 function->source->captured + sizeof(captured) * (uint64_t)index, &captured,
			 sizeof(captured)))
		return NULL;
	return puc_text_read(function->memory, captured.name);
}

static char *name_of_constant(const struct function *function, uint32_t index)
{
	uint64_t text;

	if (index >= function->source->constants_count ||
	    !memory_read(function->memory,
			 function->source->constants + CONSTANT_BYTES * (uint64_t)index, &text,
			 sizeof(text)))
		return NULL;
	return puc_text_read(function->memory, text);
}

/* The third operand, if it is a constant. */
static char *name_of_third(const struct function *function, uint32_t word, bool is_constant)
{
	uint32_t third = third_of(function, word);

	if (function->kind == PUC_INSTRUCTIONS_5_4)
		return is_constant ? name_of_constant(function, third) : NULL;
	return third & CONSTANT_FLAG ? name_of_constant(function, third - CONSTANT_FLAG) : NULL;
}

/* What an instruction that sets a register sets it to. */
static char *name_of_value(const struct function *function, uint32_t word)
{
	const struct form *form = function->form;
	uint8_t operation = operation_of(function, word);

	if (operation == form->get_captured)
		return name_of_captured(function, second_of(function, word));
	if (operation == form->get_of_captured || operation == form->get_field)
		return name_of_third(function, word, true);
	if (operation == form->self)
		return name_of_third(function, word, word >> 15 & 1);
	return operation == form->get ? name_of_third(function, word, false) : NULL;
}

static bool sets(const struct function *function, uint32_t word, uint32_t slot)
{
	const struct form *form = function->form;
	uint8_t operation = operation_of(function, word);
	uint32_t first = first_of(function, word);

	if (operation == form->load_nil)
		return slot >= first && slot <= first + second_of(function, word);
	if (operation == form->call || operation == form->tail_call)
		return slot >= first;
	if (operation == form->for_call)
		return slot >= first + 2;
	return first == slot && form->sets[operation / 64] >> operation % 64 & 1;
}

/* What is in a register when an instruction runs: from there backwards to what has set it. */
static char *name_of_slot(struct function *function, uint32_t position, uint32_t slot)
{
	char *name = name_of_local(function, slot, position);

	for (uint32_t i = 0;
	     !name && position-- > 0 && i < PUC_CALLS_BACK_MAX && take_step(function); i++) {
		uint32_t word = function->code[position];

		if (!sets(function, word, slot))
			continue;
		if (operation_of(function, word) != function->form->move)
			return name_of_value(function, word);
		slot = second_of(function, word);
		name = name_of_local(function, slot, position);
	}
	return name;
}

static char *name_of_called(struct function *function, uint32_t position)
{
	uint32_t word = function->code[position];
	uint8_t operation = operation_of(function, word);

	if (operation == function->form->call || operation == function->form->tail_call)
		return name_of_slot(function, position, first_of(function, word));
	return NULL; /* what a loop iterates with is called by way of C */
}

static bool read_parts(struct function *function)
{
	const struct puc_names_source *source = function->source;

	function->code = mem_new_array(uint32_t, source->code_count);
	function->locals = mem_new_array(struct local, source->locals_count + 1);
	return memory_read(function->memory, source->code, function->code,
			   source->code_count * sizeof(*function->code)) &&
	       (!source->locals_count ||
		memory_read(function->memory, source->locals, function->locals,
			    source->locals_count * sizeof(*function->locals)));
}

void puc_calls_read(const struct memory_reader *memory, enum puc_instructions form,
		    const struct puc_names_source *source, struct lua_prototype *ret)
{
	struct function function = { .memory = memory,
				     .form = &forms[form],
				     .kind = form,
				     .source = source,
				     .steps_left = STEPS_MAX };
	size_t capacity = 0;

	if (source->constants_count > PUC_NAMES_MAX || source->locals_count > PUC_NAMES_MAX ||
	    source->captured_count > PUC_NAMES_MAX)
		return;
	if (read_parts(&function)) {
		for (uint32_t i = 0; i < source->code_count && ret->calls_count < LUA_CALLS_MAX;
		     i++) {
			char *name = name_of_called(&function, i);

			if (!name)
				continue;
			mem_grow(ret->calls, ret->calls_count, capacity);
			ret->calls[ret->calls_count++] = (struct lua_call){ i, name };
		}
	}
	free(function.code);
	free(function.locals);
}
