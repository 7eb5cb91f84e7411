/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot_look - when a process with a HotSpot is asked how its structures lie, and what it
 * answered. Its file tells the kernel's program how to walk it; names need the process.
 *
 * A part of `runtimes`, for the drain thread.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_LOOK_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_HOTSPOT_LOOK_H

#include "agent/runtime/runtime_entry.h"

/* Adds the process. The kernel's program walks it from now on, if the file tells enough. */
void hotspot_look_start(struct runtimes *runtimes, const struct process *process,
			const struct binary *binary, uint64_t bias, int64_t now_ns);

/* Frames (two words each) from before it has answered, whose names are asked for then. */
void hotspot_look_keep(struct runtimes *runtimes, struct runtime_entry *entry,
		       const uint64_t *words, size_t count);

/* Asks one that has not answered yet, if it is time. */
void hotspot_look_ask(struct runtimes *runtimes, struct runtime_entry *entry, int64_t now_ns);

/* Its answer: its frames are read from now on, or never, or it is asked again. */
void hotspot_look_take(struct runtimes *runtimes, struct runtime_entry *entry,
		       struct script_job *job);

/* When it is to be asked again; INT64_MAX = it does not matter. */
int64_t hotspot_look_due_ns(const struct runtime_entry *entry, int64_t now_ns);

#endif
