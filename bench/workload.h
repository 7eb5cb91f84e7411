/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload - the rows that the store's benchmarks feed to firn and to its peers: one maker for all,
 * deterministic by seed, or what agents really sent.
 *
 * Everything lies in one set of tables, in the order in which it was made. A batch is what one
 * agent sends at once: reports batch_ends[i - 1] .. batch_ends[i].
 *
 * The law of stacks (fleet): Zipf-Mandelbrot, p_r ~ (r + 40)^-1.35 over 200,000 per service, which
 * reproduces the distinct counts and the entropy of public Java profiles; a stack is 22 frames deep
 * on the average and shares its root side with more frequent ones. Small processes: p_r ~ (r +
 * 3)^-1.2 over 400 per program.
 */
#ifndef FIRN_BENCH_WORKLOAD_H
#define FIRN_BENCH_WORKLOAD_H

#include "base/clock.h"
#include "base/err.h"
#include "model/tables.h"

#define WORKLOAD_START_NS (1700006400 * CLOCK_NS_PER_S) /* a whole hour, and day */

struct workload_fleet {
	uint32_t services, pods, hosts_run; /* services per pod; 0 = all */
	uint32_t report_s;		    /* seconds per report */
	double mean;			    /* samples per report */
	int64_t after, minutes;		    /* of the start; how many */
	uint32_t stacks;		    /* per service */
	uint32_t labels;		    /* further labels per series */
	uint32_t first;			    /* number of the first service */
	bool times;			    /* each sample's */
};

struct workload {
	struct tables tables;
	uint32_t *batch_ends;
	size_t batches_count, batches_capacity;
	bool with_times;
	/* By node: how probable it is in its service; NULL when nobody knows (real data). */
	double *law;
	size_t law_capacity;
};

/* Services of hundreds of pods: many rows per report. */
void workload_make_fleet(struct workload *workload, const struct workload_fleet *fleet);

/* One host with `processes` small programs, each with its own few stacks, most of them idle. */
void workload_make_host(struct workload *workload, uint32_t processes, int64_t minutes);

/* Requests that agents sent (store_capture), through the same door as in the server. */
int workload_read_requests(struct workload *workload, const char *path, struct err *err);

void workload_free(struct workload *workload);

/* Copies the batches' reports into empty tables, one batch after the other. */
struct workload_copier {
	const struct workload *workload;
	struct tables_view view;
	uint32_t *node_ids, *node_epochs, *frame_ids, *frame_epochs; /* by id in the workload */
	uint32_t epoch;
};
void workload_copier_begin(struct workload_copier *copier, const struct workload *workload);
void workload_copier_end(struct workload_copier *copier);
void workload_copy_batch(struct workload_copier *copier, size_t batch, struct tables *into);

/* The label that names the partition (docs/decisions/0005), by series; "" when there is none. */
struct slice workload_service(const struct tables_view *view, uint32_t series);

#endif
