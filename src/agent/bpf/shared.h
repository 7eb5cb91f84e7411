/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only OR BSD-2-Clause */
/*
 * shared - the interface of the BPF programs and the agent: the records of the ring buffer, the
 * reasons why a user stack ended, and the programs' counters.
 *
 * Both sides are built from this header, so layouts are pinned by the assertions below. Numbers
 * are in the host's byte order: a record never leaves the host.
 */
#ifndef FIRN_AGENT_BPF_SHARED_H
#define FIRN_AGENT_BPF_SHARED_H

#include <linux/types.h>

#include "agent/bpf/table.h"

#define SAMPLE_NAME_BYTES 16	     /* TASK_COMM_LEN; shorter names are filled up with NUL */
#define SAMPLE_KERNEL_FRAMES_MAX 127 /* kernel.perf_event_max_stack by default */
#define SAMPLE_USER_FRAMES_MAX 512
#define SAMPLE_FRAMES_MAX (SAMPLE_KERNEL_FRAMES_MAX + SAMPLE_USER_FRAMES_MAX)
#define SCRIPT_FRAMES_MAX 512 /* of an interpreter, two words each; one more says why no others */
#define SAMPLE_WORDS_MAX (SAMPLE_FRAMES_MAX + 2 * (SCRIPT_FRAMES_MAX + 1))

/* Why the walk of a user stack ended. */
enum stack_end {
	STACK_COMPLETE,		 /* at the thread's start, or the task has no user half */
	STACK_NO_UNWIND_INFO,	 /* the file's table has no row there, and no frame pointer helps */
	STACK_TABLE_PENDING,	 /* the file's table is not there yet, and no frame pointer helps */
	STACK_UNSUPPORTED_RULE,	 /* unwind information that a rule cannot say */
	STACK_NO_FRAME_POINTER,	 /* code in no file, without a frame pointer */
	STACK_BAD_ADDRESS,	 /* a return address that is no code */
	STACK_UNREADABLE,	 /* stack memory was not resident */
	STACK_TOO_DEEP,		 /* over SAMPLE_USER_FRAMES_MAX */
	STACK_32_BIT,		 /* compatibility mode: only the innermost frame is known */
	STACK_NO_USER_REGISTERS, /* in the kernel, and the user registers could not be had */
	STACK_NO_MAPPINGS,	 /* the process was changing its mappings, none known before */
	STACK_KERNEL_WALK,	 /* walked by the kernel's own helper, which does not say */
	STACK_TABLE_FAILED,	 /* the file's table could not be built or the file not be opened */
	STACK_TABLE_NO_ROOM,	 /* ... found no room in the memory for tables */
	STACK_GUESSED_POINTER,	 /* at its start, but through generated code by the frame pointer */
	STACK_ENDS
};

enum sample_flag {
	/* User frames after the first are return addresses as they were found, not moved back. */
	SAMPLE_RETURN_ADDRESSES = 1,
	/* No exec since the parent forked it: the same binaries at the same addresses. */
	SAMPLE_IMAGE_OF_PARENT = 2,
	/* A struct stack_record of this CPU and time came before it. */
	SAMPLE_HAS_STACK = 4,
};

enum record_kind {
	RECORD_SAMPLE = 1, /* struct sample */
	RECORD_SPACE,	   /* struct space_record */
	RECORD_STACK,	   /* struct stack_record */
};

/* The languages whose own frames follow the native ones. */
enum script_kind {
	SCRIPT_NONE,
	SCRIPT_PYTHON,
	SCRIPT_V8,
	SCRIPT_HOTSPOT,
	SCRIPT_RUBY,
	SCRIPT_PHP,
	SCRIPT_PERL,
	SCRIPT_LUA, /* LuaJIT */
	SCRIPT_PUC, /* PUC-Rio's Lua */
	SCRIPT_JSC, /* JavaScriptCore */
	SCRIPT_KINDS
};

/*
 * The address of an interpreter's object in the first word of a frame. Of V8 and JavaScriptCore,
 * whose frames are native ones, too, the bits above it say which (counted from the innermost); of
 * PHP and Perl they are more of the proof, and the address is that of one of many copies.
 */
#define SCRIPT_ADDRESS(word) ((word)&0xfffffffffff8ull)
#define SCRIPT_PLACE_SHIFT 48
#define SCRIPT_V8_NO_POSITION 0xffffffffu
/* With compressed pointers objects of V8 lie at multiples of four, and the address is doubled; the
 * upper half of a pointer is the same in all. */
#define SCRIPT_V8_CAGE(address) ((address) & ~0xffffffffull)

/* In the first word of an interpreter's frame, whose other bits are the address of its code. */
enum script_flag {
	SCRIPT_ENDS_RUN = 1, /* the outermost of those that one call of the loop runs */
	/*
	 * ... and no frame: the run ends before it. With an address, which only Ruby has, the
	 * method that the frame before it belongs to.
	 */
	SCRIPT_IS_MARK = 2, /* the second word may be an enum script_note, of V8 a kind of frame */
	SCRIPT_IS_CUT = 4,  /* no frame: the second word is an enum script_end */
	SCRIPT_FLAGS = 7,
};

/* What a mark without an address says; one that ends no run says nothing else. */
enum script_note {
	SCRIPT_OTHER_STACK = 1, /* the frames outside of it run on another stack of the thread */
	/* Of Python, where some calls of the loop have no run: they are the outermost ones ... */
	SCRIPT_RUNS_ARE_INNER = 2,
	SCRIPT_RUNS_ARE_OUTER = 3, /* ... or, as it seems, the innermost */
};

/* Why the frames of an interpreter end before the last one. */
enum script_end {
	SCRIPT_UNREADABLE,
	SCRIPT_TOO_DEEP,
	SCRIPT_IN_HEAP,
	SCRIPT_UNSURE, /* they do not end: where they begin is a guess */
	SCRIPT_ENDS
};

/* How a thread's state is found. */
enum script_state_form {
	SCRIPT_STATE_KEY,	 /* state_at: of {is it created, number} of a pthread key */
	SCRIPT_STATE_STATIC,	 /* state_at: offset from the thread pointer */
	SCRIPT_STATE_SLOT,	 /* state_at: of that offset */
	SCRIPT_STATE_DYNAMIC,	 /* state_at: of {number of the module, offset in it} */
	SCRIPT_STATE_GLOBAL,	 /* the process has but one: see script_php_layout */
	SCRIPT_STATE_KEY_NUMBER, /* state_at: of the number of a pthread key */
};

/* What tells where a run of frames ends. */
enum script_boundary {
	SCRIPT_EACH_FRAME, /* a call of the loop for each frame */
	SCRIPT_LAST_FRAME, /* the byte at `boundary` is not 0 in the last one */
	SCRIPT_MARK_FRAME, /* the byte is `boundary_value` or more in one behind the last */
};

#define SCRIPT_NO_HOP 0xffffu

/* Where things are in an interpreter's structures, in bytes. */
struct script_layout {
	__u16 first_frame;     /* in the thread's state */
	__u16 first_frame_hop; /* in what that points at; SCRIPT_NO_HOP = it is the frame */
	__u16 frame_bytes;     /* to be read of a frame, at most 128 */
	__u16 previous, object, position, boundary; /* in a frame */
	__u16 object_start; /* of the first instruction in the code object */
	__u16 proof;	    /* in the code object */
	__u8 proof_words;   /* 3 or 4 */
	__u8 boundary_kind; /* enum script_boundary */
	__u8 boundary_value;
	__u8 position_is_index; /* 32 bits; otherwise an address in the code object */
	__u16 on_stack; /* in the thread's state: what the innermost call of the loop has in its
			   C frame; 0 = that is not to be had so */
};

/* The same of V8; the first three from the frame pointer on. */
struct script_v8_layout {
	__s16 function;
	__s16 bytecode_array, bytecode_offset; /* the lowest */
	__u16 shared;			       /* in a function: what its closures have in common */
	__u16 proof;			       /* in that */
	__u16 is_compressed;		       /* pointers in objects are their lower halves */
	__u16 reserved[6];
};

/* The same of Ruby, and where the code is that enters what its compiler generated. */
struct script_ruby_layout {
	__u16 frame_bytes; /* of a control frame, at most 64 */
	__u16 context;	   /* in a Thread, which the state is then; 0 = the state is the context */
	__u32 code_bytes;
	__u64 code_start; /* in the process */
	__u64 reserved_too;
};

#define SCRIPT_PHP_LAST_IS_LOW 32u /* the number of instructions, in the word before them */
#define SCRIPT_PHP_DISTANCE 8u

/*
 * The same of PHP, whose state is no thread's own: state_at is where the innermost frame is named.
 * And of its interpreter's loop, which stays the native frame while code runs that its compiler
 * generated: 0 entry_words = how that is left is not known.
 */
struct script_php_layout {
	__u8 file; /* in a function, in words; and SCRIPT_PHP_LAST_IS_LOW, and, shifted by six, how
		      many words more than SCRIPT_PHP_DISTANCE its instructions are before that */
	__u8 generator; /* in a generator: its frame's address, in words; and, shifted by four, how
			   far before its placeholder what it is run by is */
	__u8 entry_words; /* from generated code's stack pointer to the loop's return address, at
			     least */
	__u8 fp_words;	  /* from there back to where the loop has saved the frame pointer */
	__u32 code_bytes;
	__u64 code_start;	      /* of the binary, in the process */
	__u32 loop_start, loop_bytes; /* from code_start on */
};

/*
 * The same of Perl. Where there is but one interpreter (SCRIPT_STATE_GLOBAL) the first two are
 * virtual addresses, and state_at is what is added to them.
 */
struct script_perl_layout {
	__u32 stack, statement; /* in the interpreter: the innermost stack, the statement at hand */
	__u8 context_bytes;
	__u8 sub;	  /* in a context */
	__u8 links_calls; /* stacks and contexts say which context is the next that is a call */
	__u8 file_bytes;  /* that tell the name of a file from others, at most 16 */
	__u32 reserved;
	__u64 reserved_too;
};

/*
 * The same of LuaJIT, whose interpreter is one function, and what is read of a thread (lua_State),
 * of what all threads share (global_State) and of traces.
 */
struct script_lua_layout {
	__u64 code_start; /* of the interpreter, in the process */
	__u32 code_bytes;
	__u16 trace_base, state, traces; /* in what is shared; the last is a pointer to pointers */
	__u8 shared, base, frame;	 /* in a thread; the last: its innermost C frame */
	__u8 code;			 /* in a trace: where its machine code begins */
	__u16 reserved;
};

/* What a frame of LuaJIT is, in its first word from SCRIPT_PLACE_SHIFT on. */
enum script_lua_kind {
	LUA_FUNCTION, /* its prototype; the position is that of the instruction at hand, or none */
	LUA_TRACE,    /* machine code: all functions that it has made one; the offset in it */
	LUA_NATIVE,   /* a function in C, without an object */
};
#define SCRIPT_LUA_NO_POSITION 0xffffffffu

enum script_puc_form {
	SCRIPT_PUC_C_FLAGGED = 1,	/* calls of C have lua_flag, and those of Lua lack it */
	SCRIPT_PUC_ENTRY_UNFLAGGED = 2, /* the loop was entered for calls that lack entry_flag */
	SCRIPT_PUC_IN_REGISTER = 4,	/* the loop has the position of its call in a register */
};

/* The same of Lua (PUC-Rio's), and where its loop is. */
struct script_puc_layout {
	__u64 code_start; /* in the process */
	__u32 code_bytes;
	__u8 stack, status, base_call; /* in a thread; the stack's end is before its start */
	__u8 position, flags;	       /* in a call */
	__u8 lua_flag, entry_flag;     /* of these flags */
	__u8 forms;		       /* enum script_puc_form */
	__u8 proof, code, code_count;  /* in a prototype */
	__u8 reserved;
};

/* The same of JavaScriptCore. A cell's kind is a byte of its head. */
struct script_jsc_layout {
	__u16 code_kind;   /* of a CodeBlock */
	__u16 callee_kind; /* of the callee of code at the top of a file; the next is a function's
			    */
	__u16 top_kind;	   /* the first of the executables of such code: SCRIPT_JSC_TOP_KINDS */
	__u16 executable;  /* in a function: or, with SCRIPT_JSC_RARE, of where it is ... */
	__u16 rare_executable; /* ... there */
	__u16 owner, jit;      /* in a CodeBlock: its executable, its machine code; below 128 */
	__u16 reserved[5];
};

#define SCRIPT_JSC_TOP_KINDS 3u /* of scripts, modules, evaluated text */

/* Value of the map `script_processes`, by tgid. */
struct script_process {
	__u64 start_ns; /* with exec_id: whose it is */
	__u32 exec_id;
	__u16 kind;	  /* enum script_kind */
	__u16 state_form; /* enum script_state_form */
	__u64 state_at;
	__u64 key_at; /* the same of key_form, for threads that have no state there, of Python;
			 of PHP from 8.2 on, where the time of the request is; 0 = none */
	/* Of Python; 0 = none: */
	__u64 current_at;      /* the state that has the interpreter's lock, where that may be
				  another one of the thread's */
	__u64 interpreters_at; /* the newest interpreter, which begins with the next older one */
	/* The process, or the one that it is a fork of: copies that one of them had are new to none
	 * (PHP and Perl, which know code by what is the same in all of them). */
	__u32 family;
	__u16 key_form; /* enum script_state_form, of Python */
	__u16 keys_at;	/* with musl: where threads have the address of their keys' values; 0 =
			   the C library is glibc */
	union {
		struct script_layout layout;
		struct script_v8_layout v8;	/* SCRIPT_V8 */
		struct script_ruby_layout ruby; /* SCRIPT_RUBY */
		struct script_php_layout php;	/* SCRIPT_PHP */
		struct script_perl_layout perl; /* SCRIPT_PERL */
		struct script_lua_layout lua;	/* SCRIPT_LUA */
		struct script_puc_layout puc;	/* SCRIPT_PUC */
		struct script_jsc_layout jsc;	/* SCRIPT_JSC */
	};
};

#define SCRIPT_PROCESSES_MAX 4096

#define JVM_HEAPS_MAX 4
#define JVM_HEAD_BYTES 128u /* read of each code blob */

/* One heap of HotSpot's code cache, and the map that leads from an address to its blob. */
struct jvm_heap {
	__u64 low, bytes, segments;
};

/* Where things are in HotSpot's structures, in bytes. */
struct jvm_layout {
	__u16 blob;				/* in its block */
	__u16 frame_complete, frame_size, data; /* in a blob, below JVM_HEAD_BYTES */
	__u16 code;				/* ... an address, or an offset */
	__u16 frame_complete_bytes, code_bytes; /* 2 or 4; 8 = an address, 4 = an offset */
	__u16 orig_pc;	     /* in a blob: {place of the pc in a frame, compile id} */
	__u16 deopt;	     /* ... where deoptimised frames return to */
	__u16 deopt_bytes;   /* 8 = an address, 4 = an offset */
	__u16 const_method;  /* in a Method */
	__u16 bytecodes;     /* in a ConstMethod */
	__u16 proof;	     /* ... eight bytes that tell it from others */
	__u16 bci_slot;	     /* words below the frame pointer of an interpreter's frame */
	__u16 segment_shift; /* log2 of the bytes of a segment */
	__u16 saves_below;   /* not 0: methods may save all registers below their frame, as Java 8's
			      */
};

/* A process that runs HotSpot (bpf/jvm.h). */
struct jvm_process {
	__u64 start_ns; /* with exec_id: whose it is */
	__u32 exec_id;
	__u32 heaps_count;
	__u64 low, bytes; /* of all its generated code */
	__u64 interpreter, interpreter_bytes;
	struct jvm_heap heaps[JVM_HEAPS_MAX];
	struct jvm_layout layout;
};

/*
 * By these the program finds the code of a process itself: addresses of HotSpot's variables, and
 * fields of what those point at.
 */
struct jvm_roots {
	__u64 heaps;			/* a pointer to an array of pointers to heaps */
	__u64 interpreter;		/* a pointer to a queue of stubs */
	__u16 array_count, array_data;	/* in the array */
	__u16 heap_low, heap_high;	/* in a heap */
	__u16 segments_low, heap_shift; /* ... its segment map, and log2 of a segment's bytes */
	__u16 stubs_start, stubs_bytes; /* in the queue */
};

/* Value of the map `jvm_files`, by file: HotSpot's library. */
struct jvm_file {
	struct jvm_roots roots; /* virtual addresses */
	struct jvm_layout layout;
	__u64 code_offset, code_bytes; /* in the file */
	__u64 code_address;	       /* virtual */
};

/* Value of the map `jvm_processes`, by tgid. */
struct jvm_entry {
	struct jvm_process process;
	struct jvm_roots roots; /* where `heaps` is 0 the agent has read all of the process */
	__u64 whole_at_ns;	/* when there was all for the first time; 0 = not yet */
	__u64 is_settled;	/* the process is not read again */
};

#define JVM_FILES_MAX 1024
#define JVM_PROCESSES_MAX 2048

/* What is known of a code blob. */
struct jvm_blob {
	__u64 start, bytes; /* up to its data */
	__u64 ids;
	__u64 deopt; /* where its deoptimised frames return to; 0 = not read */
	__u32 frame_words, proof;
};

/*
 * Generated code that the agent has unwind rows of, such as .NET's: one line of a table (table.h)
 * for each CODE_LINE_BYTES, with neither listed rules nor far rows. rbx is not followed; with the
 * flag of a listed rule its bits belong to the place of the caller's rbp.
 */
#define CODE_RULE_FAR TABLE_RULE_LISTED
#define CODE_RULE_FAR_FP(rule) ((rule) >> 11 & 255u)
#define CODE_LINE_SHIFT 7
#define CODE_LINE_BYTES (1u << CODE_LINE_SHIFT)
#define CODE_NEWS_NS 10000000ull  /* a CPU wakes the agent for unknown code this often at most */
#define CODE_LINES_MAX (1u << 19) /* of all processes: 64 MB of code */

/*
 * In numbers of processes whose lines come from a jitdump: only code without a file has such lines,
 * and code without a line is no news.
 */
#define CODE_NUMBER_OF_JITDUMP (1u << 31)

/*
 * A block of generated code whose functions all begin with `push %rbp; mov %rsp,%rbp` and use rbp
 * for nothing else, such as WebAssembly's: a line of this number is there, whatever it says. Only
 * under numbers with CODE_NUMBER_OF_JITDUMP.
 */
#define CODE_BLOCK_SHIFT 12
#define CODE_BLOCK_BYTES (1u << CODE_BLOCK_SHIFT)
#define CODE_LINE_OF_BLOCK(block) (1ull << 63 | (block))

/* A process that runs Erlang (bpf/beam.h). */
struct beam_walk {
	__u64 exit;	       /* the address that Erlang processes return to; 0 = it runs none */
	__u16 key;	       /* number of the pthread key by which threads find their scheduler */
	__u16 keys_at;	       /* as in struct script_process */
	__u32 current_process; /* in that */
};

/* Value of the map `code_processes`, by tgid: a process that has such code, or Erlang's. */
struct code_process {
	__u64 start_ns; /* with exec_id: whose it is */
	__u32 exec_id;
	__u32 number; /* of its lines, and of no other process's */
	struct beam_walk beam;
};

/* Key of the map `code_lines`. */
struct code_line_key {
	__u64 line; /* address >> CODE_LINE_SHIFT */
	__u32 number;
	__u32 reserved; /* 0 */
};

struct code_line {
	__u32 rows[TABLE_LINE_WORDS];
};

/* What every record begins with. */
struct record_head {
	__u32 kind; /* enum record_kind */
	__u32 cpu;
	__u64 at_ns;		/* CLOCK_MONOTONIC */
	__u64 process_start_ns; /* of the thread group's leader, CLOCK_BOOTTIME */
	__u32 tgid;
	__u32 tid;
	__u32 parent_tgid;
	__u32 exec_id; /* counts exec; with tgid and start it names a process image */
	__u32 flags;   /* enum sample_flag; only SAMPLE_IMAGE_OF_PARENT outside of samples */
	__u32 reserved;
	char process_name[SAMPLE_NAME_BYTES]; /* comm of the leader */
};

/*
 * One sample, with only the used part of `frames`: first the kernel frames as bpf_get_stack
 * gave them (innermost first; all but the first are return addresses), then the user frames
 * (innermost first; return addresses already moved back by one, so that each lies inside its call),
 * then the frames of an interpreter (innermost first; two words each: bpf/script.h).
 * A record of the ring buffer that begins with a sample consists of samples, one after the other.
 */
struct sample {
	struct record_head head;
	__u64 cgroup_id;
	char thread_name[SAMPLE_NAME_BYTES];
	__u16 kernel_count;
	__u16 user_count;
	__u8 user_end;	    /* enum stack_end */
	__u8 script_kind;   /* enum script_kind */
	__u16 script_words; /* two for each frame */
	__u64 frames[SAMPLE_WORDS_MAX];
};

#define SAMPLE_HEADER_BYTES 96

#define STAGED_BYTES 4096u     /* a power of two: when there are more they are sent */
#define STAGED_NS 100000000ull /* or when the first is this old, and the clock ticks */

/* Samples of one CPU that wait to be sent. */
struct staged_samples {
	__u64 first_at_ns;
	__u32 bytes, count;
	__u8 samples[STAGED_BYTES + sizeof(struct sample)];
};

/* Words of struct pt_regs. The first are those that functions preserve. */
#define REGISTERS_PRESERVED 6
#define REGISTERS_FP 4
#define REGISTERS_PC 16
#define REGISTERS_SP 19

#define STACK_RECORD_BYTES                                                                         \
	32768u			  /* a power of two; few stacks are larger when a program starts   \
				   */
#define STACK_RECORD_REGISTERS 21 /* of struct pt_regs */
#define STACK_FAR_BYTES 8192u	  /* kept free for the stack that a stack was switched from */
#define STACK_APART_MAX 128u

/* Eight bytes of memory that lie elsewhere. */
struct stack_apart {
	__u64 address, word;
};

#define STACK_BLOBS_MAX 32u /* a power of two */

/* An interpreter's code that enters generated code without frame pointers; 0 bytes: none. */
struct code_entry {
	__u64 start, bytes;
	__u32 words, fp_words; /* as in script_php_layout; 0: generated code has its own frame */
};

/* Of the frame where the walk of a copied stack begins. */
enum stack_state {
	STACK_STATE_FULL = 1, /* all its registers are known: it is the interrupted one */
	STACK_STATE_FP = 2,   /* ... fp is */
	STACK_STATE_BX = 4,
	STACK_STATE_AFTER_CALL = 8,
	STACK_STATE_BY_GENERATED = 16, /* generated code is below that was left by a guess */
};

#define STACK_RECORD_WORDS_MAX (STACK_RECORD_BYTES / 8 + 2 * STACK_APART_MAX)

/*
 * The stack of a sample whose walk lacked what the agent is about to have: an unwind table, or the
 * list of mappings. The agent walks it once more then (collect/second_walk.h). Sent with only the
 * used part of `words`: the memory from `start`, that from `far_start`, then struct stack_apart.
 */
struct stack_record {
	struct record_head head; /* the sample's, but for the kind */
	__u64 pc, sp, fp, bx;	 /* where the walk begins */
	__u64 registers[STACK_RECORD_REGISTERS];
	__u64 start, bytes; /* of the memory in `words`: from the word that sp points at on */
	/*
	 * The memory behind it, if there is any: where the chain of frame pointers leads out of the
	 * first. Go's runtime runs on stacks of its own, and what called it is on another one.
	 */
	__u64 far_start, far_bytes;
	/*
	 * What a walk reads that is no stack: the code that comes after calls in generated code,
	 * where it says how its frame is left, or before returns to what entered such code, and
	 * what names a goroutine's stack.
	 */
	__u64 apart_count;
	/*
	 * Of HotSpot's code is kept how its frames are left, as it is known: so the walk begins
	 * where the first one lacked something, and what that has found further inside stays.
	 */
	__u32 state;		       /* enum stack_state */
	__u32 frames_kept, noted_kept; /* user frames of the sample, and those of them with words */
	__u32 blobs_count;
	struct code_entry entry;
	struct jvm_process jvm; /* 0 bytes: it is none */
	struct jvm_blob blobs[STACK_BLOBS_MAX];
	__u64 words[STACK_RECORD_WORDS_MAX];
};

#define STACK_RECORD_HEADER_BYTES (320 + 24 + 176 + 40 * STACK_BLOBS_MAX)

/* An executable mapping: of a file, of the vdso (FILE_KEY_VDSO), or FILE_KEY_ANONYMOUS. */
struct space_mapping {
	__u64 start, end;
	__u64 offset; /* of start in the file */
	struct file_key file;
};

#define SPACE_PART_MAPPINGS 16 /* a power of two */
#define SPACE_PARTS_MAX 32     /* a power of two */

enum space_record_flag {
	SPACE_HAS_UNKNOWN_FILE = 1, /* a file that is not in the map `tables` */
	SPACE_CUT = 2,		    /* the process has more mappings than fit in all parts */
	SPACE_HAS_GENERATED = 8,    /* executable memory without a file, which comes and goes */
	SPACE_READ_PROC = 4,	    /* no mappings: this kernel cannot list them, /proc has to */
	SPACE_STALE = 16,	    /* they have changed, and could not be listed just then */
};

/*
 * The executable mappings of one process image, as they are from at_ns on: sent before the
 * first sample that they hold for, and again whenever they have changed. All parts of one reading
 * have the same at_ns and follow one another in order; together they replace what was known
 * before. Sent with only the used part of `mappings`, sorted by address.
 */
struct space_record {
	struct record_head head;
	__u16 part, parts; /* part < parts */
	__u16 count;
	__u16 space_flags; /* enum space_record_flag */
	struct space_mapping mappings[SPACE_PART_MAPPINGS];
};

#define SPACE_RECORD_HEADER_BYTES 72

/*
 * Versions of what is cached of a process's mappings and tables between samples: an array by the
 * low bits of tgid. An element is incremented when a list of mappings changes, all of them when a
 * table is removed. SPACE_FOLLOWED in an element says that every change of mappings increments it.
 */
#define SPACE_VERSIONS                                                                             \
	8192u /* a power of two; hosts that compile change thousands of lists a second */
#define SPACE_VERSION_STEP 2u
#define SPACE_FOLLOWED 1u

/* Processes that are sampled at a time, when not all are (chosen.bpf.h). */
#define CHOSEN_MAX 65536u

#define PROGRAM_NAME_BYTES 128

/* Code of a BPF program, or of one of its functions, as list_programs writes it. */
struct program_code {
	__u64 start, end;	       /* addresses */
	char name[PROGRAM_NAME_BYTES]; /* as in /proc/kallsyms; ends with NUL */
};

/* Per CPU, only ever added to. */
enum sample_counter {
	/* What every sample counts is in one cache line. */
	COUNTER_SAMPLES,	   /* the program ran on a task other than idle */
	COUNTER_BYTES,		   /* sent to the ring buffer */
	COUNTER_RUN_NS,		   /* time spent in the program: of one in RUN_ONE_IN, times that */
	COUNTER_FRAMES_BY_TABLE,   /* user frames left by a rule of a table */
	COUNTER_FRAMES_BY_POINTER, /* user frames left by the frame pointer */
	COUNTER_RING_FULL,	   /* samples lost because the ring buffer was full */
	COUNTER_KERNEL_STACK_FAILED, /* samples sent without their kernel half */
	COUNTER_STACK_END_FIRST,     /* + enum stack_end, the most frequent of which is 0 */
	/* + n: samples that took 2^(n-1) .. 2^n * 256 ns; the last: more */
	COUNTER_RUN_LOG2_FIRST = COUNTER_STACK_END_FIRST + STACK_ENDS,
	COUNTER_SPACES_READ = COUNTER_RUN_LOG2_FIRST + 12, /* times that mappings were listed */
	COUNTER_SPACES_BUSY, /* ... or could not be: the process was changing them */
	COUNTER_SPACES_SENT, /* records of kind RECORD_SPACE */
	COUNTER_SPACES_LOST, /* ... not sent: the ring buffer was full */
	COUNTER_STACKS_SENT, /* records of kind RECORD_STACK */
	COUNTER_STACKS_LOST, /* ... not sent: the ring buffer was half full, or more */
	COUNTERS
};

#define RUN_ONE_IN 17 /* prime: what happens every few samples is measured as often as it is */
#define RUN_LOG2_BUCKETS 12
#define RUN_LOG2_FIRST_NS 256

struct sample_counters {
	__u64 of[COUNTERS];
};

_Static_assert(sizeof(struct record_head) == 64, "record head");
_Static_assert(__builtin_offsetof(struct sample, frames) == SAMPLE_HEADER_BYTES, "sample header");
_Static_assert(sizeof(struct sample) == SAMPLE_HEADER_BYTES + 8 * SAMPLE_WORDS_MAX, "sample");
_Static_assert(__builtin_offsetof(struct space_record, mappings) == SPACE_RECORD_HEADER_BYTES,
	       "space record header");
_Static_assert(__builtin_offsetof(struct stack_record, words) == STACK_RECORD_HEADER_BYTES,
	       "stack record header");
_Static_assert(__builtin_offsetof(struct staged_samples, samples) % 8 == 0, "staged samples");
_Static_assert(sizeof(struct jvm_process) == 176, "no padding: it is compared as bytes");
_Static_assert(sizeof(struct jvm_file) == 88, "no padding: it is compared as bytes");
_Static_assert(sizeof(struct jvm_entry) == 224, "no padding");
_Static_assert(sizeof(struct script_process) == 80, "no padding: it is compared as bytes");
_Static_assert(sizeof(struct script_v8_layout) == sizeof(struct script_layout), "one or other");
_Static_assert(sizeof(struct script_ruby_layout) == sizeof(struct script_layout), "one or other");
_Static_assert(sizeof(struct script_php_layout) == sizeof(struct script_layout), "one or other");
_Static_assert(sizeof(struct script_perl_layout) == sizeof(struct script_layout), "one or other");
_Static_assert(sizeof(struct script_lua_layout) == sizeof(struct script_layout), "one or other");
_Static_assert(sizeof(struct script_puc_layout) == sizeof(struct script_layout), "one or other");
_Static_assert(sizeof(struct script_jsc_layout) == sizeof(struct script_layout), "one or other");
_Static_assert(sizeof(struct sample_counters) == 8 * COUNTERS, "counters");

#endif
