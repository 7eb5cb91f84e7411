/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions run between two exits of a trace, by the instructions between their positions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/runtime/lua/lua_path.h"

#define OP(operation, d) ((uint32_t)(operation) | (uint32_t)(d) << 16)
#define ADDVV 32
#define TGETS LUA_TGETS
#define CALL 66
#define RET 74
#define NEXT_BUT(n) (0x8000 + (n)) /* of a jump */

enum { OUTER, LEAF, OTHER, PROTOTYPES };

/* for ... do leaf(); other() end: two calls in a loop, which begins at 2. */
static uint32_t outer[] = {
	OP(89, 0),   OP(77, NEXT_BUT(5)),	 OP(ADDVV, 0), OP(CALL, 0), OP(TGETS, 0),
	OP(CALL, 0), OP(LUA_FORL, NEXT_BUT(-5)), OP(RET, 0)
};
static uint32_t leaf[] = { OP(89, 0), OP(ADDVV, 0), OP(ADDVV, 0), OP(RET, 0) };
static uint32_t other[] = { OP(89, 0), OP(ADDVV, 0), OP(CALL, 0), OP(ADDVV, 0), OP(RET, 0) };

static struct lua_prototype prototypes[PROTOTYPES] = {
	[OUTER] = { .instructions = outer, .count = 8 },
	[LEAF] = { .instructions = leaf, .count = 4 },
	[OTHER] = { .instructions = other, .count = 5 },
};

#define AT(...)                                                                                    \
	(struct lua_place[]){ __VA_ARGS__ },                                                       \
		sizeof((struct lua_place[]){ __VA_ARGS__ }) / sizeof(struct lua_place)

static enum lua_path path(const struct lua_place *from, size_t from_count,
			  const struct lua_place *to, size_t to_count, bool has_unplaced)
{
	struct lua_place places[8];
	/* The trace begins where the loop does. */
	struct lua_snapshot snapshots[3] = { { .first = 0, .count = 1 },
					     { .first = 1, .count = (uint8_t)from_count },
					     { .first = 4, .count = (uint8_t)to_count } };
	struct lua_code code = { .is_trace = true,
				 .prototypes = prototypes,
				 .prototypes_count = PROTOTYPES,
				 .has_unplaced = has_unplaced,
				 .snapshots = snapshots,
				 .snapshots_count = 3,
				 .places = places,
				 .places_count = 8 };

	places[0] = (struct lua_place){ OUTER, 2 };
	for (size_t i = 0; i < from_count; i++)
		places[1 + i] = from[i];
	for (size_t i = 0; i < to_count; i++)
		places[4 + i] = to[i];
	return lua_path_between(&code, &snapshots[1], &snapshots[2]);
}

static void a_function_without_calls_is_known(void **state)
{
	(void)state;
	assert_int_equal(path(AT({ OUTER, 3 }, { LEAF, 1 }), AT({ OUTER, 3 }, { LEAF, 2 }), false),
			 LUA_PATH_KNOWN);
	assert_int_equal(path(AT({ OUTER, 6 }), AT({ OUTER, 2 }), false), LUA_PATH_KNOWN);
	/* Out of the called function, to what follows the call. */
	assert_int_equal(path(AT({ OUTER, 3 }, { LEAF, 1 }), AT({ OUTER, 4 }), false),
			 LUA_PATH_KNOWN);
}

static void a_call_between_two_exits_may_have_run(void **state)
{
	(void)state;
	assert_int_equal(path(AT({ OUTER, 2 }), AT({ OUTER, 4 }), false), LUA_PATH_UNSURE);
	/* Through the end of the loop. */
	assert_int_equal(path(AT({ OUTER, 4 }), AT({ OUTER, 2 }), false), LUA_PATH_UNSURE);
	assert_int_equal(path(AT({ OUTER, 6 }), AT({ OUTER, 4 }), false), LUA_PATH_UNSURE);
	/* Behind the call that was left, and before the function was left. */
	assert_int_equal(path(AT({ OUTER, 3 }, { LEAF, 1 }), AT({ OUTER, 6 }), false),
			 LUA_PATH_UNSURE);
	assert_int_equal(path(AT({ OUTER, 3 }, { OTHER, 1 }), AT({ OUTER, 4 }), false),
			 LUA_PATH_UNSURE);
	/* One function was left and another one called. */
	assert_int_equal(path(AT({ OUTER, 3 }, { LEAF, 1 }), AT({ OUTER, 5 }, { OTHER, 1 }), false),
			 LUA_PATH_UNSURE);
}

static void what_follows_a_call_belongs_to_the_called_function(void **state)
{
	(void)state;
	assert_int_equal(path(AT({ OUTER, 3 }), AT({ OUTER, 3 }, { LEAF, 2 }), false),
			 LUA_PATH_CALLS);
	/* What comes before the call is the caller's. */
	assert_int_equal(path(AT({ OUTER, 2 }), AT({ OUTER, 3 }, { LEAF, 2 }), false),
			 LUA_PATH_UNSURE);
	assert_int_equal(path(AT({ OUTER, 3 }), AT({ OUTER, 3 }, { OTHER, 3 }), false),
			 LUA_PATH_UNSURE);
	/* Two calls at once: the one between is not known to have ended. */
	assert_int_equal(path(AT({ OUTER, 3 }), AT({ OUTER, 3 }, { OTHER, 2 }, { LEAF, 1 }), false),
			 LUA_PATH_UNSURE);
}

static void a_function_without_any_exit_may_be_a_metamethod(void **state)
{
	(void)state;
	assert_int_equal(path(AT({ OUTER, 3 }, { LEAF, 1 }), AT({ OUTER, 3 }, { LEAF, 2 }), true),
			 LUA_PATH_UNSURE);
}

static void positions_outside_of_a_function_are_nothing(void **state)
{
	(void)state;
	assert_int_equal(path(AT({ LEAF, 900 }), AT({ LEAF, 3 }), false), LUA_PATH_KNOWN);
	assert_int_equal(path(AT({ LEAF, 1 }), AT({ LEAF, 900 }), false), LUA_PATH_KNOWN);
	assert_int_equal(path(AT({ OTHER, 900 }), AT({ OTHER, 3 }), false), LUA_PATH_UNSURE);
	assert_int_equal(path(NULL, 0, AT({ LEAF, 1 }), false), LUA_PATH_UNSURE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_without_calls_is_known),
		cmocka_unit_test(a_call_between_two_exits_may_have_run),
		cmocka_unit_test(what_follows_a_call_belongs_to_the_called_function),
		cmocka_unit_test(a_function_without_any_exit_may_be_a_metamethod),
		cmocka_unit_test(positions_outside_of_a_function_are_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
