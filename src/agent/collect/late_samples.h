/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_samples - samples that wait for the unwind tables or mappings that their walk lacked.
 *
 * The program sends a stack, then its sample (SAMPLE_HAS_STACK). Both are kept with the list of
 * mappings of that time, and walked again at each turn (second_walk), though not before a table is
 * there that the last walk lacked, until that completes the stack, or LATE_WAIT_NS have passed and
 * nobody is making the table, or LATE_COMING_NS: then the sample is counted as it came. A busy host
 * decides how long a table takes. Owned by the drain thread. Bound: bytes_max; samples beyond it
 * are counted as they came.
 */
#ifndef FIRN_AGENT_COLLECT_LATE_SAMPLES_H
#define FIRN_AGENT_COLLECT_LATE_SAMPLES_H

#include "agent/collect/second_walk.h"

/*
 * A table of a large binary takes seconds to build, and its program's stacks fill 20 KB each: who
 * asks for many samples gives memory for them, for as long as they wait.
 */
#define LATE_BYTES_MIN ((size_t)8 << 20)
#define LATE_BYTES_MAX ((size_t)64 << 20)
#define LATE_BYTES_PER_HZ ((size_t)128 << 10)
#define LATE_WAIT_NS 5000000000ll
#define LATE_COMING_NS 30000000000ll /* while the table is being made */

struct late_sample {
	struct stack_record *stack;
	struct sample *sample; /* NULL = has not come yet */
	size_t bytes;	       /* of both */
	struct space *space;   /* a reference; NULL = the mappings were not known either */
	int64_t since_ns;
	bool is_table_missing; /* which is being made: */
	struct file_key missing;
};

struct late_samples {
	struct second_walk *walk;
	struct late_sample *items;
	size_t count, capacity;
	size_t bytes, bytes_max;
	size_t coming; /* of the last walk: those whose table is being made */
};

/* For samples at this frequency: see LATE_BYTES_MIN. */
void late_samples_init(struct late_samples *late, const struct second_walk_source *source,
		       unsigned frequency_hz);
void late_samples_free(struct late_samples *late);

/* Keeps a copy of a stack whose sample is about to come. False when the record is not sound. */
bool late_samples_take_stack(struct late_samples *late, const struct stack_record *stack,
			     size_t len);

/*
 * Keeps a copy of a sample with SAMPLE_HAS_STACK and the list of mappings (NULL: not known yet).
 * False if its stack is not there: count it as it is.
 */
bool late_samples_take(struct late_samples *late, const struct sample *sample, struct space *space,
		       int64_t now_ns);

/*
 * Walks those that wait. `find_space` says the mappings of one that had none. `done` gets each
 * that is whole or has waited long enough, without SAMPLE_HAS_STACK, and the list of mappings to
 * count it with (NULL: not known), valid during the call.
 */
struct late_samples_user {
	const struct space *(*find_space)(void *context, const struct sample *sample);
	void (*done)(void *context, const struct sample *sample, const struct space *space);
	void *context;
};

void late_samples_walk(struct late_samples *late, const struct late_samples_user *user,
		       int64_t now_ns);

/* Whether the last walk left samples whose tables are being made. */
bool late_samples_are_coming(const struct late_samples *late);

/* The next walk is the last one of all that wait. */
void late_samples_give_up(struct late_samples *late);

void late_samples_metrics_register(void); /* once per process */

#endif
