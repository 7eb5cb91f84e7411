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
#define TRAIL_STEPS 16	  /* frames taken over in one go, at most */

/* What trail_frame.how says of the row by which the frame is left. */
#define TRAIL_FP_SHIFT 3 /* TABLE_RULE_FP, so that it is in bytes */
#define TRAIL_FP_BYTES (15u << TRAIL_FP_SHIFT)
#define TRAIL_BX_SHIFT 8 /* TABLE_RULE_BX */
#define TRAIL_FP_KNOWN (1u << 16)
#define TRAIL_SAVES_BX_BIT 30 /* the two say whether the slots are there */
#define TRAIL_SAVES_FP_BIT 31

struct trail_frame {
	__u64 pc, fp;
	__u32 sp; /* the low half: all frames have the same high one */
	__u32 how;
};

#define TRAIL_BYTES (TRAIL_FRAMES * sizeof(struct trail_frame))

/* This walk, so far. */
struct trail {
	struct trail_frame frames[TRAIL_FRAMES];
	__u64 high; /* half of their sp */
	__u32 count;
	__u32 next;	  /* of the kept ones: the one to be looked at next */
	__u32 bx_of;	  /* where the last followed one is that saves rbx; TRAIL_BYTES = none */
	bool is_followed; /* the walk is there */
};

/* The last walk. */
struct trail_kept {
	struct trail_frame frames[TRAIL_FRAMES]; /* the last element is the outermost one */
	__u64 high;
	__u32 first;
	__u32 reserved;
};

static __always_inline __u32 trail_index(__u32 at)
{
	return row_masked(at, TRAIL_FRAMES - 1);
}

static __always_inline __u64 trail_high(__u64 sp)
{
	return sp & ~0xffffffffull;
}

/* All ones when the bit is set, or 0. Arithmetic, because no processor foresees which frames save
 * what. */
static __always_inline __u64 trail_mask(__u64 how, int bit)
{
	__u64 mask = (__u64)((__s64)(how << (63 - bit)) >> 63);

	__asm__ volatile("" : "+r"(mask)); /* or the compiler makes a branch of it */
	return mask;
}

static __always_inline void trail_start(struct trail *trail, const struct trail_kept *kept)
{
	trail->count = 0;
	trail->next = kept->first;
	trail->is_followed = false;
}

/* Notes a frame. When there are too many, the inner ones are not kept. */
static __always_inline void trail_note(struct trail *trail, const struct trail_frame *frame,
				       __u64 high)
{
	__u32 at = trail->count < TRAIL_FRAMES - 1 ? trail->count : 0;

	if (trail->high != high)
		at = 0;
	trail->high = high;
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
	if (at == TRAIL_FRAMES)
		kept->high = trail->high;
	if (count == 0 || count > at || trail->high != kept->high)
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
	trail->high = kept->high;
	if (count)
		walk_copy(trail->frames, count * sizeof(*trail->frames),
			  &kept->frames[trail_index(kept->first)]);
}

/* True if this frame is on the trail. Stacks grow down: inner frames have the lower sp. */
static __always_inline bool trail_meets(struct trail *trail, const struct trail_kept *kept,
					const struct trail_frame *here, __u64 high)
{
	__u32 next = trail->next;
	bool is_met = false;

	if (kept->high != high)
		return false;
	WALK_KEEP_LOOP
	for (int i = 0; i < TRAIL_SKIPS; i++) {
		const struct trail_frame *frame = &kept->frames[trail_index(next)];

		if (next >= TRAIL_FRAMES || frame->sp > here->sp)
			break;
		if (frame->sp == here->sp) {
			is_met = frame->pc == here->pc && frame->fp == here->fp &&
				 !((frame->how ^ here->how) & TRAIL_FP_KNOWN);
			break;
		}
		next++;
	}
	trail->next = next;
	return is_met;
}

#endif
