/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_exits.h"

#include <stdlib.h>
#include <string.h>

#include "agent/runtime/v8/v8_safepoints.h"
#include "base/mem.h"

/* In the deoptimization data, behind the inlinings. */
#define DATA_TO_CODE 1u /* where the code of the first exit is */
#define DATA_TO_CHECKED 2u
#define DATA_TO_EXITS 4u

#define EXIT_WORDS 3u /* where that is in bytecode, in the translations, in the code */
#define EXIT_TRANSLATION 1u
#define EXIT_AT 2u

#define JUMP_IF 0x0fu
#define JUMP_IF_CONDITION 0x80u /* and 16 of them */
#define JUMP_IF_BYTES 6u
#define JUMP 0xe9u
#define JUMP_BYTES 5u

#define LOOP_BYTES 4096u /* that are looked at */
#define SLOW_PART_BYTES 256u
#define BACK_BYTES 64u /* behind the check, where a slow part jumps back to */

static bool read_exits(const struct v8_exits_source *source, struct v8_exits *ret)
{
	uint32_t first = source->layout->data_inlinings + DATA_TO_EXITS, width, elements;
	uint8_t *bytes;
	uint64_t at;
	bool is_read;

	width = v8_word_bytes(source->layout);
	if (!v8_array_length(source->memory, source->layout, source->data, &elements) ||
	    elements < first + EXIT_WORDS || (elements - first) / EXIT_WORDS > V8_EXITS_MAX)
		return false;
	ret->count = (elements - first) / EXIT_WORDS;
	ret->exits = mem_new_array(struct v8_exit, ret->count);
	bytes = mem_new_array(uint8_t, (size_t)ret->count * EXIT_WORDS * width);
	at = v8_array_content(source->layout, source->data) + (uint64_t)first * width;
	is_read = memory_read(source->memory, at, bytes, (size_t)ret->count * EXIT_WORDS * width);
	for (uint32_t i = 0; is_read && i < ret->count; i++) {
		const uint8_t *words = bytes + (size_t)i * EXIT_WORDS * width;

		ret->exits[i] = (struct v8_exit){
			v8_word_of(source->layout, words + EXIT_TRANSLATION * width) >> 32,
			v8_word_of(source->layout, words + EXIT_AT * width) >> 32,
		};
	}
	free(bytes);
	return is_read;
}

static bool read_number(const struct v8_exits_source *source, uint32_t element, uint32_t *ret)
{
	uint64_t word;

	return v8_array_read(source->memory, source->layout, source->data,
			     source->layout->data_inlinings + element, &word) &&
	       v8_number(word, ret);
}

static void add_call(struct v8_exits *exits, uint32_t place, uint32_t exit)
{
	exits->calls[exits->calls_count++] = (struct v8_call){ place, exit };
}

/* False: the table is not of this form, or not of these exits. */
static bool add_safepoints(const struct v8_exits_source *source, struct v8_exits *exits,
			   const uint8_t *head, uint32_t form)
{
	uint64_t entries_at = source->start + source->size + V8_SAFEPOINTS_HEAD_BYTES;
	uint32_t before = exits->calls_count;
	struct v8_safepoints points;
	struct v8_safepoint point;
	uint8_t *entries;

	if (!v8_safepoints_open(head, form, &points))
		return false;
	entries = mem_new_array(uint8_t, v8_safepoints_bytes(&points) + 1);
	if (memory_read(source->memory, entries_at, entries, v8_safepoints_bytes(&points)))
		for (uint32_t i = 0; i < points.count && exits->calls_count < 2 * exits->count; i++)
			if (v8_safepoints_get(&points, entries, i, &point) &&
			    point.exit < exits->count &&
			    exits->exits[point.exit].at == point.exit_at)
				add_call(exits, point.place, point.exit);
	free(entries);
	return exits->calls_count > before;
}

static void find_calls(const struct v8_exits_source *source, struct v8_exits *exits)
{
	uint8_t head[V8_SAFEPOINTS_HEAD_BYTES];

	exits->calls = mem_new_array(struct v8_call, 2 * (size_t)exits->count);
	for (uint32_t i = exits->checked_count; i < exits->count; i++)
		if (exits->exits[i].at < exits->code_at)
			add_call(exits, exits->exits[i].at, i);
	if (!memory_read(source->memory, source->start + source->size, head, sizeof(head)))
		return;
	for (uint32_t form = 0; form < V8_SAFEPOINTS_FORMS; form++)
		if (add_safepoints(source, exits, head, form))
			return;
}

bool v8_exits_read(const struct v8_exits_source *source, struct v8_exits *ret)
{
	*ret = (struct v8_exits){ 0 };
	if (!read_exits(source, ret) || !read_number(source, DATA_TO_CODE, &ret->code_at) ||
	    !read_number(source, DATA_TO_CHECKED, &ret->checked_count) ||
	    ret->checked_count > ret->count || ret->code_at > source->size) {
		v8_exits_free(ret);
		return false;
	}
	find_calls(source, ret);
	return true;
}

void v8_exits_free(struct v8_exits *exits)
{
	free(exits->exits);
	free(exits->calls);
	*exits = (struct v8_exits){ 0 };
}

/* A call that returns to a place of some. */
static const struct v8_call *call_in(const struct v8_exits *exits, uint64_t from, uint64_t bytes)
{
	for (uint32_t i = 0; i < exits->calls_count; i++)
		if (exits->calls[i].place - from < bytes)
			return &exits->calls[i];
	return NULL;
}

bool v8_exits_find_call(const struct v8_exits *exits, uint64_t offset, uint32_t *ret_translation)
{
	const struct v8_call *call = call_in(exits, offset, 1);

	if (!call)
		call = call_in(exits, offset + 1, 1);
	if (call)
		*ret_translation = exits->exits[call->exit].translation;
	return call != NULL;
}

/* Where an instruction of so many bytes that ends with a distance jumps to; may be beyond the code.
 */
static uint64_t target_of(const uint8_t *code, size_t at, size_t bytes)
{
	int32_t distance;

	memcpy(&distance, code + at + bytes - sizeof(distance), sizeof(distance));
	return at + bytes + (uint64_t)(int64_t)distance;
}

/* A jump to an exit, or to a slow part. */
struct check {
	size_t at;
	size_t loop; /* where the slow part goes on: a loop begins there if it is before `at` */
	uint32_t translation;
};

/* Of a part that calls something, and jumps back to a place up to BACK_BYTES behind the check. */
static bool find_slow_part(const struct v8_exits *exits, const uint8_t *code, size_t len,
			   size_t part, size_t back, struct check *ret)
{
	const struct v8_call *call = NULL;

	for (size_t at = part; at - part < SLOW_PART_BYTES && at + JUMP_BYTES <= len; at++) {
		ret->loop = target_of(code, at, JUMP_BYTES);
		if (code[at] != JUMP || ret->loop >= back + BACK_BYTES)
			continue;
		call = call_in(exits, part + 1, at - part);
		if (call)
			ret->translation = exits->exits[call->exit].translation;
		break;
	}
	return call != NULL;
}

static bool find_check(const struct v8_exits *exits, const uint8_t *code, size_t len, size_t at,
		       struct check *ret)
{
	bool is_conditional = code[at] == JUMP_IF && at + JUMP_IF_BYTES <= len &&
			      (code[at + 1] & 0xf0) == JUMP_IF_CONDITION;
	size_t bytes = is_conditional ? JUMP_IF_BYTES : JUMP_BYTES;
	uint64_t target, into;

	if (at + bytes > len || (!is_conditional && code[at] != JUMP))
		return false;
	*ret = (struct check){ .at = at, .loop = at };
	target = target_of(code, at, bytes);
	into = target - exits->code_at;
	if (is_conditional && into % V8_EXIT_BYTES == 0 &&
	    into / V8_EXIT_BYTES < exits->checked_count) {
		ret->translation = exits->exits[into / V8_EXIT_BYTES].translation;
		return true;
	}
	return target >= at + bytes && target < len &&
	       find_slow_part(exits, code, len, target, at + bytes, ret);
}

/* The innermost loop around an offset, by its check, which is the last that it does. */
static bool find_loop(const struct v8_exits *exits, const uint8_t *code, size_t len, size_t offset,
		      struct check *ret)
{
	struct check check;
	bool is_found = false;

	for (size_t at = offset; at < len && at - offset < LOOP_BYTES; at++) {
		if (!find_check(exits, code, len, at, &check) || check.loop > offset ||
		    (is_found && check.at - check.loop >= ret->at - ret->loop))
			continue;
		*ret = check;
		is_found = true;
	}
	return is_found;
}

size_t v8_exits_find_checks(const struct v8_exits *exits, const uint8_t *code, size_t len,
			    size_t offset, uint32_t ret_translations[V8_CHECKS_NEAR])
{
	size_t low = offset - (offset < LOOP_BYTES ? offset : LOOP_BYTES), count = 0;
	struct check loop = { .at = offset + LOOP_BYTES }, check;

	if (find_loop(exits, code, len, offset, &loop))
		low = loop.loop;
	for (size_t at = offset; at < len && at <= loop.at; at++)
		if (find_check(exits, code, len, at, &check)) {
			ret_translations[count++] = check.translation;
			break;
		}
	for (size_t at = offset; at > low && at <= len;)
		if (find_check(exits, code, len, --at, &check)) {
			ret_translations[count++] = check.translation;
			break;
		}
	return count;
}
