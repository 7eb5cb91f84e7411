/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - time. All times are int64 nanoseconds: points since the Unix epoch (`_at_ns`,
 * `start_ns`) or durations (`_ns`). Code that tests must steer takes a `clock_f` instead.
 */
#ifndef FIRN_BASE_CLOCK_H
#define FIRN_BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NS_PER_US 1000ll
#define CLOCK_NS_PER_MS 1000000ll
#define CLOCK_NS_PER_S 1000000000ll

typedef int64_t clock_f(void *context);

int64_t clock_real_ns(void);	   /* wall clock */
int64_t clock_monotonic_ns(void);  /* CLOCK_MONOTONIC: the clock of the kernel's samples */
int64_t clock_thread_cpu_ns(void); /* what the calling thread has run */

#endif
