/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/dotnet/dotnet_layout.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define CONTRACT_MAGIC 0x0043414443434e44ull /* "DNCCDAC" */
#define GLOBALS_MAX 256

static const struct dotnet_layout layout_8 = {
	.section_begin = 0,
	.section_end = 8,
	.section_flags = 16,
	.section_module = 32,
	.section_heap = 40,
	.heap_end = 24,
	.heap_base = 32,
	.heap_map = 40,
	.header_method = 24,
	.header_unwinds_count = 32,
	.header_unwinds = 36,
	.method_token = 0,
	.method_chunk_index = 2,
	.method_flags = 6,
	.method_alignment = 8,
	.chunk_bytes = 24,
	.chunk_table = 0,
	.chunk_token = 18,
	.table_module = 24,
	.module_name = 0x108,
	.dynamic_name = 24,
	.remainder_bits = 12,
};

bool dotnet_layout_of(uint32_t major, struct dotnet_layout *ret)
{
	*ret = layout_8;
	return major == 8;
}

/* Fields of the contract's types. */
static const struct {
	const char *type, *field;
	size_t at;
} fields[] = {
	{ "RangeSection", "RangeBegin", offsetof(struct dotnet_layout, section_begin) },
	{ "RangeSection", "RangeEndOpen", offsetof(struct dotnet_layout, section_end) },
	{ "RangeSection", "Flags", offsetof(struct dotnet_layout, section_flags) },
	{ "RangeSection", "R2RModule", offsetof(struct dotnet_layout, section_module) },
	{ "RangeSection", "HeapList", offsetof(struct dotnet_layout, section_heap) },
	{ "CodeHeapListNode", "EndAddress", offsetof(struct dotnet_layout, heap_end) },
	{ "CodeHeapListNode", "MapBase", offsetof(struct dotnet_layout, heap_base) },
	{ "CodeHeapListNode", "HeaderMap", offsetof(struct dotnet_layout, heap_map) },
	{ "RealCodeHeader", "MethodDesc", offsetof(struct dotnet_layout, header_method) },
	{ "RealCodeHeader", "NumUnwindInfos",
	  offsetof(struct dotnet_layout, header_unwinds_count) },
	{ "RealCodeHeader", "UnwindInfos", offsetof(struct dotnet_layout, header_unwinds) },
	{ "MethodDesc", "Flags", offsetof(struct dotnet_layout, method_flags) },
	{ "MethodDesc", "Flags3AndTokenRemainder", offsetof(struct dotnet_layout, method_token) },
	{ "MethodDesc", "ChunkIndex", offsetof(struct dotnet_layout, method_chunk_index) },
	{ "MethodDescChunk", "MethodTable", offsetof(struct dotnet_layout, chunk_table) },
	{ "MethodDescChunk", "FlagsAndTokenRange", offsetof(struct dotnet_layout, chunk_token) },
	{ "MethodTable", "Module", offsetof(struct dotnet_layout, table_module) },
	{ "Module", "Path", offsetof(struct dotnet_layout, module_name) },
	{ "DynamicMethodDesc", "MethodName", offsetof(struct dotnet_layout, dynamic_name) },
};

static bool set_field(struct dotnet_layout *layout, size_t at, const json_t *value)
{
	uint16_t number;

	if (json_is_array(value))
		value = json_array_get(value, 0);
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > 4096)
		return false;
	number = (uint16_t)json_integer_value(value);
	memcpy((char *)layout + at, &number, sizeof(number));
	return true;
}

/* A number among the globals: ["0xc", "uint8"]. */
static bool global_number(const json_t *globals, const char *name, uint16_t *ret)
{
	const char *text = json_string_value(json_array_get(json_object_get(globals, name), 0));
	unsigned int value;

	if (!text || sscanf(text, "0x%4x", &value) != 1 || !value || value > 64)
		return false;
	*ret = (uint16_t)value;
	return true;
}

/* Which of the pointers beside the text is meant: [[20], "pointer"]. */
static bool global_index(const json_t *globals, const char *name, uint64_t *ret)
{
	const json_t *index = json_array_get(json_array_get(json_object_get(globals, name), 0), 0);

	if (!json_is_integer(index) || json_integer_value(index) < 0 ||
	    json_integer_value(index) >= GLOBALS_MAX)
		return false;
	*ret = (uint64_t)json_integer_value(index);
	return true;
}

static bool read_text(const json_t *root, struct dotnet_layout *ret, uint64_t *ret_index)
{
	const json_t *types = json_object_get(root, "types");
	const json_t *globals = json_object_get(root, "globals");

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!set_field(ret, fields[i].at,
			       json_object_get(json_object_get(types, fields[i].type),
					       fields[i].field)))
			return false;
	if (!set_field(ret, offsetof(struct dotnet_layout, chunk_bytes),
		       json_object_get(json_object_get(types, "MethodDescChunk"), "!")))
		return false;
	if (ret->module_name < 8)
		return false;
	ret->module_name = (uint16_t)(ret->module_name - 8); /* the name is before the path */
	return global_number(globals, "MethodDescAlignment", &ret->method_alignment) &&
	       global_number(globals, "MethodDescTokenRemainderBitCount", &ret->remainder_bits) &&
	       global_index(globals, "ExecutionManagerCodeRangeMapAddress", ret_index);
}

enum dotnet_answer dotnet_contract_read(struct code_memory *memory, uint64_t address,
					struct dotnet_layout *ret, uint64_t *ret_map)
{
	uint32_t bytes = code_memory_u32(memory, address + 12);
	uint64_t text_at = code_memory_u64(memory, address + 16);
	uint64_t pointers_count = code_memory_u32(memory, address + 24);
	uint64_t pointers = code_memory_u64(memory, address + 32), index = 0;
	bool known = false;
	json_t *root;
	char *text;

	if (code_memory_u64(memory, address) != CONTRACT_MAGIC || !text_at)
		return DOTNET_NOT_YET;
	if (!bytes || bytes > DOTNET_CONTRACT_BYTES_MAX)
		return DOTNET_UNKNOWN;
	text = mem_calloc(bytes, 1);
	*ret = (struct dotnet_layout){ 0 };
	if (code_memory_read(memory, text_at, text, bytes)) {
		root = json_loadb(text, bytes, JSON_DISABLE_EOF_CHECK, NULL);
		known = root && read_text(root, ret, &index) && index < pointers_count &&
			ret->remainder_bits < 16;
		json_decref(root);
	}
	free(text);
	if (!known)
		return DOTNET_UNKNOWN;
	*ret_map = code_memory_u64(memory, pointers + 8 * index);
	return *ret_map ? DOTNET_ANSWERED : DOTNET_NOT_YET;
}
