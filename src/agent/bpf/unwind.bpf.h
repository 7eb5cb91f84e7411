/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind - from a user task's registers to its return addresses, one frame per step.
 *
 * The walk keeps (pc, sp, fp) of the current frame in a map value and calls one step function per
 * frame through bpf_loop, so the verifier looks at a step once, however deep the stack. State is
 * in a map value and not on the BPF stack on purpose: newer verifiers follow a callback until
 * nothing new turns up, and known numbers on the stack (a counter from 0) are new every time.
 *
 * unwind_step chooses how to leave the current frame. For now there is one way, the frame
 * pointer; rows of unwind tables get their place there, chosen by the pc's mapping.
 */
#ifndef FIRN_AGENT_BPF_UNWIND_BPF_H
#define FIRN_AGENT_BPF_UNWIND_BPF_H

#include "agent/bpf/shared.h"
#include "agent/bpf/types.h"

/* A saved pointer that leaves its frame by more than this is taken for a stray value. */
#define UNWIND_FRAME_BYTES_MAX (1ull << 20)

#define USER_ADDRESS_MIN 4096ull
#define USER_ADDRESS_END (1ull << 56) /* five-level page tables */

enum unwind_verdict { UNWIND_NEXT, UNWIND_ENDED };

struct unwind {
	__u64 pc, sp, fp;
	struct {
		__u64 fp, pc;
	} saved;    /* what a frame pointer points at */
	__u32 at;   /* where the next frame goes in sample.frames */
	__u32 room; /* frames that may still be added */
	__u32 end;  /* enum stack_end, when ended */
};

/* Working memory of one CPU; nothing interrupts the program on its own CPU. */
struct scratch {
	struct unwind unwind;
	struct user_registers registers; /* copy, when the sample hit the kernel */
	struct sample sample;
};

static __always_inline enum unwind_verdict unwind_ended(struct unwind *unwind, enum stack_end end)
{
	unwind->end = end;
	return UNWIND_ENDED;
}

/* Leaves a frame that begins with "push %rbp; mov %rsp, %rbp": fp points at (caller's fp, pc). */
static __always_inline enum unwind_verdict unwind_by_frame_pointer(struct unwind *unwind)
{
	__u64 fp = unwind->fp;

	if (fp == 0)
		return unwind_ended(unwind, STACK_COMPLETE);
	if (fp < unwind->sp || fp - unwind->sp > UNWIND_FRAME_BYTES_MAX || fp & 7)
		return unwind_ended(unwind, STACK_NO_FRAME_POINTER);
	if (bpf_probe_read_user(&unwind->saved, sizeof(unwind->saved), (const void *)fp))
		return unwind_ended(unwind, STACK_UNREADABLE);
	if (unwind->saved.pc == 0)
		return unwind_ended(unwind, STACK_COMPLETE);
	if (unwind->saved.pc < USER_ADDRESS_MIN || unwind->saved.pc >= USER_ADDRESS_END)
		return unwind_ended(unwind, STACK_NO_FRAME_POINTER);
	unwind->pc = unwind->saved.pc - 1;
	unwind->sp = fp + 16;
	unwind->fp = unwind->saved.fp;
	return UNWIND_NEXT;
}

static __always_inline enum unwind_verdict unwind_step(struct unwind *unwind)
{
	return unwind_by_frame_pointer(unwind);
}

struct unwind_context {
	struct scratch *scratch;
};

/* bpf_loop callback: notes the current frame, then leaves it. Returns 1 to end the walk. */
static long unwind_frame(__u32 index, void *data)
{
	struct scratch *scratch = ((struct unwind_context *)data)->scratch;
	struct unwind *unwind = &scratch->unwind;
	__u32 at = unwind->at;

	(void)index;
	if (unwind->room == 0 || at >= SAMPLE_FRAMES_MAX) {
		unwind->end = STACK_TOO_DEEP;
		return 1;
	}
	scratch->sample.frames[at] = unwind->pc;
	unwind->at = at + 1;
	unwind->room--;
	return unwind_step(unwind) == UNWIND_ENDED;
}

#endif
