/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_script - what `perf script` prints of samples (tools/perf/builtin-script.c):
 *
 *     comm  pid/tid [cpu]  time:  period event:
 *             ffffffff810b3c4e schedule+0x2e ([kernel.kallsyms])
 *                     55d0c9a3 main+0x13 (/usr/bin/cat)
 *
 * Leaf first, an empty line ends a sample; the command may hold blanks, tid, cpu and period may be
 * missing, and a sample without a stack ends its head line with its one frame. Sample types are
 * samples/count, and per event (where there are periods, or several events) the sum of its periods:
 * of clock events cpu/nanoseconds, of others EVENT/count. Labels comm and pid. Binaries of the
 * kernel are [kernel] and [MODULE]. The profile lasts from the first sample to the last; when it
 * began is not known: perf's clock counts from the start of the host.
 */
#ifndef FIRN_CODEC_PROFILE_PERF_SCRIPT_H
#define FIRN_CODEC_PROFILE_PERF_SCRIPT_H

#include "codec/profile/stack_builder.h"

/* True if the text begins like it. */
bool perf_script_is(struct slice text);

/* Errors say which line. */
int perf_script_decode(struct slice text, struct stack_builder *into, struct err *err);

#endif
