/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfr - Java Flight Recorder's files, of the JDK (8 and newer), of async-profiler and of Datadog's
 * profiler, to stacks.
 *
 * A file is chunks, each with a description of its own events and with its constants; the layout of
 * every event is taken from there. One recording holds profiles of several kinds: CPU, wall clock,
 * allocations, locks. Each kind that has samples becomes one profile, in which samples that differ
 * in their time alone are one. All belongs to the struct.
 */
#ifndef FIRN_CODEC_PROFILE_JFR_H
#define FIRN_CODEC_PROFILE_JFR_H

#include "codec/profile/stack_builder.h"

enum jfr_kind {
	JFR_CPU,
	JFR_WALL,
	JFR_NEW_TLAB,
	JFR_OUTSIDE_TLAB,
	JFR_ALLOCATION,
	JFR_MUTEX,
	JFR_BLOCK,
	JFR_LIVE,
	JFR_SAMPLED, /* allocations and the heap, as Datadog samples them */
	JFR_HEAP,
	JFR_MALLOC,
	JFR_KINDS
};

struct jfr_labels;

struct jfr {
	struct stack_builder built[JFR_KINDS]; /* those without samples are not there */
	bool unfinished; /* the last chunk was still being written: left out */
};

bool jfr_is(struct slice bytes); /* by magic "FLR\0" */

/* The name of the profile of a kind: "process_cpu", "wall", "memory", "mutex", "block". */
const char *jfr_name(enum jfr_kind kind);

/*
 * `labels` came beside the file (jfr_labels.h), or NULL. `ret` is to be freed in any case.
 * ERR_INVALID names offset and chunk, or says that there is no event with a stack; ERR_LIMIT: more
 * than elements_max of something. The budget pays for memory, as base/budget.h says; what is built
 * has it until jfr_free.
 */
MUST_USE int jfr_decode(struct slice bytes, const struct jfr_labels *labels, size_t elements_max,
			struct budget *budget, struct jfr *ret, struct err *err);
void jfr_free(struct jfr *jfr);

#endif
