/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_layout - offsets in V8's objects, in bytes from an object's start. Plain data, made by
 * v8_file, used by v8_text and v8_code.
 *
 * Words of objects are tagged: an object's address + 1, or a small number in the upper half.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_LAYOUT_H
#define FIRN_AGENT_RUNTIME_V8_V8_LAYOUT_H

#include <stdint.h>

#include "agent/bpf/shared.h"

#define V8_NO_FIELD 0xffff
#define V8_ANY_TYPE 0xfffe /* of code: not known, but its structure tells it */

/* Kinds of frames of generated code that is no function's in JavaScript. */
enum v8_frame {
	V8_FRAME_REGULAR_EXPRESSION,
	V8_FRAME_WASM,
	V8_FRAME_WASM_TO_JS,
	V8_FRAME_JS_TO_WASM,
	V8_FRAME_C_TO_WASM,
	V8_FRAME_WASM_EXIT,
	V8_FRAMES
};

struct v8_layout {
	uint16_t map_type;	    /* the kind of a map's objects */
	uint16_t is_compressed;	    /* words are the lower halves of addresses, or 31-bit numbers */
	uint16_t are_types_unknown; /* each function tells the next three: see v8_types.h */
	uint16_t are_lengths_raw;   /* of arrays: no tagged numbers */
	uint64_t cage;		    /* compressed: the upper half of all addresses */
	uint16_t type_shared, type_scope, type_script;
	/* Text: kinds below `text_types`, of which masks and tags say the form. */
	uint16_t text_types, form_mask, narrow_mask;
	uint16_t form_cons, form_external, form_sliced, form_thin;
	uint16_t text_length, text_characters;
	uint16_t cons_first, cons_second, sliced_parent, sliced_start, thin_actual,
		external_resource;
	/* What the closures of a function share; of its scope: words, `scope_variables` by number.
	 */
	uint16_t shared_name, shared_script;
	uint16_t scope_flags, scope_variables;
	uint16_t scope_has_receiver; /* a word for where it is */
	uint16_t scope_position;     /* V8_NO_FIELD = behind the variables and names */
	uint16_t scope_kind;	     /* of the flags: the lowest bit of the kind of function */
	uint16_t script_name, script_source, script_line; /* number of its first line */
	/* Code, and the head before its instructions; type_head V8_NO_FIELD = not known. */
	uint16_t type_head, head_bytes;
	uint16_t head_code; /* V8_NO_FIELD = the head is the code */
	uint16_t type_code, code_start, code_size, code_deoptimization, code_positions;
	/* In the deoptimization data: numbers of its elements. */
	uint16_t data_literals, data_function, data_inlinings;
	uint16_t is_function_wrapped; /* the element is a word before the function */
	uint8_t frames[V8_FRAMES];    /* their numbers in frames; 0 = not known */
	uint16_t position_marks;    /* bits of an offset in the table of positions that are marks */
	uint16_t translation_codes; /* kinds of instructions (v8_translation.h); 0 = not known */
	/*
	 * Another program than Node.js, which alone has V8 note all positions in optimized code,
	 * for profilers; others may compile a source before V8 sees it, and keep its name.
	 */
	uint16_t is_not_node;
};

/* From an address of an object as frames have it. */
static inline void v8_layout_note(struct v8_layout *layout, uint64_t address)
{
	if (layout->is_compressed)
		layout->cage = SCRIPT_V8_CAGE(address >> 1);
}

#endif
