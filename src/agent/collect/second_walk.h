/* SPDX-License-Identifier: Apache-2.0 */
/*
 * second_walk - unwinds a user stack in the agent when the unwind table or mappings that the BPF
 * program lacked have arrived.
 *
 * A process that starts maps files whose unwind tables have still to be built: the walk in the
 * kernel ends there, and when the table is there the stack is not any more. So the BPF program
 * sends the stack's memory along (struct stack_record), and the same walk (bpf/walk.h) runs over
 * that copy, with the tables that the program reads and the list of mappings that held.
 *
 * Memory outside of the copy is missing: parts of a larger stack, and code but for what tells how
 * frames of generated code are left.
 *
 * Tables may be removed and their memory be reused during a walk: `removals` is incremented before
 * that, and a walk during which it changed ends with STACK_TABLE_PENDING. Owned by one thread.
 */
#ifndef FIRN_AGENT_COLLECT_SECOND_WALK_H
#define FIRN_AGENT_COLLECT_SECOND_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/bpf/shared.h"
#include "agent/procs/space.h"

/* What a walk reads, as the BPF program sees it. */
struct second_walk_source {
	/* The entry of a file in the map `tables`; false: there is none. */
	bool (*find_tables)(void *context, const struct file_key *file, struct binary_tables *ret);
	/* The chunk's descriptor, borrowed; -1: there is none. */
	int (*chunk_fd)(void *context, uint32_t index);
	/* Whether a file that has no entry is being opened, or its table made. */
	bool (*is_coming)(void *context, const struct file_key *file);
	/* Whether the file of one that is not being made could not be opened. */
	bool (*is_lost)(void *context, const struct file_key *file);
	const uint32_t *removals; /* see above; NULL: none */
	void *context;
};

struct second_walk;

struct second_walk *second_walk_new(const struct second_walk_source *source);
void second_walk_free(struct second_walk *second); /* accepts NULL */

/* Whether a record of this length is sound. */
bool second_walk_is_sound(const struct stack_record *stack, size_t len);

/*
 * Walks a sound stack by a list of mappings (NULL: not known), and replaces the user frames and
 * user_end of `sample` by the result. False, with nothing changed, if a table or the mappings are
 * still missing, or, unless it is the last try, if the mappings look outdated.
 */
bool second_walk_run(struct second_walk *second, const struct stack_record *stack,
		     const struct space *space, bool is_last, struct sample *sample);

/* The first file whose table the last walk lacked although it is being made; false: there is none.
 */
bool second_walk_missing(const struct second_walk *second, struct file_key *ret);

/* Whether the last walk lacked a table whose file could not be opened, and none that is coming. */
bool second_walk_has_lost_table(const struct second_walk *second);

/* Whether it is being made still. */
bool second_walk_is_coming(struct second_walk *second, const struct file_key *file);

/* Unmaps the tables' memory, which counts as the agent's while it is mapped. */
void second_walk_rest(struct second_walk *second);

#endif
