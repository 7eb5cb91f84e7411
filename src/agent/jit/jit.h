/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit - names of generated code, for those runtimes that write them down: perf maps and jitdumps,
 * or, of WebAssembly, images in memory; and how to unwind it, where a jitdump or an image says so.
 *
 * The drain thread says which addresses were sampled in memory that belongs to no file, and asks
 * for their names when a window ends. Files are found and read on a thread of our own, which is
 * started when first needed: only those of such processes, when they have an address without a
 * name, at growing intervals. What is read goes on where the last reading ended.
 *
 * Code moves and its memory is used again. The rule is: an address means what the files said last
 * when the window ended, and the newest entry wins. So a name can be wrong only for code that
 * another has replaced within the same window.
 *
 * A file system that hangs (FUSE) blocks a helper process (files/root_files.h) and costs the thread
 * a second; its users have no names until it answers.
 *
 * Rows of code come with its names, and are put where the kernel's program finds them: by jit_note
 * of an address that had no name, and jit_settle. Those of a process that another part of the agent
 * leaves the code of are not used.
 *
 * All functions are for the drain thread. Bounds: JIT_PROCESSES_MAX, JIT_BYTES_MAX (over which
 * the longest unused are forgotten), JIT_LINES_MAX (over which code has no rows), JIT_OPEN_MAX, and
 * those of code_map, code_rows and code_reader. Reading
 * takes a twentieth of one CPU after a burst of JIT_BURST_NS, of all processes together. Lines are
 * put, and taken back, in pieces of JIT_PUTS_MAX, one in JIT_PUT_NS; those of a process that is
 * forgotten, or left in another way, at once.
 */
#ifndef FIRN_AGENT_JIT_JIT_H
#define FIRN_AGENT_JIT_JIT_H

#include "agent/bpf/shared.h"
#include "agent/files/root_files.h"
#include "agent/jit/code_name.h"
#include "agent/jit/code_rows.h"
#include "agent/procs/process.h"

#define JIT_PROCESSES_MAX 16384
#define JIT_BYTES_MIN ((size_t)16 << 20) /* of maps: a thousandth of the memory, but in between */
#define JIT_BYTES_MAX ((size_t)64 << 20)
#define JIT_BURST_NS (2 * CLOCK_NS_PER_S) /* of CPU time */
#define JIT_OPEN_MAX 512 /* files kept open: what a process writes as it ends can be read, too */

#define JIT_LINES_MAX (CODE_LINES_MAX / 4)  /* of all processes */
#define JIT_PUTS_MAX CODE_ROWS_LINES_MAX    /* lines put at once, of all processes */
#define JIT_PUT_NS (CLOCK_NS_PER_S / 16384) /* a line, on average */

struct jit;

/* The program in the kernel: sampler_put_code, _put_code_line, _drop_code. */
struct jit_program {
	/*
	 * The process has lines under a number. False when its code is left in another way: nothing
	 * is put, and what was is taken back. Called again at the end of each window.
	 */
	bool (*put_process)(void *context, const struct process_identity *identity,
			    uint32_t number);
	void (*put_line)(void *context, const struct code_line_key *key,
			 const struct code_line *line); /* NULL = there is none any more */
	void (*drop_process)(void *context, uint32_t pid, uint32_t number);
	void *context;
};

/*
 * `memory_bytes` of this host. Takes a reference to `files`, and copies `program` (NULL = rows are
 * not wanted), which is called until jit_free has returned.
 */
struct jit *jit_new(uint64_t memory_bytes, struct root_files *files,
		    const struct jit_program *program);
/* Stops `files`. Accepts NULL; waits for the thread unless that is stuck. */
void jit_free(struct jit *jit);

/* An address outside of files. */
struct jit_address {
	uint64_t address;
	bool is_code; /* in a mapping that the process executes; else it may be no code at all */
	/*
	 * A number that changes with the files which the process maps to run them, so that its
	 * mappings are not gone through again in vain; 0 = not known.
	 */
	uint64_t mapped;
};

/* The process was sampled there: the address's name should be there at the end. */
void jit_note(struct jit *jit, const struct process_identity *identity,
	      const struct jit_address *address, int64_t now_ns);

/* What was read meanwhile is used from now on: how code is unwound, and images. */
void jit_update(struct jit *jit);

/* Readable while there is something for jit_update, for poll. -1 = it tells nothing. */
int jit_fd(const struct jit *jit);

/*
 * At the end of a window, before names are asked for: reads once more for addresses without a name
 * and waits for it, at most so long. Those that come too late have their names in the next window.
 */
void jit_settle(struct jit *jit, int64_t timeout_ns);

/*
 * The name of the code at an address; *ret_raw is it as the runtime wrote it. Slices live until
 * the next call. False when it has none.
 */
bool jit_find(struct jit *jit, const struct process_identity *identity, uint64_t address,
	      struct code_name *ret, struct slice *ret_raw);

/*
 * True if the frame pointer leads from the address to the caller for certain, as the code there is
 * known to keep it. `is_innermost`: it was interrupted there, and not left by a call.
 */
bool jit_keeps_pointer(struct jit *jit, const struct process_identity *identity, uint64_t address,
		       bool is_innermost);

/* After a window: forgets processes that have ended, and more when over the bounds. */
void jit_sweep(struct jit *jit, int64_t now_ns);

#endif
