/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lua_prototype - reads LuaJIT's description of a function's code: file, lines, and the names of
 * its callees. As in debug.getinfo, a function has no name of its own: the variable, field or
 * method by which it is called names it.
 *
 * Bounds: LUA_PROTOTYPE_BYTES_MAX of a prototype, LUA_CALLS_MAX names, LUA_TEXT_MAX bytes each, and
 * some 64 million steps to find them. Text is made valid UTF-8.
 */
#ifndef FIRN_AGENT_RUNTIME_LUA_LUA_PROTOTYPE_H
#define FIRN_AGENT_RUNTIME_LUA_LUA_PROTOTYPE_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/script_code.h"

#define LUA_PROTOTYPE_BYTES_MAX ((uint32_t)1 << 20)
#define LUA_CALLS_MAX 2048u
#define LUA_TEXT_MAX 512u

/* Of LuaJIT 2.1. */
enum lua_operation {
	LUA_MOV = 18,
	LUA_KNIL = 44,
	LUA_UGET = 45,
	LUA_GGET = 54,
	LUA_TGETS = 57,
	LUA_CALLM = 65,
	LUA_CALLT = 68,
	LUA_ITERC = 69,
	LUA_ITERN = 70,
	LUA_RETM = 73,
	LUA_RET1 = 76,
	LUA_FORL = 79,
	LUA_JFORL = 81,
	LUA_JITERL = 84,
	LUA_JLOOP = 87,
	LUA_JMP = 88,
	LUA_OPERATIONS = 97,
};

struct lua_call {
	uint32_t position;
	char *name;
};

struct lua_prototype {
	uint64_t code; /* address of its first instruction */
	uint32_t count;
	/* NULL of those that puc_code makes, as instructions and lines are. */
	char *file;  /* as it was loaded: "shop/cart.lua", "[string \"...\"]" */
	char *place; /* what a function without a name is called: "cart.lua:12", "main chunk" */
	uint32_t first_line;
	uint32_t *instructions; /* `count` of them */
	uint32_t *lines;	/* the same; NULL = it has none */
	struct lua_call *calls; /* by position */
	size_t calls_count;
	uint32_t proof; /* of bpf/script_lua.h */
};

/* Nothing is to be freed unless SCRIPT_CODE_READ. */
enum script_code_result lua_prototype_read(const struct memory_reader *memory, uint64_t address,
					   struct lua_prototype *ret);
void lua_prototype_fini(struct lua_prototype *prototype);
size_t lua_prototype_bytes(const struct lua_prototype *prototype);

/* LUA_OPERATIONS if there is no such instruction. */
uint8_t lua_prototype_operation(const struct lua_prototype *prototype, uint32_t position);
/* 0 = not known. */
uint32_t lua_prototype_line(const struct lua_prototype *prototype, uint32_t position);
/* The name of the function that the instruction calls; NULL = none. */
const char *lua_prototype_callee(const struct lua_prototype *prototype, uint32_t position);

#endif
