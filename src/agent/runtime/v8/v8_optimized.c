/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_optimized.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/v8/v8_text.h"
#include "base/mem.h"
#include "codec/wire/pb.h"

#define INSTRUCTIONS_ALIGNMENT 32u /* at least, of the first one */
#define WINDOW_BYTES 4096u
#define POSITIONS_BYTES_MAX (1u << 20)
#define ARRAY_HEAD_BYTES 16u /* map, length */

/* A word that may be weak points at the same object. */
#define WEAK 2u

/* A source position: its place in the script, and the number of the inlining, from 1 on. */
#define POSITION_PLACE(position) ((uint32_t)((position) >> 1) & 0x3fffffffu)
#define POSITION_INLINING(position) ((uint32_t)((position) >> 31) & 0xffffu)

#define NO_LITERAL (-1)

struct inlining {
	uint64_t call;	  /* a source position */
	int32_t function; /* a literal */
	uint32_t reserved;
};

/* Code, and what it refers to. */
struct optimized {
	const struct memory_reader *memory;
	const struct v8_layout *layout;
	uint64_t start, size;
	uint64_t positions, function, literals, inlinings; /* words */
	uint32_t literals_count, inlinings_count;
};

static bool read_word(const struct optimized *code, uint64_t address, uint64_t *ret)
{
	return memory_read(code->memory, address, ret, sizeof(*ret));
}

/* How many elements, or bytes, an array has that a word points at. */
static bool read_length(const struct optimized *code, uint64_t array, uint32_t *ret)
{
	uint64_t length;

	if (!v8_is_object(array) || !read_word(code, array - 1 + 8, &length) ||
	    (uint32_t)length != 0 || length >> 32 > INT32_MAX)
		return false;
	*ret = (uint32_t)(length >> 32);
	return true;
}

static bool read_element(const struct optimized *code, uint64_t array, uint32_t index,
			 uint64_t *ret)
{
	return read_word(code, array - 1 + ARRAY_HEAD_BYTES + 8ull * index, ret);
}

/* True if `at` is the head of the code that `address` lies in. */
static bool is_head(struct optimized *code, uint64_t at, uint64_t address, uint64_t *ret_code)
{
	const struct v8_layout *layout = code->layout;
	uint64_t start = at + layout->head_bytes;
	uint32_t size;

	*ret_code = at + 1;
	if (layout->head_code != V8_NO_FIELD &&
	    (!read_word(code, at + layout->head_code, ret_code) ||
	     v8_type(code->memory, layout, *ret_code) != layout->type_code ||
	     !read_word(code, *ret_code - 1 + layout->code_start, &code->start) ||
	     code->start != start))
		return false;
	if (!memory_read(code->memory, *ret_code - 1 + layout->code_size, &size, sizeof(size)))
		return false;
	code->start = start;
	code->size = size;
	return address >= start && address - start < size;
}

/* Looks for the head in memory that ends where the last window begins; its words are aligned. */
static bool find_in_window(struct optimized *code, const uint8_t *window, uint64_t window_at,
			   uint64_t highest, uint64_t address, uint64_t *ret_code)
{
	uint64_t odd = (0 - code->layout->head_bytes) & (INSTRUCTIONS_ALIGNMENT - 1);

	for (uint64_t offset = WINDOW_BYTES; offset > 0;) {
		uint64_t map;

		offset -= INSTRUCTIONS_ALIGNMENT;
		if (window_at + offset + odd > highest)
			continue;
		memcpy(&map, window + offset + odd, sizeof(map));
		if (v8_is_object(map) && map >> 47 == 0 &&
		    v8_type(code->memory, code->layout, window_at + offset + odd + 1) ==
			    code->layout->type_head &&
		    is_head(code, window_at + offset + odd, address, ret_code))
			return true;
	}
	return false;
}

static bool find_code(struct optimized *code, uint64_t address, uint64_t *ret_code)
{
	uint8_t window[WINDOW_BYTES];
	uint64_t at = address & ~(uint64_t)(WINDOW_BYTES - 1);

	if (address < code->layout->head_bytes)
		return false;
	for (uint32_t looked = 0; looked < V8_CODE_BYTES_MAX && at; looked += WINDOW_BYTES) {
		if (!memory_read(code->memory, at, window, sizeof(window)))
			return false;
		if (find_in_window(code, window, at, address - code->layout->head_bytes, address,
				   ret_code))
			return true;
		at -= WINDOW_BYTES;
	}
	return false;
}

/* What was compiled; false: the code was not optimized. */
static bool read_data(struct optimized *code, uint64_t data)
{
	const struct v8_layout *layout = code->layout;
	uint32_t count, bytes;

	if (!read_length(code, data, &count) || count <= layout->data_inlinings ||
	    !read_element(code, data, layout->data_literals, &code->literals) ||
	    !read_element(code, data, layout->data_function, &code->function) ||
	    !read_element(code, data, layout->data_inlinings, &code->inlinings))
		return false;
	if (layout->is_function_wrapped &&
	    (!v8_is_object(code->function) ||
	     !read_word(code, code->function - 1 + 8, &code->function)))
		return false;
	if (v8_type(code->memory, layout, code->function) != layout->type_shared)
		return false;
	if (!read_length(code, code->literals, &code->literals_count) ||
	    !read_length(code, code->inlinings, &bytes))
		return false;
	code->inlinings_count = bytes / (uint32_t)sizeof(struct inlining);
	return true;
}

/* A signed number, its sign in the lowest bit. */
static uint64_t signed_of(uint64_t number)
{
	return number >> 1 ^ (0 - (number & 1));
}

/*
 * The source position of an offset: that of the last instruction at or before it that has one. Both
 * are steps from the ones before; the lowest bits of the offset's are marks for debuggers.
 */
static bool search_positions(const uint8_t *bytes, size_t len, uint16_t marks, uint64_t offset,
			     uint64_t *ret)
{
	struct pb_reader reader = pb_reader_of(slice_from(bytes, len));
	uint64_t step, position, at = 0, source = 0;
	bool found = false;

	while (reader.at < reader.end) {
		if (!pb_varint(&reader, &step) || !pb_varint(&reader, &position))
			return false;
		at += step >> marks;
		source += signed_of(position);
		if (at > offset)
			break;
		*ret = source;
		found = true;
	}
	return found;
}

static bool find_position(const struct optimized *code, uint64_t offset, uint64_t *ret)
{
	uint32_t len;
	uint8_t *bytes;
	bool found;

	if (!read_length(code, code->positions, &len) || !len || len > POSITIONS_BYTES_MAX)
		return false;
	bytes = mem_new_array(uint8_t, len);
	found = memory_read(code->memory, code->positions - 1 + ARRAY_HEAD_BYTES, bytes, len) &&
		search_positions(bytes, len, code->layout->position_marks, offset, ret);
	free(bytes);
	return found;
}

/* The function of a literal; without one it is that which was compiled, inlined into itself. */
static bool find_inlined_function(const struct optimized *code, int32_t literal, uint64_t *ret)
{
	if (literal == NO_LITERAL) {
		*ret = code->function;
		return true;
	}
	if (literal < 0 || (uint32_t)literal >= code->literals_count ||
	    !read_element(code, code->literals, (uint32_t)literal, ret))
		return false;
	*ret &= ~(uint64_t)WEAK;
	return v8_type(code->memory, code->layout, *ret) == code->layout->type_shared;
}

static bool find_inlining(const struct optimized *code, uint32_t number, struct inlining *ret,
			  uint64_t *ret_function)
{
	uint64_t at = code->inlinings - 1 + ARRAY_HEAD_BYTES;

	return number && number <= code->inlinings_count &&
	       memory_read(code->memory, at + (number - 1ull) * sizeof(*ret), ret, sizeof(*ret)) &&
	       find_inlined_function(code, ret->function, ret_function);
}

static bool read_function(const struct optimized *code, struct v8_lines *lines, uint64_t process,
			  uint64_t shared, uint64_t position, struct v8_function *ret)
{
	const struct v8_layout *layout = code->layout;
	__u64 words[SCRIPT_V8_PROOF_WORDS];

	if (!memory_read(code->memory, shared - 1 + layout->shared_script, words, sizeof(words)))
		return false;
	*ret = (struct v8_function){ .shared = shared - 1, .proof = script_v8_proof(words) };
	if (position && v8_type(code->memory, layout, words[0]) == layout->type_script)
		ret->line = v8_lines_of_script(lines, process, code->memory, layout, words[0],
					       POSITION_PLACE(position));
	return true;
}

/*
 * From the innermost function on; 0 = something does not fit. A function is inlined after the one
 * that it is inlined into, so that numbers fall.
 */
static size_t collect(const struct optimized *code, struct v8_lines *lines, uint64_t process,
		      uint64_t position, struct v8_function ret[V8_INLINED_MAX], bool *ret_is_cut)
{
	size_t count = 0;

	for (uint32_t number = POSITION_INLINING(position), next; number; number = next) {
		struct inlining inlining;
		uint64_t shared;

		if (!find_inlining(code, number, &inlining, &shared))
			return 0;
		next = POSITION_INLINING(inlining.call);
		*ret_is_cut = count + 1 == V8_INLINED_MAX;
		if (next >= number || (!*ret_is_cut && !read_function(code, lines, process, shared,
								      position, &ret[count++])))
			return 0;
		position = inlining.call;
	}
	return read_function(code, lines, process, code->function, position, &ret[count])
		       ? count + 1
		       : 0;
}

static size_t read_functions(struct optimized *code, struct v8_lines *lines, uint64_t process,
			     uint64_t address, struct v8_function ret[V8_INLINED_MAX],
			     bool *ret_is_cut)
{
	const struct v8_layout *layout = code->layout;
	uint64_t at, data, position = 0;

	if (layout->type_head == V8_NO_FIELD || !find_code(code, address, &at) ||
	    !read_word(code, at - 1 + layout->code_deoptimization, &data) ||
	    !read_word(code, at - 1 + layout->code_positions, &code->positions) ||
	    !read_data(code, data))
		return 0;
	find_position(code, address - code->start, &position);
	return collect(code, lines, process, position, ret, ret_is_cut);
}

struct v8_place *v8_optimized_read(const struct memory_reader *memory,
				   const struct v8_layout *layout, struct v8_lines *lines,
				   uint64_t process, uint64_t address)
{
	struct optimized code = { .memory = memory, .layout = layout };
	struct v8_function functions[V8_INLINED_MAX];
	bool is_cut = false;
	size_t count = read_functions(&code, lines, process, address, functions, &is_cut);
	struct v8_place *place = mem_calloc(1, sizeof(*place) + count * sizeof(functions[0]));

	place->count = count;
	place->is_cut = is_cut;
	for (size_t i = 0; i < count; i++)
		place->functions[i] = functions[count - 1 - i];
	return place;
}

bool v8_place_equals(const struct v8_place *one, const struct v8_place *other)
{
	if (one->count != other->count || one->is_cut != other->is_cut)
		return false;
	for (size_t i = 0; i < one->count; i++)
		if (one->functions[i].shared != other->functions[i].shared ||
		    one->functions[i].proof != other->functions[i].proof ||
		    one->functions[i].line != other->functions[i].line)
			return false;
	return true;
}
