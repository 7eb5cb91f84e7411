/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/lua/lua_path.h"

#define JUMP_BIAS 0x8000

struct step {
	const struct lua_code *code;
	const struct lua_place *from, *to; /* outermost first */
	size_t from_count, to_count;
};

static const struct lua_prototype *prototype_of(const struct step *step,
						const struct lua_place *place)
{
	return &step->code->prototypes[place->prototype];
}

/* A function that no exit is in may be that of a metamethod as well. */
static bool is_call(const struct step *step, const struct lua_prototype *prototype, uint32_t at)
{
	uint8_t operation = lua_prototype_operation(prototype, at);

	if (operation >= LUA_CALLM && operation <= LUA_ITERC)
		return true;
	return step->code->has_unplaced && lua_prototype_callee(prototype, at);
}

/* Whether an instruction of the range calls a function. */
static bool may_call(const struct step *step, const struct lua_prototype *prototype, uint32_t first,
		     uint32_t end)
{
	for (uint32_t i = first; i < end && i < prototype->count; i++)
		if (is_call(step, prototype, i))
			return true;
	return false;
}

/* Whether one calls before the function returns, on the way without jumps. */
static bool may_call_to_end(const struct step *step, const struct lua_prototype *prototype,
			    uint32_t first)
{
	uint32_t end = first;

	while (end < prototype->count && (lua_prototype_operation(prototype, end) < LUA_RETM ||
					  lua_prototype_operation(prototype, end) > LUA_RET1))
		end++;
	return may_call(step, prototype, first, end);
}

/* Where a loop begins again, if the instruction is its end and says so. */
static bool loops_to(const struct lua_prototype *prototype, uint32_t position, uint32_t *ret)
{
	uint8_t operation = lua_prototype_operation(prototype, position);
	int64_t distance = (int64_t)(prototype->instructions[position] >> 16) - JUMP_BIAS;
	int64_t target = (int64_t)position + 1 + distance;

	if ((operation < LUA_FORL || operation > LUA_JITERL) && operation != LUA_JMP)
		return false;
	/* The machine code of the loop has taken the place of where it begins. */
	if (operation == LUA_JFORL || operation == LUA_JITERL)
		target = 0;
	if (target > position)
		return false;
	*ret = target > 0 ? (uint32_t)target : 0;
	return true;
}

/* From one position of a function to another: onwards, or through the end of a loop around both. */
static bool may_call_between(const struct step *step, const struct lua_prototype *prototype,
			     uint32_t from, uint32_t to)
{
	uint32_t end = from, begin = 0;

	if (to > from)
		return may_call(step, prototype, from, to);
	while (end < prototype->count && !loops_to(prototype, end, &begin))
		end++;
	if (may_call(step, prototype, from, end))
		return true;
	/* The trace itself begins where its loop does. */
	if (step->code->snapshots[0].count) {
		const struct lua_snapshot *first = &step->code->snapshots[0];
		const struct lua_place *place =
			&step->code->places[first->first + first->count - 1];

		if (prototype_of(step, place) == prototype && place->position <= to &&
		    place->position > begin)
			begin = place->position;
	}
	return may_call(step, prototype, begin, to);
}

/* Whether the first `count` frames are the same, but for the position of the last of them. */
static bool have_same_frames(const struct step *step, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (step->from[i].prototype != step->to[i].prototype ||
		    (i + 1 < count && step->from[i].position != step->to[i].position))
			return false;
	return true;
}

/* The second exit is in a function that the first one's calls. */
static enum lua_path path_inwards(const struct step *step)
{
	const struct lua_place *caller = &step->from[step->from_count - 1];
	const struct lua_place *callee = &step->to[step->to_count - 1];

	if (step->to_count == step->from_count + 1 &&
	    step->to[step->from_count - 1].position == caller->position &&
	    !may_call(step, prototype_of(step, callee), 0, callee->position))
		return LUA_PATH_CALLS;
	return LUA_PATH_UNSURE;
}

/* The second exit is in a function that has called the first one's. */
static enum lua_path path_outwards(const struct step *step)
{
	const struct lua_place *inner = &step->from[step->from_count - 1];
	const struct lua_place *outer = &step->from[step->to_count - 1];

	if (may_call_to_end(step, prototype_of(step, inner), inner->position))
		return LUA_PATH_UNSURE;
	for (size_t i = step->to_count; i + 1 < step->from_count; i++)
		if (may_call_to_end(step, prototype_of(step, &step->from[i]),
				    step->from[i].position + 1))
			return LUA_PATH_UNSURE;
	/* Right behind the call nothing lies between; from the call itself on a loop does. */
	if (step->to[step->to_count - 1].position == outer->position + 1)
		return LUA_PATH_KNOWN;
	return may_call_between(step, prototype_of(step, outer), outer->position + 1,
				step->to[step->to_count - 1].position)
		       ? LUA_PATH_UNSURE
		       : LUA_PATH_KNOWN;
}

enum lua_path lua_path_between(const struct lua_code *code, const struct lua_snapshot *from,
			       const struct lua_snapshot *to)
{
	struct step step = { .code = code,
			     .from = code->places + from->first,
			     .to = code->places + to->first,
			     .from_count = from->count,
			     .to_count = to->count };
	size_t shared = from->count < to->count ? from->count : to->count;

	/* A trace of one function calls no other one. */
	if (code->prototypes_count < 2)
		return LUA_PATH_KNOWN;
	if (!shared || !have_same_frames(&step, shared))
		return LUA_PATH_UNSURE;
	if (to->count > from->count)
		return path_inwards(&step);
	if (to->count < from->count)
		return path_outwards(&step);
	return may_call_between(&step, prototype_of(&step, &step.from[shared - 1]),
				step.from[shared - 1].position, step.to[shared - 1].position)
		       ? LUA_PATH_UNSURE
		       : LUA_PATH_KNOWN;
}
