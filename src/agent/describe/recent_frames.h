/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recent_frames - which rows the last frames of a window's stacks came to.
 *
 * Most frames recur in many stacks of a window, and to describe one takes several look-ups of
 * strings. A place is known by all that its row follows from, exactly, so that what is found is
 * what would be made. One slot for each hash: the last place has it.
 *
 * Zero-initialised is empty and valid. For one tables and one window only; not thread-safe.
 */
#ifndef FIRN_AGENT_DESCRIBE_RECENT_FRAMES_H
#define FIRN_AGENT_DESCRIBE_RECENT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#define RECENT_FRAMES 1024u /* a power of two */

/* Without padding. */
struct recent_place {
	const void *owner; /* the process or list of mappings; never NULL */
	uint64_t words[4];
};

struct recent_frames {
	struct {
		struct recent_place place;
		uint32_t frame;
		bool is_loop; /* of native code: of an interpreter's loop */
	} slots[RECENT_FRAMES];
};

/* False if it is not there, which leaves what is returned alone. */
bool recent_frames_find(const struct recent_frames *frames, const struct recent_place *place,
			uint32_t *ret_frame, bool *ret_is_loop);

void recent_frames_put(struct recent_frames *frames, const struct recent_place *place,
		       uint32_t frame, bool is_loop);

#endif
