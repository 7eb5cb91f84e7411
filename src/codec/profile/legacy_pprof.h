/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy_pprof - the formats of gperftools from before profile.proto (github.com/google/pprof
 * profile/legacy_profile.go and gperftools' docs/cpuprofile-fileformat.html):
 *
 *   CPU       words of 4 or 8 bytes in either order: 0, 3, 0, period in us, 0; then samples of
 *             count, depth, addresses (leaf first); 0, 1, 0 ends them; then /proc/self/maps
 *   heap      "heap profile: 1: 2 [ 3: 4 ] @ heapprofile", then "1: 2 [ 3: 4 ] @ 0x.. 0x.." lines
 *   contention "--- contention", "cycles/second = 1000", then "DELAY COUNT @ 0x.. 0x.." lines
 *   Go's counts "goroutine profile: total 7", then "COUNT @ 0x.. 0x.." lines
 *
 * Threads ("--- threadz") and what Java wrote ("format = java") are known and refused with a
 * remedy. Lines that begin with '#' are comments. What was sampled stands for what was not, as go
 * tool pprof has it: by the rate behind heap_v2/ or heap/, by "sampling period = 5".
 *
 * Addresses become places in their binaries by the mappings; callers' addresses are return
 * addresses, and one less is inside the call.
 */
#ifndef FIRN_CODEC_PROFILE_LEGACY_PPROF_H
#define FIRN_CODEC_PROFILE_LEGACY_PPROF_H

#include "codec/profile/stack_builder.h"

/* True if the bytes begin like one of them. */
bool legacy_pprof_is(struct slice bytes);

int legacy_pprof_decode(struct slice bytes, struct stack_builder *into, struct err *err);

#endif
