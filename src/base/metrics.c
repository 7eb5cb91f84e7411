/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <assert.h>
#include <string.h>

#include "base/lock.h"

#define METRICS_MAX 1024

static struct metric *registered[METRICS_MAX];
static size_t registered_count;
static struct metric_collector *collectors;
static struct lock lock = LOCK_INITIALIZER("metrics", LOCK_METRICS); /* guards all three */

static bool is_registered(const struct metric *metric)
{
	for (size_t i = 0; i < registered_count; i++)
		if (registered[i] == metric)
			return true;
	return false;
}

void metrics_register(struct metric *const *metrics, size_t count)
{
	lock_take(&lock);
	for (size_t i = 0; i < count; i++) {
		if (!is_registered(metrics[i])) {
			assert(registered_count < METRICS_MAX);
			registered[registered_count++] = metrics[i];
		}
	}
	lock_give(&lock);
}

static bool seen_before(size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(registered[i]->name, registered[index]->name))
			return true;
	return false;
}

static void render_one(struct strbuf *out, const struct metric *metric)
{
	strbuf_addf(out, "%s%s ", metric->name, metric->labels);
	if (metric->scale == 1.0)
		strbuf_addf(out, "%lld\n", (long long)metric_get(metric));
	else
		strbuf_addf(out, "%.12g\n", (double)metric_get(metric) * metric->scale);
}

void metrics_render(struct strbuf *out)
{
	lock_take(&lock);
	for (size_t i = 0; i < registered_count; i++) {
		if (seen_before(i))
			continue;
		metrics_add_family(out, registered[i]->name,
				   registered[i]->type == METRIC_TYPE_COUNTER ? "counter" : "gauge",
				   registered[i]->help);
		for (size_t j = i; j < registered_count; j++)
			if (!strcmp(registered[j]->name, registered[i]->name))
				render_one(out, registered[j]);
	}
	for (struct metric_collector *at = collectors; at; at = at->next)
		at->render(at->context, out);
	lock_give(&lock);
}

void metrics_add_collector(struct metric_collector *collector)
{
	lock_take(&lock);
	collector->next = collectors;
	collectors = collector;
	lock_give(&lock);
}

void metrics_remove_collector(struct metric_collector *collector)
{
	lock_take(&lock);
	for (struct metric_collector **at = &collectors; *at; at = &(*at)->next) {
		if (*at == collector) {
			*at = collector->next;
			break;
		}
	}
	lock_give(&lock);
}

void metrics_add_family(struct strbuf *out, const char *name, const char *type, const char *help)
{
	strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_add_label_value(struct strbuf *out, struct slice value)
{
	bool valid = slice_is_utf8(value);

	for (size_t i = 0; i < value.len; i++) {
		char byte = value.data[i];

		if (byte == '\n')
			strbuf_add_text(out, "\\n");
		else if (byte == '"' || byte == '\\')
			strbuf_addf(out, "\\%c", byte);
		else if (!byte || (!valid && (unsigned char)byte >= 0x80))
			strbuf_add_byte(out, '?');
		else
			strbuf_add_byte(out, byte);
	}
}

void metrics_add_histogram(struct strbuf *out, const char *name, const char *labels,
			   const double *bounds, size_t bounds_count, const uint64_t *counts,
			   double sum)
{
	const char *comma = *labels ? "," : "";
	const char *open = *labels ? "{" : "", *close = *labels ? "}" : "";
	unsigned long long total = 0;

	for (size_t i = 0; i < bounds_count; i++) {
		total += counts[i];
		strbuf_addf(out, "%s_bucket{%s%sle=\"%.12g\"} %llu\n", name, labels, comma,
			    bounds[i], total);
	}
	total += counts[bounds_count];
	strbuf_addf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma, total);
	strbuf_addf(out, "%s_sum%s%s%s %.12g\n", name, open, labels, close, sum);
	strbuf_addf(out, "%s_count%s%s%s %llu\n", name, open, labels, close, total);
}
