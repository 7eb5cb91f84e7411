/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes - the processes that run an interpreter, and the names of the code objects in their
 * samples. The interface of agent/runtime.
 *
 *   a list of mappings with a runtime's binary -> how to read its frames, for the kernel's program
 *   a new stack with such frames -> code objects that have no name yet -> script_reader
 *   the end of a window -> names
 *
 * A code object is known by its address and a proof of its contents, so a new object at the same
 * place gets its own name. An object that was freed before it could be read has no name. A child
 * forked without exec has its parent's objects at the same addresses, and uses the parent's names.
 *
 * All functions are for the drain thread. Bounds: RUNTIMES_PROCESSES_MAX, and
 * RUNTIMES_PROCESS_BYTES_MAX of names each, beyond which the least recently used are dropped.
 */
#ifndef FIRN_AGENT_RUNTIME_RUNTIMES_H
#define FIRN_AGENT_RUNTIME_RUNTIMES_H

#include "agent/procs/process.h"
#include "agent/runtime/runtime_file.h"
#include "agent/runtime/script_code.h"
#include "agent/runtime/v8/v8_optimized.h"

#define RUNTIMES_PROCESSES_MAX SCRIPT_PROCESSES_MAX
#define RUNTIMES_PROCESS_BYTES_MAX ((size_t)16 << 20)
#define RUNTIMES_BYTES_MAX ((size_t)100 << 20)

struct runtimes;

struct runtimes_options {
	/*
	 * The program in the kernel: sampler_put_script, _put_jvm, _put_jvm_file, _find_jvm,
	 * _put_code, _put_code_line, _ask_for_copies, _drop_script. Called until runtimes_free has
	 * returned, which takes lines back.
	 */
	bool (*put)(void *context, uint32_t tgid, const struct script_process *script);
	bool (*put_jvm)(void *context, uint32_t tgid, const struct jvm_entry *entry);
	void (*put_jvm_file)(void *context, const struct file_key *key,
			     const struct jvm_file *file);
	bool (*find_jvm)(void *context, uint32_t tgid, struct jvm_entry *ret);
	bool (*put_code)(void *context, uint32_t tgid, const struct code_process *process);
	void (*put_code_line)(void *context, const struct code_line_key *key,
			      const struct code_line *line); /* NULL = there is none any more */
	void (*ask_for_copies)(void *context, uint64_t proof);
	void (*drop)(void *context, uint32_t tgid);
	void *context;
};

struct runtimes *runtimes_new(const struct runtimes_options *options);
void runtimes_free(struct runtimes *runtimes); /* accepts NULL */

/*
 * Tells the mappings of a process: if one is a runtime's, the process's frames are read from now
 * on.
 */
void runtimes_look(struct runtimes *runtimes, const struct process *process,
		   const struct space *space, int64_t now_ns);

/* `count` frames of an interpreter in a new stack, two words each: their names will be wanted. */
void runtimes_note(struct runtimes *runtimes, const struct process_identity *identity,
		   const uint64_t *words, size_t count, int64_t now_ns);

/* The same in a stack that was noted: copies of an object may have been gone when it was read. */
void runtimes_note_again(struct runtimes *runtimes, const struct process_identity *identity,
			 const uint64_t *words, size_t count, int64_t now_ns);

/* True if the process has generated code whose addresses are to be noted. */
bool runtimes_has_code(const struct runtimes *runtimes, const struct process_identity *identity);

/* An address of its code in a new stack, outside of all ELF files. */
void runtimes_note_code(struct runtimes *runtimes, const struct process_identity *identity,
			uint64_t address, int64_t now_ns);

/* After a few samples: queues the wanted reads, and takes finished ones. */
void runtimes_update(struct runtimes *runtimes, int64_t now_ns);

/*
 * When runtimes_update is to be called again at the latest, CLOCK_MONOTONIC; INT64_MAX = it does
 * not matter.
 */
int64_t runtimes_due_ns(const struct runtimes *runtimes, int64_t now_ns);

/* Readable when runtimes_update is to be called at once, for poll; -1 = it tells nothing. */
int runtimes_fd(const struct runtimes *runtimes);

/* At the end of a window: the same, and waits for the reads, at most timeout_ns. */
void runtimes_settle(struct runtimes *runtimes, int64_t timeout_ns);

/* The code of a frame (two words), until the next update; NULL = it could not be read. */
const struct script_code *runtimes_find(const struct runtimes *runtimes,
					const struct process_identity *identity,
					const uint64_t *words);

/* True if the address lies in generated code whose frames are noted each (bpf/jvm.h). */
bool runtimes_is_noted(const struct runtimes *runtimes, const struct process_identity *identity,
		       uint64_t address);

/* The functions at an address of V8's optimized code, until the next update; NULL = not known. */
const struct v8_place *runtimes_find_place(const struct runtimes *runtimes,
					   const struct process_identity *identity,
					   uint64_t address);

/* The name of a frame of V8's own, that is, of no function in JavaScript; NULL = not known. */
const char *runtimes_v8_frame(const struct runtimes *runtimes,
			      const struct process_identity *identity, uint64_t number);

struct runtimes_code {
	enum runtime_kind kind;
	bool is_named;		     /* function is no marker that says that it is not known */
	const char *function, *file; /* "" = not known */
	uint32_t line;		     /* 0 = not known */
};

/* Describes the code at an address of a process; false = it is not the runtime's. */
bool runtimes_find_code(const struct runtimes *runtimes, const struct process_identity *identity,
			uint64_t address, struct runtimes_code *ret);

/* After a window: forgets processes that have ended, and more when over the bounds. */
void runtimes_sweep(struct runtimes *runtimes, int64_t now_ns);

#endif
