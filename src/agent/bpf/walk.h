/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * walk - from a user task's registers to its return addresses, one frame per step.
 *
 *   walk_frame: pc -> mapping -> table -> rule -> caller's (pc, sp, fp)
 *
 * Each frame is left by the row of its file's unwind table, or, where there is none (generated
 * code, a file without unwind information), by the code at pc if that is a function's end, or by
 * the frame pointer. The range of addresses that the last look-up holds for is kept, since most
 * frames lie in the same file as their callee. So are the row that the innermost frame was left by,
 * and the outer frames of the last walk (trail.h).
 *
 * The walk is plain C over nine functions that its user defines, so that the same code runs in the
 * kernel (sample.bpf.c) and over a recorded process (tests/unit/walk):
 *
 *   walk_read(to, bytes, address)       user memory; 0, or not resident
 *   walk_space(tgid)                    struct space_head, or NULL
 *   walk_space_part(key)                struct space_part, or NULL
 *   walk_tables(file, now_ns)           struct binary_tables, or NULL = not loaded
 *   walk_chunk(segment, into)           TABLE_CHUNK_BYTES of tables, or NULL; what a row for the
 *                                       place `into` the segment takes is readable
 *   walk_code_line(key)                 struct code_line, or NULL
 *   walk_ask(walk)                      sets walk->mapping for walk->pc when walk_space cannot
 *   walk_read_registers(to)             of the interrupted frame: struct pt_regs; 0, or failed
 *   walk_copy(to, bytes, from)          of its own memory
 *
 * State is in one struct that the user places in a map value and not on the BPF stack: newer
 * verifiers follow a loop's callback until nothing new turns up, and known numbers on the stack (a
 * counter from 0) are new every time.
 */
#ifndef FIRN_AGENT_BPF_WALK_H
#define FIRN_AGENT_BPF_WALK_H

#include "agent/bpf/row.h"
#include "agent/bpf/walk_place.h"
#include "agent/bpf/walk_state.h"

/* A saved pointer that leaves its frame by more than this is taken for a stray value. */
#define WALK_FRAME_BYTES_MAX (1ull << 20)

#define USER_ADDRESS_MIN 4096ull
#define USER_ADDRESS_END (1ull << 56) /* five-level page tables */

/* Reads on from `address`: as much as fits, up to the end of its page, or at least its word. */
WALK_VERIFIED_ONCE long walk_fill_window(struct walk *walk, __u64 address)
{
	__u64 in_page = WALK_PAGE_BYTES - (address & (WALK_PAGE_BYTES - 1));

	if (!walk)
		return -1;
	walk->window.start = address;
	walk->window.bytes = sizeof(walk->window.words);
	if (!walk_read(walk->window.words, sizeof(walk->window.words), address))
		return 0;
	walk->window.bytes = in_page & (sizeof(walk->window.words) - 1) & ~7ull;
	if (walk->window.bytes &&
	    !walk_read(walk->window.words, in_page & (sizeof(walk->window.words) - 1) & ~7ull,
		       address))
		return 0;
	walk->window.bytes = 8;
	if (!walk_read(walk->window.words, 8, address))
		return 0;
	walk->window.bytes = 0;
	return -1;
}

static __always_inline __u64 walk_window(const struct walk *walk, __u64 at)
{
	return walk->window.words[at / 8 & (WALK_WINDOW_WORDS - 1)];
}

/* A word of the stack; false when it is not resident. */
static __always_inline bool walk_word(struct walk *walk, __u64 address, __u64 *ret)
{
	__u64 at = address - walk->window.start;

	if (at >= walk->window.bytes || at & 7) {
		if (walk_fill_window(walk, address))
			return false;
		at = 0;
	}
	*ret = walk_window(walk, at);
	return true;
}

/* rbx is read only when a rule asks for it, which is rare. */
static __always_inline bool walk_bx(struct walk *walk, __u64 *ret)
{
	if (!walk->bx_known)
		return false;
	if (walk->bx_at) {
		if (!walk_word(walk, walk->bx_at, &walk->bx))
			return false;
		walk->bx_at = 0;
	}
	*ret = walk->bx;
	return true;
}

/* Where the caller's rbx is. */
static __always_inline void walk_follow_bx(struct walk *walk, const struct unwind_rule *rule)
{
	if (rule->bx == UNWIND_VALUE_SAME)
		return;
	walk->bx_known = rule->bx == UNWIND_VALUE_AT_CFA;
	walk->bx_at = walk->cfa + (__s64)rule->bx_offset;
}

/* Where registers 0 to 15 of DWARF are in struct pt_regs, four bits each; rsp (7) is not asked. */
#define WALK_REGISTER_AT 0x0123678904ed5bcaull

/* A register of the interrupted frame, all of which are read only when a rule asks for one. */
static __always_inline bool walk_interrupted(struct walk *walk, __u8 number, __u64 *ret)
{
	if (walk_read_registers(walk->registers))
		return false;
	*ret = walk->registers[WALK_REGISTER_AT >> 4 * number & 15];
	return true;
}

/* The value of a register in the current frame; false when it is not known. */
static __always_inline bool walk_register(struct walk *walk, __u8 number, __u64 *ret)
{
	if (number == UNWIND_X86_SP)
		*ret = walk->sp;
	else if (number == UNWIND_X86_FP && walk->fp_known)
		*ret = walk->fp;
	else if (number == UNWIND_X86_BX)
		return walk_bx(walk, ret);
	else if (walk->full && number < 16)
		return walk_interrupted(walk, number, ret);
	else
		return false;
	return true;
}

/*
 * Go's runtime grows a goroutine's stack on the stack of its thread (g0), and leaves no frame
 * pointer that leads back. It has noted where the goroutine stopped: g -> m -> curg -> sched. Code
 * of Go has g in r14 (since 1.17). Offsets (runtime2.go) have been the same for long but for
 * m.curg; and each m belongs to the g that belongs to it, so other numbers are not taken for one.
 */
#define GO_REGISTER_G 14u
#define GO_G_M 48u
#define GO_G_SCHED_SP 56u
#define GO_G_SCHED_PC 64u
#define GO_M_G0 0u
#define GO_M_CURG 192u
#define GO_M_CURG_1_25 184u

static __always_inline bool walk_is_g_of(struct walk *walk, __u64 g, __u64 m)
{
	__u64 found;

	return g && walk_word(walk, g + GO_G_M, &found) && found == m;
}

/*
 * STACK_ENDS: walk->cfa and saved.pc are the goroutine's. STACK_COMPLETE: it has left the thread,
 * which looks for another. Else there is none to be found.
 */
WALK_APART enum stack_end walk_to_goroutine(struct walk *walk)
{
	__u64 g, m, g0, current;

	if (!walk_interrupted(walk, GO_REGISTER_G, &g) || !walk_word(walk, g + GO_G_M, &m) ||
	    !walk_word(walk, m + GO_M_G0, &g0) || !walk_is_g_of(walk, g0, m))
		return STACK_UNREADABLE;
	if (!walk_word(walk, m + GO_M_CURG_1_25, &current))
		return STACK_UNREADABLE;
	if (!walk_is_g_of(walk, current, m)) {
		if (!walk_word(walk, m + GO_M_CURG, &current))
			return STACK_UNREADABLE;
		if (!current && g == g0)
			return STACK_COMPLETE;
		if (!walk_is_g_of(walk, current, m))
			return STACK_UNREADABLE;
	}
	/* It is on its own stack still, and what it has noted is older. */
	if (current == g)
		return STACK_UNREADABLE;
	if (!walk_word(walk, current + GO_G_SCHED_SP, &walk->cfa) ||
	    !walk_word(walk, current + GO_G_SCHED_PC, &walk->saved.pc))
		return STACK_UNREADABLE;
	walk->fp_known = walk->bx_known = false;
	walk->by_table++;
	return STACK_ENDS;
}

/*
 * Where a system call has made a thread, it has returned 0 in the new one. What lies on that one's
 * stack is nobody's frame, and may not be resident yet.
 */
static __always_inline bool walk_is_new_thread(struct walk *walk)
{
	__u64 result = 0;

	return walk->full && walk_interrupted(walk, UNWIND_X86_AX, &result) && result == 0;
}

/* Sets walk->cfa. Returns STACK_ENDS, or why not. */
static __always_inline enum stack_end walk_find_cfa(struct walk *walk,
						    const struct unwind_rule *rule)
{
	__u64 base = 0, index = 0;

	if (!walk_register(walk, rule->cfa_register, &base))
		return STACK_UNSUPPORTED_RULE;
	base += (__s64)rule->cfa_offset;
	if (rule->cfa == UNWIND_CFA_REGISTER || rule->cfa == UNWIND_CFA_GOROUTINE ||
	    rule->cfa == UNWIND_CFA_CLONE) {
		walk->cfa = base;
		return STACK_ENDS;
	}
	if (rule->cfa == UNWIND_CFA_PLT) {
		walk->cfa = base + ((__s64)(walk->pc & 15) >= rule->cfa_extra ? 8 : 0);
		return STACK_ENDS;
	}
	if (rule->cfa == UNWIND_CFA_DEREF_INDEXED) {
		if (!walk_register(walk, rule->cfa_index, &index))
			return STACK_UNSUPPORTED_RULE;
		base += 8 * index;
	} else if (rule->cfa != UNWIND_CFA_DEREF) {
		return STACK_UNSUPPORTED_RULE;
	}
	if (!walk_word(walk, base, &walk->saved.pc))
		return STACK_UNREADABLE;
	walk->cfa = walk->saved.pc + (__s64)rule->cfa_extra * 8;
	return STACK_ENDS;
}

/* Sets walk->saved.pc to the return address. */
static __always_inline enum stack_end walk_find_return(struct walk *walk,
						       const struct unwind_rule *rule)
{
	__u64 base = walk->cfa;

	switch (rule->ra) {
	case UNWIND_VALUE_AT_CFA:
		break;
	case UNWIND_VALUE_AT_REGISTER:
	case UNWIND_VALUE_IN_REGISTER:
		if (!walk_register(walk, rule->ra_register, &base))
			return STACK_UNSUPPORTED_RULE;
		break;
	default:
		return STACK_UNSUPPORTED_RULE;
	}
	base += (__s64)rule->ra_offset;
	if (rule->ra == UNWIND_VALUE_IN_REGISTER)
		walk->saved.pc = base;
	else if (!walk_word(walk, base, &walk->saved.pc))
		return STACK_UNREADABLE;
	return STACK_ENDS;
}

/* Sets walk->saved.fp to the caller's frame pointer, and fp_known. */
static __always_inline enum stack_end walk_find_fp(struct walk *walk,
						   const struct unwind_rule *rule)
{
	__u64 base = walk->cfa;

	walk->saved.fp = walk->fp;
	if (rule->fp == UNWIND_VALUE_SAME)
		return STACK_ENDS;
	if (rule->fp == UNWIND_VALUE_UNDEFINED || rule->fp == UNWIND_VALUE_UNSUPPORTED) {
		walk->fp_known = false;
		return STACK_ENDS;
	}
	if (rule->fp == UNWIND_VALUE_AT_REGISTER || rule->fp == UNWIND_VALUE_IN_REGISTER) {
		if (!walk_register(walk, rule->fp_register, &base)) {
			walk->fp_known = false;
			return STACK_ENDS;
		}
	}
	base += (__s64)rule->fp_offset;
	walk->fp_known = true;
	if (rule->fp == UNWIND_VALUE_IN_REGISTER || rule->fp == UNWIND_VALUE_CFA)
		walk->saved.fp = base;
	else if (!walk_word(walk, base, &walk->saved.fp))
		return STACK_UNREADABLE;
	return STACK_ENDS;
}

/* The frame pointer and, above it, the return address. */
static __always_inline bool walk_pair(struct walk *walk, __u64 address)
{
	return walk_word(walk, address, &walk->saved.fp) &&
	       walk_word(walk, address + 8, &walk->saved.pc);
}

/* Where most frames keep both: the frame pointer just below the return address. */
static __always_inline bool walk_is_pair(const struct unwind_rule *rule)
{
	return rule->ra == UNWIND_VALUE_AT_CFA && rule->fp == UNWIND_VALUE_AT_CFA &&
	       rule->fp_offset == rule->ra_offset - 8;
}

static __always_inline enum stack_end walk_find_saved(struct walk *walk,
						      const struct unwind_rule *rule)
{
	enum stack_end end;

	if (walk_is_pair(rule)) {
		if (!walk_pair(walk, walk->cfa + (__s64)rule->fp_offset))
			return STACK_UNREADABLE;
		walk->fp_known = true;
		return STACK_ENDS;
	}
	end = walk_find_fp(walk, rule);
	return end == STACK_ENDS ? walk_find_return(walk, rule) : end;
}

/* Takes over the caller's registers from cfa and saved. */
static __always_inline enum stack_end walk_arrive(struct walk *walk, bool is_return_address)
{
	if (walk->saved.pc == 0)
		return STACK_COMPLETE;
	if (walk->saved.pc < USER_ADDRESS_MIN || walk->saved.pc >= USER_ADDRESS_END)
		return STACK_BAD_ADDRESS;
	walk->pc = walk->saved.pc - is_return_address;
	walk->sp = walk->cfa;
	walk->fp = walk->saved.fp;
	walk->full = false;
	walk->after_call = is_return_address;
	return STACK_ENDS;
}

/* Of the frame at hand: its frame pointer, or its function and the position in that. */
static __always_inline void walk_note_place(struct walk *walk, __u64 what, __u32 position)
{
	__u32 count = walk->places_count;
	struct walk_place *place = &walk->places[row_masked(count, WALK_PLACES_MAX - 1)];

	if (count >= WALK_PLACES_MAX)
		return;
	place->fp = what;
	place->at = walk->at - 1;
	place->position = position;
	walk->places_count = count + 1;
}

/* In v8.h, which whoever walks includes. */
static void walk_note_v8(struct walk *walk, __u64 fp, bool is_generated);

/* Leaves a frame that begins with "push %rbp; mov %rsp, %rbp": fp points at (caller's fp, pc). */
static __always_inline enum stack_end walk_along_pointer(struct walk *walk,
							 enum stack_end otherwise)
{
	__u64 fp = walk->fp;

	trail_break(&walk->trail);
	if (!walk->fp_known)
		return otherwise;
	/*
	 * Code with frame pointers starts its chain with 0; elsewhere it is just a number, and in
	 * an interrupted function it may be what no caller has ever touched.
	 */
	if (fp == 0 && !walk->full &&
	    (otherwise == STACK_NO_UNWIND_INFO || otherwise == STACK_NO_FRAME_POINTER))
		return STACK_COMPLETE;
	if (fp < walk->sp || fp - walk->sp > WALK_FRAME_BYTES_MAX || fp & 7)
		return otherwise;
	if (walk->has_v8) /* first: what it looks at lies below, and is read along with the pair */
		walk_note_v8(walk, fp, otherwise == STACK_NO_FRAME_POINTER);
	if (!walk_pair(walk, fp))
		return otherwise;
	if (walk->notes_places && !walk->has_v8)
		walk_note_place(walk, fp, 0);
	walk->cfa = fp + 16;
	walk->bx_known = false;
	walk->by_pointer++;
	return walk_arrive(walk, true);
}

WALK_APART enum stack_end walk_by_pointer(struct walk *walk, enum stack_end otherwise)
{
	return walk_along_pointer(walk, otherwise);
}

/* True if an instruction that ends at `address` is a call: E8 disp32, or FF /2 of any length. */
static __always_inline bool walk_is_after_call(struct walk *walk, __u64 address)
{
	__u8 *code = (__u8 *)&walk->code;

	if (address < USER_ADDRESS_MIN || address >= USER_ADDRESS_END ||
	    walk_read(code, sizeof(walk->code), address - sizeof(walk->code)))
		return false;
	return code[3] == 0xe8 || (code[6] == 0xff && (code[7] & 0x38) == 0x10) ||
	       (code[5] == 0xff && (code[6] & 0x38) == 0x10) ||
	       (code[2] == 0xff && (code[3] & 0x38) == 0x10) ||
	       (code[1] == 0xff && (code[2] & 0x38) == 0x10);
}

/*
 * Leaves an interrupted function that has no row: compilers' start and end code, assembly. Most of
 * it has pushed nothing yet, or one word.
 */
static __always_inline enum stack_end walk_by_call(struct walk *walk)
{
	WALK_UNROLL
	for (int i = 0; i < 2; i++) {
		walk->cfa = walk->sp + 8 * i + 8;
		if (walk_word(walk, walk->cfa - 8, &walk->saved.pc) &&
		    walk_is_after_call(walk, walk->saved.pc)) {
			walk->saved.fp = walk->fp;
			/* It was the frame pointer, and is the function's own by now. */
			if (i && walk->fp == walk->sp &&
			    !walk_word(walk, walk->fp, &walk->saved.fp))
				return STACK_UNREADABLE;
			return walk_arrive(walk, true);
		}
	}
	return STACK_NO_UNWIND_INFO;
}

/* Code of a file that has no table, or none for this address. */
WALK_APART enum stack_end walk_without_rule(struct walk *walk)
{
	if (walk->full) {
		enum stack_end end = walk_by_call(walk);

		if (end != STACK_NO_UNWIND_INFO)
			return end;
	}
	return walk_by_pointer(walk, STACK_NO_UNWIND_INFO);
}

static __always_inline struct trail_frame walk_here(const struct walk *walk)
{
	return (struct trail_frame){ .pc = walk->pc,
				     .fp = walk->fp,
				     .sp = (__u32)walk->sp,
				     .how = walk->fp_known ? TRAIL_FP_KNOWN : 0 };
}

/* The interrupted frame is not noted: its pc and registers are other ones each time. */
static __always_inline void walk_note(struct walk *walk, __u32 row)
{
	__u32 fp_slot = TABLE_RULE_FP(row), bx_slot = TABLE_RULE_BX(row);
	struct trail_frame here = walk_here(walk);

	if (walk->full)
		return;
	here.how |= fp_slot << TRAIL_FP_SHIFT | bx_slot << TRAIL_BX_SHIFT;
	here.how |= (__u32)(fp_slot != 0) << TRAIL_SAVES_FP_BIT;
	here.how |= (__u32)(bx_slot != 0) << TRAIL_SAVES_BX_BIT;
	trail_note(&walk->trail, &here, trail_high(walk->sp));
}

/* By a row that says its rule itself: the short way, for nearly all frames. */
static __always_inline enum stack_end walk_by_row(struct walk *walk, __u32 row)
{
	__u64 fp_slot = TABLE_RULE_FP(row), bx_slot = TABLE_RULE_BX(row);
	bool by_fp = TABLE_RULE_BY_FP(row);

	walk_note(walk, row);
	if (by_fp && !walk->fp_known)
		return STACK_UNSUPPORTED_RULE;
	walk->cfa = (by_fp ? walk->fp : walk->sp) + 8ull * TABLE_RULE_CFA(row);
	if (walk->cfa <= walk->sp && !by_fp)
		return STACK_BAD_ADDRESS;
	walk->saved.fp = walk->fp;
	if (fp_slot) {
		if (!walk_word(walk, walk->cfa - 8 - 8 * fp_slot, &walk->saved.fp))
			return STACK_UNREADABLE;
		walk->fp_known = true;
	}
	if (!walk_word(walk, walk->cfa - 8, &walk->saved.pc))
		return STACK_UNREADABLE;
	if (bx_slot) {
		walk->bx_known = true;
		walk->bx_at = walk->cfa - 8 - 8 * bx_slot;
	}
	walk->by_table++;
	return walk_arrive(walk, true);
}

/* Where the CFA is not to be had. */
static __always_inline enum stack_end walk_without_cfa(struct walk *walk, __u32 cfa)
{
	if (cfa == UNWIND_CFA_END)
		return STACK_COMPLETE;
	if (cfa == UNWIND_CFA_UNSUPPORTED)
		return walk_by_pointer(walk, STACK_UNSUPPORTED_RULE);
	return walk_without_rule(walk);
}

/* By a rule of the list, which may say anything. */
WALK_APART enum stack_end walk_by_rule(struct walk *walk, const struct unwind_rule *rule)
{
	bool is_signal = rule->flags & UNWIND_RULE_SIGNAL;
	enum stack_end end;

	trail_break(&walk->trail);
	if (rule->cfa < UNWIND_CFA_REGISTER)
		return walk_without_cfa(walk, rule->cfa);
	if (rule->cfa == UNWIND_CFA_GOROUTINE) {
		end = walk_to_goroutine(walk);
		if (end != STACK_UNREADABLE)
			return end == STACK_ENDS ? walk_arrive(walk, true) : end;
	}
	if (rule->cfa == UNWIND_CFA_CLONE && walk_is_new_thread(walk))
		return STACK_COMPLETE;
	end = walk_find_cfa(walk, rule);
	if (end != STACK_ENDS)
		return end;
	/*
	 * Stacks grow down. Signal frames, frame pointers and what is read from memory may lead to
	 * another stack. vfork has its return address in a register, so that the child does not
	 * write over it.
	 */
	if (walk->cfa < walk->sp + (rule->ra != UNWIND_VALUE_IN_REGISTER) && !is_signal &&
	    rule->cfa_register == UNWIND_X86_SP && rule->cfa != UNWIND_CFA_DEREF)
		return STACK_BAD_ADDRESS;
	end = walk_find_saved(walk, rule);
	if (end != STACK_ENDS)
		return end;
	walk_follow_bx(walk, rule);
	walk->by_table++;
	return walk_arrive(walk, !is_signal);
}

/* By a row that says only what to do without a CFA. The end of a stack is the end of its trail. */
WALK_APART enum stack_end walk_by_bare_row(struct walk *walk, __u32 row)
{
	if (TABLE_RULE_BARE(row) == UNWIND_CFA_END) {
		walk_note(walk, 0);
		trail_keep(&walk->trail, walk_kept(walk), TRAIL_FRAMES);
	}
	return walk_without_cfa(walk, TABLE_RULE_BARE(row));
}

/* Keeps the row of the interrupted frame. */
WALK_APART void walk_keep_leaf(struct walk *walk, const struct walk_span *span, const __u8 *chunk)
{
	__u64 into = walk->pc + span->to_segment;
	struct row_extent extent = row_extent(&span->segment, into, chunk);
	struct walk_leaf *leaf = &walk_memory(walk)->leaf;

	leaf->start = walk->pc - (into - extent.start);
	leaf->bytes = extent.bytes;
	leaf->row = extent.row;
}

static __always_inline enum stack_end walk_by_table(struct walk *walk, const struct walk_span *span)
{
	const __u8 *chunk = walk_chunk(&span->segment, walk->pc + span->to_segment);
	const struct unwind_rule *rule;
	__u32 row;

	if (!chunk)
		return walk_without_rule(walk);
	row = row_find(&span->segment, walk->pc + span->to_segment, chunk);
	if (row & TABLE_RULE_LISTED) {
		rule = row_listed_rule(&span->segment, chunk, row);
		return rule ? walk_by_rule(walk, rule) : walk_without_rule(walk);
	}
	if (TABLE_RULE_IS_BARE(row))
		return walk_by_bare_row(walk, row);
	if (walk->full)
		walk_keep_leaf(walk, span, chunk);
	return walk_by_row(walk, row);
}

/* Of the frame at hand, which the sample has already. */
WALK_APART void walk_note_pause(struct walk *walk)
{
	struct walk_pause *pause = &walk->pause;
	__u64 bx = 0;

	pause->state = walk->full ? STACK_STATE_FULL : 0;
	if (walk->fp_known)
		pause->state |= STACK_STATE_FP;
	if (walk_bx(walk, &bx))
		pause->state |= STACK_STATE_BX;
	if (walk->after_call)
		pause->state |= STACK_STATE_AFTER_CALL;
	if (walk->by_generated)
		pause->state |= STACK_STATE_BY_GENERATED;
	pause->pc = walk->pc;
	pause->sp = walk->sp;
	pause->fp = walk->fp;
	pause->bx = bx;
	pause->at = walk->at - 1;
	pause->noted = walk->jvm.count;
	pause->is_set = true;
}

/*
 * By the frame pointer where a table is to be expected but is not there yet. That is right for code
 * that keeps frame pointers; other code uses the register for anything, 0 included, and frames may
 * be left out. So the stack says in the end why it is not to be trusted, however it goes on.
 */
static __always_inline enum stack_end walk_by_guess(struct walk *walk, enum stack_end why)
{
	if (walk->has_jvm && !walk->pause.is_set)
		walk_note_pause(walk);
	walk->guessed = why;
	return walk_by_pointer(walk, why);
}

#define WALK_ENTRY_WORDS 32 /* of the frame of generated code, which is small */

#define WALK_LOOP_WORDS 8 /* that generated code puts below the frame of the loop it runs in */

/*
 * Code that PHP's compiler made is jumped to by the interpreter's loop, and runs in that one's
 * frame, whose size is known: so the way out is the loop's return address. Generated code may have
 * put a few words below.
 */
WALK_VERIFIED_ONCE enum stack_end walk_out_of_loop(struct walk *walk)
{
	if (!walk)
		return STACK_UNREADABLE;
	trail_break(&walk->trail);
	walk->cfa = walk->sp + 8ull * walk->entry.words;
	WALK_KEEP_LOOP
	for (int i = 0; i < WALK_LOOP_WORDS; i++) {
		if (!walk_word(walk, walk->cfa, &walk->saved.pc))
			return STACK_UNREADABLE;
		if (walk->saved.pc - walk->entry.start < walk->entry.bytes &&
		    walk_is_after_call(walk, walk->saved.pc)) {
			if (!walk_word(walk, walk->cfa - 8ull * walk->entry.fp_words,
				       &walk->saved.fp))
				return STACK_UNREADABLE;
			walk->cfa += 8;
			walk->fp_known = true;
			walk->bx_known = false;
			return walk_arrive(walk, true);
		}
		walk->cfa += 8;
	}
	return STACK_NO_FRAME_POINTER;
}

/*
 * Code that Ruby's compiler made runs in one native frame, however many methods call one another in
 * it: the one that the interpreter entered it with. So the way out is the innermost return address
 * that lies in the interpreter's own code.
 */
WALK_VERIFIED_ONCE enum stack_end walk_out_to_entry(struct walk *walk)
{
	if (!walk)
		return STACK_UNREADABLE;
	trail_break(&walk->trail);
	walk->cfa = walk->sp;
	WALK_KEEP_LOOP
	for (int i = 0; i < WALK_ENTRY_WORDS; i++) {
		walk->saved.fp = walk->fp;
		if (!walk_word(walk, walk->cfa, &walk->saved.pc))
			return STACK_UNREADABLE;
		if (walk->saved.pc - walk->entry.start < walk->entry.bytes &&
		    walk_is_after_call(walk, walk->saved.pc)) {
			/* Newer compilers save the frame pointer and use it. */
			if (walk->fp_known && walk->fp == walk->cfa - 8 &&
			    !walk_word(walk, walk->cfa - 8, &walk->saved.fp))
				return STACK_UNREADABLE;
			walk->cfa += 8;
			walk->bx_known = false;
			return walk_arrive(walk, true);
		}
		walk->cfa += 8;
	}
	return STACK_NO_FRAME_POINTER;
}

/* Instructions of x86-64, little-endian. */
#define CODE_ADD_SP 0xc48348u /* add $imm8,%rsp */
#define CODE_POP_FP 0x5du     /* pop %rbp */
#define CODE_RET 0xc3u

/*
 * The row for a place where a function ends: `add $N,%rsp`, `pop %rbp`, `ret`, of which the first
 * two may be missing. TABLE_ROW_UNUSED for other code.
 */
static __always_inline __u32 walk_row_of_end(__u64 code)
{
	__u32 words = 0, pops;

	if ((code & 0xffffff) == CODE_ADD_SP) {
		if (code >> 24 & 0x87) /* no multiple of 8, or negative */
			return TABLE_ROW_UNUSED;
		words = (code >> 27) & 15;
		code >>= 32;
	}
	pops = (code & 0xff) == CODE_POP_FP;
	if (pops)
		code >>= 8;
	return (code & 0xff) == CODE_RET ? (words + pops + 1) << 1 | pops << 11 : TABLE_ROW_UNUSED;
}

/*
 * What runs next says how the frame is left, where it is the function's end: so with stubs that do
 * nothing after a call, as CPython's trampolines (-X perf), which keep no frame pointer.
 *
 * Other generated code that leaves rbp alone has an older frame's in it: the walk then jumps over
 * all frames between, and looks whole. Who knows better of a runtime may say so (agent/describe).
 */
static __always_inline enum stack_end walk_out_of_generated(struct walk *walk)
{
	if (walk->entry.bytes)
		return walk->entry.words ? walk_out_of_loop(walk) : walk_out_to_entry(walk);
	if (!walk_read(&walk->code, sizeof(walk->code), walk->pc + walk->after_call)) {
		__u32 row = walk_row_of_end(walk->code);

		if (row != TABLE_ROW_UNUSED)
			return walk_by_row(walk, row);
	}
	walk->by_generated = true;
	return walk_by_pointer(walk, STACK_NO_FRAME_POINTER);
}

/* Generated code that saves rbp far from the CFA. */
WALK_APART enum stack_end walk_by_far_row(struct walk *walk, __u32 row)
{
	bool by_fp = TABLE_RULE_BY_FP(row);

	trail_break(&walk->trail);
	if (by_fp && !walk->fp_known)
		return STACK_UNSUPPORTED_RULE;
	walk->cfa = (by_fp ? walk->fp : walk->sp) + 8ull * TABLE_RULE_CFA(row);
	if (walk->cfa <= walk->sp && !by_fp)
		return STACK_BAD_ADDRESS;
	if (!walk_word(walk, walk->cfa - 8 - 8ull * CODE_RULE_FAR_FP(row), &walk->saved.fp) ||
	    !walk_word(walk, walk->cfa - 8, &walk->saved.pc))
		return STACK_UNREADABLE;
	walk->fp_known = true;
	walk->bx_known = false;
	walk->by_table++;
	return walk_arrive(walk, true);
}

#define CODE_PUSH_FP 0xe5894855u    /* push %rbp; mov %rsp,%rbp */
#define CODE_MOVE_FP 0xe58948u	    /* mov %rsp,%rbp */
#define CODE_RESTORE_FP 0x5dec8948u /* mov %rbp,%rsp; pop %rbp */
#define CODE_RET_BYTES 0xc2u	    /* ret, and the arguments go */

#define ROW_AT_CALL (1u << 1)		/* nothing is pushed but the return address */
#define ROW_PUSHED (2u << 1 | 1u << 11) /* ... and the frame pointer */

/*
 * Of the interrupted function, where the register is not its own yet, or no more: at its first two
 * instructions, and behind the last `pop %rbp`, where it returns or jumps to another function. 0 =
 * it has its frame. The code is that from four bytes before pc on.
 */
static __always_inline __u32 walk_row_of_framed(__u64 code)
{
	__u32 before = (__u32)code, next = (__u32)(code >> 32);

	if (next == CODE_PUSH_FP || before == CODE_RESTORE_FP || (next & 0xff) == CODE_RET ||
	    (next & 0xff) == CODE_RET_BYTES)
		return ROW_AT_CALL;
	return (next & 0xffffff) == CODE_MOVE_FP && before >> 24 == 0x55 ? ROW_PUSHED : 0;
}

/* What has called something has its frame, for sure. */
static __always_inline enum stack_end walk_out_of_framed(struct walk *walk)
{
	__u32 row = 0;

	if (walk->full) {
		if (walk_read(&walk->code, sizeof(walk->code), walk->pc - 4)) {
			walk->by_generated = true;
			return walk_by_pointer(walk, STACK_NO_FRAME_POINTER);
		}
		row = walk_row_of_framed(walk->code);
	}
	return row ? walk_by_row(walk, row) : walk_by_pointer(walk, STACK_NO_FRAME_POINTER);
}

static __always_inline bool walk_is_framed(struct walk *walk)
{
	__u64 block = walk->pc >> CODE_BLOCK_SHIFT;

	if (!(walk->code_key.number & CODE_NUMBER_OF_JITDUMP))
		return false;
	walk->code_key.line = CODE_LINE_OF_BLOCK(block);
	if (!walk_code_line(&walk->code_key))
		return false;
	walk->framed = block;
	return true;
}

/* By the row that the agent has made of what the runtime says of its code, where there is one. */
WALK_APART enum stack_end walk_out_of_code(struct walk *walk)
{
	const struct code_line *line;
	__u32 row = 0;

	if (walk->pc >> CODE_BLOCK_SHIFT == walk->framed || walk_is_framed(walk))
		return walk_out_of_framed(walk);
	walk->code_key.line = walk->pc >> CODE_LINE_SHIFT;
	line = walk_code_line(&walk->code_key);
	if (line)
		row = line->rows[row_word(line->rows,
					  TABLE_ROW_KEY(walk->pc & (CODE_LINE_BYTES - 1)))];
	if (TABLE_RULE_IS_BARE(row))
		return walk_out_of_generated(walk);
	if (row & CODE_RULE_FAR)
		return walk_by_far_row(walk, row);
	return walk_by_row(walk, row);
}

/* In jvm.h, beam.h, lua.h and v8.h, which whoever walks includes. */
static enum stack_end walk_out_of_jvm(struct walk *walk);
static enum stack_end walk_out_of_beam(struct walk *walk);
static enum stack_end walk_out_of_lua(struct walk *walk);
static enum stack_end walk_along_v8(struct walk *walk, struct sample *sample);

/* Leaves the current frame. Returns STACK_ENDS when walk is at its caller. */
static __always_inline enum stack_end walk_step(struct walk *walk, const struct walk_span *span)
{
	switch (span->kind) {
	case RANGE_TABLE:
		return walk_by_table(walk, span);
	case RANGE_CODE:
		return walk_out_of_code(walk);
	case RANGE_BEAM:
		return walk->has_beam ? walk_out_of_beam(walk) : walk_out_of_generated(walk);
	case RANGE_LUA:
		return walk->has_lua ? walk_out_of_lua(walk) : walk_out_of_generated(walk);
	case RANGE_NO_TABLE:
		return walk_without_rule(walk);
	case RANGE_PENDING:
		return walk_by_guess(walk, STACK_TABLE_PENDING);
	case RANGE_FAILED:
		return walk_by_guess(walk, STACK_TABLE_FAILED);
	case RANGE_NO_ROOM:
		return walk_by_guess(walk, STACK_TABLE_NO_ROOM);
	case RANGE_UNKNOWN:
		return walk_by_guess(walk, STACK_NO_MAPPINGS);
	case RANGE_ANONYMOUS:
		return walk_out_of_generated(walk);
	case RANGE_JVM:
		return walk_out_of_jvm(walk);
	default: /* no code, or generated just now */
		if (walk->entry.words)
			return walk_out_of_loop(walk);
		return walk_by_pointer(walk, STACK_NO_FRAME_POINTER);
	}
}

/* Starts at the interrupted frame; the user sets thread before, and pc, sp, fp, registers, now_ns,
 * at, and calls walk_own, unless it is settled. */
static __always_inline void walk_start(struct walk *walk)
{
	walk->window.bytes = 0;
	walk->room = SAMPLE_USER_FRAMES_MAX;
	walk->by_table = walk->by_pointer = 0;
	walk->guessed = STACK_ENDS;
	walk->fp_known = walk->bx_known = true;
	walk->bx_at = 0;
	walk->part_lost = walk->by_generated = walk->after_call = false;
	walk->framed = 0;
	walk->places_count = 0;
	walk->pause.is_set = false;
	walk->brief.start = walk->brief.end = 0;
	trail_start(&walk->trail, walk_kept(walk));
}

static __always_inline bool walk_is_owner(const struct walk_owner *was,
					  const struct walk_owner *owner)
{
	return was->fingerprint && was->start_ns == owner->start_ns && was->tgid == owner->tgid &&
	       was->exec_id == owner->exec_id && was->version == owner->version &&
	       was->second == owner->second;
}

/* What is of another owner, or of one whose mappings or tables have changed, is given up. */
static __always_inline void walk_own(struct walk *walk, const struct walk_owner *owner)
{
	struct walk_memory *memory = walk_memory(walk);
	bool keep = walk_is_owner(&memory->owner, owner) &&
		    memory->owner.fingerprint == owner->fingerprint;

	memory->owner = *owner;
	if (keep)
		return;
	WALK_UNROLL
	for (int i = 0; i < WALK_SPANS; i++)
		memory->spans[i].start = memory->spans[i].end = 0;
	memory->leaf.bytes = 0;
	walk_kept(walk)->first = TRAIL_FRAMES;
	trail_start(&walk->trail, walk_kept(walk));
}

static __always_inline enum stack_end walk_frame_of(struct walk *walk, struct sample *sample)
{
	const struct walk_span *span;
	__u32 at = walk->at;

	if (walk->room == 0 || at >= SAMPLE_FRAMES_MAX)
		return STACK_TOO_DEEP;
	span = walk_locate(walk);
	if (span->kind == RANGE_NO_CODE && walk->room != SAMPLE_USER_FRAMES_MAX)
		return STACK_BAD_ADDRESS;
	sample->frames[at] = walk->pc;
	walk->at = at + 1;
	walk->room--;
	if (span->kind == RANGE_ANONYMOUS && walk->has_v8)
		return walk_along_v8(walk, sample);
	return walk_step(walk, span);
}

/* Where rbx is, when a frame of the trail has saved it. */
static __always_inline void walk_take_bx(struct walk *walk, const struct trail_kept *kept)
{
	__u32 of = walk->trail.bx_of / sizeof(struct trail_frame);
	__u64 slot;

	if (of >= TRAIL_FRAMES - 1)
		return;
	slot = kept->frames[trail_index(of)].how >> TRAIL_BX_SHIFT & 15;
	walk->bx_known = true;
	walk->bx_at = (kept->high | kept->frames[trail_index(of + 1)].sp) - 8 - 8 * slot;
}

/* The trail leads elsewhere: the frame that it came to is left by its row. */
WALK_APART void walk_leave_trail(struct walk *walk)
{
	const struct trail_kept *kept = walk_kept(walk);
	const struct trail_frame *frame = &kept->frames[trail_index(walk->trail.next)];

	walk->pc = frame->pc;
	walk->sp = kept->high | frame->sp;
	walk->fp = frame->fp;
	walk->fp_known = frame->how & TRAIL_FP_KNOWN;
	walk_take_bx(walk, kept);
	trail_take(&walk->trail, kept, walk->trail.next);
	walk->trail.next++;
	walk->trail.is_followed = false;
}

/* Where the window ends: gets the words that lead on from the trail's next frame. */
static __always_inline bool walk_fill_for_trail(struct walk *walk)
{
	const struct trail_kept *kept = walk_kept(walk);
	__u32 next = walk->trail.next;
	const struct trail_frame *frame = &kept->frames[trail_index(next)];
	__u64 fp_bytes = frame->how & TRAIL_FP_BYTES;
	__u64 caller_sp = kept->high | kept->frames[trail_index(next + 1)].sp;

	return !(caller_sp & 7) && !walk_fill_window(walk, caller_sp - 8 - fp_bytes) &&
	       fp_bytes < walk->window.bytes;
}

enum walk_lead {
	LEAD_ON,	/* to the trail's next frame */
	LEAD_UNSEEN,	/* its words are not in the window */
	LEAD_ELSEWHERE, /* the words are other ones */
	LEAD_END,	/* that was the last frame */
};

/* Old verifiers have to see a bound checked, also where it is known, and before its use. */
#define WALK_SEE(value) __asm__ volatile("" : "+r"(value))

#define WALK_SAMPLE_END (8ull * SAMPLE_FRAMES_MAX)
#define WALK_LAST_FRAME ((TRAIL_FRAMES - 1) * sizeof(struct trail_frame))

static __always_inline const struct trail_frame *walk_kept_at(const struct trail_kept *kept,
							      __u64 at)
{
	return (const struct trail_frame *)((const char *)kept->frames + at);
}

/*
 * Takes over frames as long as the words of the stack lead from one to the next. Of each frame two
 * are looked at: the return address, and the saved frame pointer or whatever is there. This is what
 * most frames of most samples cost: so places are counted in bytes, there is no call, and nearly
 * no branch. There is room for TRAIL_STEPS frames.
 */
static __always_inline enum walk_lead
walk_follow_trail(struct walk *walk, const struct trail_kept *kept, struct sample *sample)
{
	__u64 next = walk->trail.next * sizeof(struct trail_frame), bx_of = walk->trail.bx_of;
	__u64 at = 8ull * walk->at, window_at = walk->window.start - kept->high + 8;
	enum walk_lead lead = LEAD_ON;
	__u64 pc, how;

	if (next > WALK_LAST_FRAME)
		return LEAD_END;
	pc = walk_kept_at(kept, next)->pc;
	how = walk_kept_at(kept, next)->how;
	WALK_KEEP_LOOP
	for (int i = 0; i < TRAIL_STEPS; i++) {
		const struct trail_frame *caller;
		__u64 return_at, fp_at, differs;

		WALK_SEE(at);
		WALK_SEE(next);
		if (at >= WALK_SAMPLE_END)
			break;
		*(__u64 *)((char *)sample->frames + at) = pc;
		if (next >= WALK_LAST_FRAME) {
			at += 8;
			lead = LEAD_END;
			break;
		}
		caller = walk_kept_at(kept, next) + 1;
		return_at = caller->sp - window_at;
		fp_at = return_at - (how & TRAIL_FP_BYTES);
		lead = LEAD_UNSEEN;
		if (return_at >= walk->window.bytes || fp_at >= walk->window.bytes)
			break;
		differs = walk_window(walk, fp_at) ^ caller->fp;
		differs &= trail_mask(how, TRAIL_SAVES_FP_BIT);
		pc = caller->pc;
		differs |= (walk_window(walk, return_at) - 1) ^ pc;
		lead = LEAD_ELSEWHERE;
		if (differs)
			break;
		lead = LEAD_ON;
		bx_of ^= (bx_of ^ next) & trail_mask(how, TRAIL_SAVES_BX_BIT);
		how = caller->how;
		next += sizeof(struct trail_frame);
		at += 8;
	}
	walk->trail.next = (__u32)(next / sizeof(struct trail_frame));
	walk->trail.bx_of = (__u32)bx_of;
	walk->by_table += (__u32)(at / 8) - walk->at - (lead == LEAD_END);
	walk->room -= (__u32)(at / 8) - walk->at;
	walk->at = (__u32)(at / 8);
	return lead;
}

/* Takes over some frames. Returns STACK_ENDS when there are more, on the trail or off it. */
static __always_inline enum stack_end walk_along_trail(struct walk *walk, struct sample *sample)
{
	if (walk->room < TRAIL_STEPS) {
		walk_leave_trail(walk);
		return STACK_ENDS;
	}
	switch (walk_follow_trail(walk, walk_kept(walk), sample)) {
	case LEAD_END:
		return STACK_COMPLETE;
	case LEAD_UNSEEN:
		if (!walk_fill_for_trail(walk))
			walk_leave_trail(walk);
		break;
	case LEAD_ELSEWHERE:
		walk_leave_trail(walk);
		break;
	default:
		break;
	}
	return STACK_ENDS;
}

/* The walk is where the last one was. */
static __always_inline void walk_join_trail(struct walk *walk)
{
	trail_keep(&walk->trail, walk_kept(walk), walk->trail.next);
	walk->trail.bx_of = TRAIL_BYTES;
	walk->trail.is_followed = true;
}

static __always_inline enum stack_end walk_on(struct walk *walk, struct sample *sample)
{
	if (!walk->trail.is_followed) {
		struct trail_frame here = walk_here(walk);

		if (walk->full ||
		    !trail_meets(&walk->trail, walk_kept(walk), &here, trail_high(walk->sp)))
			return walk_frame_of(walk, sample);
		walk_join_trail(walk);
	}
	return walk_along_trail(walk, sample);
}

/* As a step of a walk ends: false when the walk has ended. */
static __always_inline bool walk_goes_on(struct walk *walk, enum stack_end end)
{
	walk->end = end;
	if (end == STACK_ENDS)
		return true;
	if (walk->guessed != STACK_ENDS)
		walk->end = walk->guessed;
	else if (end == STACK_COMPLETE && walk->by_generated)
		walk->end = STACK_GUESSED_POINTER;
	return false;
}

/*
 * The first step: the interrupted frame, where its row is kept, which is so in most samples. Else
 * nothing. False when the walk has ended.
 */
static __always_inline bool walk_leaf(struct walk *walk, struct sample *sample)
{
	const struct walk_leaf *leaf = &walk_memory(walk)->leaf;
	__u32 at = walk->at;

	if (walk->pc - leaf->start >= leaf->bytes || at >= SAMPLE_FRAMES_MAX)
		return true;
	sample->frames[at] = walk->pc;
	walk->at = at + 1;
	walk->room--;
	return walk_goes_on(walk, walk_by_row(walk, leaf->row));
}

/*
 * Where the frame of the interrupted function ends, whose registers (struct pt_regs) these are.
 * 0 = its row is not kept.
 */
static __always_inline __u64 walk_leaf_end(struct walk *walk, const __u64 *registers)
{
	const struct walk_leaf *leaf = &walk_memory(walk)->leaf;
	__u64 base =
		TABLE_RULE_BY_FP(leaf->row) ? registers[REGISTERS_FP] : registers[REGISTERS_SP];

	if (registers[REGISTERS_PC] - leaf->start >= leaf->bytes)
		return 0;
	return base + 8ull * TABLE_RULE_CFA(leaf->row);
}

/* A further step: notes frames in the sample and leaves them. False when the walk has ended. */
static __always_inline bool walk_frame(struct walk *walk, struct sample *sample)
{
	return walk_goes_on(walk, walk_on(walk, sample));
}

#endif
