/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/durations.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "base/metrics.h"

#define NAME "firn_net_handler_seconds"

static const double bounds[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
				 0.25,	0.5,	1,     2.5,  5,	    10,	  30 };
#define BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

struct histogram {
	_Atomic uint64_t counts[BOUNDS + 1];
	_Atomic int64_t sum_ns;
};

struct durations {
	struct metric_collector collector;
	const struct net_route *routes;
	size_t count;
	struct histogram histograms[]; /* one per route */
};

void durations_note(struct durations *durations, const struct net_route *route, int64_t ns)
{
	struct histogram *histogram = &durations->histograms[route - durations->routes];
	size_t bucket = 0;

	while (bucket < BOUNDS && (double)ns > bounds[bucket] * 1e9)
		bucket++;
	atomic_fetch_add_explicit(&histogram->counts[bucket], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&histogram->sum_ns, ns, memory_order_relaxed);
}

static void render_route(const struct net_route *route, struct histogram *histogram,
			 struct strbuf *out)
{
	struct strbuf labels = { 0 };
	uint64_t counts[BOUNDS + 1], any = 0;

	for (size_t i = 0; i <= BOUNDS; i++)
		any |= counts[i] =
			atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
	if (!any)
		return;
	strbuf_addf(&labels, "method=\"%s\",path=\"", route->method);
	metrics_add_label_value(&labels, slice_of(route->path));
	strbuf_add_byte(&labels, '"');
	metrics_add_histogram(
		out, NAME, strbuf_text(&labels), bounds, BOUNDS, counts,
		(double)atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed) * 1e-9);
	strbuf_free(&labels);
}

static void render(void *context, struct strbuf *out)
{
	struct durations *durations = context;

	metrics_add_family(out, NAME, "histogram", "Time in handlers, by route.");
	for (size_t i = 0; i < durations->count; i++)
		render_route(&durations->routes[i], &durations->histograms[i], out);
}

struct durations *durations_new(const struct net_route *routes, size_t count)
{
	struct durations *durations =
		mem_calloc(1, sizeof(*durations) + count * sizeof(durations->histograms[0]));

	durations->routes = routes;
	durations->count = count;
	durations->collector = (struct metric_collector){ .render = render, .context = durations };
	metrics_add_collector(&durations->collector);
	return durations;
}

void durations_free(struct durations *durations)
{
	if (!durations)
		return;
	metrics_remove_collector(&durations->collector);
	free(durations);
}
