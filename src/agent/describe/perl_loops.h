/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perl_loops - which native loop frames of a Perl process run frames of Perl.
 *
 * Perl enters an eval block below a call from C by a function that catches errors and calls the
 * interpreter's loop once more. The rest of the run continues in this inner loop, even after the
 * block: so the outer loop has no frames.
 *
 * The program itself is a frame only while it runs: not in threads, and not in programs that call
 * single subs.
 */
#ifndef FIRN_AGENT_DESCRIBE_PERL_LOOPS_H
#define FIRN_AGENT_DESCRIBE_PERL_LOOPS_H

#include "agent/procs/space.h"

/* `loops[i]`: native frame i (innermost first) is in a loop; unset where it has no frames. */
void perl_loops_fit(const struct space *space, const uint64_t *addresses, size_t count,
		    bool *loops);

/* How many of the frames of Perl, two words each, are to be shown. */
size_t perl_loops_frames(const struct space *space, const uint64_t *addresses, size_t count,
			 bool is_complete, const uint64_t *words, size_t script_count);

#endif
