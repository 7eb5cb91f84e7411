/* SPDX-License-Identifier: Apache-2.0 */
/* lua_source - what a function of Lua is called that has no name: the place where it begins. */
#ifndef FIRN_AGENT_RUNTIME_LUA_LUA_SOURCE_H
#define FIRN_AGENT_RUNTIME_LUA_LUA_SOURCE_H

#include <stdint.h>

#define LUA_SOURCE_NO_LINE UINT32_MAX /* of LuaJIT's own functions */

/*
 * The file by what Lua keeps of it: "@path" a file, "=name" as it is, else the text itself that was
 * loaded, of which the first line is shown.
 */
char *lua_source_file(const char *text);

/* "cart.lua:12"; line 0: "main chunk" */
char *lua_source_place(const char *file, uint32_t line);

#endif
