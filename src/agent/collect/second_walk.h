/* SPDX-License-Identifier: Apache-2.0 */
/*
 * second_walk - walks a user stack that the BPF program could not, once what lacked is there.
 *
 * A process that starts maps files whose unwind tables have still to be built: the walk in the
 * kernel ends there, and when the table is there the stack is not any more. So the BPF program
 * sends the stack's memory along (struct stack_record), and the same walk (bpf/walk.h) runs over
 * that copy, with the tables that the program reads and the list of mappings that held.
 *
 * What lies outside of the copy is not there: the innermost frames of a stack that is larger, and
 * code, which only walks through generated code look at.
 *
 * Tables may be taken away and their memory be used again while they are read here: `removals` is
 * counted up before that, and a walk during which it changed says STACK_TABLE_PENDING. Owned by one
 * thread.
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
	const uint32_t *removals; /* see above; NULL: none */
	void *context;
};

struct second_walk;

struct second_walk *second_walk_new(const struct second_walk_source *source);
void second_walk_free(struct second_walk *second); /* accepts NULL */

/* Whether a record of this length is sound. */
bool second_walk_is_sound(const struct stack_record *stack, size_t len);

/*
 * Walks a sound stack by a list of mappings (NULL: not known), and puts what it finds in the place
 * of the user half of `sample`, whose user_end it becomes. False when that would still say that a
 * table or the mappings are lacking, or, unless it is the last try, look as if the mappings were
 * those of before: then nothing was done.
 */
bool second_walk_run(struct second_walk *second, const struct stack_record *stack,
		     const struct space *space, bool is_last, struct sample *sample);

/* Lets go of the tables' memory, which counts as ours while it is mapped. */
void second_walk_rest(struct second_walk *second);

#endif
