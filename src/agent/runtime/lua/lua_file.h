/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lua_file - reads from a binary with LuaJIT: where its interpreter is (the one large function
 * whose frame has the size used on x86-64), and the offsets in its structures, from the code of
 * small exported functions and of the interpreter.
 */
#ifndef FIRN_AGENT_RUNTIME_LUA_LUA_FILE_H
#define FIRN_AGENT_RUNTIME_LUA_LUA_FILE_H

#include "agent/runtime/elf_exports.h"
#include "agent/runtime/runtime_file.h"

/*
 * Sets all that is not 0 in `ret` beside the kind; `problem`, if something is not as expected. It
 * does not need `mark`.
 */
void lua_file_read(const struct elf_exports *symbols, const struct elf_export *mark,
		   struct runtime_file *ret);

#endif
