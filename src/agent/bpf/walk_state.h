/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * walk_state - what a walk (walk.h) has at hand, and what is kept of a thread from one to the next.
 */
#ifndef FIRN_AGENT_BPF_WALK_STATE_H
#define FIRN_AGENT_BPF_WALK_STATE_H

#include <stdbool.h>

#include "agent/bpf/shared.h"
#include "agent/bpf/space.h"
#include "agent/bpf/trail.h"
#include "agent/bpf/walk_runtime.h"

/* What is known of the code around an address. */
enum walk_range {
	RANGE_TABLE,	 /* of a file, with a segment of a table */
	RANGE_NO_TABLE,	 /* of a file without unwind information */
	RANGE_PENDING,	 /* of a file whose table has not been loaded */
	RANGE_FAILED,	 /* ... cannot be */
	RANGE_NO_ROOM,	 /* ... cannot be for now: the memory for tables is full */
	RANGE_ANONYMOUS, /* generated code */
	RANGE_JVM,	 /* ... of HotSpot, in a process that is known to run it */
	RANGE_CODE,	 /* ... or code in a file, of which there may be lines (shared.h) */
	RANGE_BEAM,	 /* ... that Erlang's compiler made */
	RANGE_LUA,	 /* LuaJIT's interpreter, and generated code in its processes */
	RANGE_NO_CODE,	 /* no executable mapping, in a process that generates no code */
	RANGE_UNKNOWN,	 /* the mappings are not known */
};

struct walk_span {
	__u64 start, end; /* of addresses */
	__u64 to_offset;  /* added to an address: the offset in the file */
	__u64 to_segment; /* ... in the segment */
	__u32 kind;	  /* enum walk_range */
	__u32 reserved;
	struct table_segment segment;
};

/* The owner of the kept spans, and how long they are valid. */
struct walk_owner {
	__u64 start_ns;
	__u32 tgid, exec_id; /* whose mappings hold */
	__u64 fingerprint;   /* of the mappings */
	__u32 version;	     /* of the process: see SPACE_VERSIONS */
	__u32 second;	     /* so that tables in use are marked so */
};

#define WALK_REGISTERS 21     /* of struct pt_regs */
#define WALK_SPANS 4	      /* a power of two */
#define WALK_WINDOW_WORDS 128 /* a power of two */
#define WALK_PAGE_BYTES 4096u
#define WALK_MEMORIES 4 /* a power of two */

/* Addresses in one function for which the row holds, which says its rule itself. */
struct walk_leaf {
	__u64 start, bytes;
	__u32 row;
	__u32 reserved;
};

/* What is kept of a thread from one sample to the next. */
struct walk_memory {
	struct walk_owner owner; /* of all the rest, and of the trail */
	struct walk_leaf leaf;	 /* where it was interrupted */
	__u32 current, next;	 /* span of the last frame; the one to be given up next */
	struct walk_span spans[WALK_SPANS];
};

#define WALK_PLACES_MAX 512 /* a power of two */

/* A frame that was left by its frame pointer; in a process with V8, one that runs generated code.
 */
struct walk_place {
	union {
		__u64 fp;
		__u64 function; /* of V8's: an object, or what else the frame is (v8.h) */
	};
	__u32 at;	/* in sample.frames */
	__u32 position; /* of V8's, in its bytecode; SCRIPT_V8_NO_POSITION */
};

/* The frame that a walk lacked a table or a list for first, for another walk from there on. */
struct walk_pause {
	__u64 pc, sp, fp, bx;
	__u32 at;    /* in sample.frames */
	__u32 noted; /* of HotSpot's frames */
	__u32 state; /* enum stack_state */
	bool is_set;
};

/* What every walk needs lies together, from the ends of trails on: few cache lines, few pages. */
struct walk {
	struct trail_kept kept[WALK_MEMORIES];
	struct trail trail;
	__u64 pc, sp, fp;
	__u64 cfa;
	struct {
		__u64 fp, pc;
	} saved;	 /* as read from the stack */
	__u64 bx, bx_at; /* rbx, or, when bx_at is not 0, where it was saved */
	__u64 now_ns;
	__u32 at;		    /* where the next frame goes in sample.frames */
	__u32 room;		    /* frames that may still be added */
	__u32 end;		    /* enum stack_end, when ended */
	__u32 by_table, by_pointer; /* frames left so */
	__u32 guessed;		    /* enum stack_end: see walk_by_guess; STACK_ENDS = no */
	__u32 thread;		    /* chooses among the memories */
	bool full;		    /* all registers of the frame are known, not only pc, sp, fp */
	bool fp_known, bx_known;
	bool part_lost;	   /* of the list of mappings */
	bool by_generated; /* a frame was left by the frame pointer of generated code */
	bool after_call;   /* pc is a byte before what runs next, in the call */
	bool has_jvm;	   /* the user of the walk has set jvm.process, and called jvm_start */
	bool has_code;	   /* ... code_key.number, for code of which there are lines */
	bool has_beam;	   /* ... beam.process and beam.thread, for Erlang's */
	bool has_lua;	   /* ... lua.layout, and lua.count, lua.thread to 0, for LuaJIT's */
	bool has_v8;	   /* generated code is V8's. By the user */
	struct code_line_key code_key;
	__u64 framed; /* the last block of code in which all functions have a frame; 0 = none yet */
	struct {
		__u64 start;
		__u64 bytes;
		__u64 words[WALK_WINDOW_WORDS];
	} window; /* of the stack: few large reads are cheaper, but all that they fill is cold */
	struct walk_memory memories[WALK_MEMORIES];
	__u64 registers[WALK_REGISTERS]; /* struct pt_regs, of the interrupted frame */
	struct space_mapping mapping;	 /* the last one found */
	struct walk_span brief;		 /* of generated code, which holds in this walk alone */
	__u64 code;
	struct code_entry entry; /* by the user */
	struct walk_pause pause;
	bool notes_places; /* set by the user */
	__u32 places_count;
	struct walk_place places[WALK_PLACES_MAX];
	struct walk_jvm jvm;
	struct walk_beam beam;
	struct walk_lua lua;
	struct walk_v8 v8;
};

static __always_inline struct walk_memory *walk_memory(struct walk *walk)
{
	return &walk->memories[walk->thread & (WALK_MEMORIES - 1)];
}

static __always_inline struct trail_kept *walk_kept(struct walk *walk)
{
	return &walk->kept[walk->thread & (WALK_MEMORIES - 1)];
}

#endif
