/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/splice.h"

#include <assert.h>

struct runs {
	uint16_t ends[SCRIPT_FRAMES_MAX + 2]; /* the first frame behind each run */
	size_t count;
	bool has_rest;	   /* the last one has no end, and is not cut */
	bool has_base;	   /* the outermost is nothing but a mark */
	bool is_cut;	   /* there are more */
	bool is_elsewhere; /* those behind some run on another stack */
	uint64_t note;	   /* SCRIPT_RUNS_ARE_INNER or _OUTER; 0 = not known */
};

struct splicing {
	const uint64_t *words;
	struct runs runs;
	struct splice_step *steps;
	size_t count;
};

/* enum script_note; 0 = none. */
static uint64_t note_of(const uint64_t *words)
{
	return words[0] & SCRIPT_IS_MARK && !SCRIPT_ADDRESS(words[0]) ? words[1] : 0;
}

static bool is_other_stack(const uint64_t *words)
{
	return note_of(words) == SCRIPT_OTHER_STACK;
}

static void find_runs(struct runs *runs, const uint64_t *words, size_t count)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_bare = words[2 * i] & SCRIPT_IS_MARK && done == i;
		uint64_t note = note_of(words + 2 * i);

		if (note == SCRIPT_RUNS_ARE_INNER || note == SCRIPT_RUNS_ARE_OUTER) {
			runs->note = note;
			done += is_bare && !(words[2 * i] & SCRIPT_ENDS_RUN);
		}
		if (words[2 * i] & SCRIPT_ENDS_RUN)
			runs->ends[runs->count++] = (uint16_t)(done = i + 1);
		if (is_other_stack(words + 2 * i))
			runs->is_elsewhere = true;
		runs->has_base = is_bare && !runs->is_elsewhere;
	}
	if (done == count) {
		if (runs->has_base && runs->count > 1)
			runs->count--;
		return;
	}
	runs->ends[runs->count++] = (uint16_t)count;
	runs->is_cut = words[2 * (count - 1)] & SCRIPT_IS_CUT;
	runs->has_rest = !runs->is_cut;
}

static void add(struct splicing *splicing, bool is_native, size_t index)
{
	splicing->steps[splicing->count++] =
		(struct splice_step){ .is_native = is_native, .index = (uint16_t)index };
}

static void add_run(struct splicing *splicing, size_t run)
{
	size_t first = run ? splicing->runs.ends[run - 1] : 0;

	for (size_t i = splicing->runs.ends[run]; i-- > first;)
		if (!(splicing->words[2 * i] & SCRIPT_IS_MARK))
			add(splicing, false, i);
}

static void add_gap(struct splicing *splicing)
{
	splicing->steps[splicing->count++] = (struct splice_step){ .is_gap = true };
}

static size_t count_loops(const struct splice_natives *natives, size_t count)
{
	size_t loops = 0;

	for (size_t i = 0; i < count; i++)
		loops += natives->loops[i];
	return loops;
}

/* How many of the innermost loops have no run, of a complete stack with more loops than runs. */
static size_t idle_loops(const struct splice_natives *natives, const struct runs *runs,
			 size_t loops_count, size_t runs_count)
{
	size_t inside = count_loops(natives, natives->inside);

	if (runs->note == SCRIPT_RUNS_ARE_OUTER && !runs->is_cut)
		return loops_count - runs_count;
	if (runs->note == SCRIPT_RUNS_ARE_INNER || inside == runs_count || !natives->loops[0])
		return 0;
	return loops_count == runs_count + 1 || inside == runs_count + 1 ? 1 : 0;
}

#define NO_LOOP SIZE_MAX

/* The loop, counted from the innermost, that runs functions which are not known. */
static size_t find_gap(const struct runs *runs, size_t loops_count, size_t runs_count, size_t idle)
{
	if (runs->is_cut)
		return NO_LOOP;
	if (loops_count > runs_count + idle)
		return loops_count - 1;
	return runs->note == SCRIPT_RUNS_ARE_OUTER ? idle - 1 : NO_LOOP;
}

size_t splice_frames(const struct splice_natives *natives, const uint64_t *words,
		     size_t script_count, struct splice_step *steps)
{
	struct splicing splicing = { .words = words, .steps = steps };
	size_t loops_count = count_loops(natives, natives->count);
	size_t idle = 0, early = 0, gap = NO_LOOP, runs;
	bool is_complete;

	assert(script_count <= SCRIPT_FRAMES_MAX + 1);
	find_runs(&splicing.runs, words, script_count);
	runs = splicing.runs.count;
	is_complete = natives->is_complete && !splicing.runs.is_elsewhere;
	if (is_complete && splicing.runs.has_rest && runs == loops_count + 1)
		add_run(&splicing, --runs);
	if (is_complete && loops_count > runs) {
		idle = idle_loops(natives, &splicing.runs, loops_count, runs);
		gap = find_gap(&splicing.runs, loops_count, runs, idle);
	} else if (is_complete) {
		early = runs - loops_count; /* innermost, without a loop */
	}
	for (size_t run = runs; run-- > loops_count + early;)
		add_run(&splicing, run);
	for (size_t i = natives->count, loop = loops_count; i-- > 0;) {
		add(&splicing, true, i);
		if (!natives->loops[i])
			continue;
		loop--; /* among the loops, from the innermost */
		if (loop >= idle && loop - idle + early < runs)
			add_run(&splicing, loop - idle + early);
		else if (loop == gap)
			add_gap(&splicing);
	}
	if (early > 1)
		add_gap(&splicing);
	for (size_t run = early; run-- > 0;)
		add_run(&splicing, run);
	return splicing.count;
}

size_t splice_runs_on_stack(const uint64_t *words, size_t script_count)
{
	size_t runs = 0;

	for (size_t i = 0; i < script_count; i++) {
		if (is_other_stack(words + 2 * i))
			return runs;
		runs += words[2 * i] & SCRIPT_ENDS_RUN;
	}
	return SIZE_MAX;
}

/* The innermost function of these that is not taken yet is native frame `native`. */
static bool is_next(const uint64_t *words, size_t script_count, size_t native)
{
	return script_count && words[2 * (script_count - 1)] >> SCRIPT_PLACE_SHIFT == native;
}

size_t splice_places(const uint8_t *natives, size_t native_count, const uint64_t *words,
		     size_t script_count, struct splice_step *steps)
{
	struct splicing splicing = { .words = words, .steps = steps };
	size_t i = native_count;

	assert(script_count <= SCRIPT_FRAMES_MAX + 1);
	while (i-- > 0) {
		if (natives[i] == SPLICE_FOREIGN || !is_next(words, script_count, i)) {
			add(&splicing, true, i);
			while (is_next(words, script_count, i))
				script_count--;
			continue;
		}
		if (natives[i] == SPLICE_RUNTIME)
			add(&splicing, true, i);
		script_count--;
		/* A part of the interpreter, called by the one that has the function. */
		if (i == 1 && natives[0] == SPLICE_RUNTIME && natives[1] == SPLICE_RUNTIME &&
		    !script_count)
			add(&splicing, true, --i);
		add(&splicing, false, script_count);
	}
	return splicing.count;
}
