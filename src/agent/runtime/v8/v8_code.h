/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_code - reads a JavaScript function (SharedFunctionInfo) from a process: its name, its script
 * and its first line.
 *
 * V8's built-in functions have no script: their file is "", and they are not shown, because their
 * code has a name. Bounded as v8_text is, plus some ten reads.
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

/* The name of a frame that has this number instead of a function; NULL = not known. */
const char *v8_frame_name(const struct v8_layout *layout, uint64_t number);

#endif
