/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack - copies the memory of a stack that the agent is to walk once more (struct stack_record),
 * and what that walk reads outside of it. Part of sample.bpf.c.
 */
#ifndef FIRN_AGENT_BPF_STACK_BPF_H
#define FIRN_AGENT_BPF_STACK_BPF_H

#include "agent/bpf/jvm.h"
#include "agent/bpf/walk.h"

/*
 * Appends memory to the stack, up to the end of a page, since what is above the stack is not there.
 * Returns how much.
 */
static __always_inline __u64 append_page(struct stack_record *record, __u64 at, __u64 address)
{
	__u64 bytes = WALK_PAGE_BYTES - (address & (WALK_PAGE_BYTES - 1));

	barrier_var(bytes); /* clang knows the bounds, the verifier does not */
	barrier_var(at);
	if (at > STACK_RECORD_BYTES - WALK_PAGE_BYTES || bytes > WALK_PAGE_BYTES ||
	    walk_read((char *)record->words + at, bytes, address))
		return 0;
	return bytes;
}

/* bpf_loop callback. */
static long keep_page(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 bytes = append_page(record, record->bytes, record->start + record->bytes);

	(void)index;
	record->bytes += bytes;
	return !bytes;
}

/* bpf_loop callback. */
static long keep_far_page(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 bytes = append_page(record, record->bytes + record->far_bytes,
				  record->far_start + record->far_bytes);

	(void)index;
	record->far_bytes += bytes;
	return !bytes;
}

/* bpf_loop callback: from one frame pointer, in far_start, to the next. */
static long follow_pointer(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 pointer = record->far_start, at = pointer - record->start;

	(void)index;
	if (at >= record->bytes)
		return 1; /* it leads out */
	record->far_start = record->words[row_masked(at / 8, STACK_RECORD_BYTES / 8 - 1)];
	if (record->far_start - record->start > at)
		return 0;
	record->far_start = 0; /* callers are above */
	return 1;
}

#define STACK_POINTERS_MAX 64
#define STACK_FAR_BELOW 1024 /* a frame pointer is above what its frame has on the stack */

#define STACK_HOLE_PAGES 8u

/* bpf_loop callback: until there is something again. */
static long look_behind_hole(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 word;

	(void)index;
	record->far_start += WALK_PAGE_BYTES;
	return !walk_read(&word, sizeof(word), record->far_start);
}

/*
 * A page in the middle of a stack was never touched: some function keeps a large array there that
 * it does not use. Keeps what is behind that. False when there is nothing.
 */
WALK_APART bool keep_behind_hole(struct stack_record *record)
{
	if (record->bytes > STACK_RECORD_BYTES - WALK_PAGE_BYTES)
		return false;
	record->far_start = record->start + record->bytes;
	bpf_loop(STACK_HOLE_PAGES, look_behind_hole, &record, 0);
	bpf_loop(STACK_RECORD_BYTES / WALK_PAGE_BYTES, keep_far_page, &record, 0);
	return record->far_bytes;
}

/* Keeps what the chain of frame pointers leads to outside of what is kept. */
WALK_APART bool keep_by_pointers(struct stack_record *record)
{
	__u64 pointer;

	record->far_start = record->fp;
	bpf_loop(STACK_POINTERS_MAX, follow_pointer, &record, 0);
	pointer = record->far_start & ~7ull;
	if (pointer - record->start < record->bytes || pointer < 2 * WALK_PAGE_BYTES)
		return false;
	if (record->bytes > STACK_RECORD_BYTES - STACK_FAR_BYTES)
		record->bytes = STACK_RECORD_BYTES - STACK_FAR_BYTES;
	record->far_start = pointer - STACK_FAR_BELOW;
	bpf_loop(STACK_RECORD_BYTES / WALK_PAGE_BYTES, keep_far_page, &record, 0);
	if (record->far_bytes)
		return true;
	record->far_start = pointer; /* what is below is not there */
	bpf_loop(STACK_RECORD_BYTES / WALK_PAGE_BYTES, keep_far_page, &record, 0);
	return record->far_bytes;
}

static __always_inline __u64 go_register(const struct stack_record *record)
{
	return record->registers[WALK_REGISTER_AT >> 4 * GO_REGISTER_G & 15];
}

/* Whether the thread runs Go: g -> m -> g0 -> m. */
WALK_APART bool is_go(const struct stack_record *record)
{
	__u64 g = go_register(record), m = 0, g0 = 0, back = 0;

	return g && !walk_read(&m, sizeof(m), g + GO_G_M) && m &&
	       !walk_read(&g0, sizeof(g0), m + GO_M_G0) && g0 &&
	       !walk_read(&back, sizeof(back), g0 + GO_G_M) && back == m;
}

/*
 * Keeps where the stack goes on. A stack of Go's runtime lies among other memory, of which some
 * pages were never touched either: what is behind them is no part of it.
 */
static __always_inline void keep_far(struct stack_record *record)
{
	bool by_pointers = is_go(record);

	if (by_pointers && keep_by_pointers(record))
		return;
	if (!keep_behind_hole(record) && !by_pointers)
		keep_by_pointers(record);
}

/* Keeps a word that is no stack. Returns it, or 0. */
static __always_inline __u64 keep_apart(struct stack_record *record, __u64 address)
{
	__u64 at = (record->bytes + record->far_bytes) / 8 + 2 * record->apart_count;
	struct stack_apart apart = { .address = address };

	if (record->apart_count >= STACK_APART_MAX ||
	    walk_read(&apart.word, sizeof(apart.word), address))
		return 0;
	barrier_var(at); /* clang knows the bound, the verifier does not */
	if (at > STACK_RECORD_WORDS_MAX - 2)
		return 0;
	__builtin_memcpy(&record->words[at], &apart, sizeof(apart));
	record->apart_count++;
	return apart.word;
}

/* Where an interrupted function without a row may return to: see walk_by_call. */
static __always_inline void keep_calls(struct stack_record *record)
{
	WALK_UNROLL
	for (int i = 0; i < 2; i++)
		if (record->words[i] >= USER_ADDRESS_MIN && record->words[i] < USER_ADDRESS_END)
			keep_apart(record, record->words[i] - sizeof(__u64));
}

/* Keeps the code at an address if it says how a frame of generated code is left. */
static __always_inline void keep_code(struct stack_record *record, __u64 address)
{
	__u64 code;

	if (address < USER_ADDRESS_MIN || address >= USER_ADDRESS_END ||
	    address - record->start < record->bytes || walk_read(&code, sizeof(code), address) ||
	    walk_row_of_end(code) == TABLE_ROW_UNUSED)
		return;
	keep_apart(record, address);
}

/* bpf_loop callback: of each word that is an address. */
static long keep_code_of_word(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;

	keep_code(record, record->words[row_masked(index, STACK_RECORD_BYTES / 8 - 1)]);
	return record->apart_count >= STACK_APART_MAX;
}

/* bpf_loop callback: of each word that may be a return to what entered generated code. */
static long keep_call_of_entry(__u32 index, void *data)
{
	struct stack_record *record = *(struct stack_record **)data;
	__u64 word = record->words[row_masked(index, STACK_RECORD_BYTES / 8 - 1)];

	if (word - record->entry.start < record->entry.bytes)
		keep_apart(record, word - sizeof(__u64)); /* see walk_is_after_call */
	return record->apart_count >= STACK_APART_MAX;
}

/* What keep_jvm_word works with. */
struct keep_context {
	struct stack_record *record;
	struct walk *walk;
};

/* A word of the copied stack; 0 = it is not in it. */
static __always_inline __u64 kept_word(const struct stack_record *record, __u64 address)
{
	__u64 at = address - record->start;

	if (at >= record->bytes)
		return 0;
	return record->words[row_masked(at / 8, STACK_RECORD_BYTES / 8 - 1)];
}

/* What tells the method of a frame of the interpreter: see jvm_find_method. */
static __always_inline void keep_method(struct stack_record *record, __u64 fp)
{
	const struct jvm_layout *layout = &record->jvm.layout;
	__u64 method = kept_word(record, fp - 8 * JVM_METHOD_SLOT), code;

	if (method < USER_ADDRESS_MIN || method & 7)
		return;
	code = keep_apart(record, method + layout->const_method);
	if (code)
		keep_apart(record, code + layout->proof);
}

/* What says how big the frame is that returns there, and of a stub what its caller is. */
static __always_inline void keep_blob(struct stack_record *record, struct walk *walk, __u64 fp)
{
	struct jvm_blob *blob = &walk->jvm.blob;
	bool is_seen = jvm_take_seen(walk);
	__u64 word;

	if (!is_seen && !jvm_find_blob(walk))
		return;
	if (!is_seen && record->blobs_count < STACK_BLOBS_MAX) {
		record->blobs[row_masked(record->blobs_count, STACK_BLOBS_MAX - 1)] = *blob;
		record->blobs_count++;
	}
	if (blob->frame_words)
		return;
	keep_apart(record, walk->pc + 1 - 8);
	word = kept_word(record, fp + 8);
	if (word == JVM_COOKIE)
		word = kept_word(record, fp + 16);
	if (word)
		keep_apart(record, word - 8);
}

/* bpf_loop callback: of each word that is an address in HotSpot's code. */
static long keep_jvm_word(__u32 index, void *data)
{
	struct keep_context *context = data;
	struct stack_record *record = context->record;
	struct walk *walk = context->walk;
	__u64 word = record->words[row_masked(index, STACK_RECORD_BYTES / 8 - 1)];
	__u64 fp = index ? record->words[row_masked(index - 1, STACK_RECORD_BYTES / 8 - 1)] : 0;

	if (!jvm_has(walk, word))
		return 0;
	walk->pc = word - 1;
	if (word - walk->jvm.process.interpreter < walk->jvm.process.interpreter_bytes)
		keep_method(record, fp);
	else
		keep_blob(record, walk, fp);
	return record->apart_count >= STACK_APART_MAX;
}

/* What the second walk needs to leave HotSpot's code, which its process may not keep until then. */
static __always_inline void keep_jvm(struct stack_record *record, struct walk *walk)
{
	struct keep_context context = { record, walk };

	jvm_start(&walk->jvm);
	walk->full = false;
	bpf_loop((record->bytes + record->far_bytes) / 8, keep_jvm_word, &context, 0);
}

/* What leads from the runtime's stack to the goroutine's, if it is Go: see walk_to_goroutine. */
static __always_inline void keep_goroutine(struct stack_record *record)
{
	__u64 g = go_register(record), m, g0, current;

	record->apart_count = 0;
	if (!g || !(m = keep_apart(record, g + GO_G_M)) ||
	    !(g0 = keep_apart(record, m + GO_M_G0)) || keep_apart(record, g0 + GO_G_M) != m) {
		record->apart_count = 0;
		return;
	}
	WALK_UNROLL
	for (int i = 0; i < 2; i++) {
		current = keep_apart(record, m + (i ? GO_M_CURG : GO_M_CURG_1_25));
		if (!current || keep_apart(record, current + GO_G_M) != m)
			continue;
		keep_apart(record, current + GO_G_SCHED_SP);
		keep_apart(record, current + GO_G_SCHED_PC);
	}
}

/* Where the second walk begins: with HotSpot's code where this one had to guess. */
static __always_inline void begin_stack(struct stack_record *record, const struct walk *walk,
					const struct sample *sample)
{
	record->state = STACK_STATE_FULL | STACK_STATE_FP | STACK_STATE_BX;
	record->pc = walk->pc;
	record->sp = walk->sp;
	record->fp = walk->fp;
	record->bx = walk->bx;
	record->frames_kept = record->noted_kept = record->blobs_count = 0;
	record->entry = walk->entry;
	record->jvm.bytes = 0;
	if (walk->has_jvm) {
		record->state = walk->pause.state;
		record->pc = walk->pause.pc;
		record->sp = walk->pause.sp;
		record->fp = walk->pause.fp;
		record->bx = walk->pause.bx;
		record->frames_kept = walk->pause.at - sample->kernel_count;
		record->noted_kept = walk->pause.noted;
		record->jvm = walk->jvm.process;
	}
	record->start = record->sp & ~7ull;
	record->bytes = record->far_bytes = 0;
}

#endif
