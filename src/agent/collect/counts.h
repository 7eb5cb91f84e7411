/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts - the samples of one window: each distinct (process image, mappings, kept thread and CPU,
 * stack) once, with a count and, if wanted, the times of its samples.
 *
 * Adding a sample that was seen before allocates nothing. Addresses stay as the kernel gave them
 * until the end of the window. Owned by the drain thread. Bounds: COUNTS_*_MAX; when one is reached
 * the window is cut short.
 */
#ifndef FIRN_AGENT_COLLECT_COUNTS_H
#define FIRN_AGENT_COLLECT_COUNTS_H

#include "agent/bpf/shared.h"
#include "base/idmap.h"
#include "base/slice.h"
#include "base/vmarray.h"

#define COUNTS_STACKS_MAX ((size_t)1 << 18)
#define COUNTS_FRAMES_MAX ((size_t)1 << 22)
#define COUNTS_NAMES_MAX ((size_t)1 << 16)
#define COUNTS_TIMES_MAX ((size_t)1 << 19) /* as many as a server keeps of a report */
#define COUNTS_FULL UINT32_MAX
#define COUNTS_NO_TIME UINT32_MAX
#define COUNTS_NO_NAME UINT32_MAX
#define COUNTS_NOT_KEPT UINT32_MAX

/* Further fields that samples are told apart by. */
enum counts_keep { COUNTS_THREAD_NAME = 1, COUNTS_THREAD = 2, COUNTS_CPU = 4 };

struct counted {
	uint64_t samples;
	uint32_t process;     /* tracker index */
	uint32_t space;	      /* tracker's index of the mappings, or SPACE_NONE */
	uint32_t thread_name; /* index of names, or COUNTS_NO_NAME when not kept */
	uint32_t thread, cpu; /* or COUNTS_NOT_KEPT */
	uint32_t frame_first; /* kernel frames, then user frames, each innermost first */
	uint16_t kernel_count, user_count;
	uint16_t script_words; /* of an interpreter's frames, behind the others */
	uint8_t user_end;      /* enum stack_end */
	uint8_t script_kind;   /* enum script_kind */
	uint32_t newest_time;  /* index of times, or COUNTS_NO_TIME */
};

struct counts_time { /* of one sample */
	uint32_t tick;
	uint32_t before; /* of the same stack: index of times, or COUNTS_NO_TIME */
};

struct counts {
	struct vmarray stacks; /* struct counted */
	struct vmarray frames; /* uint64_t */
	struct vmarray names;  /* char[SAMPLE_NAME_BYTES] */
	struct vmarray times;  /* struct counts_time */
	struct idmap stack_map, name_map;
	uint64_t samples;
};

void counts_init(struct counts *counts);
void counts_free(struct counts *counts);
void counts_clear(struct counts *counts);

/*
 * The next sample of a record (of `len` bytes, 8-byte aligned); it points into the record. NULL if
 * there is none; then the remaining *len bytes are no sound sample.
 */
const struct sample *counts_next_sample(const void **rest, size_t *len);

/* What a sample is counted by. */
struct counts_key {
	struct counted stack; /* without frame_first and samples */
	uint64_t frames_hash;
	uint64_t frames[SAMPLE_WORDS_MAX];
};

/* The key of a sound sample, `keep` of enum counts_keep; false when there is no room for its
 * thread's name. */
bool counts_key_of(struct counts *counts, const struct sample *sample, uint32_t process,
		   unsigned keep, struct counts_key *ret);

static inline const uint64_t *counts_key_user_frames(const struct counts_key *key)
{
	return key->frames + key->stack.kernel_count;
}

/* Two words for each frame of an interpreter. */
static inline const uint64_t *counts_key_script_words(const struct counts_key *key)
{
	return counts_key_user_frames(key) + key->stack.user_count;
}

/* True if it was counted before, with these mappings. */
bool counts_has(const struct counts *counts, struct counts_key *key, uint32_t space);

/*
 * Counts a sample with these mappings. `tick` is when it was taken, by the caller's clock, or
 * COUNTS_NO_TIME; of samples beyond COUNTS_TIMES_MAX the time is not kept. COUNTS_FULL: nothing
 * was done.
 */
uint32_t counts_add(struct counts *counts, struct counts_key *key, uint32_t space, uint32_t tick);

static inline const struct counted *counts_stack(const struct counts *counts, uint32_t id)
{
	return &((const struct counted *)counts->stacks.data)[id];
}

static inline const uint64_t *counts_kernel_frames(const struct counts *counts,
						   const struct counted *stack)
{
	return (const uint64_t *)counts->frames.data + stack->frame_first;
}

static inline const uint64_t *counts_user_frames(const struct counts *counts,
						 const struct counted *stack)
{
	return counts_kernel_frames(counts, stack) + stack->kernel_count;
}

static inline const uint64_t *counts_script_words(const struct counts *counts,
						  const struct counted *stack)
{
	return counts_user_frames(counts, stack) + stack->user_count;
}

static inline const struct counts_time *counts_time(const struct counts *counts, uint32_t id)
{
	return &((const struct counts_time *)counts->times.data)[id];
}

/* The name's bytes up to its first NUL. */
struct slice counts_name(const struct counts *counts, uint32_t id);

#endif
