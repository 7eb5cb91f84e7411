/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lua_path - which functions the machine code between two exits of a trace may run, by the
 * instructions that lie between the positions of the two.
 *
 * A function that a trace has inlined may have no exit of its own, for example one that only adds
 * floating-point numbers. Its code lies between an exit of its caller and the next one.
 */
#ifndef FIRN_AGENT_RUNTIME_LUA_LUA_PATH_H
#define FIRN_AGENT_RUNTIME_LUA_LUA_PATH_H

#include "agent/runtime/lua/lua_code.h"

enum lua_path {
	LUA_PATH_KNOWN,	 /* it runs in the frames of the first exit */
	LUA_PATH_CALLS,	 /* the first exit is a call, and the code belongs to the called function */
	LUA_PATH_UNSURE, /* another function may run inside of the first exit's */
};

/* From one snapshot of a trace to the next one, which for the last one of a loop is the first. */
enum lua_path lua_path_between(const struct lua_code *code, const struct lua_snapshot *from,
			       const struct lua_snapshot *to);

#endif
