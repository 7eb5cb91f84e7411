/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self_profile - a CPU profile of this process, with names: /debug/pprof/profile.
 */
#ifndef FIRN_SERVER_SERVE_SELF_SELF_PROFILE_H
#define FIRN_SERVER_SERVE_SELF_SELF_PROFILE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "model/tables.h"

#define SELF_PROFILE_DURATION_NS_MAX (600 * 1000000000ll)

/*
 * Samples this process for `duration_ns` of wall time, `hz` times per second of CPU time, and
 * adds one report of the group "process_cpu" (samples/count, cpu/nanoseconds) to `into`. Native
 * frames have ELF addresses, and functions, files and lines where the running files have them.
 * Blocks the calling thread. ERR_BUSY while another profile runs, ERR_CANCELLED once *cancelled
 * (may be NULL) is true.
 */
int self_profile_run(int64_t duration_ns, unsigned hz, const _Atomic bool *cancelled,
		     struct tables *into, struct err *err);

#endif
