/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: V8's tools/gen-postmortem-metadata.py, of the versions in Node.js 14 to 26.
 */
#include "agent/runtime/v8/v8_file.h"

#include <stdio.h>
#include <string.h>

#include "agent/runtime/v8/v8_content.h"
#include "agent/runtime/v8/v8_versions.h"

#define SPELLINGS_MAX 3
#define SMALL_NUMBER_SHIFT 31 /* of numbers in whole words: no compressed pointers */
#define WORD_BYTES 8
#define HEAD_BYTES_MAX 256

/* In code of 11, which does not say it. */
#define CODE_START_11 40
#define CODE_SIZE_11 56

/* What a field is called, which has the C++ type in it. */
struct field {
	uint16_t at; /* in struct v8_layout */
	const char *spellings[SPELLINGS_MAX];
};

#define FIELD(member, ...)                                                                         \
	{                                                                                          \
		offsetof(struct v8_layout, member),                                                \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct field fields[] = {
	FIELD(map_type, "class_Map__instance_type__uint16_t"),
	FIELD(type_shared, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"),
	FIELD(type_scope, "type_ScopeInfo__SCOPE_INFO_TYPE"),
	FIELD(type_script, "type_Script__SCRIPT_TYPE"),
	FIELD(text_types, "FirstNonstringType"),
	FIELD(form_mask, "StringRepresentationMask"),
	FIELD(narrow_mask, "StringEncodingMask"),
	FIELD(form_cons, "ConsStringTag"),
	FIELD(form_external, "ExternalStringTag"),
	FIELD(form_sliced, "SlicedStringTag"),
	FIELD(form_thin, "ThinStringTag"),
	FIELD(text_length, "class_String__length__int32_t"),
	FIELD(text_characters, "class_SeqOneByteString__chars__char"),
	FIELD(cons_first, "class_ConsString__first__String"),
	FIELD(cons_second, "class_ConsString__second__String"),
	FIELD(sliced_parent, "class_SlicedString__parent__String"),
	FIELD(sliced_start, "class_SlicedString__offset__SMI"),
	FIELD(thin_actual, "class_ThinString__actual__String"),
	FIELD(external_resource, "class_ExternalString__resource__Object"),
	FIELD(shared_name, "class_SharedFunctionInfo__name_or_scope_info__Object",
	      "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	      "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"),
	FIELD(shared_script, "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
	      "class_SharedFunctionInfo__script__Tagged_HeapObject_"),
	FIELD(scope_variables, "scopeinfo_idx_first_vars"),
	FIELD(script_name, "class_Script__name__Object"),
};

/* The value of one of V8's numbers for debuggers. */
static bool read_number(const struct elf_exports *symbols, const char *name, int32_t *ret)
{
	struct elf_export symbol;
	char text[128];

	snprintf(text, sizeof(text), "v8dbg_%s", name);
	if (!elf_exports_find(symbols, text, &symbol))
		return false;
	*ret = 0; /* those that are 0 may lie behind what the file has */
	elf_exports_read(symbols, symbol.address, ret, sizeof(*ret));
	return true;
}

static int32_t number_or(const struct elf_exports *symbols, const char *name, int32_t otherwise)
{
	int32_t value;

	return read_number(symbols, name, &value) ? value : otherwise;
}

static bool read_field(const struct elf_exports *symbols, const struct field *field,
		       struct v8_layout *ret)
{
	int32_t value;

	for (size_t i = 0; i < SPELLINGS_MAX && field->spellings[i]; i++) {
		uint16_t *to = (uint16_t *)((char *)ret + field->at);

		if (!read_number(symbols, field->spellings[i], &value))
			continue;
		*to = (uint16_t)value;
		return value >= 0 && value < (int32_t)V8_NO_FIELD;
	}
	return false;
}

static void set_version(const uint32_t parts[3], struct runtime_file *ret)
{
	snprintf(ret->version, sizeof(ret->version), "%u.%u.%u", parts[0] % 1000, parts[1] % 1000,
		 parts[2] % 100000);
}

static bool read_version(const struct elf_exports *symbols, struct runtime_file *ret,
			 uint32_t *ret_major, uint32_t *ret_minor)
{
	static const char *const names[] = { "_ZN2v88internal7Version6major_E",
					     "_ZN2v88internal7Version6minor_E",
					     "_ZN2v88internal7Version6build_E" };
	uint32_t parts[3] = { 0 };
	struct elf_export symbol;

	for (size_t i = 0; i < 3; i++)
		if (!elf_exports_find(symbols, names[i], &symbol) ||
		    !elf_exports_read(symbols, symbol.address, &parts[i], sizeof(parts[i])))
			return false;
	set_version(parts, ret);
	*ret_major = parts[0];
	*ret_minor = parts[1];
	return true;
}

/* Where frames keep things; before 9.7 V8 did not say it, and before 8.9 had one word less. */
static void read_slots(const struct elf_exports *symbols, uint32_t major,
		       struct script_v8_layout *ret)
{
	int32_t array = major < 9 ? -24 : -32;

	ret->function = (int16_t)number_or(symbols, "off_fp_function", -16);
	ret->bytecode_array = (int16_t)number_or(symbols, "off_fp_bytecode_array", array);
	ret->bytecode_offset =
		(int16_t)number_or(symbols, "off_fp_bytecode_offset", array - WORD_BYTES);
}

static void read_frames(const struct elf_exports *symbols, struct v8_layout *ret)
{
	static const struct {
		enum v8_frame frame;
		const char *name;
	} kinds[] = {
		{ V8_FRAME_REGULAR_EXPRESSION, "frametype_IrregexpFrame" },
		{ V8_FRAME_WASM, "frametype_WasmCompiledFrame" },
		{ V8_FRAME_WASM, "frametype_WasmFrame" },
		{ V8_FRAME_WASM_TO_JS, "frametype_WasmToJsFrame" },
		{ V8_FRAME_JS_TO_WASM, "frametype_JsToWasmFrame" },
		{ V8_FRAME_C_TO_WASM, "frametype_CWasmEntryFrame" },
		{ V8_FRAME_WASM_EXIT, "frametype_WasmExitFrame" },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int32_t number = number_or(symbols, kinds[i].name, 0);

		if (number > 0 && number <= UINT8_MAX)
			ret->frames[kinds[i].frame] = (uint8_t)number;
	}
}

static bool is_slot(int16_t at)
{
	return at < 0 && at >= -128 && at % WORD_BYTES == 0;
}

static bool are_slots_right(const struct script_v8_layout *layout)
{
	return is_slot(layout->function) && is_slot(layout->bytecode_array) &&
	       is_slot(layout->bytecode_offset) &&
	       layout->bytecode_offset < layout->bytecode_array &&
	       layout->bytecode_array < layout->function;
}

static bool read_layout(const struct elf_exports *symbols, struct v8_layout *ret)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!read_field(symbols, &fields[i], ret))
			return false;
	ret->script_source =
		(uint16_t)number_or(symbols, "class_Script__source__Object", WORD_BYTES);
	ret->script_line = ret->script_name + WORD_BYTES;
	return true;
}

/* Of code that the optimizing compilers made: numbers that V8 says, and those that follow from
 * them. */
static void set_code(const struct elf_exports *symbols, uint32_t major, struct v8_layout *ret)
{
	int32_t none = V8_NO_FIELD, wrapper, head;

	head = number_or(symbols, "class_InstructionStream__instruction_start__uintptr_t", none);
	wrapper = number_or(symbols, "class_Code__wrapper__Tagged_CodeWrapper_", none);
	ret->type_code = (uint16_t)number_or(symbols, "type_Code__CODE_TYPE", none);
	ret->type_head = (uint16_t)number_or(
		symbols, "type_InstructionStream__INSTRUCTION_STREAM_TYPE", ret->type_code);
	ret->head_code = head == none ? V8_NO_FIELD : WORD_BYTES;
	if (head == none)
		head = number_or(symbols, "class_Code__instruction_start__uintptr_t", none);
	ret->head_bytes = (uint16_t)head;
	ret->code_start = (uint16_t)number_or(symbols, "class_Code__instruction_start__Address",
					      CODE_START_11);
	ret->code_size =
		(uint16_t)number_or(symbols, "class_Code__instruction_size__int", CODE_SIZE_11);
	/* Before the wrapper, which came with 12, or behind the map and relocations. */
	ret->code_deoptimization =
		(uint16_t)(wrapper == none ? 2 * WORD_BYTES : wrapper - 2 * WORD_BYTES);
	ret->code_positions = ret->code_deoptimization + WORD_BYTES;
	ret->position_marks = major < 14 ? 1 : 2;
	ret->data_literals = (uint16_t)number_or(symbols, "DeoptimizationDataLiteralArrayIndex", 2);
	ret->data_function =
		(uint16_t)number_or(symbols, "DeoptimizationDataSharedFunctionInfoIndex", none);
	ret->is_function_wrapped =
		ret->data_function == V8_NO_FIELD &&
		read_number(symbols, "DeoptimizationDataWrappedSharedFunctionInfoIndex", &wrapper);
	if (ret->data_function == V8_NO_FIELD)
		ret->data_function = ret->is_function_wrapped ? (uint16_t)wrapper : 6;
	ret->data_inlinings =
		(uint16_t)number_or(symbols, "DeoptimizationDataInliningPositionsIndex", 7);
	if (ret->head_bytes > HEAD_BYTES_MAX || ret->head_bytes % WORD_BYTES)
		ret->type_head = V8_NO_FIELD;
}

/* Of 8.x scopes are arrays, with their length before the words. */
static void set_scope(uint32_t major, struct v8_layout *ret)
{
	/* From 12 on the place in the source is before the variables. */
	ret->scope_position = ret->scope_variables == 5 ? 4 * WORD_BYTES : V8_NO_FIELD;
	ret->scope_has_receiver = major < 10;
	ret->scope_kind = 17;
	ret->scope_flags = major < 9 ? 2 * WORD_BYTES : WORD_BYTES;
	ret->scope_variables =
		(uint16_t)(ret->scope_flags + WORD_BYTES * (ret->scope_variables & 15));
}

/* Of a V8 without its tables. */
static bool read_content(const struct elf_exports *symbols, struct runtime_file *ret)
{
	struct v8_content content;
	struct elf_export node;

	if (!v8_content_find(symbols, &content))
		return false;
	if (content.major)
		set_version((uint32_t[]){ content.major, content.minor, content.build }, ret);
	if (v8_versions_find(content.major, content.minor, content.is_compressed, &ret->layout.v8,
			     &ret->script.v8))
		ret->source = "table";
	else
		ret->problem = "unknown layout";
	ret->layout.v8.is_not_node = !elf_exports_find(symbols, "_ZN4node5StartEiPPc", &node);
	return true;
}

bool v8_file_find(const struct elf_exports *symbols, struct runtime_file *ret)
{
	ret->script.kind = SCRIPT_V8;
	ret->script.state_form = SCRIPT_STATE_STATIC;
	return read_content(symbols, ret);
}

/* What the tables do not say. */
static void set_by_version(uint32_t major, uint32_t minor, struct v8_layout *ret)
{
	struct script_v8_layout script;
	struct v8_layout known;

	if (!v8_versions_find(major, minor, false, &known, &script))
		return;
	ret->translation_codes = known.translation_codes;
	ret->are_lengths_raw = known.are_lengths_raw;
	ret->scope_kind = known.scope_kind;
}

/* By the tables; false where there are none. */
static bool read_tables(const struct elf_exports *symbols, uint32_t major, uint32_t minor,
			struct runtime_file *ret)
{
	struct script_v8_layout *script = &ret->script.v8;

	if (!read_layout(symbols, &ret->layout.v8))
		return false;
	set_scope(major, &ret->layout.v8);
	set_code(symbols, major, &ret->layout.v8);
	set_by_version(major, minor, &ret->layout.v8);
	read_frames(symbols, &ret->layout.v8);
	read_slots(symbols, major, script);
	script->shared =
		(uint16_t)number_or(symbols, "class_JSFunction__shared__SharedFunctionInfo", 0);
	script->proof = ret->layout.v8.shared_script;
	if (number_or(symbols, "SmiShiftSize", 0) != SMALL_NUMBER_SHIFT)
		ret->problem = "compressed pointers";
	else if (!script->shared || !are_slots_right(script))
		ret->problem = "unknown layout";
	else
		ret->source = "v8dbg";
	return true;
}

void v8_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		  struct runtime_file *ret)
{
	uint32_t major = 0, minor = 0;

	(void)mark;
	ret->script.kind = SCRIPT_V8;
	ret->script.state_form = SCRIPT_STATE_STATIC;
	if (read_version(symbols, ret, &major, &minor) && read_tables(symbols, major, minor, ret))
		return;
	if (!read_content(symbols, ret))
		ret->problem = "unknown layout";
}
