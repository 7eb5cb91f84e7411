/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * walk_runtime - what the walk (walk.h) keeps of runtimes whose generated code it leaves by other
 * means than rows and frame pointers: jvm.h, beam.h, lua.h, v8.h.
 */
#ifndef FIRN_AGENT_BPF_WALK_RUNTIME_H
#define FIRN_AGENT_BPF_WALK_RUNTIME_H

#include <stdbool.h>

#include "agent/bpf/shared.h"

#define JVM_PEEK_BYTES 64u    /* of code around pc, from the byte before it on */
#define JVM_AHEAD_BYTES 1024u /* the same, to where a method restores registers; a power of two */

#define JVM_BLOBS_SEEN 4u /* a power of two */

/* Frames of HotSpot's generated code (jvm.h). */
struct walk_jvm {
	struct jvm_process process;
	struct jvm_blob blob;		      /* of the frame at hand */
	struct jvm_blob seen[JVM_BLOBS_SEEN]; /* in this sample; 0 bytes: none */
	__u32 seen_next;
#ifndef __bpf__
	const struct jvm_blob *kept; /* that came with a copied stack */
	__u32 kept_count;
#endif
	__u64 object;
	__u32 position, proof;
	__u64 head[JVM_HEAD_BYTES / 8]; /* of the blob, if the frame is the innermost */
	__u64 ids;			/* of a method of the interpreter's */
	__u64 code[JVM_PEEK_BYTES / 8];
	__u64 ahead[JVM_AHEAD_BYTES / 8];
	__u64 caller;	 /* where the last frame of generated code returns to */
	__u32 count;	 /* of frames noted */
	bool is_barrier; /* the frame is none: those before it are in the heap */
	__u64 words[2 * SAMPLE_USER_FRAMES_MAX];
};

#define BEAM_PEEK_BYTES 256u /* of code behind a call, a power of two */

/* Frames of Erlang's code (beam.h). */
struct walk_beam {
	struct beam_walk process;
	__u64 thread; /* its pointer: fs */
	__u64 code[BEAM_PEEK_BYTES / 8];
	__u32 stop_at;	  /* in the Process, where its stack pointer is; 0 = not known */
	bool is_on_stack; /* of the Erlang process, and not of its scheduler */
};

#define WALK_LUA_PLACES 128u /* a power of two */

/* A C frame of LuaJIT's interpreter that the walk came through. */
struct walk_lua_place {
	__u64 thread; /* the lua_State that runs in it; 0 = none: a function of the runtime's */
	__u64 at;     /* its stack pointer */
	__u64 pc, base, fp; /* rbx, rdx, rbp: the registers that may have them; 0 = not known */
	__u64 trace;	    /* the trace whose code runs in it; 0 = not known */
	__u32 offset;	    /* ... in its code */
	__u32 is_compiled;  /* machine code runs in it */
};

/* Frames of LuaJIT's interpreter and of the code that it generated (lua.h). */
struct walk_lua {
	struct script_lua_layout layout;
	__u64 thread, outer; /* of the last frame, and the C frame outside of it of that thread */
	__u64 trace;
	__u32 offset;
	__u32 count;	 /* of places */
	bool is_in_part; /* the last frame was a part of the interpreter, which keeps registers */
	__u64 words[4];
	struct walk_lua_place places[WALK_LUA_PLACES];
};

/* Frames of V8's generated code (v8.h). */
struct walk_v8 {
	struct script_v8_layout layout;
	__u64 code[4]; /* of the interrupted function, from pc on */
	bool is_entry; /* it has no frame, or a frame without its function, which is in a register
			*/
};

#endif
