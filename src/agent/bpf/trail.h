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

#define TRAIL_FRAMES 256u /* a power of two */
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

/* What changes lies together, and with what else the walk needs. */
struct trail {
	struct trail_frame fresh[TRAIL_FRAMES]; /* of this walk, so far */
	struct trail_frame kept[TRAIL_FRAMES];	/* the outermost frame is the last element */
	__u32 first;				/* of those kept */
	__u32 next;				/* of those kept: the one to be looked at next */
	__u32 fresh_count;
	bool is_followed; /* the walk is at frame `next` */
};

/* The compiler may know that an index is in bounds; the verifier has to see the mask. */
static __always_inline __u32 trail_index(__u32 at)
{
	__asm__ volatile("" : "+r"(at));
	return at & (TRAIL_FRAMES - 1);
}

static __always_inline void trail_clear(struct trail *trail)
{
	trail->first = TRAIL_FRAMES;
}

static __always_inline void trail_start(struct trail *trail)
{
	trail->next = trail->first;
	trail->fresh_count = 0;
	trail->is_followed = false;
}

/* Notes a frame of this walk. When there are too many, the inner ones are not kept. */
static __always_inline void trail_note(struct trail *trail, const struct trail_frame *frame)
{
	__u32 at = trail->fresh_count < TRAIL_FRAMES - 1 ? trail->fresh_count : 0;

	trail->fresh[trail_index(at)] = *frame;
	trail->fresh_count = at + 1;
}

/* The frame cannot be on the trail, and so none inside it. */
static __always_inline void trail_break(struct trail *trail)
{
	trail->fresh_count = 0;
}

/* Puts the frames of this walk before the kept one `at`, or at the end. */
static __always_inline void trail_keep(struct trail *trail, __u32 at)
{
	__u32 count = trail_index(trail->fresh_count);

	trail->first = at;
	if (count == 0 || count > at)
		return;
	trail->first = at - count;
	walk_copy(&trail->kept[trail_index(at - count)], count * sizeof(*trail->fresh),
		  trail->fresh);
}

/* The other way, when the trail leads elsewhere: those before the kept one `at` are of this walk.
 */
static __always_inline void trail_take(struct trail *trail, __u32 at)
{
	__u32 count = trail_index(at - trail->first);

	trail->fresh_count = count;
	if (count)
		walk_copy(trail->fresh, count * sizeof(*trail->fresh),
			  &trail->kept[trail_index(trail->first)]);
}

/* Whether this frame is on the trail. Stacks grow down: inner frames have the lower sp. */
static __always_inline bool trail_meets(struct trail *trail, const struct trail_frame *here)
{
	__u32 next = trail->next;
	bool met = false;

	WALK_KEEP_LOOP
	for (int i = 0; i < TRAIL_SKIPS; i++) {
		const struct trail_frame *frame = &trail->kept[trail_index(next)];

		if (next >= TRAIL_FRAMES || frame->sp > here->sp)
			break;
		met = frame->sp == here->sp && frame->pc == here->pc && frame->fp == here->fp &&
		      frame->fp_known == here->fp_known;
		if (met || frame->sp == here->sp)
			break;
		next++;
	}
	trail->next = next;
	return met;
}

#endif
