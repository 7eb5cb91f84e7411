/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_look - when a process with .NET or Mono is looked at for its generated code, and what was
 * found: rows of unwind tables for the kernel's program, and names.
 *
 * A part of `runtimes`, for the drain thread.
 */
#ifndef FIRN_AGENT_RUNTIME_DOTNET_DOTNET_LOOK_H
#define FIRN_AGENT_RUNTIME_DOTNET_DOTNET_LOOK_H

#include "agent/runtime/runtime_entry.h"

/* Adds the process. */
void dotnet_look_start(struct runtimes *runtimes, const struct process *process,
		       const struct runtime_file *file, uint64_t bias, int64_t now_ns);

/* An address of generated code in a stack: the process is looked at if nothing is known of it. */
void dotnet_look_note(struct runtime_entry *entry, uint64_t address);

/* Looks at a process that ran unknown code, was not looked at yet, or may have new code. */
void dotnet_look_ask(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns);

/* What was found. `entry` is NULL if the process was dropped meanwhile. */
void dotnet_look_take(struct runtimes *runtimes, struct runtime_entry *entry,
		      struct script_job *job);

/* When it is to be looked at again; INT64_MAX = it does not matter. */
int64_t dotnet_look_due_ns(const struct runtime_entry *entry, int64_t now_ns);

/* Describes the code at an address; false = it is not the runtime's. Text: until the next look. */
bool dotnet_look_find(const struct runtime_entry *entry, uint64_t address,
		      struct runtimes_code *ret);

/* Takes back all rows: nothing is known of its code any more. Accepts NULL. */
void dotnet_look_drop_lines(struct runtimes *runtimes, struct dotnet_process *dotnet);

#endif
