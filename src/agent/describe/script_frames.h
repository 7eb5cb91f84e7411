/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_frames - frames of interpreters as rows of tables: function, file and line, or a marker
 * that says why there is none.
 */
#ifndef FIRN_AGENT_DESCRIBE_SCRIPT_FRAMES_H
#define FIRN_AGENT_DESCRIBE_SCRIPT_FRAMES_H

#include "agent/describe/recent_frames.h"
#include "agent/procs/process.h"
#include "agent/runtime/hotspot/java_frames.h"
#include "agent/runtime/jsc/jsc_code.h"
#include "agent/runtime/lua/lua_code.h"
#include "agent/runtime/runtimes.h"
#include "model/tables.h"

#define SCRIPT_NO_FRAME UINT32_MAX
#define SCRIPT_V8_FRAMES_MAX (V8_INLINED_MAX + 1)   /* and a mark */
#define SCRIPT_LUA_FRAMES_MAX (LUA_INLINED_MAX + 1) /* and a mark */
#define SCRIPT_JSC_FRAMES_MAX (JSC_INLINED_MAX + 1) /* the compiled one, and inlined ones */

/*
 * The frame of two words as the program in the kernel sent them (bpf/shared.h); `outer` are those
 * of the next one, NULL = there is none. SCRIPT_NO_FRAME: the native frame says it all.
 */
uint32_t script_frame_of(struct tables *tables, const struct runtimes *runtimes,
			 const struct process_identity *identity, enum script_kind kind,
			 const uint64_t *words, const uint64_t *outer,
			 struct recent_frames *recent);

/*
 * The frames of a piece of a Java runtime's code, by its two words: a method and those that it is
 * inlined into, or a stub. Innermost first; how many.
 */
size_t script_java_frames(struct tables *tables, const struct runtimes *runtimes,
			  const struct process_identity *identity, const uint64_t *words,
			  uint32_t ret[JAVA_INLINED_MAX]);

/*
 * The functions of V8's optimized code at an address, outermost first; how many. 0 = not known, or
 * not those of the frame, whose words these are: it has its own alone.
 */
size_t script_v8_frames(struct tables *tables, const struct runtimes *runtimes,
			const struct process_identity *identity, const uint64_t *words,
			uint64_t address, struct recent_frames *recent,
			uint32_t ret[SCRIPT_V8_FRAMES_MAX]);

/*
 * The functions of a frame of LuaJIT: one, all those that a trace has made one, or none, where it
 * is a function in C that nobody calls by a name. Outermost first; how many.
 */
size_t script_lua_frames(struct tables *tables, const struct runtimes *runtimes,
			 const struct process_identity *identity, const uint64_t *words,
			 const uint64_t *outer, uint32_t ret[SCRIPT_LUA_FRAMES_MAX]);

/* What is inside of a frame of JavaScriptCore. */
enum script_inside {
	SCRIPT_INSIDE_NOTHING, /* its code was interrupted */
	SCRIPT_INSIDE_NATIVE,
	SCRIPT_INSIDE_CODE, /* which JavaScriptCore has made, or its interpreter */
};

/* What is known of the code of a frame of JavaScriptCore; NULL = nothing, or it is no code. */
const struct jsc_code *script_jsc_code(const struct runtimes *runtimes,
				       const struct process_identity *identity,
				       const uint64_t *words);

/*
 * The function of a frame of JavaScriptCore, and those that are inlined where it calls what is
 * inside, or a mark. Outermost first; how many. 0 = it is no frame of a function.
 */
size_t script_jsc_frames(struct tables *tables, const struct runtimes *runtimes,
			 const struct process_identity *identity, const uint64_t *words,
			 enum script_inside inside, uint32_t ret[SCRIPT_JSC_FRAMES_MAX]);

/* Generated code in a process of Ruby, PHP or LuaJIT, whose functions have frames of their own. */
uint32_t script_compiled_frame(struct tables *tables, enum script_kind kind);

/* A frame of generated code that its runtime knows; SCRIPT_NO_FRAME: it is none. */
uint32_t script_code_frame(struct tables *tables, const struct runtimes *runtimes,
			   const struct process_identity *identity, uint64_t address);

/* Behind a frame of a loop of which no frame was found. */
uint32_t script_unread_frame(struct tables *tables, enum script_kind kind);

/* Behind a frame of a loop that runs functions which the thread does not list. */
uint32_t script_gap_frame(struct tables *tables, enum script_kind kind);

/* Behind a frame of a loop whose own frames cannot be read: "[python 3.15.0: unknown layout]". */
uint32_t script_problem_frame(struct tables *tables, const struct runtime_file *file);

/* The runtime that an address of code belongs to; NULL = none, or we do not know. */
const struct runtime_file *script_runtime_of(const struct mapping *mapping);

/* The kind of native code in a file: FRAME_NATIVE, or that of an interpreter that we show. */
enum frame_kind script_kind_of(const struct binary *binary);

/* True if a frame is a call of an interpreter's loop. */
bool script_is_loop(const struct mapping *mapping, uint64_t address);

/* True if the process's generated code is of a runtime that keeps frame pointers. */
bool script_keeps_pointers(const struct space *space);

/* The runtime of this process whose generated code cannot be named; NULL = there is none. */
const struct runtime_file *script_problem_of(const struct space *space);

/* For a process that runs JavaScript: the kind of the code at an address (enum splice_native). */
uint8_t script_native_of(const struct space *space, uint64_t address);

#endif
