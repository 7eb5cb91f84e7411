/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of an interpreter between the native ones: paired by count, and where counts differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/runtime/splice.h"

static uint64_t note_by_letter(char letter)
{
	switch (letter) {
	case 'F':
		return SCRIPT_OTHER_STACK;
	case 'I':
	case 'i':
		return SCRIPT_RUNS_ARE_INNER;
	case 'O':
		return SCRIPT_RUNS_ARE_OUTER;
	default:
		return 0;
	}
}

static size_t put_script(uint64_t *words, const char *script)
{
	size_t frames = 0;

	for (; *script; script++) {
		if (*script == 'E') {
			words[2 * frames - 2] |= SCRIPT_ENDS_RUN;
		} else if (strchr("MFIiO", *script)) {
			words[2 * frames + 1] = note_by_letter(*script);
			words[2 * frames++] =
				SCRIPT_IS_MARK | (strchr("IO", *script) ? 0 : SCRIPT_ENDS_RUN);
		} else {
			frames++;
		}
	}
	return frames;
}

/*
 * Native frames innermost first: 'L' a loop, 'G' one that has switched the stack, 'n' another.
 * Script frames innermost first: a digit, 'E' behind the last of a run, 'M' a mark, 'F' one behind
 * which another stack's frames are, 'i' one in the innermost native frame; 'I' and 'O' notes that
 * the runs are the inner or outer loops'. The result outermost first: native frames as letters with
 * their index, script frames as "s" with theirs, "?" functions that are not known.
 */
static void check(const char *native, const char *script, bool is_complete, const char *expected)
{
	struct splice_step steps[SPLICE_STEPS_MAX];
	uint64_t words[2 * (SCRIPT_FRAMES_MAX + 1)] = { 0 };
	bool loops[SAMPLE_FRAMES_MAX];
	struct splice_natives natives = { loops, strlen(native), strcspn(native, "G"),
					  is_complete };
	char text[256] = "";
	size_t count;

	for (size_t i = 0; native[i]; i++)
		loops[i] = native[i] == 'L';
	count = splice_frames(&natives, words, put_script(words, script), steps);
	for (size_t i = 0; i < count; i++)
		if (steps[i].is_gap)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "? ");
		else
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%c%u ",
				 steps[i].is_native ? native[steps[i].index] : 's', steps[i].index);
	assert_string_equal(text, expected);
}

static void runs_follow_their_loops(void **state)
{
	(void)state;
	check("nLnLn", "12E3E", true, "n4 L3 s2 n2 L1 s1 s0 n0 ");
	check("L", "1E", true, "L0 s0 ");
	check("nn", "", true, "n1 n0 ");
	/* The last run has no mark of its own where the list just ends. */
	check("LnL", "1E23", true, "L2 s2 s1 n1 L0 s0 ");
}

static void marks_are_not_shown(void **state)
{
	(void)state;
	check("nLnL", "12M3M", true, "L3 s3 n2 L1 s1 s0 n0 ");
	/* A loop that has not begun its first frame. */
	check("LnL", "M1M", true, "L2 s1 n1 L0 ");
}

/* CPython 3.15 keeps a frame outside of all others. */
static void a_frame_outside_of_all_has_no_loop(void **state)
{
	(void)state;
	check("nLnL", "12M3MM", true, "L3 s3 n2 L1 s1 s0 n0 ");
	check("LnL", "1M2MM", true, "L2 s2 n1 L0 s0 ");
	check("LnL", "M1MM", true, "L2 s1 n1 L0 "); /* the innermost has not begun */
	check("L", "MM", true, "L0 ");
}

static void a_loop_may_have_no_run_yet(void **state)
{
	(void)state;
	check("LnLnL", "1E2E", true, "L4 s1 n3 L2 s0 n1 L0 ");
	/* Behind it there is something: then it is the outermost ones that belong elsewhere. */
	check("nLnLnL", "1E2E", true, "L5 ? n4 L3 s1 n2 L1 s0 n0 ");
	check("LnLnLnL", "1E2E", true, "L6 ? n5 L4 n3 L2 s1 n1 L0 s0 ");
}

/* The outer functions are those of another greenlet, or of another interpreter. */
static void a_loop_that_was_interrupted_may_have_its_run(void **state)
{
	(void)state;
	check("LnL", "I1E", true, "L2 ? n1 L0 s1 ");
	check("LnL", "12i", true, "L2 ? n1 L0 s1 s0 ");
	check("LnLnL", "I1E2E", true, "L4 ? n3 L2 s2 n1 L0 s1 ");
	check("LnL", "I12", true, "L2 ? n1 L0 s2 s1 ");
	/* As many loops as runs. */
	check("LnL", "I1E2E", true, "L2 s2 n1 L0 s1 ");
	check("LnL", "1i2M", true, "L2 s2 n1 L0 s0 ");
	check("LnL", "1i2MM", true, "L2 s2 n1 L0 s0 ");
}

static void functions_outside_of_a_switched_stack_are_not_known(void **state)
{
	(void)state;
	check("LnGL", "1E", true, "L3 ? G2 n1 L0 s0 ");
	check("nLnLGL", "1E2E", true, "L5 ? G4 L3 s1 n2 L1 s0 n0 ");
	/* Of the greenlet's loops the innermost has not begun. */
	check("LnLGL", "1E", true, "L4 ? G3 L2 s0 n1 L0 ");
	/* What is called by a switch still has its callers, or again. */
	check("LnGL", "1E2E", true, "L3 s1 G2 n1 L0 s0 ");
	check("GnL", "1E", true, "L2 s0 n1 G0 ");
}

/* The thread's first state while it seems to be in C code of another one. */
static void functions_inside_of_another_state_are_not_known(void **state)
{
	(void)state;
	check("nLnL", "O1E", true, "L3 s1 n2 L1 ? n0 ");
	check("nLLnL", "O1E", true, "L4 s1 n3 L2 ? L1 n0 ");
	check("nLnL", "O1E2E", true, "L3 s2 n2 L1 s1 n0 ");
	check("nL", "O1E2E", true, "L1 s2 n0 s1 ");
	check("nLnL", "O1E", false, "L3 n2 L1 s1 n0 "); /* says that it is cut */
}

static void loops_without_any_run_are_not_known(void **state)
{
	(void)state;
	check("nL", "", true, "L1 ? n0 ");
	check("LnL", "", true, "L2 ? n1 L0 ");
	check("L", "", true, "L0 "); /* it has not begun */
	check("nL", "", false, "L1 n0 ");
}

static void a_run_without_a_loop_is_innermost(void **state)
{
	(void)state;
	check("nL", "1E2E", true, "L1 s1 n0 s0 ");
	check("n", "12E", true, "n0 s1 s0 ");
}

static void of_several_runs_without_a_loop_the_places_are_not_known(void **state)
{
	(void)state;
	check("nL", "1E2E3E", true, "L1 s2 n0 ? s1 s0 ");
	check("nn", "1E2E", true, "n1 n0 ? s1 s0 ");
}

/* Functions in C that were called without a loop, as by a new fiber of Ruby. */
static void a_rest_without_an_end_is_outermost(void **state)
{
	(void)state;
	check("nLn", "0E1", true, "s1 n2 L1 s0 n0 ");
	check("nLnLn", "0E1E2", true, "s2 n4 L3 s1 n2 L1 s0 n0 ");
	check("nLn", "01", true, "n2 L1 s1 s0 n0 ");
}

static void what_a_cut_walk_does_not_show_is_outside(void **state)
{
	(void)state;
	check("nLn", "1E2E34E", false, "s3 s2 s1 n2 L1 s0 n0 ");
	check("", "1E", false, "s0 ");
}

/* A fiber: what has resumed it is outside of its native frames. */
static void frames_of_another_stack_are_outermost(void **state)
{
	uint64_t words[] = {
		SCRIPT_ENDS_RUN, 0, SCRIPT_ENDS_RUN | SCRIPT_IS_MARK, SCRIPT_OTHER_STACK,
		SCRIPT_ENDS_RUN, 0
	};

	(void)state;
	check("nLnLn", "1E2EF34E", true, "s4 s3 n4 L3 s1 n2 L1 s0 n0 ");
	assert_int_equal(splice_runs_on_stack(words, 3), 1);
	assert_int_equal(splice_runs_on_stack(words, 1), SIZE_MAX);
}

/*
 * Of functions with native frames of their own. Native frames innermost first: 'n' foreign, 'R' the
 * runtime's, 'G' generated; `places`: which of them have a function.
 */
static void check_places(const char *native, const char *places, const char *expected)
{
	struct splice_step steps[SPLICE_STEPS_MAX];
	uint64_t words[2 * (SCRIPT_FRAMES_MAX + 1)] = { 0 };
	uint8_t natives[SAMPLE_FRAMES_MAX];
	char text[256] = "";
	size_t count;

	for (size_t i = 0; native[i]; i++)
		natives[i] = native[i] == 'n'	? SPLICE_FOREIGN
			     : native[i] == 'R' ? SPLICE_RUNTIME
						: SPLICE_GENERATED;
	for (size_t i = 0; places[i]; i++)
		words[2 * i] = (uint64_t)(places[i] - '0') << SCRIPT_PLACE_SHIFT;
	count = splice_places(natives, strlen(native), words, strlen(places), steps);
	for (size_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%c%u ",
			 steps[i].is_native ? native[steps[i].index] : 's', steps[i].index);
	assert_string_equal(text, expected);
}

static void functions_stand_at_their_native_frames(void **state)
{
	(void)state;
	check_places("GnRGn", "023", "n4 s2 R2 s1 n1 s0 ");
	/* What the interpreter calls to run a function's instruction is a part of it. */
	check_places("RRRn", "12", "n3 R2 s1 R1 R0 s0 ");
	check_places("RRRn", "012", "n3 R2 s2 R1 s1 R0 s0 ");
	/* Generated code calls the runtime's. */
	check_places("RGn", "1", "n2 s0 R0 ");
	check_places("GG", "", "G1 G0 ");
	/* A frame of other code is none of a function, whatever its frame pointer shows. */
	check_places("nGn", "012", "n2 s1 n0 ");
}

static void all_that_a_sample_can_have_is_placed(void **state)
{
	struct splice_step steps[SPLICE_STEPS_MAX];
	uint64_t words[2 * (SCRIPT_FRAMES_MAX + 1)];
	bool loops[SAMPLE_FRAMES_MAX];
	struct splice_natives natives = { loops, SAMPLE_FRAMES_MAX, SAMPLE_FRAMES_MAX, true };

	(void)state;
	for (size_t i = 0; i <= SCRIPT_FRAMES_MAX; i++)
		words[2 * i] = SCRIPT_ENDS_RUN;
	memset(loops, 1, sizeof(loops));
	assert_int_equal(splice_frames(&natives, words, SCRIPT_FRAMES_MAX + 1, steps),
			 SPLICE_STEPS_MAX);
	memset(loops, 0, sizeof(loops));
	natives.is_complete = false;
	assert_int_equal(splice_frames(&natives, words, SCRIPT_FRAMES_MAX + 1, steps),
			 SPLICE_STEPS_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_follow_their_loops),
		cmocka_unit_test(marks_are_not_shown),
		cmocka_unit_test(a_frame_outside_of_all_has_no_loop),
		cmocka_unit_test(a_loop_may_have_no_run_yet),
		cmocka_unit_test(a_loop_that_was_interrupted_may_have_its_run),
		cmocka_unit_test(functions_outside_of_a_switched_stack_are_not_known),
		cmocka_unit_test(functions_inside_of_another_state_are_not_known),
		cmocka_unit_test(loops_without_any_run_are_not_known),
		cmocka_unit_test(a_run_without_a_loop_is_innermost),
		cmocka_unit_test(of_several_runs_without_a_loop_the_places_are_not_known),
		cmocka_unit_test(a_rest_without_an_end_is_outermost),
		cmocka_unit_test(what_a_cut_walk_does_not_show_is_outside),
		cmocka_unit_test(frames_of_another_stack_are_outermost),
		cmocka_unit_test(functions_stand_at_their_native_frames),
		cmocka_unit_test(all_that_a_sample_can_have_is_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
