/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beam_look - when a process with Erlang is looked at for its functions, and what was found.
 *
 * A part of `runtimes`, for the drain thread.
 */
#ifndef FIRN_AGENT_RUNTIME_BEAM_BEAM_LOOK_H
#define FIRN_AGENT_RUNTIME_BEAM_BEAM_LOOK_H

#include "agent/runtime/runtime_entry.h"

/* Adds the process. The kernel's program walks it once it has answered. */
void beam_look_start(struct runtimes *runtimes, const struct process *process,
		     const struct runtime_file *file, uint64_t bias, int64_t now_ns);

/* An address of generated code in a stack: the process is looked at if nothing is known of it. */
void beam_look_note(struct runtime_entry *entry, uint64_t address);

/* Looks at a process that ran unknown code, or has not answered yet. */
void beam_look_ask(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns);

/* What was found. `entry` is NULL if the process was dropped meanwhile. */
void beam_look_take(struct runtimes *runtimes, struct runtime_entry *entry, struct script_job *job);

/* When it is to be asked again, until it has answered; INT64_MAX = it does not matter. */
int64_t beam_look_due_ns(const struct runtime_entry *entry, int64_t now_ns);

/* Describes the code at an address. Text: until the next look. */
void beam_look_find(const struct runtime_entry *entry, uint64_t address, struct runtimes_code *ret);

#endif
