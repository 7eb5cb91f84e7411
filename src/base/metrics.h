/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - counters and gauges, rendered in the Prometheus text format.
 *
 * A metric is a static object of the module that counts, declared with METRIC_COUNTER or
 * METRIC_GAUGE and made known through metrics_register at start-up. Adding is one
 * relaxed atomic add, safe from any thread. A metric may carry one fixed label set in its text
 * form: `{reason="late"}`.
 *
 * Metrics with changing label sets or with buckets are rendered by their owner: a metric_collector,
 * which metrics_render calls.
 */
#ifndef FIRN_BASE_METRICS_H
#define FIRN_BASE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/strbuf.h"

enum metric_type { METRIC_TYPE_COUNTER, METRIC_TYPE_GAUGE };

struct metric {
	enum metric_type type;
	const char *name;   /* firn_ingest_rows_total */
	const char *labels; /* "" or "{reason=\"late\"}" */
	const char *help;
	double scale; /* multiplied in when rendered: 1e-9 turns ns into seconds */
	_Atomic int64_t value;
};

#define METRIC_COUNTER(object, metric_name, metric_labels, metric_help)                            \
	struct metric object = {                                                                   \
		.type = METRIC_TYPE_COUNTER,                                                       \
		.name = metric_name,                                                               \
		.labels = metric_labels,                                                           \
		.help = metric_help,                                                               \
		.scale = 1.0,                                                                      \
	}
#define METRIC_GAUGE(object, metric_name, metric_labels, metric_help)                              \
	struct metric object = {                                                                   \
		.type = METRIC_TYPE_GAUGE,                                                         \
		.name = metric_name,                                                               \
		.labels = metric_labels,                                                           \
		.help = metric_help,                                                               \
		.scale = 1.0,                                                                      \
	}

/* Adds the metrics to the process-wide list; call once per module, from its init. At most 1024. */
void metrics_register(struct metric *const *metrics, size_t count);

/* Renders all registered metrics, those of one name together, with HELP and TYPE once each. */
void metrics_render(struct strbuf *out);

/*
 * `render` adds whole families (metrics_add_family and lines) and runs on the thread of whoever
 * renders, under the lock of the list: it calls nothing above but metrics_add_... and takes its
 * own lock where the data need one. The object stays its owner's and must live until it is removed.
 */
struct metric_collector {
	void (*render)(void *context, struct strbuf *out);
	void *context;
	struct metric_collector *next; /* the list's */
};

void metrics_add_collector(struct metric_collector *collector);
/*
 * When it returns, `render` does not run and never will. Accepts a collector that was never added.
 */
void metrics_remove_collector(struct metric_collector *collector);

/* The HELP and TYPE lines of a family; `type` is "counter", "gauge" or "histogram". */
void metrics_add_family(struct strbuf *out, const char *name, const char *type, const char *help);

/* A label value between its quotes: escaped, and made valid UTF-8 ('?' for what is not). */
void metrics_add_label_value(struct strbuf *out, struct slice value);

/*
 * The lines of a histogram. `labels` go between the braces ("" or `path="/"`). counts[i] are the
 * observations up to bounds[i] that are in no bucket before; counts[bounds_count] those above all.
 */
void metrics_add_histogram(struct strbuf *out, const char *name, const char *labels,
			   const double *bounds, size_t bounds_count, const uint64_t *counts,
			   double sum);

static inline void metric_add(struct metric *metric, int64_t value)
{
	atomic_fetch_add_explicit(&metric->value, value, memory_order_relaxed);
}

static inline void metric_set(struct metric *metric, int64_t value)
{
	atomic_store_explicit(&metric->value, value, memory_order_relaxed);
}

static inline int64_t metric_get(const struct metric *metric)
{
	return atomic_load_explicit(&metric->value, memory_order_relaxed);
}

#endif
