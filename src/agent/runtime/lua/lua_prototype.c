/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: LuaJIT's lj_obj.h (GCproto, GCstr; 64-bit references), lj_bc.h, lj_debug.h.
 */
#include "agent/runtime/lua/lua_prototype.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/lua/lua_numbers.h"
#include "agent/runtime/lua/lua_source.h"
#include "base/mem.h"
#include "codec/wire/utf8.h"

#define HEAD_BYTES 104u
#define KIND_AT 9u
#define KIND_PROTOTYPE 7u
#define KIND_TEXT 4u
#define TEXT_AT 24u
#define READ_BYTES 32u

/* In the head. */
enum {
	COUNT_AT = 12,
	CONSTANTS_AT = 32,
	BYTES_AT = 56,
	CAPTURES_COUNT_AT = 60,
	FILE_AT = 64,
	FIRST_LINE_AT = 72,
	LINES_COUNT_AT = 76,
	LINES_AT = 80,
	CAPTURES_AT = 88,
	VARIABLES_AT = 96,
};

#define NAME_BACK_MAX 512u /* instructions that are looked at for what is called */
/* Instructions, and bytes of names, that are looked at for all calls of a prototype. */
#define NAME_STEPS_MAX (1u << 26)

/* What an operation does with the slot that it names first. */
enum { USES, SETS, SETS_FROM };

static const uint8_t first_slot[LUA_OPERATIONS] = {
	[12] = SETS,
	[13] = SETS,
	[18] = SETS,
	[19] = SETS,
	[20] = SETS,
	[21] = SETS,
	[22] = SETS,
	[23] = SETS,
	[24] = SETS,
	[25] = SETS,
	[26] = SETS,
	[27] = SETS,
	[28] = SETS,
	[29] = SETS,
	[30] = SETS,
	[31] = SETS,
	[32] = SETS,
	[33] = SETS,
	[34] = SETS,
	[35] = SETS,
	[36] = SETS,
	[37] = SETS,
	[38] = SETS,
	[39] = SETS,
	[40] = SETS,
	[41] = SETS,
	[42] = SETS,
	[43] = SETS,
	[LUA_KNIL] = SETS_FROM,
	[LUA_UGET] = SETS,
	[51] = SETS,
	[52] = SETS,
	[53] = SETS,
	[LUA_GGET] = SETS,
	[56] = SETS,
	[LUA_TGETS] = SETS,
	[58] = SETS,
	[59] = SETS,
	[63] = SETS_FROM,
	[65] = SETS_FROM,
	[66] = SETS_FROM,
	[67] = SETS_FROM,
	[68] = SETS_FROM,
	[69] = SETS_FROM,
	[70] = SETS_FROM,
	[71] = SETS_FROM,
	[72] = SETS_FROM,
	[73] = SETS_FROM,
	[77] = SETS_FROM,
	[78] = SETS_FROM,
	[79] = SETS_FROM,
	[80] = SETS_FROM,
	[81] = SETS_FROM,
	[82] = SETS_FROM,
	[83] = SETS_FROM,
	[84] = SETS_FROM,
};

/* A prototype in one piece, as it lies in the process: all that it points at but texts. */
struct image {
	const struct memory_reader *memory;
	uint64_t address;
	uint8_t *bytes;
	uint32_t len;
	uint32_t count;
	uint32_t steps_left; /* of NAME_STEPS_MAX */
};

/* False when there were not so many left. */
static bool spend(struct image *image, size_t steps)
{
	bool enough = steps <= image->steps_left;

	image->steps_left -= enough ? (uint32_t)steps : image->steps_left;
	return enough;
}

/* Where an address that the prototype names lies in it; `len` = it does not. */
static uint32_t offset_of(const struct image *image, uint64_t address)
{
	uint64_t offset = address - image->address;

	return offset < image->len ? (uint32_t)offset : image->len;
}

static uint32_t instruction(const struct image *image, uint32_t position)
{
	return lua_u32(image->bytes, HEAD_BYTES + 4u * position);
}

static uint8_t operation_of(uint32_t word)
{
	return (uint8_t)word;
}

static uint32_t slot_of(uint32_t word)
{
	return word >> 8 & 0xff;
}

/* ---- text ---- */

/* Text up to its end, which has a NUL; read by pieces, as what is behind may be nobody's. */
static char *read_text(const struct memory_reader *memory, uint64_t address)
{
	char text[LUA_TEXT_MAX];
	uint8_t head[TEXT_AT];
	size_t len = 0;

	if (!address || address & 7 || !memory_read(memory, address, head, sizeof(head)) ||
	    head[KIND_AT] != KIND_TEXT)
		return NULL;
	while (len < sizeof(text)) {
		size_t end;

		if (!memory_read(memory, address + TEXT_AT + len, text + len, 8))
			return NULL;
		end = strnlen(text + len, 8);
		len += end;
		if (end < 8)
			break;
	}
	return utf8_copy_repaired(slice_from(text, len));
}

/* Text inside of the prototype. */
static char *own_text(const struct image *image, uint32_t at)
{
	size_t len = strnlen((const char *)image->bytes + at, image->len - at);

	return utf8_copy_repaired(slice_from((const char *)image->bytes + at,
					     len < LUA_TEXT_MAX ? len : LUA_TEXT_MAX));
}

/* ---- names of variables ---- */

static bool read_number(const struct image *image, uint32_t *at, uint32_t *ret)
{
	*ret = 0;
	for (uint32_t shift = 0; shift < 32 && *at < image->len; shift += 7) {
		uint8_t byte = image->bytes[(*at)++];

		*ret |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The local variable in a slot while an instruction runs; NULL = there is none with a name. */
static char *name_of_local(struct image *image, uint32_t position, uint32_t slot)
{
	static const char *const own[] = { "(for index)",     "(for limit)", "(for step)",
					   "(for generator)", "(for state)", "(for control)" };
	uint32_t at = offset_of(image, lua_u64(image->bytes, VARIABLES_AT)), start = 0;

	while (at < image->len && spend(image, 1)) {
		uint32_t name = at, first = image->bytes[at], skipped, lasts;

		if (!first)
			break;
		if (first > sizeof(own) / sizeof(own[0]))
			at += (uint32_t)strnlen((const char *)image->bytes + at, image->len - at);
		if (!spend(image, at - name))
			break;
		at++;
		if (!read_number(image, &at, &skipped) || !read_number(image, &at, &lasts))
			break;
		start += skipped;
		if (start > position)
			break;
		if (position - start >= lasts || slot-- > 0)
			continue;
		if (first <= sizeof(own) / sizeof(own[0]))
			return mem_strndup(own[first - 1], strlen(own[first - 1]));
		return own_text(image, name);
	}
	return NULL;
}

static char *name_of_captured(struct image *image, uint32_t index)
{
	uint32_t at = offset_of(image, lua_u64(image->bytes, CAPTURES_AT));

	if (index >= image->bytes[CAPTURES_COUNT_AT])
		return NULL;
	for (; index && at < image->len; index--) {
		size_t len = strnlen((const char *)image->bytes + at, image->len - at);

		if (!spend(image, len))
			return NULL;
		at += (uint32_t)len + 1;
	}
	return at < image->len && image->bytes[at] ? own_text(image, at) : NULL;
}

static char *name_of_constant(const struct image *image, uint32_t index)
{
	uint64_t constants = lua_u64(image->bytes, CONSTANTS_AT);
	uint32_t at = offset_of(image, constants - 8 * ((uint64_t)index + 1));

	return at <= image->len - 8 ? read_text(image->memory, lua_u64(image->bytes, at)) : NULL;
}

/* What an instruction that sets the slot sets it to. */
static char *name_of_value(struct image *image, uint32_t word)
{
	switch (operation_of(word)) {
	case LUA_GGET:
		return name_of_constant(image, word >> 16);
	case LUA_TGETS:
		return name_of_constant(image, word >> 16 & 0xff);
	case LUA_UGET:
		return name_of_captured(image, word >> 16);
	default:
		return NULL;
	}
}

/* What is in a slot when an instruction runs: from there backwards to what has set it. */
static char *name_of_slot(struct image *image, uint32_t position, uint32_t slot)
{
	char *name = name_of_local(image, position, slot);

	for (uint32_t i = 0; !name && position-- > 1 && i < NAME_BACK_MAX && spend(image, 1); i++) {
		uint32_t word = instruction(image, position), set = slot_of(word);
		uint8_t operation = operation_of(word);

		if (operation >= LUA_OPERATIONS)
			return NULL;
		if (first_slot[operation] == SETS_FROM && slot >= set &&
		    (operation != LUA_KNIL || slot <= word >> 16))
			return NULL;
		if (first_slot[operation] != SETS || set != slot)
			continue;
		if (operation != LUA_MOV)
			return name_of_value(image, word);
		slot = word >> 16;
		name = name_of_local(image, position, slot);
	}
	return name;
}

static void find_calls(struct image *image, struct lua_prototype *ret)
{
	size_t capacity = 0;

	for (uint32_t i = 1; i < image->count && ret->calls_count < LUA_CALLS_MAX; i++) {
		uint32_t word = instruction(image, i), slot = slot_of(word);
		uint8_t operation = operation_of(word);
		char *name;

		if (operation < LUA_CALLM || operation > LUA_ITERC ||
		    (operation == LUA_ITERC && slot < 3))
			continue;
		name = name_of_slot(image, i, operation == LUA_ITERC ? slot - 3 : slot);
		if (!name)
			continue;
		mem_grow(ret->calls, ret->calls_count, capacity);
		ret->calls[ret->calls_count++] = (struct lua_call){ i, name };
	}
}

uint8_t lua_prototype_operation(const struct lua_prototype *prototype, uint32_t position)
{
	return position < prototype->count ? operation_of(prototype->instructions[position])
					   : LUA_OPERATIONS;
}

const char *lua_prototype_callee(const struct lua_prototype *prototype, uint32_t position)
{
	static const struct {
		uint8_t first, last;
		const char *name;
	} events[] = {
		{ 0, 1, "__lt" },	  { 2, 3, "__le" },	 { 4, 11, "__eq" },
		{ 20, 20, "__unm" },	  { 21, 21, "__len" },	 { 22, 22, "__add" },
		{ 23, 23, "__sub" },	  { 24, 24, "__mul" },	 { 25, 25, "__div" },
		{ 26, 26, "__mod" },	  { 27, 27, "__add" },	 { 28, 28, "__sub" },
		{ 29, 29, "__mul" },	  { 30, 30, "__div" },	 { 31, 31, "__mod" },
		{ 32, 32, "__add" },	  { 33, 33, "__sub" },	 { 34, 34, "__mul" },
		{ 35, 35, "__div" },	  { 36, 36, "__mod" },	 { 37, 37, "__pow" },
		{ 38, 38, "__concat" },	  { 51, 53, "__gc" },	 { 54, 54, "__index" },
		{ 55, 55, "__newindex" }, { 56, 59, "__index" }, { 60, 64, "__newindex" },
	};
	uint8_t operation = lua_prototype_operation(prototype, position);
	size_t low = 0, high = prototype->calls_count;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (operation >= events[i].first && operation <= events[i].last)
			return events[i].name;
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (prototype->calls[middle].position < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low < prototype->calls_count && prototype->calls[low].position == position
		       ? prototype->calls[low].name
		       : NULL;
}

/* ---- file and lines ---- */

static void read_lines(const struct image *image, struct lua_prototype *ret)
{
	uint32_t at = offset_of(image, lua_u64(image->bytes, LINES_AT));
	uint32_t lines = lua_u32(image->bytes, LINES_COUNT_AT);
	uint32_t width = lines < 256 ? 1 : lines < 65536 ? 2 : 4;

	if (at < HEAD_BYTES || (image->len - at) / width < image->count - 1 ||
	    ret->first_line == LUA_SOURCE_NO_LINE)
		return;
	ret->lines = mem_new_array(uint32_t, image->count);
	ret->lines[0] = ret->first_line;
	for (uint32_t i = 1; i < image->count; i++) {
		uint32_t more = 0;

		memcpy(&more, image->bytes + at + (size_t)(i - 1) * width, width);
		ret->lines[i] = more <= lines ? ret->first_line + more : 0;
	}
}

uint32_t lua_prototype_line(const struct lua_prototype *prototype, uint32_t position)
{
	uint32_t line =
		prototype->lines && position < prototype->count ? prototype->lines[position] : 0;

	return line <= INT32_MAX ? line : 0;
}

/* ---- the whole ---- */

static enum script_code_result read_image(struct image *image)
{
	uint8_t head[HEAD_BYTES];

	if (image->address & 7 || !memory_read(image->memory, image->address, head, sizeof(head)))
		return SCRIPT_CODE_GONE;
	image->count = lua_u32(head, COUNT_AT);
	image->len = lua_u32(head, BYTES_AT);
	if (head[KIND_AT] != KIND_PROTOTYPE || !image->count || image->len < HEAD_BYTES ||
	    image->len > LUA_PROTOTYPE_BYTES_MAX || image->count > (image->len - HEAD_BYTES) / 4)
		return SCRIPT_CODE_OTHER;
	image->bytes = mem_calloc(1, image->len);
	if (!memory_read(image->memory, image->address, image->bytes, image->len)) {
		free(image->bytes);
		return SCRIPT_CODE_GONE;
	}
	return SCRIPT_CODE_READ;
}

static void take_instructions(const struct image *image, struct lua_prototype *ret)
{
	ret->instructions = mem_new_array(uint32_t, image->count);
	for (uint32_t i = 0; i < image->count; i++)
		ret->instructions[i] = instruction(image, i);
}

enum script_code_result lua_prototype_read(const struct memory_reader *memory, uint64_t address,
					   struct lua_prototype *ret)
{
	struct image image = { .memory = memory, .address = address, .steps_left = NAME_STEPS_MAX };
	enum script_code_result result = read_image(&image);
	uint64_t proof[SCRIPT_PROOF_WORDS];
	char *text;

	if (result != SCRIPT_CODE_READ)
		return result;
	text = read_text(memory, lua_u64(image.bytes, FILE_AT));
	if (!text) {
		free(image.bytes);
		return SCRIPT_CODE_GONE;
	}
	memcpy(proof, image.bytes + FILE_AT, sizeof(proof));
	*ret = (struct lua_prototype){ .code = address + HEAD_BYTES,
				       .count = image.count,
				       .file = lua_source_file(text),
				       .first_line = lua_u32(image.bytes, FIRST_LINE_AT),
				       .proof = script_proof((const __u64 *)proof) };
	ret->place = lua_source_place(ret->file, ret->first_line);
	take_instructions(&image, ret);
	read_lines(&image, ret);
	find_calls(&image, ret);
	free(text);
	free(image.bytes);
	return SCRIPT_CODE_READ;
}

void lua_prototype_fini(struct lua_prototype *prototype)
{
	for (size_t i = 0; i < prototype->calls_count; i++)
		free(prototype->calls[i].name);
	free(prototype->calls);
	free(prototype->instructions);
	free(prototype->lines);
	free(prototype->file);
	free(prototype->place);
	*prototype = (struct lua_prototype){ 0 };
}

static size_t bytes_of_text(const char *text)
{
	return text ? strlen(text) : 0;
}

size_t lua_prototype_bytes(const struct lua_prototype *prototype)
{
	size_t bytes = bytes_of_text(prototype->file) + bytes_of_text(prototype->place) +
		       sizeof(*prototype) + (size_t)prototype->count * (prototype->lines ? 8 : 4);

	for (size_t i = 0; i < prototype->calls_count; i++)
		bytes += sizeof(struct lua_call) + strlen(prototype->calls[i].name) + 16;
	return bytes;
}
