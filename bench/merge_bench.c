/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_bench - how fast many small tries become one tree: a fleet of services, each in many parts.
 *
 *     merge_bench [SERVICES [PARTS [STACKS]]]        (default: 100 50 1000)
 *
 * The model (deterministic): each service has STACKS stacks in a random tree about 20 deep over
 * 700 functions of its own and 300 that all have; each part has seven tenths of them, every one
 * in two rows. Prints the time of the whole query, by the clock and by the CPU, trie nodes/s, and
 * the same for the series of one service, and for lists of label values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/query/query.h"

#define DEPTH_MAX 40
#define SHARED_FUNCTIONS 300
#define OWN_FUNCTIONS 700
#define ROUNDS 10
#define TYPE "on_cpu:samples:count:cpu:nanoseconds:delta"

struct fleet {
	uint32_t services, parts, stacks;
	struct tables_view *views;
	struct segment *segments;
	uint64_t random, nodes, rows;
};

static uint32_t below(struct fleet *fleet, uint32_t limit)
{
	uint64_t x = fleet->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	fleet->random = x;
	return (uint32_t)(((x >> 32) * limit) >> 32);
}

static uint32_t add_frame(struct tables *tables, uint32_t service, uint32_t number)
{
	bool shared = number < SHARED_FUNCTIONS;
	struct frame frame = { .kind = FRAME_NATIVE, .address = 0x1000 + 16ull * number };
	char text[64];
	int len = snprintf(text, sizeof(text), "package%u::module%u::function_%u",
			   shared ? 0 : service, number % 37, number);

	frame.function = tables_string(tables, slice_from(text, (size_t)len));
	len = snprintf(text, sizeof(text), "/usr/bin/service-%u", service);
	frame.mapping_file = tables_string(tables, shared ? SLICE_LITERAL("/usr/lib/libc.so.6")
							  : slice_from(text, (size_t)len));
	return tables_frame(tables, &frame);
}

static uint32_t add_series(struct tables *tables, uint32_t service)
{
	struct column column = { tables_string(tables, SLICE_LITERAL("samples")),
				 tables_string(tables, SLICE_LITERAL("count")), COLUMN_DELTA };
	struct group group = { .name = tables_string(tables, SLICE_LITERAL("on_cpu")),
			       .period_type = tables_string(tables, SLICE_LITERAL("cpu")),
			       .period_unit = tables_string(tables, SLICE_LITERAL("nanoseconds")),
			       .period = 52631578,
			       .column_count = 1 };
	struct label label = { .name = tables_string(tables, SLICE_LITERAL("service_name")) };
	char text[32];

	snprintf(text, sizeof(text), "service-%u", service);
	label.value = tables_string(tables, slice_of(text));
	return tables_series(tables, tables_label_set(tables, &label, 1),
			     tables_group(tables, &group, &column));
}

static void add_part(struct fleet *fleet, struct tables *tables, uint32_t service, uint32_t part)
{
	uint32_t path[DEPTH_MAX + 1] = { 0 }, frames[DEPTH_MAX + 1], depth = 0;

	tables_report_begin(tables, add_series(tables, service), (int64_t)part * 10, 10, part + 1);
	fleet->random = 88172645463325252ull + service;
	for (uint32_t i = 0; i < fleet->stacks; i++) {
		uint32_t up = below(fleet, depth > 20 ? 8 : 4), down = 1 + below(fleet, 4);
		bool here = (i * 2654435761u + part * 40503u) % 10 < 7;

		depth = depth > up ? depth - up : 0;
		for (; down && depth < DEPTH_MAX; down--) {
			frames[++depth] = below(fleet, SHARED_FUNCTIONS + OWN_FUNCTIONS);
			path[depth] = UINT32_MAX;
		}
		for (uint32_t d = 1; here && d <= depth; d++)
			if (path[d] == UINT32_MAX)
				path[d] = tables_node(tables, path[d - 1],
						      add_frame(tables, service, frames[d]));
		for (int row = 0; here && row < 2; row++)
			tables_row(tables, path[depth], 0, &(int64_t){ 1 });
	}
}

static void *copy_of(const void *from, size_t count, size_t size)
{
	void *copy = mem_new_array(char, count *size + 1);

	return count ? memcpy(copy, from, count * size) : copy;
}

/* Thousands of tables reserve more addresses than there are: keep copies that are just as long. */
static struct tables_view freeze(const struct tables *tables)
{
	struct tables_view v = tables_view_of(tables);

	v.string_bytes = copy_of(v.string_bytes, v.string_bytes_count, 1);
	v.strings = copy_of(v.strings, v.strings_count, sizeof(*v.strings));
	v.labels = copy_of(v.labels, v.labels_count, sizeof(*v.labels));
	v.label_sets = copy_of(v.label_sets, v.label_sets_count, sizeof(*v.label_sets));
	v.columns = copy_of(v.columns, v.columns_count, sizeof(*v.columns));
	v.groups = copy_of(v.groups, v.groups_count, sizeof(*v.groups));
	v.series = copy_of(v.series, v.series_count, sizeof(*v.series));
	v.frames = copy_of(v.frames, v.frames_count, sizeof(*v.frames));
	v.nodes = copy_of(v.nodes, v.nodes_count, sizeof(*v.nodes));
	v.reports = copy_of(v.reports, v.reports_count, sizeof(*v.reports));
	v.rows = copy_of(v.rows, v.rows_count, sizeof(*v.rows));
	v.values = copy_of(v.values, v.values_count, sizeof(*v.values));
	v.totals = copy_of(v.totals, v.totals_count, sizeof(*v.totals));
	return v;
}

static void make(struct fleet *fleet)
{
	size_t count = (size_t)fleet->services * fleet->parts;
	struct tables tables;

	fleet->views = mem_new_array(struct tables_view, count);
	fleet->segments = mem_new_array(struct segment, count);
	for (size_t i = 0; i < count; i++) {
		/* As a snapshot gives them: part by part. */
		uint32_t service = (uint32_t)(i % fleet->services);

		tables_init(&tables);
		add_part(fleet, &tables, service, (uint32_t)(i / fleet->services));
		fleet->views[i] = freeze(&tables);
		tables_free(&tables);
		segment_of_tables(&fleet->segments[i], &fleet->views[i]);
		fleet->segments[i].partition_key_hash = service + 1;
		fleet->nodes += fleet->views[i].nodes_count;
		fleet->rows += fleet->views[i].rows_count;
	}
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

static void measure_tree(const struct fleet *fleet, const char *what, const char *text)
{
	const struct query_source source = { fleet->segments,
					     (size_t)fleet->services * fleet->parts, NULL };
	struct query_params params = { .to_ns = INT64_MAX, .nodes_only = true };
	int64_t best_ns = INT64_MAX, best_cpu_ns = INT64_MAX;
	struct tree *tree = NULL;
	struct selector selector;
	struct err err;

	if (selector_parse(slice_of(text), &selector, NULL))
		abort();
	params.selector = &selector;
	for (int round = 0; round < ROUNDS; round++) {
		int64_t start_ns = clock_monotonic_ns(), start_cpu_ns = cpu_ns(), took_ns;

		tree_free(tree);
		if (query_tree(&source, &params, &tree, &err)) {
			fprintf(stderr, "merge_bench: %s\n", err.message);
			exit(2);
		}
		took_ns = clock_monotonic_ns() - start_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
		took_ns = cpu_ns() - start_cpu_ns;
		best_cpu_ns = took_ns < best_cpu_ns ? took_ns : best_cpu_ns;
	}
	printf("%-24s %8.1f ms, CPU %8.1f ms (%.1f M trie nodes/s of CPU), %u nodes\n", what,
	       (double)best_ns / 1e6, (double)best_cpu_ns / 1e6,
	       (double)fleet->nodes * 1e3 / (double)best_cpu_ns, tree->nodes_count);
	for (int step = 0; step < QUERY_STEPS; step++)
		printf("  step %d %8.1f ms\n", step, (double)tree->stats.took_ns[step] / 1e6);
	tree_free(tree);
	selector_free(&selector);
}

static void measure_values(const struct fleet *fleet)
{
	const struct query_source source = { fleet->segments,
					     (size_t)fleet->services * fleet->parts, NULL };
	int64_t best_ns = INT64_MAX;
	struct slice *values;
	size_t count = 0;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t start_ns = clock_monotonic_ns(), took_ns;
		struct arena arena;

		arena_init(&arena, 0);
		if (query_label_values(&source, NULL, SLICE_LITERAL("service_name"), 0, INT64_MAX,
				       &arena, &values, &count, NULL))
			abort();
		took_ns = clock_monotonic_ns() - start_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
		arena_free(&arena);
	}
	printf("%-24s %8.1f ms, %zu\n", "values of a label", (double)best_ns / 1e6, count);
}

int main(int argc, char **argv)
{
	struct fleet fleet = { .services = argc > 1 ? (uint32_t)atoi(argv[1]) : 100,
			       .parts = argc > 2 ? (uint32_t)atoi(argv[2]) : 50,
			       .stacks = argc > 3 ? (uint32_t)atoi(argv[3]) : 1000 };

	if (!fleet.services || !fleet.parts || !fleet.stacks) {
		fprintf(stderr, "usage: merge_bench [SERVICES [PARTS [STACKS]]]\n");
		return 2;
	}
	make(&fleet);
	printf("%u services x %u parts: %.1f M trie nodes, %.1f M rows\n", fleet.services,
	       fleet.parts, (double)fleet.nodes / 1e6, (double)fleet.rows / 1e6);
	measure_tree(&fleet, "all services", TYPE);
	measure_tree(&fleet, "one service", TYPE "{service_name=\"service-7\"}");
	measure_values(&fleet);
	return 0;
}
