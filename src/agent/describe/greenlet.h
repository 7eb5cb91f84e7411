/* SPDX-License-Identifier: Apache-2.0 */
/*
 * greenlet - which native frames of a Python thread belong to the greenlet that runs.
 *
 * greenlet (gevent, SQLAlchemy) switches between stacks by copying them, so that the frames of
 * whoever started a greenlet stay outside of its own. Its C module is between the two. Up to
 * CPython 3.9 nothing else tells them apart where the interpreter's loop was interrupted itself.
 */
#ifndef FIRN_AGENT_DESCRIBE_GREENLET_H
#define FIRN_AGENT_DESCRIBE_GREENLET_H

#include "agent/procs/space.h"

/*
 * So many of the frames, the innermost; `count` = all, or there is no greenlet. `loops[i]`: native
 * frame i (innermost first) is in the interpreter's loop.
 */
size_t greenlet_frames(const struct space *space, const uint64_t *addresses, size_t count,
		       const bool *loops);

#endif
