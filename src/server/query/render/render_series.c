/* SPDX-License-Identifier: Apache-2.0 */
/* render_series - time series for the terminal. */
#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "base/printable.h"
#include "server/query/render/render.h"
#include "server/query/diff/series_noise.h"

static void add_time(struct strbuf *out, int64_t at_ns)
{
	int64_t rest_ns = at_ns % CLOCK_NS_PER_S;
	time_t seconds = (time_t)(at_ns / CLOCK_NS_PER_S);
	char text[64];
	struct tm parts;

	if (rest_ns < 0) {
		rest_ns += CLOCK_NS_PER_S;
		seconds--;
	}
	if (!gmtime_r(&seconds, &parts) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts)) {
		strbuf_addf(out, "%" PRId64 "ns", at_ns);
		return;
	}
	strbuf_add_text(out, text);
	if (rest_ns)
		strbuf_addf(out, ".%03d", (int)(rest_ns / CLOCK_NS_PER_MS));
	strbuf_add_byte(out, 'Z');
}

static void add_labels(struct strbuf *out, const struct query_series *series)
{
	strbuf_add_byte(out, '{');
	for (size_t i = 0; i < series->labels_count; i++) {
		strbuf_add_text(out, i ? "," : "");
		printable_add(out, series->labels[i].name);
		strbuf_add_text(out, "=\"");
		printable_add(out, series->labels[i].value);
		strbuf_add_byte(out, '"');
	}
	strbuf_add_text(out, "}\n");
}

/* The two ends of a value's interval; what is not known is a dash. */
static void add_interval(struct strbuf *out, const struct series_noise *noise, int64_t value)
{
	double low, high;

	if (noise->method == SIGNIFICANCE_NONE) {
		strbuf_add_text(out, "            -            -");
		return;
	}
	series_noise_interval(noise, value, &low, &high);
	strbuf_addf(out, " %12.0f %12.0f", low, high);
}

void render_series_text(const struct query_series_set *set, bool intervals, struct strbuf *out)
{
	double samples_per_value = series_noise_samples(set);

	for (size_t i = 0; i < set->series_count; i++) {
		const struct query_series *series = &set->series[i];
		struct series_noise noise = series_noise_of(series, samples_per_value);

		add_labels(out, series);
		for (size_t at = 0; at < series->points_count; at++) {
			const struct query_point *point = &series->points[at];

			strbuf_add_text(out, "  ");
			add_time(out, point->at_ns);
			strbuf_addf(out, " %12" PRId64 " %14.6g", point->value, point->per_second);
			if (intervals)
				add_interval(out, &noise, point->value);
			strbuf_add_byte(out, '\n');
		}
	}
}
