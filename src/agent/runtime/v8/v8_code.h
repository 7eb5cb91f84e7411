/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_code - reads what the closures of a JavaScript function share out of a process: its name, its
 * script and the line that it begins on.
 *
 * Functions of V8's own have no script: their file is "", and they are not shown, as the code that
 * stands for them has a name. Bounded as v8_text is, and by some ten reads besides.
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_CODE_H
#define FIRN_AGENT_RUNTIME_V8_V8_CODE_H

#include "agent/runtime/memory_reader.h"
#include "agent/runtime/script_code.h"
#include "agent/runtime/v8/v8_lines.h"

/* `process` is for `lines`. Nothing is to be freed unless SCRIPT_CODE_READ. */
enum script_code_result v8_code_read(const struct memory_reader *memory,
				     const struct v8_layout *layout, struct v8_lines *lines,
				     uint64_t process, uint64_t address, struct script_code *ret);

#endif
