/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self_sampler - samples the stacks of this process while it uses CPU.
 *
 * Each thread is sent SIGPROF after a period of its own CPU time (self_timers); the handler walks
 * frame pointers into a buffer prepared beforehand. Memory is read with process_vm_readv, so a
 * frame pointer that is none ends the walk and nothing worse. A thread that blocks SIGPROF is not
 * sampled, nor what a thread used before it was first seen (50 ms at most). The handler stays
 * installed after the first run, since a late signal would otherwise end the process.
 */
#ifndef FIRN_SERVER_SERVE_SELF_SELF_SAMPLER_H
#define FIRN_SERVER_SERVE_SELF_SELF_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SELF_SAMPLER_DEPTH_MAX 128
#define SELF_SAMPLER_HZ_MAX 1000u

/* Stacks one after another: the depth, then so many addresses, innermost first. */
struct self_samples {
	uintptr_t *words; /* owned */
	size_t count;	  /* of words */
	uint64_t lost;	  /* samples that found the buffer full */
};

/*
 * Samples for `duration_ns`, or until *cancelled (may be NULL) turns true: ERR_CANCELLED. One run
 * at a time in a process: ERR_BUSY. Callers' addresses are return addresses.
 */
int self_sampler_run(int64_t duration_ns, unsigned hz, const _Atomic bool *cancelled,
		     struct self_samples *ret, struct err *err);

void self_samples_free(struct self_samples *samples);

#endif
