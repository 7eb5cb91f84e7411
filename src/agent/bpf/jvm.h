/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * jvm - unwinds HotSpot's generated code, one frame at a time. Part of the walk (walk.h), and like
 * it plain C over hostile memory.
 *
 *   pc in the interpreter       frame pointer: sender's sp, Method, bytecode pointer
 *   pc in a heap of code        segment map -> block -> blob: frame size, where the frame is whole
 *   a blob without frame size   stubs: the frame pointer, or the return address on top of the stack
 *   ... with one, as Java 8's   the stack pointer that it saved below its frame, where the code
 * says C1 calls sin() of C         that it has
 *
 * Compiled code uses the frame pointer for anything, so that its frames are left by their size and
 * never by the pointer; the caller's is saved below the return address. For each frame that is left
 * the walk notes two words: the blob or Method, and the position in it with a proof of what was
 * there. agent/runtime/hotspot makes names of them.
 */
#ifndef FIRN_AGENT_BPF_JVM_H
#define FIRN_AGENT_BPF_JVM_H

#include "agent/bpf/script_proof.h"
#include "agent/bpf/walk.h"

#define JVM_HOPS_MAX 24 /* in the segment map: each goes back by up to 254 segments */
#define JVM_FRAME_WORDS_MAX (1u << 16)
#define JVM_TAIL_BYTES 128u /* before a blob's data: where deoptimised frames return to */
#define JVM_METHOD_SLOT 3u  /* words below the frame pointer, as is the sender's sp */
#define JVM_SENDER_SLOT 1u
#define JVM_CODE_MAX 65536u /* bytes of a method */
#define JVM_NO_POSITION 0xffffffffu
#define JVM_PUSHED_WORDS_MAX 8u	      /* below a whole frame, for a moment */
#define JVM_STUB_BYTES_MAX (1u << 16) /* from a stub's start on */

static __always_inline bool jvm_has(const struct walk *walk, __u64 address)
{
	return address - walk->jvm.process.low < walk->jvm.process.bytes;
}

static __always_inline __u64 jvm_head(const struct walk *walk, __u32 at, __u32 bytes)
{
	__u64 word = walk->jvm.head[at / 8 & (JVM_HEAD_BYTES / 8 - 1)] >> 8 * (at & 7);

	return bytes >= 8 ? word : word & ((1ull << 8 * bytes) - 1);
}

/* The start of the segment's block, in segments. False when nothing is there. */
static __always_inline bool jvm_find_block(const struct jvm_heap *heap, __u64 *segment)
{
	WALK_KEEP_LOOP
	for (int i = 0; i < JVM_HOPS_MAX; i++) {
		__u8 back = 0;

		if (walk_read(&back, sizeof(back), heap->segments + *segment) || back == 0xff ||
		    back > *segment)
			return false;
		if (!back)
			return true;
		*segment -= back;
	}
	return false;
}

/* The heap around pc; JVM_HEAPS_MAX = none. */
static __always_inline __u32 jvm_find_heap(const struct walk *walk)
{
	__u32 found = JVM_HEAPS_MAX;

	WALK_UNROLL
	for (__u32 i = 0; i < JVM_HEAPS_MAX; i++) {
		const struct jvm_heap *heap = &walk->jvm.process.heaps[i];

		if (walk->pc - heap->low < heap->bytes)
			found = i;
	}
	return found;
}

/* Near a blob's end is where its deoptimised frames return to. Sets that. */
static __always_inline void jvm_read_deopt(struct walk *walk)
{
	const struct jvm_layout *layout = &walk->jvm.process.layout;
	struct jvm_blob *blob = &walk->jvm.blob;
	__u64 deopt = 0;

	if (blob->deopt || blob->start + blob->bytes - walk->pc > JVM_TAIL_BYTES ||
	    !layout->deopt || walk_read(&deopt, sizeof(deopt), blob->start + layout->deopt))
		return;
	blob->deopt = layout->deopt_bytes == 4 ? blob->start + (__u32)deopt : deopt;
}

/* Reads the blob around pc: sets blob and head. */
static __always_inline bool jvm_read_blob(struct walk *walk)
{
	const struct jvm_layout *layout = &walk->jvm.process.layout;
	__u32 shift = layout->segment_shift & 31, index = jvm_find_heap(walk);
	struct jvm_blob *blob = &walk->jvm.blob;
	const struct jvm_heap *heap;
	__u64 segment;

	if (index >= JVM_HEAPS_MAX)
		return false;
	heap = &walk->jvm.process.heaps[index & (JVM_HEAPS_MAX - 1)];
	segment = (walk->pc - heap->low) >> shift;
	if (!jvm_find_block(heap, &segment))
		return false;
	blob->start = heap->low + (segment << shift) + layout->blob;
	if (walk_read(walk->jvm.head, JVM_HEAD_BYTES, blob->start) ||
	    walk_read(&blob->ids, sizeof(blob->ids), blob->start + layout->orig_pc))
		return false;
	blob->bytes = jvm_head(walk, layout->data, 4);
	blob->frame_words = jvm_head(walk, layout->frame_size, 4);
	blob->proof = jvm_proof(walk->jvm.head, blob->ids);
	blob->deopt = 0;
	jvm_read_deopt(walk);
	return true;
}

/* Takes one that this sample has read; what is innermost needs its head, too. */
static __always_inline bool jvm_take_seen(struct walk *walk)
{
	WALK_UNROLL
	for (__u32 i = 0; i < JVM_BLOBS_SEEN; i++) {
		const struct jvm_blob *seen = &walk->jvm.seen[i];

		if (walk->pc - seen->start < seen->bytes) {
			walk->jvm.blob = *seen;
			return true;
		}
	}
	return false;
}

/* Takes one that came with a copied stack: its process may be gone. */
static __always_inline bool jvm_take_kept(struct walk *walk)
{
#ifndef __bpf__
	for (__u32 i = 0; i < walk->jvm.kept_count; i++) {
		const struct jvm_blob *kept = &walk->jvm.kept[i];

		if (walk->pc - kept->start < kept->bytes) {
			walk->jvm.blob = *kept;
			return true;
		}
	}
#else
	(void)walk;
#endif
	return false;
}

/* Sets blob, and what is sent of the frame. */
static __always_inline bool jvm_find_blob(struct walk *walk)
{
	if (walk->full || !jvm_take_seen(walk)) {
		__u32 next = walk->jvm.seen_next;

		if (!jvm_take_kept(walk) && !jvm_read_blob(walk))
			return false;
		walk->jvm.seen[row_masked(next, JVM_BLOBS_SEEN - 1)] = walk->jvm.blob;
		walk->jvm.seen_next = next + 1;
	}
	walk->jvm.object = walk->jvm.blob.start;
	walk->jvm.position = walk->pc - walk->jvm.blob.start;
	walk->jvm.proof = walk->jvm.blob.proof;
	return true;
}

/* The caller's frame begins at cfa. */
static __always_inline enum stack_end jvm_arrive(struct walk *walk, __u64 cfa)
{
	if (cfa <= walk->sp || cfa & 7)
		return STACK_BAD_ADDRESS;
	walk->cfa = cfa;
	if (!walk_word(walk, cfa - 8, &walk->saved.pc))
		return STACK_UNREADABLE;
	walk->fp_known = true;
	walk->bx_known = false;
	return walk_arrive(walk, true);
}

/* With the caller's frame pointer below the return address. */
static __always_inline enum stack_end jvm_arrive_built(struct walk *walk, __u64 cfa)
{
	if (!walk_word(walk, cfa - 16, &walk->saved.fp))
		return STACK_UNREADABLE;
	return jvm_arrive(walk, cfa);
}

/* With the caller's frame pointer still, or again, in its register. */
static __always_inline enum stack_end jvm_arrive_bare(struct walk *walk, __u64 cfa)
{
	walk->saved.fp = walk->fp;
	return jvm_arrive(walk, cfa);
}

/* The interpreter pushes where to return to, and jumps. */
static __always_inline bool jvm_is_return(struct walk *walk, __u64 address)
{
	const struct jvm_process *process = &walk->jvm.process;

	return address - process->interpreter < process->interpreter_bytes ||
	       walk_is_after_call(walk, address);
}

/*
 * The end of an interrupted frame that would be at cfa: code that a compiler puts into a method (to
 * compare strings, for example) pushes words for a moment. Generated code calls compiled code, so
 * that a return address into it ends the frame; the caller's frame pointer, which stands in its
 * place where words were pushed, does not look like one.
 */
WALK_APART __u64 jvm_end_of_frame(struct walk *walk, __u64 cfa)
{
	__u64 word = 0;

	if (walk_word(walk, cfa - 8, &word) && jvm_has(walk, word))
		return cfa;
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < JVM_PUSHED_WORDS_MAX; i++)
		if (walk_word(walk, cfa + 8ull * i, &word) && jvm_has(walk, word) &&
		    jvm_is_return(walk, word))
			return cfa + 8ull * (i + 1);
	return cfa;
}

/* ---- the interpreter ---- */

/* The bytecode that runs, of the innermost frame in r13, of others in the frame. */
static __always_inline __u32 jvm_bci(struct walk *walk, __u64 start)
{
	__u64 at = 0;

	if (walk->full && walk_register(walk, 13, &at) && at - start < JVM_CODE_MAX)
		return at - start;
	at = 0;
	if (!walk_word(walk, walk->fp - 8ull * walk->jvm.process.layout.bci_slot, &at) ||
	    at - start >= JVM_CODE_MAX)
		return JVM_NO_POSITION;
	return at - start;
}

/* Notes the Method of a frame of the interpreter. False when there is none. */
static __always_inline bool jvm_find_method(struct walk *walk)
{
	const struct jvm_layout *layout = &walk->jvm.process.layout;
	__u64 method = 0, code = 0;

	if (!walk_word(walk, walk->fp - 8 * JVM_METHOD_SLOT, &method) || method & 7 ||
	    method < USER_ADDRESS_MIN ||
	    walk_read(&code, sizeof(code), method + layout->const_method) || code & 7 ||
	    walk_read(&walk->jvm.ids, sizeof(walk->jvm.ids), code + layout->proof))
		return false;
	walk->jvm.object = method;
	walk->jvm.position = jvm_bci(walk, code + layout->bytecodes);
	walk->jvm.proof = jvm_method_proof(code, walk->jvm.ids);
	return true;
}

/* Before the frame is there, or after it has gone: the return address is on top of the stack. */
static __always_inline enum stack_end jvm_leave_top(struct walk *walk)
{
	__u64 word = 0;

	if (walk->full && walk_word(walk, walk->sp, &word) && jvm_has(walk, word) &&
	    jvm_is_return(walk, word))
		return jvm_arrive_bare(walk, walk->sp + 8);
	return walk_out_of_generated(walk);
}

static __always_inline enum stack_end jvm_leave_interpreted(struct walk *walk)
{
	__u64 fp = walk->fp, sender = 0;

	if (!walk->fp_known || fp & 7 || fp < walk->sp || fp - walk->sp > WALK_FRAME_BYTES_MAX ||
	    !walk_word(walk, fp - 8 * JVM_SENDER_SLOT, &sender) || sender < fp + 8 ||
	    sender - fp > WALK_FRAME_BYTES_MAX || sender & 7 || !jvm_find_method(walk))
		return jvm_leave_top(walk);
	if (!walk_pair(walk, fp))
		return STACK_UNREADABLE;
	/* Linkers of method handles take an argument off, below where the sender's sp was. */
	walk->cfa = sender < fp + 16 ? fp + 16 : sender;
	walk->bx_known = false;
	return walk_arrive(walk, true);
}

/* ---- compiled code ---- */

/* A byte at pc + at. */
static __always_inline __u8 jvm_code(const struct walk *walk, __u32 at)
{
	return ((const __u8 *)walk->jvm.code)[(at + 1) & (JVM_PEEK_BYTES - 1)];
}

/* sub imm, %rsp */
static __always_inline bool jvm_is_sub(const struct walk *walk, __u32 at)
{
	__u32 code = jvm_code(walk, at) | (__u32)jvm_code(walk, at + 1) << 8 |
		     (__u32)jvm_code(walk, at + 2) << 16;

	/* 0x83 or 0x81 in the middle: one comparison is one path less to verify. */
	return (code & ~0x200u) == 0xec8148;
}

/* cmp poll(%r15), %rsp; ja: whether to stop, behind the frame's end */
static __always_inline bool jvm_is_poll(const struct walk *walk, __u32 at)
{
	__u8 form = jvm_code(walk, at + 2);

	return jvm_code(walk, at) == 0x49 && jvm_code(walk, at + 1) == 0x3b &&
	       (form == 0xa7 || form == 0x67) &&
	       jvm_code(walk, at + (form == 0xa7 ? 7 : 4)) == 0x0f;
}

/* Behind the frame's end: poll, branch of the poll, return. */
static __always_inline bool jvm_is_end(const struct walk *walk, __u32 at)
{
	__u8 first = jvm_code(walk, at);

	return first == 0xc3 || jvm_is_poll(walk, at) ||
	       (first == 0x0f && jvm_code(walk, at + 1) == 0x87 &&
		jvm_code(walk, at + 6) == 0xc3) ||
	       (first == 0x85 && jvm_code(walk, at + 1) == 0x05 && jvm_code(walk, at + 6) == 0xc3);
}

enum jvm_frame_state {
	JVM_BUILT,
	JVM_UNSAVED, /* there is room, but the frame pointer is not in it yet */
	JVM_PUSHED,  /* only the frame pointer is on the stack */
	JVM_BARE,    /* nothing */
};

/* In code that builds the frame, `left` bytes before it is whole. */
static __always_inline enum jvm_frame_state jvm_state_at_start(const struct walk *walk, __u64 left)
{
	bool is_ahead = false;
	__u32 sub = 0;

	WALK_KEEP_LOOP
	for (__u32 i = 0; i < JVM_PEEK_BYTES - 4; i++) {
		if (i >= left)
			break;
		if (jvm_is_sub(walk, i)) {
			sub = i;
			is_ahead = true;
			break;
		}
	}
	if (is_ahead && sub == 0)
		return ((const __u8 *)walk->jvm.code)[0] == 0x55 ? JVM_PUSHED : JVM_BARE;
	if (is_ahead) /* mov %rsp, %rbp between the two */
		return sub == 3 && jvm_code(walk, 1) == 0x8b && jvm_code(walk, 2) == 0xec
			       ? JVM_PUSHED
			       : JVM_BARE;
	if (jvm_code(walk, 0) == 0x55)
		return JVM_BARE;
	if (jvm_code(walk, 0) == 0x48 && jvm_code(walk, 1) == 0x89 &&
	    (jvm_code(walk, 2) == 0x6c || jvm_code(walk, 2) == 0xac) && jvm_code(walk, 3) == 0x24)
		return JVM_UNSAVED;
	return JVM_BUILT;
}

/* How much of the interrupted frame is there, by the instructions at hand. */
WALK_VERIFIED_ONCE enum jvm_frame_state jvm_state_of(struct walk *walk, __u64 complete)
{
	if (!walk || walk_read(walk->jvm.code, JVM_PEEK_BYTES, walk->pc - 1))
		return JVM_BUILT;
	if (jvm_is_end(walk, 0))
		return JVM_BARE;
	if (jvm_code(walk, 0) == 0x5d && jvm_is_end(walk, 1))
		return JVM_PUSHED;
	if (walk->pc < complete)
		return jvm_state_at_start(walk, complete - walk->pc);
	return JVM_BUILT;
}

/* Where the call went that returns to address: call target, or mov $target, %r10; call *%r10. 0 of
 * others. */
static __always_inline __u64 jvm_call_target(struct walk *walk, __u64 address)
{
	__u64 *code = walk->jvm.code;

	if (walk_read(code, 16, address - 16))
		return 0;
	if ((code[1] >> 24 & 0xff) == 0xe8)
		return address + (__s64)(__s32)(code[1] >> 32);
	if ((code[0] >> 24 & 0xffff) == 0xba49 && code[1] >> 40 == 0xd2ff41)
		return code[0] >> 40 | code[1] << 24;
	return 0;
}

/* What is interrupted was called from before address. */
static __always_inline bool jvm_is_called_from(struct walk *walk, __u64 address)
{
	__u64 target = jvm_has(walk, address) ? jvm_call_target(walk, address) : 0;

	return target && walk->pc - target < JVM_STUB_BYTES_MAX;
}

/*
 * The frame pointer of the caller, whose return address is at `at`: what a stub saves first is it,
 * and lies below; where it has saved nothing, or this looks like none, the register has it still.
 */
static __always_inline __u64 jvm_saved_fp(struct walk *walk, __u64 at)
{
	__u64 fp = 0;

	if (at != walk->sp && walk_word(walk, at - 8, &fp) && fp > at && !(fp & 7) &&
	    fp - at < WALK_FRAME_BYTES_MAX)
		return fp;
	return walk->fp;
}

/*
 * An interrupted stub that has saved registers and uses all of them, the frame pointer too: the
 * innermost return address ends its frame. Such stubs call nothing.
 */
WALK_APART enum stack_end jvm_leave_leaf(struct walk *walk)
{
	__u64 at = walk->sp, word = 0;

	WALK_KEEP_LOOP
	for (__u32 i = 0; i < JVM_PUSHED_WORDS_MAX; i++, at += 8) {
		if (!walk_word(walk, at, &word))
			break;
		if (!jvm_is_return(walk, word))
			continue;
		walk->saved.fp = jvm_saved_fp(walk, at);
		return jvm_arrive(walk, at + 8);
	}
	return walk_out_of_generated(walk);
}

#define JVM_COOKIE (~0ull)

/*
 * What a method calls when it is entered, to see whether it may run, puts a cookie between the
 * frame pointer and the return address. Sets cfa; 0 = it is none.
 */
static __always_inline __u64 jvm_end_behind_cookie(struct walk *walk, __u64 word)
{
	__u64 address = 0;

	return word == JVM_COOKIE && walk_word(walk, walk->fp + 16, &address) &&
			       jvm_has(walk, address) && jvm_is_return(walk, address)
		       ? walk->fp + 24
		       : 0;
}

/*
 * Stubs, adapters and dispatch code have no frame, or one by the frame pointer, of a size that
 * nobody notes. What is on top of the stack may be left from earlier calls, so that it is a return
 * address only where the frame pointer does not lead to the call of this stub.
 */
WALK_APART enum stack_end jvm_leave_stub(struct walk *walk)
{
	__u64 top = 0, below = 0, word = 0, fp = walk->fp, end;
	bool has_top = walk->full && walk_word(walk, walk->sp, &top);
	bool has_frame = walk->fp_known && fp >= walk->sp && fp - walk->sp < WALK_FRAME_BYTES_MAX &&
			 !(fp & 7) && walk_word(walk, fp + 8, &word);

	/* A virtual thread's oldest frame on the stack returns to where others are fetched. */
	walk->jvm.is_barrier = !walk->full && !walk_is_after_call(walk, walk->pc + 1);
	if (walk->full && has_frame && jvm_is_called_from(walk, word))
		return jvm_arrive_built(walk, fp + 16);
	if (has_top && jvm_has(walk, top) && jvm_is_return(walk, top))
		return jvm_arrive_bare(walk, walk->sp + 8);
	if (has_top && top == fp && walk_word(walk, walk->sp + 8, &below) &&
	    jvm_is_return(walk, below))
		return jvm_arrive_bare(walk, walk->sp + 16);
	if (has_frame && jvm_is_return(walk, word))
		return jvm_arrive_built(walk, fp + 16);
	end = has_frame ? jvm_end_behind_cookie(walk, word) : 0;
	if (end) {
		if (!walk_word(walk, fp, &walk->saved.fp))
			return STACK_UNREADABLE;
		return jvm_arrive(walk, end);
	}
	return walk->full ? jvm_leave_leaf(walk) : walk_out_of_generated(walk);
}

/* A frame that is to be deoptimised returns elsewhere, and keeps where it was. */
static __always_inline void jvm_find_orig_pc(struct walk *walk)
{
	const struct jvm_blob *blob = &walk->jvm.blob;
	__u64 orig = 0;

	jvm_read_deopt(walk);
	if (walk->pc + 1 != blob->deopt)
		return;
	walk->jvm.position = JVM_NO_POSITION;
	if (walk_word(walk, walk->sp + (__u32)blob->ids, &orig) && orig - blob->start < blob->bytes)
		walk->jvm.position = orig - 1 - blob->start;
}

/* ---- registers that a method saves below its frame ---- */

#define JVM_SAVED_BYTES 0x80u	 /* where the general registers are */
#define JVM_SAVED_SP 0x28u	 /* below the frame: its stack pointer, as it was before */
#define JVM_VECTORS_BYTES 0x100u /* below that, halves of the vector registers: none, one, both */
#define JVM_VECTORS_MAX 2u
#define JVM_ARGUMENTS_MAX 3u /* below those: words that a call needs */

/*
 * The ends of `mov %rsp,-0x28(%rsp); sub $0x80,%rsp`, with which all registers begin to be saved,
 * and of `mov 0x78(%rsp),%rax; add $0x80,%rsp`, with which they all are back.
 */
#define JVM_SAVING 0x00000080ec8148d8ull
#define JVM_RESTORED 0x00000080c4814878ull
#define JVM_EITHER (JVM_SAVING ^ JVM_RESTORED) /* bits in which they differ */

enum jvm_saved {
	JVM_SAVED_NONE,
	JVM_SAVED_ALL,
	JVM_SAVED_UNKNOWN, /* the code is not readable */
};

/*
 * Whether the method has saved all registers at pc: the code of that is in one piece, so that the
 * first of its ends ahead tells on which side pc is. The end of a frame may look like the last,
 * but there the frame pointer follows.
 */
WALK_VERIFIED_ONCE enum jvm_saved jvm_saved_at_pc(struct walk *walk)
{
	const __u8 *ahead;
	__u64 bytes, word = 0;
	__u8 next = 0;

	if (!walk)
		return JVM_SAVED_UNKNOWN;
	ahead = (const __u8 *)walk->jvm.ahead;
	bytes = walk->jvm.blob.start + walk->jvm.blob.bytes - walk->pc + 1;
	if (bytes >= JVM_AHEAD_BYTES)
		bytes = JVM_AHEAD_BYTES - 1;
	bytes = row_masked(bytes, JVM_AHEAD_BYTES - 1);
	if (walk_read(walk->jvm.ahead, bytes, walk->pc - 1))
		return JVM_SAVED_UNKNOWN;
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < JVM_AHEAD_BYTES; i++) {
		if (i >= bytes)
			break;
		word = word >> 8 | (__u64)ahead[i] << 56;
		next = ahead[(i + 1) & (JVM_AHEAD_BYTES - 1)];
		if ((word | JVM_EITHER) == (JVM_SAVING | JVM_RESTORED))
			break;
	}
	return word == JVM_RESTORED && next != CODE_POP_FP ? JVM_SAVED_ALL : JVM_SAVED_NONE;
}

/*
 * The stack pointer that a method has saved with all other registers; 0 = there is none. The word
 * says where it is itself. It may be left from an earlier call.
 */
WALK_VERIFIED_ONCE __u64 jvm_saved_sp(struct walk *walk)
{
	if (!walk)
		return 0;
	WALK_KEEP_LOOP
	for (__u32 i = 0; i < (JVM_VECTORS_MAX + 1) * (JVM_ARGUMENTS_MAX + 1); i++) {
		__u64 sp = walk->sp + JVM_SAVED_BYTES +
			   (__u64)JVM_VECTORS_BYTES * (i / (JVM_ARGUMENTS_MAX + 1)) +
			   8ull * (i % (JVM_ARGUMENTS_MAX + 1));
		__u64 word = 0;

		if (walk_word(walk, sp - JVM_SAVED_SP, &word) && word == sp)
			return sp;
	}
	return 0;
}

/*
 * C1 of Java 8 has no stub for sines and powers: where they are not simple the method itself saves
 * all registers below its frame, and calls C. Sets the stack pointer to where the frame is.
 */
static __always_inline bool jvm_find_frame(struct walk *walk)
{
	__u64 sp;

	if (!walk->jvm.process.layout.saves_below || (!walk->full && walk->pc == walk->jvm.caller))
		return true;
	sp = jvm_saved_sp(walk);
	if (!sp)
		return true;
	switch (jvm_saved_at_pc(walk)) {
	case JVM_SAVED_ALL:
		walk->sp = sp;
		return true;
	case JVM_SAVED_NONE:
		return true;
	default:
		return false;
	}
}

static __always_inline __u64 jvm_complete_at(const struct walk *walk)
{
	const struct jvm_layout *layout = &walk->jvm.process.layout;
	__u64 code = jvm_head(walk, layout->code, layout->code_bytes);
	__u64 bytes = jvm_head(walk, layout->frame_complete, layout->frame_complete_bytes);

	if (layout->code_bytes == 4)
		code += walk->jvm.blob.start;
	return bytes >> (8 * layout->frame_complete_bytes - 1) & 1 ? 0 : code + bytes;
}

static __always_inline enum stack_end jvm_leave_compiled(struct walk *walk)
{
	enum jvm_frame_state state = JVM_BUILT;
	__u64 words;

	if (!jvm_find_blob(walk))
		return walk_out_of_generated(walk);
	words = walk->jvm.blob.frame_words;
	if (words == 0 || words > JVM_FRAME_WORDS_MAX)
		return jvm_leave_stub(walk);
	if (!jvm_find_frame(walk))
		return STACK_UNREADABLE;
	if (walk->full)
		state = jvm_state_of(walk, jvm_complete_at(walk));
	else
		jvm_find_orig_pc(walk);
	switch (state) {
	case JVM_BARE:
		return jvm_arrive_bare(walk, walk->sp + 8);
	case JVM_PUSHED:
		return jvm_arrive_built(walk, walk->sp + 16);
	case JVM_UNSAVED:
		return jvm_arrive_bare(walk, walk->sp + 8 * words);
	default:
		if (walk->full)
			return jvm_arrive_built(walk, jvm_end_of_frame(walk, walk->sp + 8 * words));
		return jvm_arrive_built(walk, walk->sp + 8 * words);
	}
}

static __always_inline void jvm_note(struct walk *walk)
{
	__u32 at = walk->jvm.count;

	if (at >= SAMPLE_USER_FRAMES_MAX)
		return;
	walk->jvm.words[2 * at] = (walk->jvm.object & ~(__u64)SCRIPT_FLAGS) | SCRIPT_ENDS_RUN;
	walk->jvm.words[2 * at + 1] = (__u64)walk->jvm.proof << 32 | walk->jvm.position;
	if (walk->jvm.is_barrier) {
		walk->jvm.words[2 * at] = SCRIPT_IS_CUT;
		walk->jvm.words[2 * at + 1] = SCRIPT_IN_HEAP;
	}
	walk->jvm.count = at + 1;
}

/* At the start of a walk. */
static __always_inline void jvm_start(struct walk_jvm *jvm)
{
	jvm->count = 0;
	jvm->caller = 0;
	WALK_UNROLL
	for (__u32 i = 0; i < JVM_BLOBS_SEEN; i++)
		jvm->seen[i].bytes = 0;
}

/* Leaves a frame of generated code, and notes it. */
WALK_APART enum stack_end walk_out_of_jvm(struct walk *walk)
{
	const struct jvm_process *process = &walk->jvm.process;
	enum stack_end end;

	trail_break(&walk->trail);
	walk->jvm.object = walk->jvm.proof = 0;
	walk->jvm.is_barrier = false;
	walk->jvm.position = JVM_NO_POSITION;
	if (walk->pc - process->interpreter < process->interpreter_bytes)
		end = jvm_leave_interpreted(walk);
	else
		end = jvm_leave_compiled(walk);
	walk->jvm.caller = walk->pc;
	jvm_note(walk);
	return end;
}

#endif
