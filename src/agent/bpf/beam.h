/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * beam - unwinds code of Erlang's compiler (BeamAsm), one frame at a time. Part of the walk
 * (walk.h), and like it plain C over hostile memory.
 *
 * Erlang code runs with rsp on the stack of its Erlang process. All words there are terms with a
 * tag in their low two bits, which is 0 in return addresses alone. So the caller is the next word
 * without a tag, and the process's first function returns to `exit`. (Where the runtime was told to
 * keep frame pointers, they have no tag either: there the walk goes by them.)
 *
 * Code that modules share, such as that for length/1, is called without such care: its return
 * address may have any low bits. It is the innermost word of the stack.
 *
 * C functions run on the stack of the scheduler's thread. The code that calls one leaves its own
 * stack pointer in rbp, or in the Process; what it does after the call says in which:
 *
 *   48 89 ec     mov %rbp, %rsp
 *   49 8b 65 xx  mov stop(%r13), %rsp
 *
 * What the scheduler does of its own, such as collecting the garbage of the process that it has
 * just stopped, returns to code that takes another process from it:
 *
 *   49 89 c5     mov %rax, %r13
 *
 * Some code that modules share (seen in OTP 27) is called on the scheduler's stack and calls C from
 * there, as when a binary is begun: it has a frame of its own, which it leaves by
 *
 *   c9           leave
 *
 * Elsewhere Erlang code keeps that stack aligned, so that where it is not, a call has been made.
 */
#ifndef FIRN_AGENT_BPF_BEAM_H
#define FIRN_AGENT_BPF_BEAM_H

#include "agent/bpf/thread_keys.h"
#include "agent/bpf/walk.h"

#define BEAM_FRAME_WORDS_MAX 128
#define BEAM_TAG 3u
#define BEAM_SHARED_BYTES 0x10000ull /* around `exit`; 20 KB are seen */

/* A C function or more may be called before what restores the stack pointer from the Process, as
 * all such code does at one place in it; farther away the other form may be that of another call.
 */
#define BEAM_FP_PEEK_BYTES 64u

/* What calls C does so from one place in the scheduler's stack, just below its registers (rbx). */
#define BEAM_BELOW_REGISTERS 4096u

/* A byte of the code that runs next. */
static __always_inline __u8 beam_code(const struct walk *walk, __u32 at)
{
	return ((const __u8 *)walk->beam.code)[at & (BEAM_PEEK_BYTES - 1)];
}

/* Three of them, the first one lowest: one comparison, which is one path less to verify. */
static __always_inline __u32 beam_code_3(const struct walk *walk, __u32 at)
{
	return beam_code(walk, at) | (__u32)beam_code(walk, at + 1) << 8 |
	       (__u32)beam_code(walk, at + 2) << 16;
}

/* Less: from the Process, at that. */
enum beam_restore { BEAM_NO_RESTORE = 256, BEAM_FROM_FP, BEAM_OF_SCHEDULER };

/* Where the code at hand takes its stack pointer from, after the call. */
WALK_VERIFIED_ONCE __u32 beam_find_restore(struct walk *walk)
{
	if (!walk)
		return BEAM_NO_RESTORE;
	if (walk_read(walk->beam.code, BEAM_PEEK_BYTES, walk->pc + walk->after_call)) {
		walk->beam.code[0] = 0;
		return BEAM_NO_RESTORE;
	}
	if (beam_code_3(walk, 0) == 0xc58949)
		return BEAM_OF_SCHEDULER;
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < BEAM_PEEK_BYTES - 4; i++) {
		__u32 code = beam_code_3(walk, i);

		if (i < BEAM_FP_PEEK_BYTES && code == 0xec8948)
			return BEAM_FROM_FP;
		if (code == 0x658b49)
			return beam_code(walk, i + 3);
	}
	return BEAM_NO_RESTORE;
}

/* The Erlang process that the thread runs; 0 = none. False when that is not to be had. */
static __always_inline bool beam_find_process(struct walk *walk, __u64 *ret)
{
	const struct beam_walk *process = &walk->beam.process;
	__u64 at = 0, scheduler = 0;

	return thread_key_find(walk->beam.thread, process->keys_at, process->key, &at) &&
	       !walk_read(&scheduler, sizeof(scheduler), at) && scheduler &&
	       !walk_read(ret, sizeof(*ret), scheduler + process->current_process);
}

/*
 * Sets saved and cfa for code that was called on the scheduler's stack. What it restores the stack
 * pointer from is kept, since its caller may do so too far away.
 */
static __always_inline bool beam_was_called(struct walk *walk, __u32 restore)
{
	bool has_frame = beam_code(walk, 0) == 0xc9;

	if (!has_frame && (!walk->full || !(walk->sp & 8)))
		return false;
	walk->saved.fp = walk->fp;
	if (has_frame && !walk_word(walk, walk->sp, &walk->saved.fp))
		return false;
	walk->cfa = walk->sp + (has_frame ? 16 : 8);
	if (!walk_word(walk, walk->cfa - 8, &walk->saved.pc) ||
	    !walk_is_after_call(walk, walk->saved.pc))
		return false;
	walk->fp_known |= has_frame;
	if (restore < BEAM_NO_RESTORE)
		walk->beam.stop_at = restore;
	return true;
}

/* From the scheduler's stack to that of the Erlang process. */
static __always_inline enum stack_end beam_change_stack(struct walk *walk, __u32 restore)
{
	__u64 stop = 0, running = 0;

	if (restore == BEAM_OF_SCHEDULER || (beam_find_process(walk, &running) && !running))
		return STACK_COMPLETE;
	if (restore == BEAM_FROM_FP && walk->fp_known) {
		walk->sp = walk->fp;
		return STACK_ENDS;
	}
	if (restore == BEAM_NO_RESTORE && walk->beam.stop_at)
		restore = walk->beam.stop_at;
	/* While garbage is collected it is in another heap than the Process says of its heap. */
	if (restore >= BEAM_NO_RESTORE || !running ||
	    walk_read(&stop, sizeof(stop), running + restore) || stop < USER_ADDRESS_MIN)
		return STACK_NO_FRAME_POINTER;
	walk->sp = stop;
	return STACK_ENDS;
}

static __always_inline bool beam_is_on_stack(const struct walk *walk)
{
	return walk->beam.is_on_stack || (walk->full && walk->bx - walk->sp > BEAM_BELOW_REGISTERS);
}

/* True if it is shared code, and its return address looks like a term. */
WALK_VERIFIED_ONCE bool beam_is_in_shared(struct walk *walk)
{
	__u64 word = 0;

	if (!walk ||
	    walk->pc - walk->beam.process.exit + BEAM_SHARED_BYTES > 2 * BEAM_SHARED_BYTES ||
	    !walk_word(walk, walk->sp, &word) || !(word & BEAM_TAG) ||
	    !walk_is_after_call(walk, word))
		return false;
	walk->saved.pc = word;
	walk->cfa = walk->sp + 8;
	return true;
}

/* Sets saved.pc and cfa; STACK_COMPLETE = there is no caller. */
static __always_inline enum stack_end beam_find_caller(struct walk *walk)
{
	__u64 word = 0;

	if (beam_is_in_shared(walk))
		return STACK_ENDS;
	walk->cfa = walk->sp;
	WALK_KEEP_LOOP
	for (int i = 0; i < BEAM_FRAME_WORDS_MAX; i++) {
		if (!walk_word(walk, walk->cfa, &word))
			return STACK_UNREADABLE;
		walk->cfa += 8;
		if (word & BEAM_TAG || word < USER_ADDRESS_MIN)
			continue;
		walk->saved.pc = word;
		return word == walk->beam.process.exit ? STACK_COMPLETE : STACK_ENDS;
	}
	return STACK_NO_FRAME_POINTER;
}

/* For a process that has code of which there are lines, or Erlang's. */
static __always_inline void beam_prepare(struct walk *walk, const struct code_process *process,
					 __u64 thread)
{
	walk->has_beam = process->beam.exit;
	walk->has_code = !walk->has_beam;
	walk->code_key.number = process->number;
	walk->beam.process = process->beam;
	walk->beam.thread = thread;
	walk->beam.stop_at = 0;
	walk->beam.is_on_stack = false;
}

static __always_inline enum stack_end beam_arrive(struct walk *walk)
{
	enum stack_end end = walk_arrive(walk, true);

	if (end != STACK_ENDS)
		return end;
	return walk_locate(walk)->kind == RANGE_BEAM ? STACK_ENDS : STACK_BAD_ADDRESS;
}

/* Leaves the scheduler's stack, or a frame on it (is_left). */
static __always_inline enum stack_end beam_leave_scheduler(struct walk *walk, bool *is_left)
{
	__u32 restore = beam_find_restore(walk);

	*is_left = beam_was_called(walk, restore);
	return *is_left ? beam_arrive(walk) : beam_change_stack(walk, restore);
}

/* Leaves a frame of Erlang's code. */
WALK_APART enum stack_end walk_out_of_beam(struct walk *walk)
{
	enum stack_end end = STACK_ENDS;
	bool is_left = false;

	trail_break(&walk->trail);
	if (!beam_is_on_stack(walk))
		end = beam_leave_scheduler(walk, &is_left);
	if (is_left)
		return end;
	walk->beam.is_on_stack = true;
	if (end != STACK_ENDS)
		return end;
	if (walk->sp & 7)
		return STACK_BAD_ADDRESS;
	end = beam_find_caller(walk);
	if (end != STACK_ENDS)
		return end;
	walk->saved.fp = 0;
	walk->fp_known = walk->bx_known = false;
	return beam_arrive(walk);
}

#endif
