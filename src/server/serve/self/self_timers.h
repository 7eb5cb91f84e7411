/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self_timers - one CPU-time timer per thread of this process, each sending SIGPROF to its own
 * thread. (A timer for the whole process would signal any thread that lets it, on kernels before
 * 6.4 preferably the main one, whoever used the time.)
 */
#ifndef FIRN_SERVER_SERVE_SELF_SELF_TIMERS_H
#define FIRN_SERVER_SERVE_SELF_SELF_TIMERS_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"

#define SELF_TIMERS_MAX 512 /* threads beyond are not sampled */

struct self_timers {
	int64_t period_ns; /* of a thread's CPU time */
	size_t count;
	struct {
		pid_t thread;
		timer_t timer;
	} of[SELF_TIMERS_MAX];
};

/* Gives a timer to each thread that has none yet: call again from time to time. */
int self_timers_follow(struct self_timers *timers, struct err *err);

void self_timers_stop(struct self_timers *timers);

#endif
