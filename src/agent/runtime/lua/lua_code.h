/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lua_code - what a frame of LuaJIT runs (bpf/script_lua.h): a prototype, or a trace, which is
 * machine code for a path through several functions, with what it knows of them.
 *
 * A trace records its frames at the places where it may exit (snapshots), with the return position
 * of each. Code between two snapshots runs in the frames of the first, unless lua_path.h says else.
 *
 * Bounds: LUA_SNAPSHOTS_MAX snapshots, LUA_CONSTANTS_MAX constants, LUA_TRACED_MAX prototypes,
 * LUA_INLINED_MAX frames of a snapshot; what is more is left out.
 */
#ifndef FIRN_AGENT_RUNTIME_LUA_LUA_CODE_H
#define FIRN_AGENT_RUNTIME_LUA_LUA_CODE_H

#include "agent/runtime/lua/lua_layout.h"
#include "agent/runtime/lua/lua_prototype.h"

#define LUA_SNAPSHOTS_MAX 1024u
#define LUA_CONSTANTS_MAX 4096u
#define LUA_TRACED_MAX 64u
#define LUA_INLINED_MAX 48u

struct lua_place {
	uint16_t prototype; /* of lua_code.prototypes */
	uint32_t position;
};

struct lua_snapshot {
	uint16_t start; /* in the machine code */
	uint8_t count;	/* of places, outermost first */
	bool is_unsure; /* another function may run inside of them */
	uint32_t first; /* of lua_code.places */
};

struct lua_code {
	bool is_trace;
	struct lua_prototype *prototypes; /* one, or those of a trace */
	size_t prototypes_count;
	bool has_unplaced;		/* ... of which some are in no snapshot */
	struct lua_snapshot *snapshots; /* of a trace, by start */
	size_t snapshots_count;
	struct lua_place *places;
	size_t places_count;
};

/*
 * Sets `lua`, and names for a function whose caller gives it none. Nothing is to be freed unless
 * SCRIPT_CODE_READ.
 */
enum script_code_result lua_code_read(const struct memory_reader *memory,
				      const struct lua_layout *layout, uint64_t address,
				      struct script_code *ret);
void lua_code_free(struct lua_code *code); /* accepts NULL */
size_t lua_code_bytes(const struct lua_code *code);

/*
 * The frames at an offset of a trace, outermost first; returns how many, 0 = not known. Without any
 * `ret_is_unsure` is false.
 */
size_t lua_code_places(const struct lua_code *code, uint32_t offset, const struct lua_place **ret,
		       bool *ret_is_unsure);

#endif
