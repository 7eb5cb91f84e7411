/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: the Prometheus text format, and counting from several threads. */
#include "base/metrics.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process_metrics.h"

static METRIC_COUNTER(late, "firn_test_dropped_total", "{reason=\"late\"}", "Rows dropped.");
static METRIC_GAUGE(open_files, "firn_test_open_files", "", "Files open.");
static METRIC_COUNTER(early, "firn_test_dropped_total", "{reason=\"early\"}", "Rows dropped.");
static struct metric busy = {
	METRIC_TYPE_COUNTER, "firn_test_busy_seconds_total", "", "Time spent.", 1e-9, 0
};
static struct metric *const all[] = { &late, &open_files, &early, &busy };

static void rendering_follows_the_text_format(void **state)
{
	struct strbuf out = { 0 };

	(void)state;
	metrics_register(all, sizeof(all) / sizeof(all[0]));
	metrics_register(all, 2); /* again: nothing is doubled */
	metric_add(&late, 2);
	metric_add(&late, 1);
	metric_add(&early, INT64_C(9007199254740993)); /* not a double */
	metric_set(&open_files, -4);
	metric_set(&busy, 1500000000);
	metrics_render(&out);
	assert_string_equal(strbuf_text(&out),
			    "# HELP firn_test_dropped_total Rows dropped.\n"
			    "# TYPE firn_test_dropped_total counter\n"
			    "firn_test_dropped_total{reason=\"late\"} 3\n"
			    "firn_test_dropped_total{reason=\"early\"} 9007199254740993\n"
			    "# HELP firn_test_open_files Files open.\n"
			    "# TYPE firn_test_open_files gauge\n"
			    "firn_test_open_files -4\n"
			    "# HELP firn_test_busy_seconds_total Time spent.\n"
			    "# TYPE firn_test_busy_seconds_total counter\n"
			    "firn_test_busy_seconds_total 1.5\n");
	strbuf_free(&out);
}

#define THREADS 4
#define ADDITIONS 20000

static METRIC_COUNTER(shared, "firn_test_shared_total", "", "Added to by many.");

static void *add_many(void *unused)
{
	struct metric *const mine[] = { &shared };

	(void)unused;
	metrics_register(mine, 1);
	for (int i = 0; i < ADDITIONS; i++)
		metric_add(&shared, 1);
	return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
	pthread_t threads[THREADS];
	struct strbuf out = { 0 };

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
	metrics_render(&out);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(metric_get(&shared), THREADS * ADDITIONS);
	strbuf_free(&out);
}

static void render_cats(void *context, struct strbuf *out)
{
	const char *name = context;

	metrics_add_family(out, "firn_test_cats_total", "counter", "Cats.");
	strbuf_add_text(out, "firn_test_cats_total{name=\"");
	metrics_add_label_value(out, slice_of(name));
	strbuf_add_text(out, "\"} 1\n");
}

static size_t times_in(const struct strbuf *text, const char *part)
{
	size_t times = 0;

	for (const char *at = strbuf_text(text); (at = strstr(at, part)); at++)
		times++;
	return times;
}

static void collectors_are_asked_until_they_are_removed(void **state)
{
	char plain[] = "tom", hostile[] = "a\"b\\c\nd";
	struct metric_collector first = { .render = render_cats, .context = plain };
	struct metric_collector second = { .render = render_cats, .context = hostile };
	struct metric_collector never = { .render = render_cats, .context = plain };
	struct strbuf out = { 0 };

	(void)state;
	metrics_add_collector(&first);
	metrics_add_collector(&second);
	metrics_remove_collector(&never);
	metrics_render(&out);
	assert_int_equal(times_in(&out, "firn_test_cats_total{name=\"tom\"} 1\n"), 1);
	assert_int_equal(times_in(&out, "firn_test_cats_total{name=\"a\\\"b\\\\c\\nd\"} 1\n"), 1);
	metrics_remove_collector(&first);
	strbuf_clear(&out);
	metrics_render(&out);
	assert_int_equal(times_in(&out, "tom"), 0);
	assert_int_equal(times_in(&out, "firn_test_cats_total{"), 1);
	metrics_remove_collector(&second);
	strbuf_free(&out);
}

static void label_values_are_always_utf8(void **state)
{
	struct strbuf out = { 0 };

	(void)state;
	metrics_add_label_value(&out, slice_of("caf\xc3\xa9"));
	metrics_add_label_value(&out, slice_from("|a\xff\0b", 5));
	assert_string_equal(strbuf_text(&out), "caf\xc3\xa9|a??b");
	strbuf_free(&out);
}

static void histograms_are_cumulative(void **state)
{
	static const double bounds[] = { 2.56e-07, 0.5 };
	static const uint64_t counts[] = { 3, 0, 4 };
	struct strbuf out = { 0 };

	(void)state;
	metrics_add_histogram(&out, "firn_test_s", "", bounds, 2, counts, 12.25);
	metrics_add_histogram(&out, "firn_test_s", "path=\"/\"", bounds, 1, counts, 0.5);
	assert_string_equal(strbuf_text(&out), "firn_test_s_bucket{le=\"2.56e-07\"} 3\n"
					       "firn_test_s_bucket{le=\"0.5\"} 3\n"
					       "firn_test_s_bucket{le=\"+Inf\"} 7\n"
					       "firn_test_s_sum 12.25\n"
					       "firn_test_s_count 7\n"
					       "firn_test_s_bucket{path=\"/\",le=\"2.56e-07\"} 3\n"
					       "firn_test_s_bucket{path=\"/\",le=\"+Inf\"} 3\n"
					       "firn_test_s_sum{path=\"/\"} 0.5\n"
					       "firn_test_s_count{path=\"/\"} 3\n");
	strbuf_free(&out);
}

static double value_of(const struct strbuf *text, const char *name)
{
	const char *at = strstr(strbuf_text(text), name);

	assert_non_null(at);
	return strtod(at + strlen(name), NULL);
}

static void the_process_is_told_as_others_tell_theirs(void **state)
{
	struct strbuf before = { 0 }, after = { 0 };
	int more[8];

	(void)state;
	process_metrics_register();
	process_metrics_register();
	metrics_render(&before);
	for (size_t i = 0; i < 8; i++)
		more[i] = dup(0);
	metrics_render(&after);
	for (size_t i = 0; i < 8; i++)
		close(more[i]);
	assert_int_equal(times_in(&after, "\nprocess_open_fds "), 1);
	assert_true(value_of(&after, "\nprocess_open_fds ") ==
		    value_of(&before, "\nprocess_open_fds ") + 8);
	assert_true(value_of(&after, "\nprocess_cpu_seconds_total ") >=
		    value_of(&before, "\nprocess_cpu_seconds_total "));
	assert_true(value_of(&after, "\nprocess_resident_memory_bytes ") > 65536);
	assert_true(value_of(&after, "\nprocess_resident_memory_bytes ") <
		    value_of(&after, "\nprocess_virtual_memory_bytes "));
	assert_true(fabs(value_of(&after, "\nprocess_start_time_seconds ") - (double)time(NULL)) <
		    600);
	assert_int_equal(times_in(&after, "firn_build_info{version=\"" FIRN_VERSION "\"} 1\n"), 1);
	strbuf_free(&before);
	strbuf_free(&after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rendering_follows_the_text_format),
		cmocka_unit_test(nothing_is_lost_between_threads),
		cmocka_unit_test(collectors_are_asked_until_they_are_removed),
		cmocka_unit_test(label_values_are_always_utf8),
		cmocka_unit_test(histograms_are_cumulative),
		cmocka_unit_test(the_process_is_told_as_others_tell_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
