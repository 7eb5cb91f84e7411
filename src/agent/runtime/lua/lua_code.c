/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: LuaJIT's lj_jit.h (GCtrace, SnapShot), lj_ir.h, lj_obj.h; 64-bit references.
 */
#include "agent/runtime/lua/lua_code.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/lua/lua_numbers.h"
#include "agent/runtime/lua/lua_path.h"
#include "base/mem.h"

#define KIND_AT 9u
#define KIND_PROTOTYPE 7u
#define KIND_FUNCTION 8u
#define KIND_TRACE 9u

#define FUNCTION_BYTES 40u
#define FUNCTION_LANGUAGE_AT 10u /* 0 = Lua */
#define FUNCTION_CODE_AT 32u
#define PROTOTYPE_BYTES 104u

/* In a trace. */
enum {
	TRACE_SNAPSHOTS_COUNT_AT = 10,
	TRACE_CONSTANTS_AT = 32,
	TRACE_FIRST_CONSTANT_AT = 40,
	TRACE_ENTRIES_COUNT_AT = 44,
	TRACE_SNAPSHOTS_AT = 48,
	TRACE_ENTRIES_AT = 56,
	TRACE_PROTOTYPE_AT = 64,
	TRACE_HEAD_BYTES = 72,
};

#define TRACE_PROOF_BEFORE 24u
#define TRACE_LOOP_BEHIND_CODE 8u /* where its loop begins; 0 = it has none */

#define CONSTANTS_END 0x8000u /* their numbers are below */
#define SNAPSHOT_BYTES 12u
#define ENTRIES_MAX 65536u
#define ENTRY_IS_FRAME 0x10000u
#define LINK_KIND 7u
#define LINK_CONTINUES 2u

/* A trace as it was read, while it is made sense of. */
struct trace {
	const struct memory_reader *memory;
	uint8_t head[TRACE_HEAD_BYTES];
	uint64_t *constants; /* of the number `first` on */
	uint32_t first, constants_count;
	uint8_t *snapshots;
	uint32_t snapshots_count;
	uint32_t *entries;
	uint32_t entries_count;
	bool has_loop;
	struct lua_code *code;
	size_t places_capacity;
};

/* ---- prototypes of a trace ---- */

static bool find_instruction(const struct lua_code *code, uint64_t address, struct lua_place *ret)
{
	for (size_t i = 0; i < code->prototypes_count; i++) {
		const struct lua_prototype *prototype = &code->prototypes[i];
		uint64_t into = address - prototype->code;

		if (into % 4 || into / 4 >= prototype->count)
			continue;
		*ret = (struct lua_place){ (uint16_t)i, (uint32_t)(into / 4) };
		return true;
	}
	return false;
}

static void add_prototype(struct trace *trace, uint64_t address)
{
	struct lua_code *code = trace->code;
	struct lua_place place;

	if (code->prototypes_count < LUA_TRACED_MAX &&
	    !find_instruction(code, address + PROTOTYPE_BYTES, &place) &&
	    lua_prototype_read(trace->memory, address, &code->prototypes[code->prototypes_count]) ==
		    SCRIPT_CODE_READ)
		code->prototypes_count++;
}

/* A constant that is a prototype, or a function with one. */
static void add_object(struct trace *trace, uint64_t address)
{
	uint8_t head[FUNCTION_BYTES];

	if (!address || address & 7 || !memory_read(trace->memory, address, head, sizeof(head)))
		return;
	if (head[KIND_AT] == KIND_PROTOTYPE)
		add_prototype(trace, address);
	else if (head[KIND_AT] == KIND_FUNCTION && !head[FUNCTION_LANGUAGE_AT])
		add_prototype(trace, lua_u64(head, FUNCTION_CODE_AT) - PROTOTYPE_BYTES);
}

/* The type of a constant is in its first word, and its value in the one behind. */
static void find_prototypes(struct trace *trace)
{
	add_prototype(trace, lua_u64(trace->head, TRACE_PROTOTYPE_AT));
	for (uint32_t i = 0; i + 1 < trace->constants_count; i++) {
		uint32_t type = trace->constants[i] >> 32 & 0x1f;

		if (type == KIND_PROTOTYPE || type == KIND_FUNCTION)
			add_object(trace, trace->constants[i + 1]);
	}
}

/* ---- snapshots ---- */

/* The value of a constant that an entry names; 0 = it names none. */
static uint64_t constant_of(const struct trace *trace, uint32_t entry)
{
	uint32_t index = (entry & 0xffff) - trace->first;

	return index < trace->constants_count && index + 1 < trace->constants_count
		       ? trace->constants[index + 1]
		       : 0;
}

static void add_place(struct trace *trace, struct lua_snapshot *snapshot, uint64_t address)
{
	struct lua_code *code = trace->code;
	struct lua_place place;

	if (snapshot->count >= LUA_INLINED_MAX || !find_instruction(code, address, &place))
		return;
	mem_grow(code->places, code->places_count, trace->places_capacity);
	code->places[code->places_count++] = place;
	snapshot->count++;
}

/* Where the caller of a frame goes on; 0 = a frame that says nothing of it. */
static uint64_t return_of(const struct trace *trace, const uint32_t *entries, uint32_t count,
			  uint32_t index)
{
	uint64_t link = constant_of(trace, entries[index]);

	if (!(link & 3))
		return link;
	if ((link & LINK_KIND) != LINK_CONTINUES)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (entries[i] >> 24 == (entries[index] >> 24) - 2)
			return constant_of(trace, entries[i]);
	return 0;
}

static void add_snapshot(struct trace *trace, const uint8_t *head)
{
	struct lua_code *code = trace->code;
	uint32_t at = lua_u32(head, 0), count = head[10];
	struct lua_snapshot snapshot = { .start = lua_u16(head, 6),
					 .first = (uint32_t)code->places_count };
	const uint32_t *entries;
	uint64_t pc;

	if (at > trace->entries_count || count + 2 > trace->entries_count - at)
		return;
	entries = trace->entries + at;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t address = 0;

		if (entries[i] & ENTRY_IS_FRAME && entries[i] >> 24 > 1)
			address = return_of(trace, entries, count, i);
		if (address)
			add_place(trace, &snapshot, address - 4);
	}
	memcpy(&pc, entries + count, sizeof(pc));
	add_place(trace, &snapshot, pc >> 8);
	code->snapshots[code->snapshots_count++] = snapshot;
}

static bool is_placed(const struct lua_code *code, size_t prototype)
{
	for (size_t i = 0; i < code->places_count; i++)
		if (code->places[i].prototype == prototype)
			return true;
	return false;
}

/* What runs behind each snapshot: from the first one on, as each looks at the one behind it. */
static void find_paths(struct lua_code *code, bool has_loop)
{
	for (size_t i = 0; i < code->prototypes_count; i++)
		code->has_unplaced = code->has_unplaced || !is_placed(code, i);
	for (size_t i = 0; i < code->snapshots_count; i++) {
		struct lua_snapshot *from = &code->snapshots[i];
		bool is_last = i + 1 == code->snapshots_count;
		const struct lua_snapshot *to = is_last ? &code->snapshots[0] : from + 1;

		if (is_last && !has_loop)
			continue; /* it is at the trace's end */
		switch (lua_path_between(code, from, to)) {
		case LUA_PATH_KNOWN:
			break;
		case LUA_PATH_CALLS:
			from->first = to->first;
			from->count = to->count;
			break;
		case LUA_PATH_UNSURE:
			from->is_unsure = true;
			break;
		}
	}
}

static void find_snapshots(struct trace *trace)
{
	trace->code->snapshots = mem_new_array(struct lua_snapshot, trace->snapshots_count);
	for (uint32_t i = 0; i < trace->snapshots_count; i++)
		add_snapshot(trace, trace->snapshots + (size_t)i * SNAPSHOT_BYTES);
	find_paths(trace->code, trace->has_loop);
}

size_t lua_code_places(const struct lua_code *code, uint32_t offset, const struct lua_place **ret,
		       bool *ret_is_unsure)
{
	const struct lua_snapshot *found = NULL;

	for (size_t i = 0; i < code->snapshots_count && code->snapshots[i].start <= offset; i++)
		found = &code->snapshots[i];
	*ret = found ? code->places + found->first : NULL;
	*ret_is_unsure = found && found->is_unsure;
	return found ? found->count : 0;
}

/* ---- the whole ---- */

static bool read_parts(struct trace *trace)
{
	uint32_t first = lua_u32(trace->head, TRACE_FIRST_CONSTANT_AT);

	trace->snapshots_count = lua_u16(trace->head, TRACE_SNAPSHOTS_COUNT_AT);
	trace->entries_count = lua_u32(trace->head, TRACE_ENTRIES_COUNT_AT);
	if (first >= CONSTANTS_END || CONSTANTS_END - first > LUA_CONSTANTS_MAX ||
	    !trace->snapshots_count || trace->snapshots_count > LUA_SNAPSHOTS_MAX ||
	    !trace->entries_count || trace->entries_count > ENTRIES_MAX)
		return false;
	trace->first = first;
	trace->constants_count = CONSTANTS_END - first;
	trace->constants = mem_new_array(uint64_t, trace->constants_count);
	trace->snapshots = mem_calloc(trace->snapshots_count, SNAPSHOT_BYTES);
	trace->entries = mem_new_array(uint32_t, trace->entries_count);
	return memory_read(trace->memory,
			   lua_u64(trace->head, TRACE_CONSTANTS_AT) + 8ull * trace->first,
			   trace->constants, sizeof(uint64_t) * trace->constants_count) &&
	       memory_read(trace->memory, lua_u64(trace->head, TRACE_SNAPSHOTS_AT),
			   trace->snapshots, (size_t)trace->snapshots_count * SNAPSHOT_BYTES) &&
	       memory_read(trace->memory, lua_u64(trace->head, TRACE_ENTRIES_AT), trace->entries,
			   sizeof(uint32_t) * trace->entries_count);
}

static struct lua_code *read_trace(const struct memory_reader *memory,
				   const struct lua_layout *layout, uint64_t address)
{
	struct trace trace = { .memory = memory };
	uint32_t loop;

	if (!memory_read(memory, address, trace.head, sizeof(trace.head)) ||
	    !memory_read(memory, address + layout->code + TRACE_LOOP_BEHIND_CODE, &loop,
			 sizeof(loop)))
		return NULL;
	trace.has_loop = loop != 0;
	trace.code = mem_new(struct lua_code);
	trace.code->is_trace = true;
	trace.code->prototypes = mem_new_array(struct lua_prototype, LUA_TRACED_MAX);
	if (read_parts(&trace)) {
		find_prototypes(&trace);
		find_snapshots(&trace);
	}
	free(trace.constants);
	free(trace.snapshots);
	free(trace.entries);
	if (trace.code->places_count)
		return trace.code;
	lua_code_free(trace.code);
	return NULL;
}

static struct lua_code *read_prototype(const struct memory_reader *memory, uint64_t address,
				       enum script_code_result *result)
{
	struct lua_code *code = mem_new(struct lua_code);

	code->prototypes = mem_new(struct lua_prototype);
	*result = lua_prototype_read(memory, address, code->prototypes);
	if (*result == SCRIPT_CODE_READ) {
		code->prototypes_count = 1;
		return code;
	}
	lua_code_free(code);
	return NULL;
}

static bool read_proof(const struct memory_reader *memory, uint64_t address, uint32_t *ret)
{
	uint64_t words[SCRIPT_PROOF_WORDS];

	if (!memory_read(memory, address, words, sizeof(words)))
		return false;
	*ret = script_proof((const __u64 *)words);
	return true;
}

enum script_code_result lua_code_read(const struct memory_reader *memory,
				      const struct lua_layout *layout, uint64_t address,
				      struct script_code *ret)
{
	enum script_code_result result = SCRIPT_CODE_GONE;
	const struct lua_prototype *outermost;
	struct lua_code *code;
	uint8_t kind;
	uint32_t proof = 0;

	if (!memory_read(memory, address + KIND_AT, &kind, sizeof(kind)))
		return SCRIPT_CODE_GONE;
	if (kind == KIND_TRACE) {
		if (!read_proof(memory, address + layout->code - TRACE_PROOF_BEFORE, &proof))
			return SCRIPT_CODE_GONE;
		code = read_trace(memory, layout, address);
	} else {
		code = read_prototype(memory, address, &result);
	}
	if (!code)
		return result;
	outermost = &code->prototypes[0];
	*ret = (struct script_code){
		.function = mem_strndup(outermost->place, strlen(outermost->place)),
		.name = mem_strndup(outermost->place, strlen(outermost->place)),
		.file = mem_strndup(outermost->file, strlen(outermost->file)),
		.first_line = outermost->first_line,
		.proof = code->is_trace ? proof : outermost->proof,
		.lua = code,
	};
	return SCRIPT_CODE_READ;
}

void lua_code_free(struct lua_code *code)
{
	if (!code)
		return;
	for (size_t i = 0; i < code->prototypes_count; i++)
		lua_prototype_fini(&code->prototypes[i]);
	free(code->prototypes);
	free(code->snapshots);
	free(code->places);
	free(code);
}

size_t lua_code_bytes(const struct lua_code *code)
{
	size_t bytes = sizeof(*code) + code->snapshots_count * sizeof(*code->snapshots) +
		       code->places_count * sizeof(*code->places);

	if (code->is_trace)
		bytes += (LUA_TRACED_MAX - code->prototypes_count) * sizeof(*code->prototypes);
	for (size_t i = 0; i < code->prototypes_count; i++)
		bytes += lua_prototype_bytes(&code->prototypes[i]);
	return bytes;
}
