/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/v8/v8_translation.h"

#include <stdbool.h>

#include "codec/wire/pb.h"

#define OPERANDS_MAX 6u
#define FRAMES_MAX 512u

/*
 * Instructions, of which those that are not here have one operand. The versions differ in those
 * between the beginnings and the last ones, which are counted from the end.
 */
enum {
	FRAME_WITH_RETURN,
	FRAME_WITHOUT_RETURN,
	FRAMES_OF_BUILTINS, /* that V8's own code makes, in part compiled into their caller */
	FRAMES_OF_JAVASCRIPT = 4,
	EXTRA_ARGUMENTS = 10,
	FRAMES = 11,
	BEGIN = 14,
	BEGIN_WITH_FEEDBACK = 15,
	STRING_CONCAT = 19, /* where they are V8_TRANSLATION_CODES; else it is near */
	NEAR_STRING_CONCAT = 22,
	MATCH_PREVIOUS = 1,
	UPDATE_FEEDBACK = 2,
	OPTIMIZED_OUT = 8,
};

struct instruction {
	uint8_t code;
	bool is_match; /* the next ones of the basis, as many as its operand says */
	uint64_t operands[OPERANDS_MAX];
};

/* One translation as it is read. */
struct translation {
	struct pb_reader own, basis;
	uint32_t codes;		  /* bytes from here on: how many are as in the basis */
	uint32_t extra_operands;  /* of EXTRA_ARGUMENTS: the versions differ */
	uint64_t at, at_basis;	  /* instructions so far */
	uint64_t frames, scripts; /* all, and those of JavaScript: as the beginning says */
	uint64_t has_frames, has_scripts;
	size_t functions;
};

static uint32_t operands_of(const struct translation *translation, uint8_t code)
{
	static const uint8_t of_frames[FRAMES] = { 6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 0 };

	if (code == EXTRA_ARGUMENTS)
		return translation->extra_operands;
	if (code < FRAMES)
		return of_frames[code];
	if (code == BEGIN || code == BEGIN_WITH_FEEDBACK)
		return 3;
	if (code == translation->codes - UPDATE_FEEDBACK)
		return 2;
	return code != FRAMES + 1 && code != FRAMES + 2 && code != STRING_CONCAT &&
	       code != translation->codes - OPTIMIZED_OUT;
}

static bool is_known(const struct translation *translation, uint8_t code)
{
	return translation->codes == V8_TRANSLATION_CODES || code < STRING_CONCAT ||
	       code >= NEAR_STRING_CONCAT;
}

static bool read_instruction(const struct translation *translation, struct pb_reader *reader,
			     struct instruction *ret)
{
	uint32_t count;

	if (reader->at == reader->end)
		return false;
	ret->code = *reader->at++;
	ret->is_match = ret->code >= translation->codes - MATCH_PREVIOUS;
	if (ret->code >= translation->codes) {
		ret->operands[0] = ret->code - translation->codes;
		return true;
	}
	if (!is_known(translation, ret->code))
		return false;
	count = operands_of(translation, ret->code);
	for (uint32_t i = 0; i < count; i++)
		if (!pb_varint(reader, &ret->operands[i]))
			return false;
	return true;
}

/* A number with its sign in the lowest bit, which is not negative. */
static bool read_number(uint64_t operand, uint64_t *ret)
{
	*ret = operand >> 1;
	return !(operand & 1) && *ret <= INT32_MAX;
}

static bool take(struct translation *translation, const struct instruction *instruction,
		 uint32_t *ret, size_t max)
{
	uint64_t literal;

	translation->at++;
	if (instruction->code >= FRAMES)
		return true;
	translation->has_frames++;
	if (instruction->code >= FRAMES_OF_JAVASCRIPT)
		return true;
	translation->has_scripts++;
	if (instruction->code >= FRAMES_OF_BUILTINS)
		return true;
	if (translation->functions == max || !read_number(instruction->operands[1], &literal))
		return false;
	ret[translation->functions++] = (uint32_t)literal;
	return true;
}

/* The next ones of the basis, which has all of its own. */
static bool take_from_basis(struct translation *translation, uint64_t count, uint32_t *ret,
			    size_t max)
{
	struct instruction instruction;

	for (uint64_t end = translation->at + count; translation->at < end;) {
		if (!read_instruction(translation, &translation->basis, &instruction) ||
		    instruction.is_match || instruction.code == BEGIN ||
		    instruction.code == BEGIN_WITH_FEEDBACK)
			return false;
		if (translation->at_basis++ == translation->at &&
		    !take(translation, &instruction, ret, max))
			return false;
	}
	return true;
}

static bool begin(struct translation *translation, const uint8_t *bytes, size_t len, size_t at)
{
	struct instruction first;
	uint64_t back;

	if (at >= len)
		return false;
	translation->own = pb_reader_of(slice_from(bytes + at, len - at));
	if (!read_instruction(translation, &translation->own, &first) ||
	    (first.code != BEGIN && first.code != BEGIN_WITH_FEEDBACK) ||
	    !read_number(first.operands[1], &translation->frames) ||
	    !read_number(first.operands[2], &translation->scripts) ||
	    translation->frames > FRAMES_MAX || translation->scripts > translation->frames)
		return false;
	back = first.operands[0];
	if (back > at)
		return false;
	translation->basis = pb_reader_of(slice_from(bytes + at - back, len - at + back));
	return !back || (read_instruction(translation, &translation->basis, &first) &&
			 (first.code == BEGIN || first.code == BEGIN_WITH_FEEDBACK));
}

static bool is_at_end(const struct pb_reader *reader)
{
	return reader->at == reader->end || *reader->at == BEGIN ||
	       *reader->at == BEGIN_WITH_FEEDBACK;
}

static size_t read_form(struct translation translation, const uint8_t *bytes, size_t len, size_t at,
			uint32_t *ret, size_t max)
{
	struct instruction instruction;

	if (!begin(&translation, bytes, len, at))
		return 0;
	while (!is_at_end(&translation.own)) {
		if (!read_instruction(&translation, &translation.own, &instruction))
			return 0;
		if (instruction.is_match
			    ? !take_from_basis(&translation, instruction.operands[0], ret, max)
			    : !take(&translation, &instruction, ret, max))
			return 0;
	}
	return translation.has_frames == translation.frames &&
			       translation.has_scripts == translation.scripts
		       ? translation.functions
		       : 0;
}

size_t v8_translation_read(const uint8_t *bytes, size_t len, size_t at, uint32_t codes,
			   uint32_t *ret, size_t max)
{
	struct translation of_two = { .codes = codes, .extra_operands = 2 };
	struct translation of_three = { .codes = codes, .extra_operands = 3 };
	size_t count = read_form(of_two, bytes, len, at, ret, max);

	return count ? count : read_form(of_three, bytes, len, at, ret, max);
}
