/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/floor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/strbuf.h"

struct symbol {
	uint32_t partition, stack, label_set;
	double count;
};

struct counting {
	struct tables_view view;
	uint32_t *partitions; /* by series */
	struct symbol *symbols;
	size_t count, capacity;
	struct idmap map;
	double *partition_samples;
	double *series_samples, *series_reports;
};

static bool symbol_equal(const void *context, uint32_t id, const void *key)
{
	const struct symbol *a = &((const struct counting *)context)->symbols[id], *b = key;

	return a->partition == b->partition && a->stack == b->stack && a->label_set == b->label_set;
}

static struct symbol *symbol_of(struct counting *counting, const struct symbol *key)
{
	uint64_t hash = hash_bytes(key, offsetof(struct symbol, count));
	uint32_t id = idmap_find(&counting->map, hash, symbol_equal, counting, key);

	if (id == IDMAP_NONE) {
		mem_grow(counting->symbols, counting->count, counting->capacity);
		id = (uint32_t)counting->count++;
		counting->symbols[id] = *key;
		idmap_add(&counting->map, hash, id);
	}
	return &counting->symbols[id];
}

/* Numbers (group, service) pairs, through strings of other tables. */
static uint32_t find_partitions(struct counting *counting)
{
	const struct tables_view *view = &counting->view;
	struct tables names;
	uint32_t count;

	tables_init(&names);
	counting->partitions = mem_new_array(uint32_t, view->series_count);
	for (uint32_t i = 0; i < view->series_count; i++) {
		struct strbuf name = { 0 };

		strbuf_addf(&name, "%u:", view->series[i].group);
		strbuf_add_slice(&name, workload_service(view, i));
		counting->partitions[i] = tables_string(&names, strbuf_slice(&name)) - 1;
		strbuf_free(&name);
	}
	count = (uint32_t)names.strings.count - 1;
	tables_free(&names);
	return count;
}

struct visit {
	const struct report *report;
	uint32_t partition;
	struct symbol key; /* of the row */
	double value;
};

typedef void visit_f(struct counting *counting, const struct visit *visit,
		     const struct workload *workload, struct floor_bits *ret);

static void count_row(struct counting *counting, const struct visit *visit,
		      const struct workload *workload, struct floor_bits *ret)
{
	(void)workload;
	(void)ret;
	symbol_of(counting, &visit->key)->count += visit->value;
	counting->partition_samples[visit->partition] += visit->value;
	counting->series_samples[visit->report->series] += visit->value;
}

static void cost_row(struct counting *counting, const struct visit *visit,
		     const struct workload *workload, struct floor_bits *ret)
{
	double p = symbol_of(counting, &visit->key)->count /
		   counting->partition_samples[visit->partition];
	double repeats = lgamma(visit->value + 1) / M_LN2;

	ret->observed_bits += repeats - visit->value * log2(p);
	if (workload->law)
		ret->known_bits += repeats - visit->value * log2(workload->law[visit->key.stack]);
	ret->samples += (uint64_t)visit->value;
}

/* Every row of every report; the first column of groups that have several. */
static void each_row(struct counting *counting, const struct workload *workload, visit_f *row,
		     struct floor_bits *ret)
{
	const struct tables_view *view = &counting->view;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		struct visit visit = { .report = &view->reports[i] };
		uint32_t columns = tables_series_columns(view, visit.report->series);

		visit.partition = counting->partitions[visit.report->series];
		for (uint32_t j = 0; j < visit.report->row_count; j++) {
			const struct row *at = &view->rows[visit.report->row_first + j];

			visit.key = (struct symbol){ visit.partition, at->stack, at->label_set, 0 };
			visit.value = (double)view->values[visit.report->value_first + j * columns];
			row(counting, &visit, workload, ret);
		}
	}
}

static int time_order(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

/* Which series report in which window, and when windows begin. */
static double times_bits(const struct tables_view *view, const double *series_reports)
{
	int64_t *starts = mem_new_array(int64_t, view->reports_count + (size_t)1);
	double windows = 0, bits = 0, gap, deviations = 0;

	for (uint32_t i = 0; i < view->reports_count; i++)
		starts[i] = view->reports[i].start_ns;
	qsort(starts, view->reports_count, sizeof(*starts), time_order);
	for (uint32_t i = 0; i < view->reports_count; i++)
		if (!i || starts[i] != starts[i - 1])
			starts[(size_t)windows++] = starts[i];
	gap = windows > 1 ? (double)(starts[(size_t)windows - 1] - starts[0]) / (windows - 1) : 0;
	for (size_t i = 1; i < (size_t)windows; i++)
		deviations += fabs((double)(starts[i] - starts[i - 1]) - gap);
	if (windows > 1)
		bits += windows * log2(1 + 2 * deviations / (windows - 1));
	for (uint32_t i = 0; i < view->series_count; i++) {
		double p = fmin(series_reports[i] / windows, 1);

		if (p > 0 && p < 1)
			bits -= windows * (p * log2(p) + (1 - p) * log2(1 - p));
	}
	free(starts);
	return bits;
}

/* Totals, and what the freedom of order saves. */
static void add_reports(struct counting *counting, struct floor_bits *ret)
{
	const struct tables_view *view = &counting->view;
	double *poisson = mem_new_array(double, view->series_count);
	double *geometric = mem_new_array(double, view->series_count);
	double freedom = 0;

	for (uint32_t i = 0; i < view->reports_count; i++) {
		const struct report *report = &view->reports[i];
		double n = (double)view->totals[report->total_first];
		double mean = counting->series_samples[report->series] /
			      counting->series_reports[report->series];

		freedom += lgamma(n + 1) / M_LN2;
		if (mean <= 0)
			continue;
		poisson[report->series] -= (n * log(mean) - mean - lgamma(n + 1)) / M_LN2;
		geometric[report->series] += log2(mean + 1) + n * log2((mean + 1) / mean);
	}
	for (uint32_t i = 0; i < view->series_count; i++)
		ret->totals_bits += fmin(poisson[i], geometric[i]);
	ret->observed_bits -= freedom;
	if (ret->known_bits > 0)
		ret->known_bits -= freedom;
	free(poisson);
	free(geometric);
}

struct floor_bits floor_of(const struct workload *workload)
{
	struct counting counting = { .view = tables_view_of(&workload->tables) };
	const struct tables_view *view = &counting.view;
	struct floor_bits ret = { .rows = view->rows_count,
				  .reports = view->reports_count,
				  .series = view->series_count,
				  .nodes = view->nodes_count - 1 };

	ret.partitions = find_partitions(&counting);
	counting.partition_samples = mem_new_array(double, ret.partitions);
	counting.series_samples = mem_new_array(double, view->series_count);
	counting.series_reports = mem_new_array(double, view->series_count);
	for (uint32_t i = 0; i < view->reports_count; i++)
		counting.series_reports[view->reports[i].series]++;
	each_row(&counting, workload, count_row, &ret);
	each_row(&counting, workload, cost_row, &ret);
	add_reports(&counting, &ret);
	ret.times_bits = times_bits(view, counting.series_reports);
	ret.stacks = counting.count;
	free(counting.partitions);
	free(counting.symbols);
	idmap_free(&counting.map);
	free(counting.partition_samples);
	free(counting.series_samples);
	free(counting.series_reports);
	return ret;
}

void floor_print(const struct floor_bits *bits)
{
	double rows = (double)bits->rows, more = bits->totals_bits + bits->times_bits;
	double best = bits->known_bits > 0 ? bits->known_bits : bits->observed_bits;

	printf("{\"rows\": %llu, \"samples\": %llu, \"reports\": %llu, \"series\": %llu, "
	       "\"partitions\": %llu, \"stacks\": %llu, \"nodes\": %llu, ",
	       (unsigned long long)bits->rows, (unsigned long long)bits->samples,
	       (unsigned long long)bits->reports, (unsigned long long)bits->series,
	       (unsigned long long)bits->partitions, (unsigned long long)bits->stacks,
	       (unsigned long long)bits->nodes);
	printf("\"floor\": %.4f, \"floor_observed\": %.4f, \"floor_rows\": %.4f, "
	       "\"floor_totals\": %.4f, \"floor_times\": %.4f}\n",
	       (best + more) / 8 / rows, (bits->observed_bits + more) / 8 / rows, best / 8 / rows,
	       bits->totals_bits / 8 / rows, bits->times_bits / 8 / rows);
}
