/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/second_walk.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/bpf/space.h"
#include "base/clock.h"
#include "base/mem.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* The walk has no argument for them. */
static _Thread_local struct second_walk *walking;
static _Thread_local const struct stack_record *stack_walked;
static _Thread_local const struct space *space_walked;

static long walk_read(void *to, __u32 bytes, __u64 address);
static const struct space_head *walk_space(__u32 tgid);
static const struct space_part *walk_space_part(const struct space_part_key *key);
static const struct binary_tables *walk_tables(const struct file_key *file, __u64 now_ns);
static const __u8 *walk_chunk(const struct table_segment *segment, __u64 into);

/* The list is all that is known. */
struct walk;
static bool walk_ask(struct walk *walk)
{
	(void)walk;
	return false;
}

static const struct code_line *walk_code_line(const struct code_line_key *key)
{
	(void)key;
	return NULL;
}

static long walk_read_registers(__u64 *to)
{
	memcpy(to, stack_walked->registers, sizeof(stack_walked->registers));
	return 0;
}

static void walk_copy(void *to, __u32 bytes, const void *from)
{
	memcpy(to, from, bytes);
}

#include "agent/bpf/beam.h"
#include "agent/bpf/jvm.h"
#include "agent/bpf/lua.h"
#include "agent/bpf/v8.h"

#define CHUNK_PAGES (TABLE_CHUNK_BYTES / 4096) /* at most: a page may be larger */

/*
 * A chunk, of which the pages that rows were read from are mapped: all of it takes 0.1 ms. The rest
 * reads as zeros: a row that changes meanwhile may point anywhere in it.
 */
struct seen_chunk {
	__u8 *bytes; /* NULL: not looked at */
	uint64_t pages[CHUNK_PAGES / 64];
};

struct second_walk {
	struct second_walk_source source;
	uint32_t page_bytes;
	struct walk walk;
	struct binary_tables tables;  /* found last */
	bool is_table_coming;	      /* one that this walk lacked: */
	struct file_key coming;	      /* the first */
	bool is_table_lost;	      /* one that will not be made */
	struct space_head space_head; /* of the list at hand */
	struct space_part space_part; /* the mapping found last, or none */
	struct sample sample;	      /* as the walk makes it */
	struct seen_chunk chunks[TABLE_CHUNKS_MAX];
};

static const char *find_apart(const struct stack_record *stack, uint64_t address)
{
	const struct stack_apart *apart =
		(const void *)((const char *)stack->words + stack->bytes + stack->far_bytes);

	for (uint64_t i = 0; i < stack->apart_count; i++)
		if (apart[i].address == address)
			return (const char *)&apart[i].word;
	return NULL;
}

/* Where the copy has these bytes; NULL = not there. */
static const char *find_bytes(const struct stack_record *stack, uint64_t address, uint64_t bytes)
{
	uint64_t near = address - stack->start, far = address - stack->far_start;

	if (near < stack->bytes && bytes <= stack->bytes - near)
		return (const char *)stack->words + near;
	if (far < stack->far_bytes && bytes <= stack->far_bytes - far)
		return (const char *)stack->words + stack->bytes + far;
	return bytes <= 8 ? find_apart(stack, address) : NULL;
}

static long walk_read(void *to, __u32 bytes, __u64 address)
{
	const char *from = find_bytes(stack_walked, address, bytes);

	if (!from)
		return -1;
	memcpy(to, from, bytes);
	return 0;
}

static const struct binary_tables *walk_tables(const struct file_key *file, __u64 now_ns)
{
	const struct second_walk_source *source = &walking->source;

	(void)now_ns;
	if (source->find_tables(source->context, file, &walking->tables))
		return &walking->tables;
	if (!source->is_coming(source->context, file)) {
		walking->is_table_lost |= source->is_lost(source->context, file);
	} else if (!walking->is_table_coming) {
		walking->is_table_coming = true;
		walking->coming = *file;
	}
	return NULL;
}

/* Maps what lies between two places of the chunk. */
static bool map_pages(struct second_walk *second, uint32_t index, uint32_t from, uint32_t to)
{
	struct seen_chunk *chunk = &second->chunks[index];
	uint32_t bytes = second->page_bytes;
	const void *mapped;
	int fd = -1;

	if (to > TABLE_CHUNK_BYTES)
		to = TABLE_CHUNK_BYTES;
	for (uint32_t page = from / bytes; page * bytes < to; page++) {
		if (chunk->pages[page / 64] >> page % 64 & 1)
			continue;
		if (fd < 0)
			fd = second->source.chunk_fd(second->source.context, index);
		if (fd < 0)
			return false;
		mapped = mmap(chunk->bytes + page * bytes, bytes, PROT_READ, MAP_SHARED | MAP_FIXED,
			      fd, page * bytes);
		if (mapped == MAP_FAILED)
			return false;
		assert(mapped == chunk->bytes + page * bytes);
		chunk->pages[page / 64] |= 1ull << page % 64;
	}
	return true;
}

static bool reserve(struct seen_chunk *chunk)
{
	void *bytes;

	if (chunk->bytes)
		return true;
	bytes = mmap(NULL, TABLE_CHUNK_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return false;
	chunk->bytes = bytes;
	return true;
}

/* The far rows of a line. */
static bool map_far(struct second_walk *second, const struct table_segment *segment, __u64 into)
{
	const __u32 *line = row_line(segment, into, second->chunks[segment->chunk].bytes);
	uint32_t rows = TABLE_ROW_OFFSET(line[0]), at;

	if (!rows || row_word(line, row_key(segment, into)) != TABLE_LINE_ROWS_MAX - 1)
		return true;
	at = row_lines_at(segment) + 4 * TABLE_ROW_RULE(line[TABLE_LINE_ROWS_MAX]);
	at &= TABLE_CHUNK_BYTES - 4;
	return map_pages(second, segment->chunk, at, at + 4 * rows);
}

/* Maps the line, the far rows, and the rule that the row lists. */
static const __u8 *walk_chunk(const struct table_segment *segment, __u64 into)
{
	struct second_walk *second = walking;
	struct seen_chunk *chunk;
	const struct unwind_rule *rule;
	uint32_t at, row;

	if (segment->chunk >= TABLE_CHUNKS_MAX)
		return NULL;
	chunk = &second->chunks[segment->chunk];
	if (!reserve(chunk))
		return NULL;
	at = (uint32_t)((const __u8 *)row_line(segment, into, chunk->bytes) - chunk->bytes);
	if (!map_pages(second, segment->chunk, at, at + TABLE_LINE_BYTES) ||
	    !map_far(second, segment, into))
		return NULL;
	row = row_find(segment, into, chunk->bytes);
	rule = row & TABLE_RULE_LISTED ? row_listed_rule(segment, chunk->bytes, row) : NULL;
	at = rule ? (uint32_t)((const __u8 *)rule - chunk->bytes) : 0;
	if (rule && !map_pages(second, segment->chunk, at, at + sizeof(*rule)))
		return NULL;
	return chunk->bytes;
}

static struct file_key key_of(const struct mapping *mapping)
{
	if (mapping->kind == MAPPING_VDSO)
		return FILE_KEY_VDSO;
	return mapping->kind == MAPPING_FILE ? mapping->binary->key : FILE_KEY_ANONYMOUS;
}

static const struct space_head *walk_space(__u32 tgid)
{
	(void)tgid;
	return space_walked ? &walking->space_head : NULL;
}

/* Whichever part is asked for: of the address at hand. */
static const struct space_part *walk_space_part(const struct space_part_key *key)
{
	uint64_t pc = walking->walk.pc;
	const struct mapping *mapping = space_find(space_walked, pc);
	struct space_part *part = &walking->space_part;

	(void)key;
	part->count = 0;
	if (!mapping || pc - mapping->start >= mapping->end - mapping->start)
		return part;
	if (mapping->kind == MAPPING_FILE && !mapping->binary)
		return NULL; /* whose code it is was not kept */
	part->mappings[part->count++] = (struct space_mapping){ mapping->start, mapping->end,
								mapping->offset, key_of(mapping) };
	return part;
}

static void describe_space(struct space_head *head, const struct space *space)
{
	*head = (struct space_head){ .parts = 1 };
	for (uint32_t i = 0; space && i < space->count; i++)
		if (space->mappings[i].kind == MAPPING_ANONYMOUS)
			head->flags = SPACE_HAS_GENERATED;
}

struct second_walk *second_walk_new(const struct second_walk_source *source)
{
	struct second_walk *second = mem_new(struct second_walk);

	second->source = *source;
	second->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	return second;
}

void second_walk_rest(struct second_walk *second)
{
	for (uint32_t i = 0; i < TABLE_CHUNKS_MAX; i++) {
		if (!second->chunks[i].bytes)
			continue;
		munmap(second->chunks[i].bytes, TABLE_CHUNK_BYTES);
		second->chunks[i] = (struct seen_chunk){ 0 };
	}
}

void second_walk_free(struct second_walk *second)
{
	if (!second)
		return;
	second_walk_rest(second);
	free(second);
}

bool second_walk_missing(const struct second_walk *second, struct file_key *ret)
{
	*ret = second->coming;
	return second->is_table_coming;
}

bool second_walk_has_lost_table(const struct second_walk *second)
{
	return second->is_table_lost && !second->is_table_coming;
}

bool second_walk_is_coming(struct second_walk *second, const struct file_key *file)
{
	const struct second_walk_source *source = &second->source;

	return !source->find_tables(source->context, file, &second->tables) &&
	       source->is_coming(source->context, file);
}

bool second_walk_is_sound(const struct stack_record *stack, size_t len)
{
	return len >= STACK_RECORD_HEADER_BYTES && stack->bytes <= STACK_RECORD_BYTES &&
	       stack->far_bytes <= STACK_RECORD_BYTES - stack->bytes &&
	       (stack->bytes + stack->far_bytes) % 8 == 0 &&
	       stack->apart_count <= STACK_APART_MAX && stack->blobs_count <= STACK_BLOBS_MAX &&
	       len == STACK_RECORD_HEADER_BYTES + stack->bytes + stack->far_bytes +
			       stack->apart_count * sizeof(struct stack_apart);
}

static uint32_t removals(const struct second_walk *second)
{
	return second->source.removals ? __atomic_load_n(second->source.removals, __ATOMIC_SEQ_CST)
				       : 0;
}

static enum stack_end walk_stack(struct second_walk *second, const struct stack_record *stack)
{
	struct walk *walk = &second->walk;
	struct walk_owner nobody = { 0 }; /* nothing is kept from one stack to the next */
	bool on;

	second->is_table_coming = second->is_table_lost = false;
	walk_own(walk, &nobody);
	walk_start(walk);
	walk->pc = stack->pc;
	walk->sp = stack->sp;
	walk->fp = stack->fp;
	walk->bx = stack->bx;
	walk->full = stack->state & STACK_STATE_FULL;
	walk->fp_known = stack->state & STACK_STATE_FP;
	walk->bx_known = stack->state & STACK_STATE_BX;
	walk->after_call = stack->state & STACK_STATE_AFTER_CALL;
	walk->by_generated = stack->state & STACK_STATE_BY_GENERATED;
	walk->at = second->sample.kernel_count + stack->frames_kept;
	walk->room -= stack->frames_kept;
	walk->entry = stack->entry;
	walk->has_jvm = stack->jvm.bytes != 0;
	walk->jvm.process = stack->jvm;
	walk->jvm.kept = stack->blobs;
	walk->jvm.kept_count = stack->blobs_count;
	jvm_start(&walk->jvm);
	walk->now_ns = (uint64_t)clock_monotonic_ns();
	for (on = walk_leaf(walk, &second->sample); on; on = walk_frame(walk, &second->sample))
		continue;
	return (enum stack_end)walk->end;
}

/* What comes behind the user half stays. */
static void replace_user_half(struct second_walk *second, struct sample *sample)
{
	uint32_t count = second->walk.at - sample->kernel_count;
	__u64 *user = sample->frames + sample->kernel_count;

	memmove(user + count, user + sample->user_count, 8ull * sample->script_words);
	memcpy(user, second->sample.frames + sample->kernel_count, 8ull * count);
	sample->user_count = (uint16_t)count;
	sample->user_end = (uint8_t)second->walk.end;
}

/* HotSpot's frames from where this walk began on are as it found them. */
static void replace_noted(const struct second_walk *second, const struct stack_record *stack,
			  struct sample *sample)
{
	const struct walk_jvm *jvm = &second->walk.jvm;
	__u64 *noted = sample->frames + sample->kernel_count + sample->user_count;
	uint32_t kept = 2 * stack->noted_kept;

	if (!second->walk.has_jvm)
		return;
	memcpy(noted + kept, jvm->words, 16ull * jvm->count);
	sample->script_words = (uint16_t)(kept + 2 * jvm->count);
	sample->script_kind = sample->script_words ? SCRIPT_HOTSPOT : SCRIPT_NONE;
}

/* What the first walk found before where this one begins is in the sample. */
static bool is_continued(const struct stack_record *stack, const struct sample *sample)
{
	return stack->frames_kept <= sample->user_count &&
	       stack->noted_kept <= stack->frames_kept &&
	       2 * stack->noted_kept <= sample->script_words &&
	       (!stack->jvm.bytes || sample->script_kind == SCRIPT_NONE ||
		sample->script_kind == SCRIPT_HOTSPOT);
}

/* As a list of mappings would have it that is older than the stack. */
static bool looks_outdated(enum stack_end end, const struct sample *sample)
{
	return sample->user_end == STACK_NO_MAPPINGS &&
	       (end == STACK_BAD_ADDRESS || end == STACK_NO_FRAME_POINTER);
}

bool second_walk_run(struct second_walk *second, const struct stack_record *stack,
		     const struct space *space, bool is_last, struct sample *sample)
{
	uint32_t before = removals(second);
	enum stack_end end;

	walking = second;
	stack_walked = stack;
	space_walked = space;
	describe_space(&second->space_head, space);
	if (!is_continued(stack, sample))
		return true;
	second->sample.kernel_count = sample->kernel_count;
	memcpy(second->sample.frames + sample->kernel_count, sample->frames + sample->kernel_count,
	       8ull * stack->frames_kept);
	end = walk_stack(second, stack);
	if (end == STACK_TABLE_PENDING || end == STACK_NO_MAPPINGS || removals(second) != before)
		return false;
	if (!is_last && looks_outdated(end, sample))
		return false;
	replace_user_half(second, sample);
	replace_noted(second, stack, sample);
	return true;
}
