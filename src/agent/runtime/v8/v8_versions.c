/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: V8's src/objects/{js-function,shared-function-info,scope-info,script,string}.tq and
 * code.h. Programs: Deno 2.0 to 2.9, Node.js 24 and 26, workerd (pointers compressed).
 */
#include "agent/runtime/v8/v8_versions.h"

#include <stddef.h>

#include "agent/runtime/v8/v8_translation.h"

#define VERSION(major, minor) ((major)*100 + (minor))
#define CODES V8_TRANSLATION_CODES
#define MORE (V8_TRANSLATION_CODES + 2)
#define FULL_BYTES 8
#define HALF_BYTES 4

/* From this version to the last one, what differs from those before. */
struct versions {
	uint32_t first, last;
	uint8_t code_size;	/* where code says its size */
	uint8_t data_literals;	/* in the deoptimization data */
	uint8_t data_function;	/* ... before the inlinings */
	uint8_t position_marks; /* bits of an offset in the table of positions that are marks */
	uint8_t scope_kind;
	bool are_lengths_raw;
	uint8_t translation_codes;
	uint8_t frames[V8_FRAMES]; /* 0 = not known */
};

static const struct versions all[] = {
	{ VERSION(12, 9), VERSION(12, 9), 52, 2, 6, 1, 17, false, 0, { 30, 4, 0, 7 } },
	{ VERSION(13, 0), VERSION(13, 0), 52, 2, 6, 1, 17, false, 0, { 31, 4, 0, 7 } },
	{ VERSION(13, 4), VERSION(13, 7), 56, 3, 7, 1, 17, false, CODES, { 31, 4, 5, 7, 10, 11 } },
	{ VERSION(14, 0), VERSION(14, 0), 56, 3, 7, 2, 17, false, CODES, { 30, 4, 0, 6 } },
	{ VERSION(14, 1), VERSION(14, 1), 56, 3, 7, 2, 17, false, CODES, { 0, 4, 0, 6 } },
	{ VERSION(14, 2), VERSION(14, 2), 56, 3, 7, 2, 17, false, CODES, { 32, 4, 0, 6 } },
	{ VERSION(14, 3), VERSION(14, 4), 56, 3, 7, 2, 17, false, CODES, { 0 } },
	{ VERSION(14, 5), VERSION(14, 7), 56, 3, 7, 2, 17, false, CODES, { 23, 24, 25, 26 } },
	{ VERSION(14, 9), VERSION(15, 1), 56, 3, 7, 2, 17, true, CODES, { 23, 24, 25, 26 } },
	{ VERSION(15, 3), VERSION(15, 6), 56, 3, 7, 2, 16, true, CODES, { 23 } },
	{ VERSION(15, 7), VERSION(15, 7), 56, 3, 7, 2, 16, true, 0, { 23 } },
	{ VERSION(15, 8), VERSION(15, 8), 56, 3, 7, 2, 16, true, MORE, { 23 } },
};

/* Strings: the same since 8.9. */
static void set_text(uint16_t word, struct v8_layout *ret)
{
	ret->text_types = 128;
	ret->form_mask = 7;
	ret->narrow_mask = 8;
	ret->form_cons = 1;
	ret->form_external = 2;
	ret->form_sliced = 3;
	ret->form_thin = 5;
	ret->text_length = word + 4; /* behind the hash, of four bytes */
	ret->text_characters = word + 8;
	ret->cons_first = ret->sliced_parent = ret->thin_actual = ret->external_resource = word + 8;
	ret->cons_second = ret->sliced_start = word + 8 + word;
}

static void set_objects(uint16_t word, const struct versions *versions, struct v8_layout *ret)
{
	ret->map_type = word + 4;
	ret->shared_name = 3 * word;
	ret->shared_script = 5 * word;
	ret->scope_flags = word;
	ret->scope_position = 4 * word;
	ret->scope_variables = 6 * word;
	ret->scope_kind = versions->scope_kind;
	ret->script_source = word;
	ret->script_name = 2 * word;
	ret->script_line = 3 * word;
}

static void set_code(uint16_t word, const struct versions *versions, struct v8_layout *ret)
{
	ret->type_head = ret->type_code = V8_ANY_TYPE;
	ret->head_bytes = 4 * word;
	ret->head_code = word;
	ret->code_deoptimization = word;
	ret->code_positions = 2 * word;
	ret->code_start = 5 * word;
	/* The start is an address in any case. */
	ret->code_size = (uint16_t)(versions->code_size - (word == HALF_BYTES ? 20 : 0));
	ret->data_literals = versions->data_literals;
	ret->data_function = versions->data_function;
	ret->is_function_wrapped = 1;
	ret->data_inlinings = versions->data_function + 1;
	ret->position_marks = versions->position_marks;
	ret->are_lengths_raw = versions->are_lengths_raw;
	ret->translation_codes = versions->translation_codes;
}

static void set_script(uint16_t word, bool is_compressed, struct script_v8_layout *ret)
{
	ret->function = -16;
	ret->bytecode_array = -32;
	ret->bytecode_offset = -40;
	ret->shared = 4 * word;
	ret->proof = 5 * word;
	ret->is_compressed = is_compressed;
}

bool v8_versions_find(uint32_t major, uint32_t minor, bool is_compressed, struct v8_layout *ret,
		      struct script_v8_layout *ret_script)
{
	uint32_t version = VERSION(major, minor);
	uint16_t word = is_compressed ? HALF_BYTES : FULL_BYTES;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (minor > 99 || version < all[i].first || version > all[i].last)
			continue;
		*ret = (struct v8_layout){ .is_compressed = is_compressed,
					   .are_types_unknown = true };
		set_text(word, ret);
		set_objects(word, &all[i], ret);
		set_code(word, &all[i], ret);
		for (size_t frame = 0; frame < V8_FRAMES; frame++)
			ret->frames[frame] = all[i].frames[frame];
		set_script(word, is_compressed, ret_script);
		return true;
	}
	return false;
}
