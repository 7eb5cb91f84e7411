/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#define METRICS_MAX 1024

static struct metric *registered[METRICS_MAX];
static size_t registered_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both */

static bool is_registered(const struct metric *metric)
{
	for (size_t i = 0; i < registered_count; i++)
		if (registered[i] == metric)
			return true;
	return false;
}

void metrics_register(struct metric *const *metrics, size_t count)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++) {
		if (!is_registered(metrics[i])) {
			assert(registered_count < METRICS_MAX);
			registered[registered_count++] = metrics[i];
		}
	}
	pthread_mutex_unlock(&lock);
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
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < registered_count; i++) {
		if (seen_before(i))
			continue;
		strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", registered[i]->name,
			    registered[i]->help, registered[i]->name,
			    registered[i]->type == METRIC_TYPE_COUNTER ? "counter" : "gauge");
		for (size_t j = i; j < registered_count; j++)
			if (!strcmp(registered[j]->name, registered[i]->name))
				render_one(out, registered[j]);
	}
	pthread_mutex_unlock(&lock);
}
