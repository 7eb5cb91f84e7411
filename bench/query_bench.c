/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_bench - how fast rows are merged, on one core.
 *
 *     query_bench [ROWS_MILLIONS [STACKS_THOUSANDS]]
 *
 * The model (deterministic): 1,000 series of 95-row reports; stacks drawn from a law near Zipf's,
 * so that few are hot and all occur; a stack is a node of a random tree about 22 deep whose frames
 * carry 20,000 functions. The same rows are asked in one view and spread over four.
 *
 * Prints rows/s of the accumulate step, of whole queries (to a tree; to a tree with all stacks)
 * and, for scale, of a loop that only adds up the values of all rows: the memory's own speed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/query/sum/accumulate.h"
#include "server/query/render/render.h"

#define VIEWS_MAX 4
#define SERIES 1000
#define ROWS_PER_REPORT 95
#define FUNCTIONS 20000
#define DEPTH_MEAN 22
#define ROUNDS 3
#define TYPE "on_cpu:samples:count:cpu:nanoseconds:delta"

struct bench {
	struct tables tables[VIEWS_MAX];
	struct tables_view views[VIEWS_MAX];
	struct segment segments[VIEWS_MAX];
	size_t views_count;
	uint32_t *stacks[VIEWS_MAX]; /* nodes, by rank */
	uint32_t stacks_count;
	uint64_t rows;
	uint64_t random;
	struct selector selector;
};

/* Of this thread: a busy machine must not count. */
static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

static uint64_t next_random(struct bench *bench)
{
	uint64_t x = bench->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return bench->random = x;
}

static uint32_t below(struct bench *bench, uint32_t limit)
{
	return (uint32_t)(((next_random(bench) >> 32) * limit) >> 32);
}

/* Ranks: the product of two uniform draws prefers small ones, as Zipf's law does. */
static uint32_t draw_rank(struct bench *bench)
{
	return (uint32_t)((uint64_t)below(bench, bench->stacks_count) *
			  below(bench, bench->stacks_count) / bench->stacks_count);
}

static uint32_t function_frame(struct tables *tables, uint32_t number)
{
	struct frame frame = { .kind = FRAME_NATIVE, .address = 16ull * number };
	char name[64];
	int len = snprintf(name, sizeof(name), "package::module%u::function_%u", number % 97,
			   number % FUNCTIONS);

	frame.function = tables_string(tables, slice_from(name, (size_t)len));
	frame.mapping_file = tables_string(tables, SLICE_LITERAL("/usr/lib/libbench.so"));
	return tables_frame(tables, &frame);
}

/* Stacks branch off a path that is walked up and down about its mean depth. */
static void make_stacks(struct bench *bench, size_t view)
{
	struct tables *tables = &bench->tables[view];
	uint32_t path[4 * DEPTH_MEAN] = { 0 }, depth = 0;

	bench->random = 88172645463325252ull;
	bench->stacks[view] = mem_new_array(uint32_t, bench->stacks_count);
	for (uint32_t i = 0; i < bench->stacks_count;) {
		uint32_t up = below(bench, depth > DEPTH_MEAN ? 8 : 4), down = 1 + below(bench, 4);

		depth = depth > up ? depth - up : 0;
		while (down-- && depth + 1 < 4 * DEPTH_MEAN) {
			path[depth + 1] =
				tables_node(tables, path[depth],
					    function_frame(tables, below(bench, 3 * FUNCTIONS)));
			depth++;
		}
		if (depth)
			bench->stacks[view][i++] = path[depth];
	}
}

static uint32_t make_series(struct tables *tables, uint32_t number)
{
	struct column column = { tables_string(tables, SLICE_LITERAL("samples")),
				 tables_string(tables, SLICE_LITERAL("count")), COLUMN_DELTA };
	struct group group = { .name = tables_string(tables, SLICE_LITERAL("on_cpu")),
			       .period_type = tables_string(tables, SLICE_LITERAL("cpu")),
			       .period_unit = tables_string(tables, SLICE_LITERAL("nanoseconds")),
			       .period = 52631578,
			       .column_count = 1 };
	struct label label = { .name = tables_string(tables, SLICE_LITERAL("pod")) };
	char pod[32];

	snprintf(pod, sizeof(pod), "pod-%u", number);
	label.value = tables_string(tables, slice_of(pod));
	return tables_series(tables, tables_label_set(tables, &label, 1),
			     tables_group(tables, &group, &column));
}

static void make_rows(struct bench *bench, uint64_t rows)
{
	uint64_t reports = rows / ROWS_PER_REPORT;

	for (size_t view = 0; view < bench->views_count; view++) {
		tables_init(&bench->tables[view]);
		make_stacks(bench, view);
	}
	for (uint64_t i = 0; i < reports; i++) {
		size_t view = i * bench->views_count / reports;
		struct tables *tables = &bench->tables[view];

		tables_report_begin(tables, make_series(tables, (uint32_t)(i % SERIES)), (int64_t)i,
				    1, i);
		for (int row = 0; row < ROWS_PER_REPORT; row++)
			tables_row(tables, bench->stacks[view][draw_rank(bench)], 0,
				   &(int64_t){ 1 + below(bench, 3) });
	}
	bench->rows = reports * ROWS_PER_REPORT;
	for (size_t view = 0; view < bench->views_count; view++) {
		bench->views[view] = tables_view_of(&bench->tables[view]);
		segment_of_tables(&bench->segments[view], &bench->views[view]);
	}
}

static void print_rate(const struct bench *bench, const char *what, int64_t best_ns)
{
	printf("%-34s %8.1f ms %8.1f M rows/s\n", what, (double)best_ns / 1e6,
	       (double)bench->rows * 1e3 / (double)best_ns);
}

static void measure_memory(const struct bench *bench)
{
	int64_t best_ns = INT64_MAX;
	volatile int64_t sink;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t start_ns = cpu_ns(), took_ns, sum = 0;

		for (size_t view = 0; view < bench->views_count; view++)
			for (uint64_t i = 0; i < bench->views[view].rows_count; i++)
				sum += bench->views[view].values[i] +
				       bench->views[view].rows[i].stack;
		sink = sum;
		took_ns = cpu_ns() - start_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
	}
	(void)sink;
	print_rate(bench, "reading all rows once", best_ns);
}

static void measure_accumulate(struct bench *bench)
{
	const struct query_source source = { .segments = bench->segments,
					     .segments_count = bench->views_count };
	const struct query_params params = { .selector = &bench->selector, .to_ns = INT64_MAX };
	int64_t best_ns = INT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		struct accumulate_sums sums;
		struct selection selection;
		struct work work;
		int64_t start_ns;

		work_begin(&work, &params.limits);
		if (select_make(&selection, &work, &source, &params, (struct select_use){ 0 },
				NULL))
			abort();
		start_ns = cpu_ns();
		for (size_t view = 0; view < bench->views_count; view++)
			if (accumulate_segment(&selection, &work, &selection.segments[view], false,
					       &work.arena, &sums, NULL))
				abort();
		start_ns = cpu_ns() - start_ns;
		best_ns = start_ns < best_ns ? start_ns : best_ns;
		work_end(&work);
	}
	print_rate(bench, "accumulate", best_ns);
}

static void measure_query(struct bench *bench, bool nodes_only, const char *what)
{
	const struct query_source source = { .segments = bench->segments,
					     .segments_count = bench->views_count };
	const struct query_params params = { .selector = &bench->selector,
					     .to_ns = INT64_MAX,
					     .nodes_only = nodes_only };
	int64_t best_ns = INT64_MAX;
	struct tree *tree = NULL;
	struct err err;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t start_ns = cpu_ns();

		tree_free(tree);
		if (query_tree(&source, &params, &tree, &err)) {
			fprintf(stderr, "query_bench: %s\n", err.message);
			exit(2);
		}
		start_ns = cpu_ns() - start_ns;
		best_ns = start_ns < best_ns ? start_ns : best_ns;
	}
	print_rate(bench, what, best_ns);
	printf("  %u nodes, %u functions, %u stacks, answer %zu MiB\n", tree->nodes_count,
	       tree->functions_count, tree->stacks_count, tree->arena.used_bytes >> 20);
	tree_free(tree);
}

static void measure_render(struct bench *bench)
{
	const struct query_source source = { .segments = bench->segments,
					     .segments_count = bench->views_count };
	const struct query_params params = { .selector = &bench->selector, .to_ns = INT64_MAX };
	static const char *const names[] = { "top",    "binary 1920 px", "binary",
					     "folded", "json",		 "pprof" };
	struct tree *tree = NULL;

	if (query_tree(&source, &params, &tree, NULL))
		abort();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int64_t start_ns = cpu_ns();
		struct strbuf out = { 0 };

		switch (i) {
		case 0:
			render_top(tree, 0, &out);
			break;
		case 1:
			render_binary(tree, 1920, &out);
			break;
		case 2:
			render_binary(tree, 0, &out);
			break;
		case 3:
			render_folded(tree, &out);
			break;
		case 4:
			render_json(tree, &out);
			break;
		default:
			render_pprof(tree, &out);
			break;
		}
		printf("  as %-24s %8.1f ms %8.1f kB\n", names[i],
		       (double)(cpu_ns() - start_ns) / 1e6, (double)out.len / 1e3);
		strbuf_free(&out);
	}
	tree_free(tree);
}

static void run(size_t views_count, uint64_t rows, uint32_t stacks)
{
	struct bench *bench = mem_new(struct bench);

	bench->views_count = views_count;
	bench->stacks_count = stacks;
	if (selector_parse(SLICE_LITERAL(TYPE), &bench->selector, NULL))
		abort();
	make_rows(bench, rows);
	printf("%.1f M rows of %u distinct stacks in %zu view(s):\n", (double)bench->rows / 1e6,
	       stacks, views_count);
	measure_memory(bench);
	measure_accumulate(bench);
	measure_query(bench, true, "query to a tree");
	measure_query(bench, false, "query to a tree and all stacks");
	if (views_count == 1)
		measure_render(bench);
	for (size_t view = 0; view < views_count; view++) {
		tables_free(&bench->tables[view]);
		free(bench->stacks[view]);
	}
	selector_free(&bench->selector);
	free(bench);
}

int main(int argc, char **argv)
{
	uint64_t rows = (argc > 1 ? strtoull(argv[1], NULL, 10) : 20) * 1000000;
	uint32_t stacks = (argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 300) * 1000;

	if (rows < ROWS_PER_REPORT || !stacks) {
		fprintf(stderr, "usage: query_bench [ROWS_MILLIONS [STACKS_THOUSANDS]]\n");
		return 2;
	}
	run(1, rows, stacks);
	run(VIEWS_MAX, rows, stacks);
	return 0;
}
