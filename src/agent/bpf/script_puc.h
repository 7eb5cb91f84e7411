/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * script_puc - the calls of Lua (PUC-Rio's), from the innermost outwards.
 *
 *   thread (lua_State) -> innermost call -> previous call -> ...
 *                         call -> slot of its function -> closure -> prototype
 *
 * Nothing names the thread that runs: C functions hand it on. So it is looked for in the registers
 * that functions preserve, and then on the stack from its top on, where those are saved. What is
 * taken for a thread has the head of one, is neither suspended nor over, and has a call whose
 * function lies on its own stack: of several such threads each has resumed the one inside of it,
 * and they are met in that order. The main thread is a part of what all of them share.
 *
 * Each call gives its prototype, and the low half of the address of the instruction that it is at.
 * Lua itself flags the calls that its loop was entered for. C functions are native frames.
 *
 * Plain C, like script.h. Layouts: Lua's lstate.h, lobject.h.
 */
#ifndef FIRN_AGENT_BPF_SCRIPT_PUC_H
#define FIRN_AGENT_BPF_SCRIPT_PUC_H

#include "agent/bpf/row.h"
#include "agent/bpf/script.h"

#define SCRIPT_PUC_THREAD_BYTES 64u
#define SCRIPT_PUC_CALL_BYTES 72u
#define SCRIPT_PUC_CLOSURE_PROTOTYPE 24u
#define SCRIPT_PUC_EXTRA_BYTES 80u /* over the end of a stack */
#define SCRIPT_PUC_STATE_BYTES_MAX                                                                 \
	1024u			    /* of a thread: the main one has what is shared behind it */
#define SCRIPT_PUC_SCAN_WORDS 2048u /* of the stack, to the next thread */
#define SCRIPT_PUC_NEAR 65536ull    /* words that point at the stack itself */
#define SCRIPT_PUC_LOWEST 4096u
#define SCRIPT_PUC_COUNT_MAX (1u << 26) /* instructions of a prototype */

/* In script.words: a thread. */
enum script_puc_thread_word {
	PUC_THREAD_HEAD = 1, /* kind in the lowest byte */
	PUC_THREAD_SHARED = 3,
	PUC_THREAD_CALL = 4,
};

/* ... and a call; the slot of its function, and the start of its prototype's code, behind it. */
enum script_puc_call_word {
	PUC_CALL_SLOT = 0,
	PUC_CALL_PREVIOUS = 2,
	PUC_CALL_FUNCTION = 9,
	PUC_CALL_FUNCTION_KIND = 10,
	PUC_CALL_PROTOTYPE = 11,
	PUC_CALL_CODE = 12,
};

#define PUC_KIND_THREAD 8u
#define PUC_KIND_CLOSURE 6u /* in Lua */
#define PUC_KIND_MASK 0x3fu

/* Of struct pt_regs. */
#define PUC_GENERAL_REGISTERS 15
#define PUC_REGISTER_DI 14

/* A word that may be the address of an object, and does not point at the stack. */
static __always_inline bool script_puc_may_be(const struct script_puc *puc, __u64 word)
{
	return word >= SCRIPT_PUC_LOWEST && !(word & 7) && !(word >> 47) &&
	       word - puc->at >= SCRIPT_PUC_NEAR;
}

static __always_inline bool script_puc_is_seen(const struct script_puc *puc, __u64 thread)
{
	WALK_UNROLL
	for (int i = 0; i < SCRIPT_PUC_THREADS; i++)
		if (puc->seen[i] == thread)
			return true;
	return false;
}

/* True if the word is the address of a thread that runs, or has resumed one that does. */
static __always_inline bool script_puc_is_thread(struct script *script, __u64 thread)
{
	const struct script_puc_layout *layout = &script->process.puc;
	struct script_puc *puc = &script->puc;
	__u64 call, slot = 0;

	if (!script_puc_may_be(puc, thread) || script_puc_is_seen(puc, thread) ||
	    walk_read(script->words, SCRIPT_PUC_THREAD_BYTES, thread) ||
	    (__u8)script->words[PUC_THREAD_HEAD] != PUC_KIND_THREAD ||
	    (__u8)(script->words[PUC_THREAD_HEAD] >> 8 * (layout->status & 7)))
		return false;
	call = script->words[PUC_THREAD_CALL];
	puc->low = script_word(script, layout->stack);
	puc->high = script_word(script, layout->stack - 8u) + SCRIPT_PUC_EXTRA_BYTES;
	if (!call || call & 7 || call == thread + layout->base_call ||
	    !script->words[PUC_THREAD_SHARED] || script->words[PUC_THREAD_SHARED] & 7 ||
	    puc->low & 7 || puc->low >= puc->high || walk_read(&slot, sizeof(slot), call))
		return false;
	return !(slot & 7) && slot >= puc->low && slot < puc->high;
}

/* Goes to the calls of a thread that is_thread has read. False when there are too many. */
static __always_inline bool script_puc_take(struct script *script, struct sample *sample,
					    __u64 thread)
{
	struct script_puc *puc = &script->puc;

	if (puc->count >= SCRIPT_PUC_THREADS)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	puc->seen[puc->count & (SCRIPT_PUC_THREADS - 1)] = thread;
	puc->count++;
	puc->is_main = script->words[PUC_THREAD_SHARED] - thread < SCRIPT_PUC_STATE_BYTES_MAX;
	puc->left = SCRIPT_PUC_SCAN_WORDS;
	script->frame = script->words[PUC_THREAD_CALL];
	return true;
}

/* Looks at the registers of the interrupted function; script_puc_frame goes on from there. */
static __always_inline void script_puc_start(struct script *script, struct sample *sample,
					     const __u64 *registers)
{
	struct script_puc *puc = &script->puc;

	script->frame = 0;
	puc->count = 0;
	puc->is_main = false;
	puc->is_inner = true;
	puc->at = registers[REGISTERS_SP] & ~7ull;
	puc->left = SCRIPT_PUC_SCAN_WORDS;
	WALK_UNROLL
	for (int i = 0; i < SCRIPT_PUC_THREADS; i++)
		puc->seen[i] = 0;
	WALK_KEEP_LOOP
	for (int i = 0; i < PUC_GENERAL_REGISTERS; i++) {
		if ((i < REGISTERS_PRESERVED || i == PUC_REGISTER_DI) &&
		    script_puc_is_thread(script, registers[i])) {
			script_puc_take(script, sample, registers[i]);
			return;
		}
	}
}

/* Looks at the next words of the stack. False when there are none. */
static __always_inline bool script_puc_seek(struct script *script, struct sample *sample)
{
	struct script_puc *puc = &script->puc;

	if (puc->is_main || !puc->left || walk_read(puc->stack, sizeof(puc->stack), puc->at))
		return false;
	puc->left -= SCRIPT_PUC_STACK_WORDS;
	WALK_KEEP_LOOP
	for (int i = 0; i < SCRIPT_PUC_STACK_WORDS; i++) {
		if (!script_puc_is_thread(script, puc->stack[i]))
			continue;
		puc->at += 8 * (__u64)(i + 1); /* another one may be in the next word */
		return script_puc_take(script, sample, puc->stack[i]);
	}
	puc->at += sizeof(puc->stack);
	return true;
}

/* Reads the prototype of the call at hand; false when it is none. */
static __always_inline bool script_puc_read(struct script *script)
{
	const struct script_puc_layout *layout = &script->process.puc;
	__u64 slot = script->words[PUC_CALL_SLOT], prototype = 0;

	if (slot & 7 || slot < script->puc.low || slot >= script->puc.high ||
	    walk_read(&script->words[PUC_CALL_FUNCTION], 16, slot) ||
	    (script->words[PUC_CALL_FUNCTION_KIND] & PUC_KIND_MASK) != PUC_KIND_CLOSURE ||
	    walk_read(&prototype, sizeof(prototype),
		      script->words[PUC_CALL_FUNCTION] + SCRIPT_PUC_CLOSURE_PROTOTYPE) ||
	    prototype & 7)
		return false;
	script->words[PUC_CALL_PROTOTYPE] = SCRIPT_ADDRESS(prototype);
	return !walk_read(script->proof, sizeof(script->proof), prototype + layout->proof);
}

/*
 * The loop keeps the position of the innermost call in a register, and writes it to the call before
 * it does what may fail: the furthest one in the function's code, of all registers.
 */
static __always_inline __u64 script_puc_position(struct script *script, const __u64 *registers,
						 __u64 saved)
{
	const struct script_puc_layout *layout = &script->process.puc;
	__u64 prototype = script->words[PUC_CALL_PROTOTYPE], code = 0, found = 0;
	__u32 count = 0;

	if (walk_read(&code, sizeof(code), prototype + layout->code) ||
	    walk_read(&count, sizeof(count), prototype + layout->code_count) ||
	    count > SCRIPT_PUC_COUNT_MAX)
		return saved;
	WALK_KEEP_LOOP
	for (int i = 0; i < PUC_GENERAL_REGISTERS; i++)
		if (!(registers[i] & 3) && registers[i] - code <= 4ull * count &&
		    registers[i] > found)
			found = registers[i];
	return found ? found : saved;
}

/* Notes the call at hand, and goes to the one outside of it. False when that cannot be. */
static __always_inline bool script_puc_call(struct script *script, struct sample *sample,
					    const __u64 *registers)
{
	const struct script_puc_layout *layout = &script->process.puc;
	__u64 call = script->frame, position, flags;
	bool is_inner = script->puc.is_inner;

	if (call & 7 || walk_read(script->words, SCRIPT_PUC_CALL_BYTES, call))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	script->frame = script->words[PUC_CALL_PREVIOUS];
	script->puc.is_inner = false;
	flags = script_word(script, layout->flags) >> 8 * (layout->flags & 7);
	if (!(flags & layout->lua_flag) == !(layout->forms & SCRIPT_PUC_C_FLAGGED))
		return true; /* C, and the call outside of all */
	if (!script->room)
		return script_cut(script, sample, SCRIPT_TOO_DEEP);
	script->room--;
	if (!script_puc_read(script))
		return script_cut(script, sample, SCRIPT_UNREADABLE);
	position = script_word(script, layout->position);
	if (is_inner && registers && layout->forms & SCRIPT_PUC_IN_REGISTER)
		position = script_puc_position(script, registers, position);
	flags = !(flags & layout->entry_flag) == !(layout->forms & SCRIPT_PUC_ENTRY_UNFLAGGED)
			? 0
			: SCRIPT_ENDS_RUN;
	script_put(script, sample, script->words[PUC_CALL_PROTOTYPE] | flags,
		   (__u64)script_proof(script->proof) << 32 | (__u32)position);
	return true;
}

/* One step outwards; `registers` of the loop, if it was interrupted itself. False at the end. */
static __always_inline bool script_puc_frame(struct script *script, struct sample *sample,
					     const __u64 *registers)
{
	if (!script->frame)
		return script_puc_seek(script, sample);
	return script_puc_call(script, sample, registers);
}

#endif
