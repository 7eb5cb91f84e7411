/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts - how well stacks are unwound, and at what cost: user stacks that are whole and those
 * that were cut, by the binary in which the walk ended; the time of the BPF program per sample.
 *
 * Adds to /metrics while it lives:
 *
 *   firn_agent_binary_stacks_total{binary,end}      of the ACCOUNTS_SHOWN binaries with most cut
 *                                                   stacks
 *   firn_agent_bpf_sample_seconds                   histogram
 *
 * A binary is known by the last part of its path: one name is one account, however many files bear
 * it. The drain thread adds, any thread may render /metrics. Bounds: ACCOUNTS_MAX binaries; what
 * comes later counts as "[other]".
 */
#ifndef FIRN_AGENT_COLLECT_ACCOUNTS_H
#define FIRN_AGENT_COLLECT_ACCOUNTS_H

#include "agent/collect/counts.h"
#include "agent/procs/tracker.h"

#define ACCOUNTS_MAX 1024
#define ACCOUNTS_SHOWN 50
#define ACCOUNTS_NAME_BYTES 64 /* with its NUL; longer names are cut */

struct accounts;

struct accounts *accounts_new(void);
void accounts_free(struct accounts *accounts); /* accepts NULL */

/*
 * User stacks that ended in a binary. `path` is that of the file, or a name like "[anon]"; empty
 * when it is not known.
 */
void accounts_add(struct accounts *accounts, struct slice path, enum stack_end end,
		  uint64_t samples);

/* Adds the user stacks of a window. */
void accounts_add_window(struct accounts *accounts, const struct counts *counts,
			 const struct tracker *tracker);

/* The program's counters as they are now. */
void accounts_set_counters(struct accounts *accounts, const struct sample_counters *counters);

/* As in labels: "complete", "no_unwind_info", ... */
const char *accounts_end_name(enum stack_end end);

#endif
