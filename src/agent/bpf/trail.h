/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trail - the outer frames of the last walk, for the next one to take over. Part of the walk
 * (walk.h), and like it plain C.
 *
 * Most samples of a thread differ from the one before in a few inner frames. How a frame is left
 * depends on its pc, sp and fp, on the rows of tables, and on one or two words of the stack. So
 * when a walk comes to where the last one was, with the same three, and the words are still what
 * they were, its caller is the same, too: two comparisons, and no look at cold memory of tables.
 * The words are read again in every sample; nothing is guessed. Rows stay the same as long as the
 * walk's owner does (walk_own).
 *
 * Only frames that are left by rows which say their rule themselves are on the trail, up to the
 * one where the stack ends: of a stack with others in between only what is outside of these.
 */
#ifndef FIRN_AGENT_BPF_TRAIL_H
#define FIRN_AGENT_BPF_TRAIL_H

#include <stdbool.h>

#include "agent/bpf/row.h"

#define TRAIL_FRAMES 128u /* a power of two */
#define TRAIL_SKIPS 4	  /* frames that may be looked at in search of one */
#define TRAIL_STEPS 8	  /* frames taken over in one go */

struct trail_frame {
	__u64 pc : 56;	   /* USER_ADDRESS_END */
	__u64 fp_slot : 4; /* TABLE_RULE_FP and TABLE_RULE_BX of its row */
	__u64 bx_slot : 4;
	__u64 sp : 56;
	__u64 fp_known : 1;
	__u64 fp;
};

/* Of this walk, so far. */
struct trail {
	struct trail_frame frames[TRAIL_FRAMES];
	__u32 count;
	__u32 next;	  /* of the kept ones: the one to be looked at next */
	bool is_followed; /* the walk is there */
};

/* Of the last walk. */
struct trail_kept {
	struct trail_frame frames[TRAIL_FRAMES]; /* the last element is the outermost one */
	__u32 first;
	__u32 reserved;
};

static __always_inline __u32 trail_index(__u32 at)
{
	return row_masked(at, TRAIL_FRAMES - 1);
}

/* All ones, or 0 for 0. */
static __always_inline __u64 trail_mask(__u64 bytes)
{
	return (__u64)((__s64)(0 - bytes) >> 63);
}

static __always_inline void trail_start(struct trail *trail, const struct trail_kept *kept)
{
	trail->count = 0;
	trail->next = kept->first;
	trail->is_followed = false;
}

/* Notes a frame. When there are too many, the inner ones are not kept. */
static __always_inline void trail_note(struct trail *trail, const struct trail_frame *frame)
{
	__u32 at = trail->count < TRAIL_FRAMES - 1 ? trail->count : 0;

	trail->frames[trail_index(at)] = *frame;
	trail->count = at + 1;
}

/* The frame cannot be on the trail, and so none inside it. */
static __always_inline void trail_break(struct trail *trail)
{
	trail->count = 0;
}

/* Puts the frames of this walk before the kept one `at`, or at the end. */
static __always_inline void trail_keep(const struct trail *trail, struct trail_kept *kept, __u32 at)
{
	__u32 count = trail_index(trail->count);

	kept->first = at;
	if (count == 0 || count > at)
		return;
	kept->first = at - count;
	walk_copy(&kept->frames[trail_index(at - count)], count * sizeof(*trail->frames),
		  trail->frames);
}

/* The other way, when the trail leads elsewhere: those before the kept one `at` are of this walk.
 */
static __always_inline void trail_take(struct trail *trail, const struct trail_kept *kept, __u32 at)
{
	__u32 count = trail_index(at - kept->first);

	trail->count = count;
	if (count)
		walk_copy(trail->frames, count * sizeof(*trail->frames),
			  &kept->frames[trail_index(kept->first)]);
}

/* Whether this frame is on the trail. Stacks grow down: inner frames have the lower sp. */
static __always_inline bool trail_meets(struct trail *trail, const struct trail_kept *kept,
					const struct trail_frame *here)
{
	__u32 next = trail->next;
	bool is_met = false;

	WALK_KEEP_LOOP
	for (int i = 0; i < TRAIL_SKIPS; i++) {
		const struct trail_frame *frame = &kept->frames[trail_index(next)];

		if (next >= TRAIL_FRAMES || frame->sp > here->sp)
			break;
		if (frame->sp == here->sp) {
			is_met = frame->pc == here->pc && frame->fp == here->fp &&
				 frame->fp_known == here->fp_known;
			break;
		}
		next++;
	}
	trail->next = next;
	return is_met;
}

#endif
