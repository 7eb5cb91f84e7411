/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * walk_place - from an address to what is known of the code around it: the last spans of addresses
 * are kept, since most frames lie in the same file as their callee.
 *
 *   pc -> mapping -> what its file has -> segment of a table
 *
 * Over the functions that the user of walk.h defines.
 */
#ifndef FIRN_AGENT_BPF_WALK_PLACE_H
#define FIRN_AGENT_BPF_WALK_PLACE_H

#include "agent/bpf/walk_state.h"

/* The last mapping of the part that starts at or before pc. False when there is none. */
static __always_inline bool walk_search_part(struct walk *walk, const struct space_part *part)
{
	__u32 low = 0, high = part->count;

	/* Five halvings are enough for SPACE_PART_MAPPINGS. */
	WALK_UNROLL
	for (int i = 0; i < 5; i++) {
		__u32 middle = (low + high) / 2;

		if (low >= high)
			break;
		if (part->mappings[middle & (SPACE_PART_MAPPINGS - 1)].start <= walk->pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	walk->mapping = part->mappings[(low - 1) & (SPACE_PART_MAPPINGS - 1)];
	return walk->pc < walk->mapping.end;
}

/* Looks for the mapping of pc in the list. RANGE_UNKNOWN = the list does not say. */
static __always_inline enum walk_range walk_find_in_list(struct walk *walk)
{
	struct space_part_key key = { walk_memory(walk)->owner.tgid, 0 };
	const struct space_head *head = walk_space(key.tgid);
	const struct space_part *part;

	if (!head || !head->parts)
		return RANGE_UNKNOWN;
	for (__u32 i = 1; i < SPACE_PARTS_MAX; i++) {
		if (i >= head->parts || head->firsts[i] > walk->pc)
			break;
		key.part = i;
	}
	part = walk_space_part(&key);
	/* What was not used for long may have been given to another process. */
	if (!part || part->start_ns != head->start_ns || part->exec_id != head->exec_id) {
		walk->part_lost = true;
		return RANGE_UNKNOWN;
	}
	if (walk_search_part(walk, part))
		return RANGE_TABLE;
	if (head->flags & SPACE_CUT)
		return RANGE_UNKNOWN;
	/* Generated code is not followed closely: it may have come since. */
	return head->flags & SPACE_HAS_GENERATED ? RANGE_ANONYMOUS : RANGE_NO_CODE;
}

/* Finds the mapping of pc. Returns RANGE_TABLE when there is one, whatever its file has. */
static __always_inline enum walk_range walk_find_mapping(struct walk *walk)
{
	enum walk_range range = walk_find_in_list(walk);

	return range == RANGE_UNKNOWN && walk_ask(walk) ? RANGE_TABLE : range;
}

/* Narrows the span, which is the mapping, to the segment around pc. */
static __always_inline enum walk_range walk_find_segment(struct walk *walk, struct walk_span *span,
							 const struct binary_tables *tables)
{
	__u32 block = (walk->pc + span->to_offset) >> TABLE_BLOCK_SHIFT;

	if (tables->missing == TABLE_MISSING_NO_ELF)
		return RANGE_ANONYMOUS;
	if (tables->missing)
		return tables->missing == TABLE_MISSING_NO_ROOM ? RANGE_NO_ROOM : RANGE_FAILED;
	for (__u32 i = 0; i < TABLE_SEGMENTS_MAX; i++) {
		const struct table_segment *segment = &tables->segments[i];
		__u64 first, last;

		if (i >= tables->segments_count)
			break;
		if (block - segment->first_block >= segment->blocks)
			continue;
		span->segment = *segment;
		first = (__u64)segment->first_block << TABLE_BLOCK_SHIFT;
		last = first + ((__u64)segment->blocks << TABLE_BLOCK_SHIFT);
		if (span->start + span->to_offset < first)
			span->start = first - span->to_offset;
		if (span->end + span->to_offset > last)
			span->end = last - span->to_offset;
		span->to_segment = span->to_offset - first;
		return RANGE_TABLE;
	}
	return RANGE_NO_TABLE;
}

static __always_inline enum walk_range walk_range_of_file(struct walk *walk, struct walk_span *span)
{
	const struct space_mapping *mapping = &walk->mapping;
	const struct binary_tables *tables;

	if (!mapping->file.inode && !mapping->file.device)
		return RANGE_ANONYMOUS;
	tables = walk_tables(&walk->mapping.file, walk->now_ns);
	if (!tables)
		return RANGE_PENDING;
	return walk_find_segment(walk, span, tables);
}

/* All generated code of HotSpot is in one range, which is reserved at its start. */
static __always_inline bool walk_is_in_jvm(const struct walk *walk)
{
	return walk->has_jvm && walk->pc - walk->jvm.process.low < walk->jvm.process.bytes;
}

static __always_inline bool walk_is_in_lua(const struct walk *walk)
{
	return walk->has_lua &&
	       walk->pc - walk->lua.layout.code_start < walk->lua.layout.code_bytes;
}

/* The interpreter lies in the middle of other code of its file, whose span ends there. */
static __always_inline void walk_leave_out_lua(const struct walk *walk, struct walk_span *span)
{
	__u64 start = walk->lua.layout.code_start, end = start + walk->lua.layout.code_bytes;

	if (walk->pc < start && span->end > start)
		span->end = start;
	if (walk->pc >= end && span->start < end)
		span->start = end;
}

/* Images with machine code of .NET are no ELF files, or lie behind one in the same file. */
static __always_inline bool walk_may_have_line(const struct walk *walk, enum walk_range range)
{
	if (!walk->has_code || walk->code_key.number & CODE_NUMBER_OF_JITDUMP)
		return walk->has_code && range == RANGE_ANONYMOUS;
	return range == RANGE_ANONYMOUS || range == RANGE_NO_TABLE || range == RANGE_PENDING ||
	       range == RANGE_FAILED;
}

WALK_APART void walk_fill_span(struct walk *walk, struct walk_span *span)
{
	enum walk_range kind;
	bool is_mapped;

	if (walk_is_in_jvm(walk)) {
		span->start = walk->jvm.process.low;
		span->end = span->start + walk->jvm.process.bytes;
		span->kind = RANGE_JVM;
		return;
	}
	if (walk_is_in_lua(walk)) {
		span->start = walk->lua.layout.code_start;
		span->end = span->start + walk->lua.layout.code_bytes;
		span->kind = RANGE_LUA;
		return;
	}
	kind = walk_find_mapping(walk);
	is_mapped = kind == RANGE_TABLE;
	if (is_mapped) {
		span->start = walk->mapping.start;
		span->end = walk->mapping.end;
		span->to_offset = walk->mapping.offset - walk->mapping.start;
		kind = walk_range_of_file(walk, span);
	}
	/* Erlang's is in a file of memory, which has no unwind information. */
	if (walk->has_beam && (kind == RANGE_ANONYMOUS || kind == RANGE_NO_TABLE)) {
		span->kind = RANGE_BEAM;
		if (!is_mapped)
			span->start = span->end = walk->pc;
		return;
	}
	if (walk->has_lua && kind == RANGE_ANONYMOUS)
		kind = RANGE_LUA;
	if (walk_may_have_line(walk, kind))
		kind = RANGE_CODE;
	if (walk->has_lua)
		walk_leave_out_lua(walk, span);
	span->kind = kind;
	if (kind == RANGE_TABLE)
		return;
	/* The rest may hold only now, or only here. */
	if (is_mapped && !walk->mapping.file.inode && !walk->mapping.file.device)
		walk->brief = *span;
	span->start = span->end = walk->pc;
}

static __always_inline bool walk_is_in(const struct walk *walk, const struct walk_span *span)
{
	return walk->pc - span->start < span->end - span->start;
}

/* Makes the current span one that holds for pc, and returns it. */
static __always_inline struct walk_span *walk_locate(struct walk *walk)
{
	struct walk_memory *memory = walk_memory(walk);
	struct walk_span *span = &memory->spans[memory->current & (WALK_SPANS - 1)];

	if (walk_is_in(walk, span))
		return span;
	if (walk_is_in(walk, &walk->brief))
		return &walk->brief;
	WALK_UNROLL
	for (__u32 i = 0; i < WALK_SPANS; i++) {
		if (walk_is_in(walk, &memory->spans[i])) {
			memory->current = i;
			return &memory->spans[i];
		}
	}
	memory->current = memory->next;
	memory->next++;
	span = &memory->spans[memory->current & (WALK_SPANS - 1)];
	walk_fill_span(walk, span);
	return span;
}

#endif
