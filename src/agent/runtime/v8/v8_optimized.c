/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_optimized.h"

#include <stdlib.h>
#include <string.h>

#include "agent/bpf/script_proof.h"
#include "agent/runtime/v8/v8_exits.h"
#include "agent/runtime/v8/v8_text.h"
#include "agent/runtime/v8/v8_translation.h"
#include "agent/runtime/v8/v8_types.h"
#include "base/mem.h"
#include "codec/wire/pb.h"

#define INSTRUCTIONS_ALIGNMENT 32u /* at least, of the first one */
#define WINDOW_BYTES 4096u
#define POSITIONS_BYTES_MAX (1u << 20)

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
	struct v8_layout own; /* with what the code's function tells */
	const struct v8_layout *layout;
	uint64_t start, size;
	uint64_t data, positions, function, literals, inlinings; /* words */
	uint32_t literals_count, inlinings_count;
};

static bool read_word(const struct optimized *code, uint64_t address, uint64_t *ret)
{
	return v8_word_read(code->memory, code->layout, address, ret);
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
	     !v8_type_is(v8_type(code->memory, layout, *ret_code), layout->type_code) ||
	     !memory_read(code->memory, *ret_code - 1 + layout->code_start, &code->start,
			  sizeof(code->start)) ||
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
		uint64_t map = code->layout->cage;

		offset -= INSTRUCTIONS_ALIGNMENT;
		if (window_at + offset + odd > highest)
			continue;
		memcpy(&map, window + offset + odd, v8_word_bytes(code->layout));
		if (v8_is_object(map) && map >> 47 == 0 &&
		    v8_type_is(v8_type(code->memory, code->layout, window_at + offset + odd + 1),
			       code->layout->type_head) &&
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

	code->data = data;
	if (!v8_array_length(code->memory, code->layout, data, &count) ||
	    count <= layout->data_inlinings ||
	    !v8_array_read(code->memory, code->layout, data, layout->data_literals,
			   &code->literals) ||
	    !v8_array_read(code->memory, code->layout, data, layout->data_function,
			   &code->function) ||
	    !v8_array_read(code->memory, code->layout, data, layout->data_inlinings,
			   &code->inlinings))
		return false;
	if (layout->is_function_wrapped &&
	    (!v8_is_object(code->function) ||
	     !read_word(code, code->function - 1 + v8_word_bytes(layout), &code->function)))
		return false;
	if (!v8_types_find(code->memory, &code->own, code->function))
		return false;
	if (!v8_array_length(code->memory, code->layout, code->literals, &code->literals_count) ||
	    !v8_array_length(code->memory, code->layout, code->inlinings, &bytes))
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

	if (!v8_array_length(code->memory, code->layout, code->positions, &len) || !len ||
	    len > POSITIONS_BYTES_MAX)
		return false;
	bytes = mem_new_array(uint8_t, len);
	found = memory_read(code->memory, v8_array_content(code->layout, code->positions), bytes,
			    len) &&
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
	    !v8_array_read(code->memory, code->layout, code->literals, (uint32_t)literal, ret))
		return false;
	*ret &= ~(uint64_t)WEAK;
	return v8_type(code->memory, code->layout, *ret) == code->layout->type_shared;
}

static bool find_inlining(const struct optimized *code, uint32_t number, struct inlining *ret,
			  uint64_t *ret_function)
{
	uint64_t at = v8_array_content(code->layout, code->inlinings);

	return number && number <= code->inlinings_count &&
	       memory_read(code->memory, at + (number - 1ull) * sizeof(*ret), ret, sizeof(*ret)) &&
	       find_inlined_function(code, ret->function, ret_function);
}

static bool read_function(const struct optimized *code, struct v8_lines *lines, uint64_t process,
			  uint64_t shared, uint64_t position, struct v8_function *ret)
{
	const struct v8_layout *layout = code->layout;
	__u64 words[SCRIPT_V8_PROOF_WORDS];
	uint64_t script;

	if (!memory_read(code->memory, shared - 1 + layout->shared_script, words, sizeof(words)) ||
	    !read_word(code, shared - 1 + layout->shared_script, &script))
		return false;
	*ret = (struct v8_function){ .shared = (shared - 1) << (layout->is_compressed & 1),
				     .proof = script_v8_proof(words, layout->is_compressed) };
	if (position && v8_type(code->memory, layout, script) == layout->type_script)
		ret->line = v8_lines_of_script(lines, process, code->memory, layout, script,
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

/* The translations are the first element of the deoptimization data. */
static size_t read_translation(const struct optimized *code, uint32_t at,
			       uint32_t ret[V8_INLINED_MAX])
{
	uint64_t translations;
	size_t count = 0;
	uint8_t *bytes;
	uint32_t len;

	if (!code->layout->translation_codes ||
	    !v8_array_read(code->memory, code->layout, code->data, 0, &translations) ||
	    !v8_array_length(code->memory, code->layout, translations, &len) || !len ||
	    len > POSITIONS_BYTES_MAX)
		return 0;
	bytes = mem_new_array(uint8_t, len);
	if (memory_read(code->memory, v8_array_content(code->layout, translations), bytes, len))
		count = v8_translation_read(bytes, len, at, code->layout->translation_codes, ret,
					    V8_INLINED_MAX);
	free(bytes);
	return count;
}

/* The functions of a translation, innermost first; 0 = not known. */
static size_t collect_of_translation(const struct optimized *code, struct v8_lines *lines,
				     uint64_t process, uint32_t at,
				     struct v8_function ret[V8_INLINED_MAX])
{
	uint32_t literals[V8_INLINED_MAX];
	size_t count = read_translation(code, at, literals);
	uint64_t shared;

	for (size_t i = 0; i < count; i++) {
		if (literals[i] > INT32_MAX ||
		    !find_inlined_function(code, (int32_t)literals[i], &shared) ||
		    (!i && shared != code->function) ||
		    !read_function(code, lines, process, shared, 0, &ret[count - 1 - i]))
			return 0;
	}
	return count;
}

/*
 * Those of the checks around an instruction: of two the deeper ones, since a loop that is inlined
 * takes more time than what is next to it.
 */
static size_t collect_by_checks(const struct optimized *code, struct v8_lines *lines,
				uint64_t process, const struct v8_exits *exits, uint64_t offset,
				struct v8_function ret[V8_INLINED_MAX])
{
	uint32_t translations[V8_CHECKS_NEAR];
	struct v8_function other[V8_INLINED_MAX];
	size_t checks = 0, count = 0;
	uint8_t *bytes;

	if (code->size > V8_CODE_BYTES_MAX)
		return 0;
	bytes = mem_new_array(uint8_t, code->size);
	if (memory_read(code->memory, code->start, bytes, code->size))
		checks = v8_exits_find_checks(exits, bytes, code->size, offset, translations);
	free(bytes);
	for (size_t i = 0; i < checks; i++) {
		size_t more = collect_of_translation(code, lines, process, translations[i], other);

		if (more <= count)
			continue;
		count = more;
		memcpy(ret, other, count * sizeof(ret[0]));
	}
	return count;
}

/*
 * Without positions, but with inlined functions: where something was called the exits say what
 * runs, else they let it be guessed.
 */
static size_t collect_by_exits(const struct optimized *code, struct v8_lines *lines,
			       uint64_t process, uint64_t offset,
			       struct v8_function ret[V8_INLINED_MAX], size_t *ret_sure)
{
	const struct v8_exits_source source = { code->memory, code->layout, code->data, code->start,
						code->size };
	struct v8_exits exits;
	uint32_t translation;
	size_t count = 0;

	*ret_sure = 1;
	if (!v8_exits_read(&source, &exits))
		return 0;
	if (v8_exits_find_call(&exits, offset, &translation))
		count = collect_of_translation(code, lines, process, translation, ret);
	if (count) {
		*ret_sure = V8_ALL_SURE;
	} else {
		count = collect_by_checks(code, lines, process, &exits, offset, ret);
		*ret_sure = count != 1;
	}
	v8_exits_free(&exits);
	return count;
}

/* V8 notes them all for Node.js, but for code that Maglev made in some 24.x. */
static bool has_positions(const struct optimized *code)
{
	uint32_t len;

	return !code->layout->is_not_node &&
	       v8_array_length(code->memory, code->layout, code->positions, &len) && len;
}

static size_t read_functions(struct optimized *code, struct v8_lines *lines, uint64_t process,
			     uint64_t address, struct v8_function ret[V8_INLINED_MAX],
			     bool *ret_is_cut, size_t *ret_sure)
{
	const struct v8_layout *layout = code->layout;
	uint64_t at, data, offset, position = 0;
	size_t count = 0;

	if (layout->type_head == V8_NO_FIELD || !find_code(code, address, &at) ||
	    !read_word(code, at - 1 + layout->code_deoptimization, &data) ||
	    !read_word(code, at - 1 + layout->code_positions, &code->positions) ||
	    !read_data(code, data))
		return 0;
	offset = address - code->start;
	if (has_positions(code))
		find_position(code, offset, &position);
	else if (code->inlinings_count)
		count = collect_by_exits(code, lines, process, offset, ret, ret_sure);
	return count ? count : collect(code, lines, process, position, ret, ret_is_cut);
}

struct v8_place *v8_optimized_read(const struct memory_reader *memory,
				   const struct v8_layout *layout, struct v8_lines *lines,
				   uint64_t process, uint64_t address)
{
	struct optimized code = { .memory = memory, .own = *layout, .layout = &code.own };
	struct v8_function functions[V8_INLINED_MAX];
	size_t sure = V8_ALL_SURE, count;
	bool is_cut = false;
	struct v8_place *place;

	count = read_functions(&code, lines, process, address, functions, &is_cut, &sure);
	place = mem_calloc(1, sizeof(*place) + count * sizeof(functions[0]));
	place->count = count;
	place->is_cut = is_cut;
	place->sure = sure;
	for (size_t i = 0; i < count; i++)
		place->functions[i] = functions[count - 1 - i];
	return place;
}

bool v8_place_equals(const struct v8_place *one, const struct v8_place *other)
{
	if (one->count != other->count || one->is_cut != other->is_cut || one->sure != other->sure)
		return false;
	for (size_t i = 0; i < one->count; i++)
		if (one->functions[i].shared != other->functions[i].shared ||
		    one->functions[i].proof != other->functions[i].proof ||
		    one->functions[i].line != other->functions[i].line)
			return false;
	return true;
}
