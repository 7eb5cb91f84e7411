/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_map - one line of /tmp/perf-PID.map, the text file in which runtimes name generated code
 * (tools/perf/Documentation/jit-interface.txt in the kernel's sources):
 *
 *     7ff6ac0061c0 30c JS:*heavyLoop /srv/app/b.js:1:19
 *
 * Start and size are hexadecimal, with or without 0x, in either case; the name is the rest of the
 * line and may hold blanks. The process writes what it likes.
 */
#ifndef FIRN_CODEC_PROCESS_PERF_MAP_H
#define FIRN_CODEC_PROCESS_PERF_MAP_H

#include "base/err.h"
#include "base/slice.h"

struct perf_map_line {
	uint64_t start;
	uint32_t bytes;	   /* > 0; start + bytes does not overflow */
	struct slice name; /* not empty; points into the line */
};

/* `line` comes without its newline. ERR_INVALID when it names no code. */
int perf_map_parse_line(struct slice line, struct perf_map_line *ret, struct err *err);

#endif
