/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_poll - the loop in compiled code (x86-64) that asks at a known place whether the thread is
 * to stop. Compilers put that place at the loop's end, before the branch back; of other
 * instructions of the loop they may record none.
 */
#ifndef FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_POLL_H
#define FIRN_AGENT_RUNTIME_HOTSPOT_JAVA_POLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JAVA_POLL_LOOP_MAX 256u /* bytes from a poll to the loop's end */

struct java_loop {
	uint32_t begin, end; /* offsets of where it goes back to, and of the branch */
};

/* False when no poll is there, or no branch back follows it directly. */
bool java_poll_loop(const uint8_t *code, size_t len, uint32_t poll, struct java_loop *ret);

#endif
