/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_entry - what is known of a process with an interpreter, and all such processes (struct
 * runtimes): the state that `runtimes` shares with object_names, and with hotspot_look, dotnet_look
 * and beam_look, which read more of a process than its objects. For these alone.
 *
 * For the drain thread.
 */
#ifndef FIRN_AGENT_RUNTIME_RUNTIME_ENTRY_H
#define FIRN_AGENT_RUNTIME_RUNTIME_ENTRY_H

#include "agent/runtime/names/known_codes.h"
#include "agent/runtime/runtimes.h"
#include "agent/runtime/script_reader.h"
#include "agent/runtime/names/unknown_code.h"
#include "base/clock.h"

#define RUNTIME_ASK_AGAIN_NS (20 * CLOCK_NS_PER_MS)

/* Of its time, what a look that samples ask for may take. */
#define RUNTIME_LOOK_SHARE_DIVISOR 3

/* A process image with an interpreter. */
struct runtime_entry {
	struct process_identity identity;
	uint32_t parent; /* pid; 0 = it has called exec since the fork */
	int64_t used_at_ns;
	uint64_t bias;
	uint32_t proof_words;
	struct runtime_layout layout;
	struct hotspot_process *hotspot; /* of a HotSpot, once it is known */
	struct jvm_entry jvm;		 /* ... by its file, which has no roots where it is not */
	uint64_t jvm_low, jvm_bytes;	 /* ... where all its generated code is; 0 = not known */
	uint64_t *early;		 /* ... frames (two words each) from before it was known */
	size_t early_count, early_capacity;
	bool is_asked; /* ... a job is at that */
	int64_t ask_at_ns;
	struct dotnet_process *dotnet; /* of a .NET, unless a job has it */
	struct beam_process *beam;     /* of an Erlang, the same */
	struct unknown_code unknown;
	bool is_read;		  /* once */
	int64_t look_again_ns;	  /* after how long */
	int64_t look_again_at_ns; /* of the clock */
	int64_t asked_at_ns;
	struct known_codes codes;
	size_t lost_copies;	/* of codes: see is_lost_copy */
	struct script_job *job; /* being filled */
	uint32_t read, other;	/* objects */
	bool refused;		/* its structures are not what we take them for */
	bool has_c_library;	/* its C library is known for good */
	uint16_t keys_at;	/* as c_library_of says */
	char version_text[RUNTIME_VERSION_BYTES];
};

struct runtimes {
	struct runtimes_options options;
	struct job_thread *reader; /* its jobs are script_jobs */
	struct runtime_entry **items;
	size_t count, capacity;
	struct idmap map;
	uint32_t window;
	uint32_t numbers; /* of processes with lines of code, so far */
	int64_t swept_at_ns;
	struct runtime_offsets *offsets;
};

/* NULL = none. Valid until runtimes_sweep. */
struct runtime_entry *runtime_entry_find(const struct runtimes *runtimes,
					 const struct process_identity *identity);

/* One of a process whose binary `file` is, loaded at `bias`; it is not in the list yet. */
struct runtime_entry *runtime_entry_new(const struct process *process,
					const struct runtime_file *file, uint64_t bias);

void runtime_entry_add(struct runtimes *runtimes, struct runtime_entry *entry);

/* Its structures are not what we take them for: better no frames than wrong ones. */
void runtime_entry_refuse(struct runtimes *runtimes, struct runtime_entry *entry);

void runtime_entry_free(struct runtimes *runtimes, struct runtime_entry *entry);

#endif
