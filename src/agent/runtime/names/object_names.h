/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_names - the names of the code objects in a process's stacks: which are known, which are
 * wanted and not asked for yet, which are being read.
 *
 * A part of `runtimes`, for the drain thread. Jobs of SCRIPT_JOB_ITEMS objects go to script_reader;
 * while too many wait, an object is asked for when it is seen again.
 */
#ifndef FIRN_AGENT_RUNTIME_NAMES_OBJECT_NAMES_H
#define FIRN_AGENT_RUNTIME_NAMES_OBJECT_NAMES_H

#include "agent/runtime/runtime_entry.h"

/* `count` frames of a stack, two words each: what is not known of them is wanted. */
void object_names_note(struct runtimes *runtimes, struct runtime_entry *entry,
		       const uint64_t *words, size_t count, int64_t now_ns);

/* Hands the wanted objects over to script_reader; where too many wait, a later call does. */
void object_names_send(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns);

/* What was read of one, of which it takes what is to be kept. */
void object_names_take(struct runtimes *runtimes, struct runtime_entry *entry,
		       struct script_job_item *item);

/* The code of a frame (two words), until the next one is taken; NULL = not known. */
const struct script_code *object_names_find(const struct runtimes *runtimes,
					    const struct runtime_entry *entry,
					    const uint64_t *words);

/* True of a process whose optimized code has inlined functions to be read: V8's. */
bool object_names_has_places(const struct runtime_entry *entry);

/* The same as above of an address in such code. */
void object_names_note_place(struct runtimes *runtimes, struct runtime_entry *entry,
			     uint64_t address, int64_t now_ns);
const struct v8_place *object_names_find_place(const struct runtime_entry *entry, uint64_t address);

#endif
