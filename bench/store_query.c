/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_query - asks a store for trees, time series and lists, and prints what each cost.
 *
 *     store_query DIR SELECTOR [LABEL]
 *
 * Each query is asked ROUNDS times in one process, so that all but the first are warm: the table
 * of functions, a picture, the tree of all reports and, with LABEL, one line per value of it in
 * steps of five minutes, and its values. Times are from taking the snapshot to the finished answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "server/persist/store.h"
#include "server/query/index/index_cache.h"
#include "server/query/render/render.h"

#define ROUNDS 5
#define WIDTH_PX 1920
#define STEP_NS (300 * CLOCK_NS_PER_S)

struct asking {
	struct store *store;
	struct selector selector;
	struct slice label; /* "" = none */
	int64_t from_ns, to_ns;
	struct query_stats stats;
	uint64_t size; /* of the answer: nodes, points, values */
};

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "store_query: %s: %s\n", what, err->message);
	exit(2);
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

static int ask_tree(struct asking *a, const struct query_source *source, struct err *err)
{
	const struct query_params params = { .selector = &a->selector,
					     .from_ns = a->from_ns,
					     .to_ns = a->to_ns,
					     .nodes_only = true };
	struct tree *tree;
	int rc = query_tree(source, &params, &tree, err);

	if (rc)
		return rc;
	a->stats = tree->stats;
	a->size = tree->nodes_count;
	tree_free(tree);
	return 0;
}

/* As the UI draws it: format=binary of /api/v1/query. */
static int ask_picture(struct asking *a, const struct query_source *source, struct err *err)
{
	const struct query_params params = { .selector = &a->selector,
					     .from_ns = a->from_ns,
					     .to_ns = a->to_ns,
					     .nodes_only = true,
					     .width_px = WIDTH_PX };
	struct strbuf out = { 0 };
	struct tree *tree;
	int rc = query_tree(source, &params, &tree, err);

	if (rc)
		return rc;
	render_binary(tree, WIDTH_PX, &out);
	a->stats = tree->stats;
	a->size = tree->nodes_count;
	strbuf_free(&out);
	tree_free(tree);
	return 0;
}

/* The ten largest functions, which need no tree: as `firn query --limit 10`. */
static int ask_table(struct asking *a, const struct query_source *source, struct err *err)
{
	const struct query_params params = { .selector = &a->selector,
					     .from_ns = a->from_ns,
					     .to_ns = a->to_ns,
					     .nodes_only = true,
					     .rows_only = true,
					     .rows_limit = 10 };
	struct tree *tree;
	int rc = query_tree(source, &params, &tree, err);

	if (rc)
		return rc;
	a->stats = tree->stats;
	a->size = tree->rows_count;
	tree_free(tree);
	return 0;
}

static int ask_series(struct asking *a, const struct query_source *source, struct err *err)
{
	struct query_range_params params = {
		.base = { .selector = &a->selector, .from_ns = a->from_ns, .to_ns = a->to_ns },
		.step_ns = STEP_NS
	};
	struct query_series_set set;
	int rc;

	params.base.group_by[params.base.group_by_count++] = a->label;
	rc = query_series(source, &params, &set, err);
	if (rc)
		return rc;
	a->stats = set.stats;
	a->size = set.series_count;
	query_series_free(&set);
	return 0;
}

static int ask_values(struct asking *a, const struct query_source *source, struct err *err)
{
	struct slice *values;
	struct arena arena;
	size_t count = 0;
	int rc;

	arena_init(&arena, 0);
	rc = query_label_values(source, &a->selector, a->label, a->from_ns, a->to_ns, &arena,
				&values, &count, err);
	a->stats = (struct query_stats){ 0 };
	a->size = count;
	arena_free(&arena);
	return rc;
}

static struct index_cache *indexes; /* asked about before: as the server keeps them */

static void measure(struct asking *a, const char *what, const struct store_query *query,
		    int (*ask)(struct asking *, const struct query_source *, struct err *))
{
	int64_t first_ns = 0, best_ns = INT64_MAX, best_cpu_ns = INT64_MAX,
		best_open_ns = INT64_MAX;
	struct strbuf text = { 0 };
	struct err err = { 0 };

	for (int round = 0; round < ROUNDS; round++) {
		int64_t start_ns = clock_monotonic_ns(), start_cpu_ns = cpu_ns(), took_ns, open_ns;
		struct store_snapshot snapshot;
		struct query_source source;

		if (store_snapshot(a->store, query, &snapshot, &err))
			die("snapshot", &err);
		open_ns = clock_monotonic_ns() - start_ns;
		source = (struct query_source){ snapshot.segments, snapshot.count, NULL, indexes };
		if (ask(a, &source, &err))
			die(what, &err);
		store_snapshot_release(a->store, &snapshot);
		took_ns = clock_monotonic_ns() - start_ns;
		first_ns = round ? first_ns : took_ns;
		best_ns = took_ns < best_ns ? took_ns : best_ns;
		best_open_ns = open_ns < best_open_ns ? open_ns : best_open_ns;
		took_ns = cpu_ns() - start_cpu_ns;
		best_cpu_ns = took_ns < best_cpu_ns ? took_ns : best_cpu_ns;
	}
	printf("%s: first %.1f ms, then %.1f ms (snapshot %.1f), CPU %.1f ms; answer of %llu; "
	       "%.1f M rows/s of CPU\n",
	       what, (double)first_ns / 1e6, (double)best_ns / 1e6, (double)best_open_ns / 1e6,
	       (double)best_cpu_ns / 1e6, (unsigned long long)a->size,
	       (double)a->stats.rows_read * 1e3 / (double)best_cpu_ns);
	render_explain_text(&a->stats, &text);
	printf("%s\n", strbuf_text(&text));
	strbuf_free(&text);
}

int main(int argc, char **argv)
{
	struct store_options options = { .path = argc > 1 ? argv[1] : "", .no_background = true };
	struct asking a = { .from_ns = 0, .to_ns = INT64_MAX / 2 };
	struct store_query query;
	struct store_stat stat;
	struct err err = { 0 };

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: store_query DIR SELECTOR [LABEL]\n");
		return 2;
	}
	indexes = index_cache_new(INDEX_CACHE_BYTES_DEFAULT);
	if (selector_parse(slice_of(argv[2]), &a.selector, &err))
		die("selector", &err);
	a.label = slice_of(argc > 3 ? argv[3] : "");
	if (store_open(&options, &a.store, &err) || store_stat(a.store, &stat, &err))
		die("open", &err);
	a.from_ns = stat.oldest_ns;
	a.to_ns = stat.newest_ns + 1;
	printf("%llu rows, %llu reports, %llu parts, %.1f MB\n", (unsigned long long)stat.rows,
	       (unsigned long long)stat.reports, (unsigned long long)stat.parts,
	       (double)stat.bytes_total / 1e6);
	query = (struct store_query){
		.from_ns = a.from_ns, .to_ns = a.to_ns, .selector = &a.selector, .sums_only = true
	};
	measure(&a, "table", &query, ask_table);
	measure(&a, "picture", &query, ask_picture);
	measure(&a, "tree", &query, ask_tree);
	query.sums_only = false;
	measure(&a, "picture without roll-ups", &query, ask_picture);
	measure(&a, "tree without roll-ups", &query, ask_tree);
	if (a.label.len) {
		query.names = &a.label;
		query.names_count = 1;
		query.step_ns = STEP_NS;
		measure(&a, "series", &query, ask_series);
		query.step_ns = 0;
		query.by_series = true;
		measure(&a, "values", &query, ask_values);
	}
	store_close(a.store);
	index_cache_free(indexes);
	selector_free(&a.selector);
	return 0;
}
