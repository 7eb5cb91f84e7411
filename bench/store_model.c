/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_model - how fast the store takes a fleet in, and how small it keeps it.
 *
 *     store_model [DIR [MINUTES [SERVICES [PODS [CSV]]]]]
 *
 * The model (deterministic, seed fixed): services x pods, a report every 10 s with about 95
 * samples; stacks of a service follow Zipf-Mandelbrot, p_r ~ (r + 40)^-1.35 over 200,000, which
 * reproduces the distinct counts and the entropy of public Java profiles. A stack is a walk in a
 * random tree whose depth is near 22. The floor for this model is 0.87 bytes per row
 * plus the dictionary.
 *
 * Prints rows, time, rows/s of append (fdatasync included), bytes per row of the parts by kind, and
 * the time of one query over all rows, to a merged tree. CSV is a file for the same rows (batch,
 * time, series, stack, value), so that another database can be given them. DIR must not exist or be
 * empty; without one, a fresh directory below TMPDIR is left behind.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/store.h"
#include "server/query/accumulate.h"

#define STACKS 200000
#define FRAMES 20000
#define SAMPLES_PER_REPORT 95
#define DEPTH_MEAN 22
#define REPORT_NS (10 * CLOCK_NS_PER_S)
#define QUERY_ROUNDS 5
#define START_NS (1700000000 * CLOCK_NS_PER_S)

struct stack {
	uint32_t parent; /* another stack of the service, smaller; or UINT32_MAX at the root */
	uint32_t frame;
	uint32_t depth;
};

struct fleet {
	struct stack *stacks; /* one law for all services: the tree of each has other frames */
	uint32_t *by_rank;
	double *cumulative;
	uint64_t random;
};

static uint64_t next_random(struct fleet *fleet)
{
	uint64_t x = fleet->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return fleet->random = x;
}

static double next_unit(struct fleet *fleet)
{
	return (double)(next_random(fleet) >> 11) * 0x1p-53;
}

/*
 * A tree that grows like real ones: a new node continues the newest path, or branches off a
 * random node. About 3.5 nodes per stack that is ever a leaf.
 */
static void grow_tree(struct fleet *fleet, uint32_t nodes)
{
	fleet->stacks = mem_new_array(struct stack, nodes);
	fleet->stacks[0] = (struct stack){ UINT32_MAX, 0, 1 };
	for (uint32_t i = 1; i < nodes; i++) {
		uint32_t parent = i - 1;

		if (fleet->stacks[parent].depth > DEPTH_MEAN + next_random(fleet) % 16 ||
		    next_unit(fleet) < 0.28)
			parent = (uint32_t)(next_unit(fleet) * next_unit(fleet) * i);
		fleet->stacks[i] =
			(struct stack){ parent,
					(uint32_t)(next_unit(fleet) * next_unit(fleet) * FRAMES),
					fleet->stacks[parent].depth + 1 };
	}
}

static void make_fleet(struct fleet *fleet)
{
	uint32_t nodes = STACKS * 7 / 2;
	double sum = 0;

	fleet->random = 0x9e3779b97f4a7c15ull;
	grow_tree(fleet, nodes);
	fleet->by_rank = mem_new_array(uint32_t, STACKS);
	fleet->cumulative = mem_new_array(double, STACKS);
	for (uint32_t rank = 0; rank < STACKS; rank++) {
		uint32_t node;

		do
			node = (uint32_t)(next_random(fleet) % nodes);
		while (fleet->stacks[node].depth < DEPTH_MEAN / 3);
		fleet->by_rank[rank] = node;
		sum += pow(rank + 40.0, -1.35);
		fleet->cumulative[rank] = sum;
	}
	for (uint32_t rank = 0; rank < STACKS; rank++)
		fleet->cumulative[rank] /= sum;
}

static uint32_t draw_stack(struct fleet *fleet)
{
	double at = next_unit(fleet);
	uint32_t low = 0, high = STACKS - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (fleet->cumulative[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return fleet->by_rank[low];
}

static uint32_t text(struct tables *tables, const char *text)
{
	return tables_string(tables, slice_of(text));
}

static uint32_t numbered(struct tables *tables, const char *text, uint32_t number)
{
	char buffer[128];

	snprintf(buffer, sizeof(buffer), "%s%08x", text, number);
	return tables_string(tables, slice_of(buffer));
}

static uint32_t add_series(struct tables *tables, uint32_t service, uint32_t pod)
{
	struct label labels[] = {
		{ .name = text(tables, "node"), .value = numbered(tables, "node-", pod) },
		{ .name = text(tables, "pod"),
		  .value = numbered(tables, "pod-", (service + 1) * 2654435761u + pod) },
		{ .name = text(tables, "comm"), .value = numbered(tables, "service-", service) },
	};
	struct column column = { text(tables, "samples"), text(tables, "count"), COLUMN_DELTA };
	struct group group = { .name = text(tables, "on_cpu"),
			       .period_type = text(tables, "cpu"),
			       .period_unit = text(tables, "nanoseconds"),
			       .column_count = 1,
			       .period = 52631578 };

	return tables_series(tables, tables_label_set(tables, labels, 3),
			     tables_group(tables, &group, &column));
}

static uint32_t add_frame(struct tables *tables, uint32_t service, uint32_t id)
{
	struct frame frame = {
		.kind = FRAME_NATIVE,
		.flags = FRAME_ADDR_OFFSET,
		.address = 0x1000 + (uint64_t)id * 37 + service,
		.mapping_file = numbered(tables, "/usr/bin/service-", service),
		.build_id = numbered(tables, "0123456789abcdef0123456789abcdef", service * 40503u),
	};

	return tables_frame(tables, &frame);
}

static uint32_t add_stack(struct fleet *fleet, struct tables *tables, uint32_t service,
			  uint32_t stack)
{
	uint32_t path[64];
	size_t depth = 0;
	uint32_t node = 0;

	for (; stack != UINT32_MAX && depth < 64; stack = fleet->stacks[stack].parent)
		path[depth++] = fleet->stacks[stack].frame;
	while (depth)
		node = tables_node(tables, node, add_frame(tables, service, path[--depth]));
	return node;
}

/* The rows as text, when asked for. */
static struct {
	FILE *file;
	uint32_t batch;
} csv;

static void add_report(struct fleet *fleet, struct tables *tables, uint32_t service, uint32_t pod,
		       int64_t start_ns)
{
	uint32_t drawn[SAMPLES_PER_REPORT];

	tables_report_begin(tables, add_series(tables, service, pod), start_ns, REPORT_NS,
			    next_random(fleet));
	for (int i = 0; i < SAMPLES_PER_REPORT; i++)
		drawn[i] = draw_stack(fleet);
	for (int i = 0; i < SAMPLES_PER_REPORT; i++) {
		int64_t count = 0;
		bool first = true;

		for (int j = 0; j < SAMPLES_PER_REPORT; j++) {
			count += drawn[j] == drawn[i];
			first &= j >= i || drawn[j] != drawn[i];
		}
		if (!first)
			continue;
		tables_row(tables, add_stack(fleet, tables, service, drawn[i]), 0, &count);
		if (csv.file)
			fprintf(csv.file, "%u,%lld,%u,%u,%lld\n", csv.batch,
				(long long)(start_ns / CLOCK_NS_PER_MS), service * 1000 + pod,
				service * STACKS * 4 + drawn[i], (long long)count);
	}
}

static int64_t clock_at; /* follows the reports */

static int64_t bench_clock(void *context)
{
	(void)context;
	return clock_at;
}

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "store_model: %s: %s\n", what, err->message);
	exit(2);
}

static void print(const struct store_stat *stat, double append_s, double build_s, double seal_s)
{
	double rows = (double)stat->rows;

	printf("reports %llu  rows %llu  series %llu  stacks %llu\n",
	       (unsigned long long)stat->reports, (unsigned long long)stat->rows,
	       (unsigned long long)stat->series, (unsigned long long)stat->stacks);
	printf("append  %.2f s, %.2f M rows/s (making the batches: %.2f s)\n", append_s,
	       rows / append_s / 1e6, build_s);
	printf("seal    %.2f s, %.2f M rows/s\n", seal_s, rows / seal_s / 1e6);
	printf("bytes/row: samples %.3f + stacks %.3f + symbols %.3f = %.3f  (%.2f bytes/node)\n",
	       (double)stat->bytes_samples / rows, (double)stat->bytes_stacks / rows,
	       (double)stat->bytes_symbols / rows,
	       (double)(stat->bytes_samples + stat->bytes_stacks + stat->bytes_symbols) / rows,
	       (double)stat->bytes_stacks / (double)stat->stacks);
}

static double seconds_since(int64_t begin_ns)
{
	return (double)(clock_monotonic_ns() - begin_ns) / 1e9;
}

/* The sum per stack: what `group by stack` is elsewhere. */
static double sum_once(const struct query_source *source, const struct query_params *params)
{
	int64_t begin = clock_monotonic_ns();
	struct selection selection;
	struct accumulate_sums sums;
	struct err err = { 0 };
	struct work work;
	double seconds;

	work_begin(&work, &params->limits);
	if (select_make(&selection, &work, source, params, &err))
		die("select", &err);
	for (size_t view = 0; view < source->views_count; view++)
		if (accumulate_view(&selection, &selection.views[view], &sums, &err))
			die("accumulate", &err);
	seconds = seconds_since(begin);
	work_end(&work);
	return seconds;
}

static double tree_once(const struct query_source *source, const struct query_params *params)
{
	int64_t begin = clock_monotonic_ns();
	struct err err = { 0 };
	struct tree *tree;
	double seconds;

	if (query_tree(source, params, &tree, &err))
		die("query", &err);
	seconds = seconds_since(begin);
	tree_free(tree);
	return seconds;
}

static void ask(struct store *store, uint64_t rows)
{
	struct query_params params = { .to_ns = INT64_MAX, .nodes_only = true };
	double open_s, sum_s = 1e9, tree_s = 1e9;
	const struct tables_view **views;
	struct store_question question = { .to_ns = params.to_ns };
	struct store_snapshot snapshot;
	struct query_source source;
	struct selector selector;
	struct err err = { 0 };
	int64_t begin = clock_monotonic_ns();

	if (selector_parse(slice_of("on_cpu:samples:count:cpu:nanoseconds:delta"), &selector, &err))
		die("selector", &err);
	if (store_snapshot(store, &question, &snapshot, &err))
		die("snapshot", &err);
	open_s = seconds_since(begin);
	params.selector = &selector;
	views = mem_new_array(const struct tables_view *, snapshot.count);
	for (size_t i = 0; i < snapshot.count; i++)
		views[i] = &snapshot.segments[i].view;
	source = (struct query_source){ views, snapshot.count, NULL };
	for (int i = 0; i < QUERY_ROUNDS; i++) {
		sum_s = fmin(sum_s, sum_once(&source, &params));
		tree_s = fmin(tree_s, tree_once(&source, &params));
	}
	printf("merge   open and decode %.3f s, sum per stack %.4f s (%.1f M rows/s), to a tree "
	       "%.3f s\n",
	       open_s, sum_s, (double)rows / sum_s / 1e6, tree_s);
	free(views);
	store_snapshot_release(store, &snapshot);
	selector_free(&selector);
}

static const char *fresh_dir(void)
{
	static char path[4096];
	const char *parent = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/firn-store-bench-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(path)) {
		perror("store_model: make a directory");
		exit(2);
	}
	printf("directory %s\n", path);
	return path;
}

int main(int argc, char **argv)
{
	int minutes = argc > 2 ? atoi(argv[2]) : 10;
	uint32_t services = argc > 3 ? (uint32_t)atoi(argv[3]) : 10;
	uint32_t pods = argc > 4 ? (uint32_t)atoi(argv[4]) : 10;
	struct store_options options = { .clock = bench_clock,
					 .no_background = true,
					 .seal_bytes = (uint64_t)512 << 20 };
	double append_s = 0, build_s = 0, seal_s;
	struct fleet fleet;
	struct tables batch;
	struct store *store;
	struct store_stat stat;
	struct err err = { 0 };
	int64_t begin;

	if (argc > 5)
		csv.file = fopen(argv[5], "w");
	options.path = argc > 1 ? argv[1] : fresh_dir();
	clock_at = START_NS;
	if (store_open(&options, &store, &err))
		die("open", &err);
	make_fleet(&fleet);
	tables_init(&batch);
	for (int step = 0; step < minutes * 6; step++) {
		clock_at = START_NS + step * REPORT_NS;
		for (uint32_t pod = 0; pod < pods;
		     pod++) { /* one batch per node, as agents send them */
			struct append_result result;
			struct tables_view view;

			begin = clock_monotonic_ns();
			tables_reset(&batch);
			for (uint32_t service = 0; service < services; service++)
				add_report(&fleet, &batch, service, pod, clock_at);
			view = tables_view_of(&batch);
			build_s += (double)(clock_monotonic_ns() - begin) / 1e9;
			begin = clock_monotonic_ns();
			if (store_append(store, &view, &result, &err))
				die("append", &err);
			append_s += (double)(clock_monotonic_ns() - begin) / 1e9;
			csv.batch++;
		}
	}
	begin = clock_monotonic_ns();
	if (store_seal(store, &err))
		die("seal", &err);
	seal_s = (double)(clock_monotonic_ns() - begin) / 1e9;
	if (store_stat(store, &stat, &err))
		die("stat", &err);
	print(&stat, append_s, build_s, seal_s);
	ask(store, stat.rows);
	if (csv.file)
		fclose(csv.file);
	store_close(store);
	tables_free(&batch);
	free(fleet.stacks);
	free(fleet.by_rank);
	free(fleet.cumulative);
	return 0;
}
