/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_resample - how often `firn diff --fail-on significant` is wrong, and how often it finds what
 * is there, by resampling a recording of a real program.
 *
 * Input: lines "window TAB function TAB self TAB cum", windows numbered in the order of time, and
 * for each window a line with the function "" that has its total as cum. A side has as many samples
 * as two cores give at 99 Hz, drawn as runs of consecutive windows, so that phases stay together. A
 * regression is planted by letting each sample of one function in B occur once more with that
 * chance. An alarm is what breaks the rule: some function grew significantly.
 *
 * Several recordings are those of processes of one program: then a side is some of these, and no
 * process is in both. Windows of one number are a block, processes are series.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"
#include "server/query/diff/compare.h"

#define WINDOWS_MAX 512
#define FUNCTIONS_MAX 65536
#define LINE_MAX_BYTES 16384
#define WINDOW_S 10
#define SHARE_WANTED 0.2
#define SAMPLES_60_S (60 * 2 * 99) /* of two cores at 99 Hz */
#define DRAWN_MAX 4096
#define PROCESSES_MAX 64

struct value {
	uint32_t function;
	int64_t of[COMPARISON_WHATS];
};

struct window {
	struct value *values;
	size_t count, capacity;
	int64_t total;
};

struct recording {
	struct window windows[WINDOWS_MAX];
	size_t windows_count;
	size_t first[PROCESSES_MAX + 1]; /* window of each process */
	size_t processes_count;
	char **names;
	size_t names_count, names_capacity;
	struct idmap map;
	uint64_t random;
};

/* One setting that is tried many times. */
struct trial {
	double samples;	   /* of a side */
	double run;	   /* of them from consecutive windows */
	double growth;	   /* planted; 0: none */
	uint32_t function; /* in which */
	size_t blocks;	   /* of a side */
	size_t processes;  /* likewise, instead of samples */
	bool series_known; /* that they are several is looked at */
};

struct outcome {
	size_t rounds, alarms, changes, found; /* changes: in whatever direction */
	double samples, dispersion;
};

static double uniform(struct recording *recording)
{
	uint64_t *x = &recording->random;

	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return (double)(*x >> 11) / 9007199254740992.0;
}

static bool name_equal(const void *context, uint32_t id, const void *key)
{
	return !strcmp(((const struct recording *)context)->names[id], key);
}

static uint32_t function_of(struct recording *recording, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	uint32_t id = idmap_find(&recording->map, hash, name_equal, recording, name);

	if (id != IDMAP_NONE)
		return id;
	mem_grow(recording->names, recording->names_count, recording->names_capacity);
	id = (uint32_t)recording->names_count++;
	recording->names[id] = mem_strndup(name, strlen(name));
	idmap_add(&recording->map, hash, id);
	return id;
}

static void take_line(struct recording *recording, char *line)
{
	char *name = strchr(line, '\t'), *self = name ? strrchr(name + 1, '\t') : NULL;
	unsigned long number = strtoul(line, NULL, 10);
	struct window *window;
	int64_t cum;

	number += recording->first[recording->processes_count];
	if (!self || number >= WINDOWS_MAX)
		return;
	window = &recording->windows[number];
	cum = strtoll(self + 1, NULL, 10);
	*self = 0;
	self = strrchr(name + 1, '\t');
	if (!self)
		return;
	*self = 0;
	if (number >= recording->windows_count)
		recording->windows_count = number + 1;
	if (!name[1]) {
		window->total = cum;
		return;
	}
	mem_grow(window->values, window->count, window->capacity);
	window->values[window->count++] = (struct value){ function_of(recording, name + 1),
							  { strtoll(self + 1, NULL, 10), cum } };
}

static int read_recording(struct recording *recording, const char *path)
{
	FILE *file = fopen(path, "r");
	static char line[LINE_MAX_BYTES];

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		take_line(recording, line);
	fclose(file);
	recording->first[++recording->processes_count] = recording->windows_count;
	return 0;
}

/* How many of `count` samples occur once more. */
static int64_t thin(struct recording *recording, int64_t count, double chance)
{
	int64_t more = 0;

	for (int64_t i = 0; i < count; i++)
		more += uniform(recording) < chance;
	return more;
}

/* Sums of one block. */
struct block {
	double *values; /* [function * COMPARISON_WHATS + what] */
	double total;
};

static void add_window(struct recording *recording, const struct window *window,
		       const struct trial *trial, bool planted, struct block *block)
{
	for (size_t i = 0; i < window->count; i++) {
		const struct value *value = &window->values[i];
		double *into = &block->values[(size_t)value->function * COMPARISON_WHATS];
		int64_t more = 0;

		if (planted && value->function == trial->function)
			more = thin(recording, value->of[COMPARISON_TOTAL], trial->growth);
		into[COMPARISON_SELF] += (double)value->of[COMPARISON_SELF];
		into[COMPARISON_TOTAL] += (double)(value->of[COMPARISON_TOTAL] + more);
		block->total += (double)more;
	}
	block->total += (double)window->total;
}

static void end_block(struct significance *of, struct significance_test *tests,
		      enum significance_side side, size_t count, struct block *block)
{
	if (block->total <= 0)
		return;
	for (size_t i = 0; i < count; i++) {
		double value = block->values[i];

		tests[i].value[side] += value;
		tests[i].spread[side] += value * value / block->total;
		block->values[i] = 0;
	}
	of->total[side] += block->total;
	of->blocks[side]++;
	block->total = 0;
}

/* A window from which so many samples follow. */
static size_t draw_start(struct recording *recording, double samples)
{
	for (;;) {
		size_t start = (size_t)(uniform(recording) * (double)recording->windows_count);
		double left = 0;

		for (size_t i = start; i < recording->windows_count; i++)
			left += (double)recording->windows[i].total;
		if (left >= samples)
			return start;
	}
}

/* The windows of a side; how many. */
static size_t draw_windows(struct recording *recording, const struct trial *trial, size_t *windows)
{
	double have = 0, of_run = trial->run;
	size_t count = 0, at = 0;

	while (have < trial->samples && count < DRAWN_MAX) {
		if (of_run >= trial->run) {
			at = draw_start(recording, trial->run);
			of_run = 0;
		}
		have += (double)recording->windows[at].total;
		of_run += (double)recording->windows[at].total;
		windows[count++] = at++;
	}
	return count;
}

static void draw_side(struct recording *recording, const struct trial *trial,
		      enum significance_side side, struct significance *of,
		      struct significance_test *tests, struct block *block)
{
	static size_t windows[DRAWN_MAX];
	size_t drawn = draw_windows(recording, trial, windows), at = 0;
	size_t blocks = trial->blocks < drawn ? trial->blocks : drawn;

	for (size_t i = 0; i < blocks; i++) {
		for (; at < (i + 1) * drawn / blocks; at++)
			add_window(recording, &recording->windows[windows[at]], trial,
				   side == SIGNIFICANCE_OTHER && trial->growth > 0, block);
		end_block(of, tests, side, recording->names_count * COMPARISON_WHATS, block);
	}
}

/* Which processes; those of the two sides one behind the other. */
static void draw_processes(struct recording *recording, const struct trial *trial, size_t *drawn)
{
	size_t all[PROCESSES_MAX];

	for (size_t i = 0; i < recording->processes_count; i++)
		all[i] = i;
	for (size_t i = 0; i < 2 * trial->processes; i++) {
		size_t left = recording->processes_count - i;
		size_t at = i + (size_t)(uniform(recording) * (double)left);

		drawn[i] = all[at];
		all[at] = all[i];
	}
}

/* Windows of one number of all processes are a block. */
static void add_processes(struct recording *recording, const struct trial *trial,
			  enum significance_side side, const size_t *drawn, struct significance *of,
			  struct significance_test *tests, struct block *block)
{
	const bool planted = side == SIGNIFICANCE_OTHER && trial->growth > 0;
	bool any = true;

	for (size_t number = 0; any; number++) {
		any = false;
		for (size_t i = 0; i < trial->processes; i++) {
			size_t at = recording->first[drawn[i]] + number;

			if (at >= recording->first[drawn[i] + 1])
				continue;
			add_window(recording, &recording->windows[at], trial, planted, block);
			any = true;
		}
		end_block(of, tests, side, recording->names_count * COMPARISON_WHATS, block);
	}
}

/* What each process says by itself, as compare.c has it of series. */
static void add_series(struct recording *recording, const struct trial *trial,
		       enum significance_side side, const size_t *drawn, struct significance *of,
		       struct significance_test *tests, struct block *block)
{
	const bool planted = side == SIGNIFICANCE_OTHER && trial->growth > 0;
	const size_t count = recording->names_count * COMPARISON_WHATS;

	for (size_t i = 0; i < trial->processes; i++) {
		for (size_t at = recording->first[drawn[i]]; at < recording->first[drawn[i] + 1];
		     at++)
			add_window(recording, &recording->windows[at], trial, planted, block);
		for (size_t k = 0; k < count; k++) {
			double share = tests[k].value[side] / of->total[side];
			double part = (block->values[k] - share * block->total) / of->total[side];
			double weight = block->values[k] / of->total[side];

			tests[k].series_squares += part * part;
			tests[k].series_weights += weight * weight;
			block->values[k] = 0;
		}
		block->total = 0;
		of->series[side]++;
	}
}

static void draw_groups(struct recording *recording, const struct trial *trial,
			struct significance *of, struct significance_test *tests,
			struct block *block)
{
	size_t drawn[PROCESSES_MAX];

	draw_processes(recording, trial, drawn);
	for (int side = 0; side < SIGNIFICANCE_SIDES; side++)
		add_processes(recording, trial, (enum significance_side)side,
			      drawn + (size_t)side * trial->processes, of, tests, block);
	for (int side = 0; trial->series_known && side < SIGNIFICANCE_SIDES; side++)
		add_series(recording, trial, (enum significance_side)side,
			   drawn + (size_t)side * trial->processes, of, tests, block);
}

static struct outcome try(struct recording *recording, const struct trial *trial, size_t rounds)
{
	size_t count = recording->names_count * COMPARISON_WHATS;
	struct significance_test *tests = mem_new_array(struct significance_test, count);
	struct block block = { .values = mem_new_array(double, count) };
	struct outcome outcome = { .rounds = rounds };

	for (size_t round_ = 0; round_ < rounds; round_++) {
		const struct significance_test *planted =
			&tests[(size_t)trial->function * COMPARISON_WHATS];
		struct significance of = { .samples_per_value = 1 };
		bool any = false, grew = false;

		memset(tests, 0, count * sizeof(*tests));
		if (trial->processes) {
			draw_groups(recording, trial, &of, tests, &block);
		} else {
			draw_side(recording, trial, SIGNIFICANCE_BASE, &of, tests, &block);
			draw_side(recording, trial, SIGNIFICANCE_OTHER, &of, tests, &block);
		}
		significance_judge(&of, tests, count);
		for (size_t i = 0; i < count; i++) {
			any |= tests[i].significant;
			grew |= tests[i].significant && tests[i].share[SIGNIFICANCE_OTHER] >
								tests[i].share[SIGNIFICANCE_BASE];
		}
		outcome.alarms += grew;
		outcome.changes += any;
		outcome.found += planted[COMPARISON_TOTAL].significant ||
				 planted[COMPARISON_SELF].significant;
		outcome.samples += of.total[SIGNIFICANCE_BASE] / (double)rounds;
		outcome.dispersion += of.dispersion / (double)rounds;
	}
	free(tests);
	free(block.values);
	return outcome;
}

/* The function whose share is nearest to what is wanted. */
static uint32_t find_function(const struct recording *recording, double *ret_share)
{
	double *sums = mem_new_array(double, recording->names_count), total = 0, best = 1;
	uint32_t found = 0;

	for (size_t i = 0; i < recording->windows_count; i++) {
		const struct window *window = &recording->windows[i];

		total += (double)window->total;
		for (size_t at = 0; at < window->count; at++)
			sums[window->values[at].function] +=
				(double)window->values[at].of[COMPARISON_TOTAL];
	}
	for (uint32_t i = 0; i < recording->names_count; i++) {
		if (fabs(sums[i] / total - SHARE_WANTED) >= best)
			continue;
		best = fabs(sums[i] / total - SHARE_WANTED);
		*ret_share = sums[i] / total;
		found = i;
	}
	free(sums);
	return found;
}

static double all_samples(const struct recording *recording)
{
	double sum = 0;

	for (size_t i = 0; i < recording->windows_count; i++)
		sum += (double)recording->windows[i].total;
	return sum;
}

/* Wilson's interval of a rate, 95 %. */
static void print_rate(size_t count, size_t rounds)
{
	double n = (double)rounds, rate = (double)count / n, z = 1.96;
	double middle = (rate + z * z / 2 / n) / (1 + z * z / n);
	double half = z * sqrt(rate * (1 - rate) / n + z * z / 4 / n / n) / (1 + z * z / n);

	printf("  %5.1f %% (%4.1f ..%5.1f)", 100 * rate, 100 * fmax(0, middle - half),
	       100 * fmin(1, middle + half));
}

static void report(struct recording *recording, const char *what, const struct trial *trial,
		   size_t rounds)
{
	struct outcome outcome = try(recording, trial, rounds);

	printf("%-36s %8.0f %7.2f", what, outcome.samples, outcome.dispersion);
	print_rate(trial->growth > 0 ? outcome.found : outcome.alarms, rounds);
	if (!(trial->growth > 0))
		print_rate(outcome.changes, rounds);
	printf("\n");
	fflush(stdout);
}

static void report_processes(struct recording *recording, size_t rounds)
{
	for (size_t count = 1; count * 2 <= recording->processes_count && count <= 8;
	     count += count < 4 ? 1 : 4) {
		for (int known = 0; known <= (count > 1); known++) {
			struct trial trial = { .processes = count, .series_known = known != 0 };
			char what[64];

			trial.function = find_function(recording, &(double){ 0 });
			snprintf(what, sizeof(what), "%zu against %zu processes%s", count, count,
				 known ? ", spread seen" : "");
			report(recording, what, &trial, rounds);
			trial.growth = 0.2;
			snprintf(what, sizeof(what), "20 %% more, %zu against %zu%s", count, count,
				 known ? ", spread seen" : "");
			report(recording, what, &trial, rounds);
		}
	}
}

static void report_samples(struct recording *recording, size_t rounds)
{
	struct trial trial = { .blocks = 6, .samples = SAMPLES_60_S };
	double half = all_samples(recording) / 2;

	trial.function = find_function(recording, &(double){ 0 });
	trial.run = trial.samples < half ? trial.samples : half;
	report(recording, "same program, 60 s", &trial, rounds);
	trial.growth = 0.2;
	report(recording, "20 % more in that function, 60 s", &trial, rounds);
	trial.growth = 0;
	trial.blocks = 1;
	report(recording, "same program, a single report", &trial, rounds);
	trial.growth = 0.2;
	report(recording, "20 % more, a single report", &trial, rounds);
	trial = (struct trial){ .samples = 15 * SAMPLES_60_S,
				.run = trial.run,
				.blocks = COMPARISON_BLOCKS_MAX,
				.function = trial.function };
	report(recording, "same program, 15 min", &trial, rounds / 2);
	trial.growth = 0.05;
	report(recording, "5 % more in that function, 15 min", &trial, rounds / 2);
}

int main(int argc, char **argv)
{
	struct recording *recording = mem_new(struct recording);
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	bool bad = !rounds || argc < 3 || argc > 2 + PROCESSES_MAX;
	double share = 0;
	uint32_t function;

	recording->random = 88172645463325252ull;
	for (int i = 2; !bad && i < argc; i++)
		bad = read_recording(recording, argv[i]) != 0;
	if (bad || recording->windows_count < 12) {
		fprintf(stderr, "usage: diff_resample ROUNDS WINDOWS.tsv...; 12 windows or more\n");
		return 2;
	}
	function = find_function(recording, &share);
	printf("%zu windows of %d s, %zu processes, %zu functions; planted in %s (%.1f %% of the "
	       "samples)\n",
	       recording->windows_count, WINDOW_S, recording->processes_count,
	       recording->names_count, recording->names[function], 100 * share);
	printf("%-36s %8s %7s  %22s %22s\n", "", "samples", "disp.", "alarms, or found",
	       "changes either way");
	if (recording->processes_count > 1)
		report_processes(recording, rounds);
	else
		report_samples(recording, rounds);
	return 0;
}
