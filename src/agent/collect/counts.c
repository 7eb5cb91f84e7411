/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/counts.h"

#include "base/hash.h"

#define KEEP_BYTES ((size_t)256 * 1024) /* of each array, from window to window */

void counts_init(struct counts *counts)
{
	*counts = (struct counts){ 0 };
	vmarray_init(&counts->stacks, sizeof(struct counted), COUNTS_STACKS_MAX);
	vmarray_init(&counts->frames, sizeof(uint64_t), COUNTS_FRAMES_MAX);
	vmarray_init(&counts->names, SAMPLE_NAME_BYTES, COUNTS_NAMES_MAX);
	vmarray_init(&counts->times, sizeof(struct counts_time), COUNTS_TIMES_MAX);
}

void counts_free(struct counts *counts)
{
	vmarray_free(&counts->stacks);
	vmarray_free(&counts->frames);
	vmarray_free(&counts->names);
	vmarray_free(&counts->times);
	idmap_free(&counts->stack_map);
	idmap_free(&counts->name_map);
}

void counts_clear(struct counts *counts)
{
	vmarray_reset(&counts->stacks, KEEP_BYTES);
	vmarray_reset(&counts->frames, KEEP_BYTES);
	vmarray_reset(&counts->names, KEEP_BYTES);
	vmarray_reset(&counts->times, KEEP_BYTES);
	idmap_clear(&counts->stack_map);
	idmap_clear(&counts->name_map);
	counts->samples = 0;
}

const struct sample *counts_next_sample(const void **rest, size_t *len)
{
	const struct sample *sample = *rest;
	size_t bytes;

	if (*len < SAMPLE_HEADER_BYTES || sample->head.kind != RECORD_SAMPLE ||
	    sample->kernel_count > SAMPLE_KERNEL_FRAMES_MAX ||
	    sample->kernel_count + sample->user_count > SAMPLE_FRAMES_MAX ||
	    sample->user_end >= STACK_ENDS || sample->script_kind >= SCRIPT_KINDS ||
	    sample->script_words % 2 || sample->script_words > SAMPLE_WORDS_MAX - SAMPLE_FRAMES_MAX)
		return NULL;
	bytes = SAMPLE_HEADER_BYTES +
		8 * ((size_t)sample->kernel_count + sample->user_count + sample->script_words);
	if (bytes > *len)
		return NULL;
	*rest = (const char *)*rest + bytes;
	*len -= bytes;
	return sample;
}

static size_t words_of(const struct counted *stack)
{
	return (size_t)stack->kernel_count + stack->user_count + stack->script_words;
}

static bool stack_equal(const void *context, uint32_t id, const void *key)
{
	const struct counts *counts = context;
	const struct counted *a = counts_stack(counts, id);
	const struct counts_key *sought = key;
	const struct counted *b = &sought->stack;

	return a->process == b->process && a->space == b->space &&
	       a->thread_name == b->thread_name && a->thread == b->thread && a->cpu == b->cpu &&
	       a->kernel_count == b->kernel_count && a->user_count == b->user_count &&
	       a->user_end == b->user_end && a->script_kind == b->script_kind &&
	       a->script_words == b->script_words &&
	       !memcmp(counts_kernel_frames(counts, a), sought->frames,
		       words_of(a) * sizeof(uint64_t));
}

static bool name_equal(const void *context, uint32_t id, const void *key)
{
	const struct counts *counts = context;

	return !memcmp((const char *)counts->names.data + (size_t)id * SAMPLE_NAME_BYTES, key,
		       SAMPLE_NAME_BYTES);
}

static uint32_t intern_name(struct counts *counts, const char *name)
{
	uint64_t hash = hash_bytes(name, SAMPLE_NAME_BYTES);
	uint32_t id = idmap_find(&counts->name_map, hash, name_equal, counts, name);
	char *place;

	if (id != IDMAP_NONE)
		return id;
	place = vmarray_add(&counts->names, 1);
	if (!place)
		return COUNTS_FULL;
	memcpy(place, name, SAMPLE_NAME_BYTES);
	id = (uint32_t)counts->names.count - 1;
	idmap_add(&counts->name_map, hash, id);
	return id;
}

static uint32_t add_stack(struct counts *counts, const struct counts_key *key, uint64_t hash)
{
	size_t frames_count = words_of(&key->stack);
	struct counted *stack;
	uint32_t id;

	if (!vmarray_room(&counts->stacks) || vmarray_room(&counts->frames) < frames_count)
		return COUNTS_FULL;
	id = (uint32_t)counts->stacks.count;
	stack = vmarray_add(&counts->stacks, 1);
	*stack = key->stack;
	stack->frame_first = (uint32_t)counts->frames.count;
	if (frames_count)
		memcpy(vmarray_add(&counts->frames, frames_count), key->frames,
		       frames_count * sizeof(uint64_t));
	idmap_add(&counts->stack_map, hash, id);
	return id;
}

/* Addresses to look up, from return addresses as the kernel's walk gives them. */
static void move_back(uint64_t *user_frames, size_t count)
{
	for (size_t i = 1; i < count; i++)
		user_frames[i]--;
}

bool counts_key_of(struct counts *counts, const struct sample *sample, uint32_t process,
		   unsigned keep, struct counts_key *ret)
{
	size_t frames_bytes;

	ret->stack = (struct counted){
		.process = process,
		.thread_name = COUNTS_NO_NAME,
		.thread = keep & COUNTS_THREAD ? sample->head.tid : COUNTS_NOT_KEPT,
		.cpu = keep & COUNTS_CPU ? sample->head.cpu : COUNTS_NOT_KEPT,
		.kernel_count = sample->kernel_count,
		.user_count = sample->user_count,
		.script_words = sample->script_words,
		.user_end = sample->user_end,
		.script_kind = sample->script_kind,
		.newest_time = COUNTS_NO_TIME,
	};
	if (keep & COUNTS_THREAD_NAME) {
		ret->stack.thread_name = intern_name(counts, sample->thread_name);
		if (ret->stack.thread_name == COUNTS_FULL)
			return false;
	}
	frames_bytes = words_of(&ret->stack) * sizeof(*ret->frames);
	memcpy(ret->frames, sample->frames, frames_bytes);
	if (sample->head.flags & SAMPLE_RETURN_ADDRESSES)
		move_back(ret->frames + sample->kernel_count, sample->user_count);
	ret->frames_hash = hash_bytes(ret->frames, frames_bytes);
	return true;
}

static uint64_t key_hash(const struct counts_key *key)
{
	uint64_t hash = hash_mix(key->frames_hash,
				 (uint64_t)key->stack.process << 32 | key->stack.thread_name);

	hash = hash_mix(hash, (uint64_t)key->stack.thread << 32 | key->stack.cpu);
	return hash_mix(hash, key->stack.space);
}

static uint32_t find(const struct counts *counts, const struct counts_key *key, uint64_t hash)
{
	return idmap_find(&counts->stack_map, hash, stack_equal, counts, key);
}

bool counts_has(const struct counts *counts, struct counts_key *key, uint32_t space)
{
	key->stack.space = space;
	return find(counts, key, key_hash(key)) != IDMAP_NONE;
}

static void add_time(struct counts *counts, struct counted *stack, uint32_t tick)
{
	struct counts_time *time = tick == COUNTS_NO_TIME ? NULL : vmarray_add(&counts->times, 1);

	if (!time)
		return;
	*time = (struct counts_time){ tick, stack->newest_time };
	stack->newest_time = (uint32_t)counts->times.count - 1;
}

uint32_t counts_add(struct counts *counts, struct counts_key *key, uint32_t space, uint32_t tick)
{
	struct counted *stack;
	uint64_t hash;
	uint32_t id;

	key->stack.space = space;
	hash = key_hash(key);
	id = find(counts, key, hash);
	if (id == IDMAP_NONE)
		id = add_stack(counts, key, hash);
	if (id == COUNTS_FULL)
		return COUNTS_FULL;
	stack = &((struct counted *)counts->stacks.data)[id];
	stack->samples++;
	add_time(counts, stack, tick);
	counts->samples++;
	return id;
}

struct slice counts_name(const struct counts *counts, uint32_t id)
{
	const char *name = (const char *)counts->names.data + (size_t)id * SAMPLE_NAME_BYTES;

	return slice_from(name, strnlen(name, SAMPLE_NAME_BYTES));
}
