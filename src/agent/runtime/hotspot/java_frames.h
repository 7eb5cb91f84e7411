/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_frames - the methods that run at a position of HotSpot's code.
 *
 * At calls, and where the compiler recorded them, they are exact. Between two recorded instructions
 * they are those of the next one; in a loop, of one that is in it. So what is inlined, in itself
 * too, may be shown a few instructions early, or be missing.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_FRAMES_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_FRAMES_H

#include "agent/runtime/hotspot/java_code.h"

struct java_frame {
	const struct java_method *method; /* NULL = some are missing here */
	uint32_t line;			  /* 0 = not known */
};

/* Innermost first, of a position as in bpf/jvm.h; returns how many. */
size_t java_frames_at(const struct java_code *code, uint32_t position,
		      struct java_frame ret[JAVA_INLINED_MAX]);

#endif
