/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lua_layout - where things are in LuaJIT, as far as builds differ. Plain data, made by lua_file,
 * used by lua_code.
 */
#ifndef FIRN_AGENT_RUNTIME_LUA_LUA_LAYOUT_H
#define FIRN_AGENT_RUNTIME_LUA_LUA_LAYOUT_H

#include <stdint.h>

struct lua_layout {
	uint8_t code; /* in a trace: where its machine code begins */
};

#endif
