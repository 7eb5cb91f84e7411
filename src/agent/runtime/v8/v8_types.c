/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_types.h"

#include "agent/runtime/v8/v8_text.h"

#define TYPE_ODDBALL 131u /* undefined; from 9.0 on at least */
#define TYPES_MAX 512u	  /* of objects that are no objects of JavaScript */
#define SCOPE_DISTANCE 2u /* from a function to its scope */

static uint16_t type_at(const struct memory_reader *memory, const struct v8_layout *layout,
			uint64_t address)
{
	uint64_t word;

	return v8_word_read(memory, layout, address, &word) ? v8_type(memory, layout, word)
							    : V8_NO_FIELD;
}

static bool is_number(uint64_t word)
{
	return (uint32_t)word == 0;
}

static bool is_text_or_undefined(const struct v8_layout *layout, uint16_t type)
{
	return type < layout->text_types || type == TYPE_ODDBALL;
}

static bool is_inner(const struct v8_layout *layout, uint16_t type)
{
	return type > layout->text_types && type != TYPE_ODDBALL && type < TYPES_MAX;
}

static bool is_script(const struct memory_reader *memory, const struct v8_layout *layout,
		      uint64_t word)
{
	uint64_t line;

	return is_inner(layout, v8_type(memory, layout, word)) &&
	       is_text_or_undefined(layout,
				    type_at(memory, layout, word - 1 + layout->script_name)) &&
	       is_text_or_undefined(layout,
				    type_at(memory, layout, word - 1 + layout->script_source)) &&
	       v8_word_read(memory, layout, word - 1 + layout->script_line, &line) &&
	       is_number(line);
}

static bool learn(const struct memory_reader *memory, struct v8_layout *layout, uint64_t shared)
{
	uint16_t type = v8_type(memory, layout, shared), script_type;
	uint64_t name, script;

	if (!is_inner(layout, type) ||
	    !v8_word_read(memory, layout, shared - 1 + layout->shared_name, &name) ||
	    !v8_word_read(memory, layout, shared - 1 + layout->shared_script, &script))
		return false;
	layout->type_shared = type;
	layout->type_scope = type - SCOPE_DISTANCE;
	if (!is_number(name)) {
		uint16_t name_type = v8_type(memory, layout, name);

		if (name_type != layout->type_scope && name_type >= layout->text_types)
			return false;
	}
	script_type = v8_type(memory, layout, script);
	layout->type_script = script_type == TYPE_ODDBALL ? 0 : script_type;
	return script_type == TYPE_ODDBALL || is_script(memory, layout, script);
}

bool v8_types_find(const struct memory_reader *memory, struct v8_layout *layout, uint64_t shared)
{
	if (layout->are_types_unknown)
		return learn(memory, layout, shared);
	return v8_type(memory, layout, shared) == layout->type_shared;
}
