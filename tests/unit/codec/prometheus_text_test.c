/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text format: the examples of its documentation, and lines that are wrong. */
#include "codec/wire/prometheus_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void samples_are_read_between_comments(void **state)
{
	struct slice text =
		slice_of("# HELP http_requests_total The total.\n"
			 "# TYPE http_requests_total counter\n"
			 "http_requests_total{method=\"post\",code=\"200\"} 1027 13956\n"
			 "\n"
			 "metric_without_timestamp_and_labels 12.47\n"
			 "rpc_bucket{le=\"+Inf\",} 1.5e3\n"
			 "weird{problem=\"division by zero\"} +Inf -3982045\n"
			 "last -7");
	struct prometheus_sample sample;
	struct strbuf value = { 0 };

	(void)state;
	assert_true(prometheus_next(&text, &sample));
	assert_true(slice_is(sample.name, "http_requests_total"));
	assert_true(sample.value == 1027);
	assert_true(prometheus_label(&sample, "code", &value));
	assert_string_equal(strbuf_text(&value), "200");
	assert_true(prometheus_label(&sample, "method", &value));
	assert_string_equal(strbuf_text(&value), "post");
	assert_false(prometheus_label(&sample, "meth", &value));
	assert_true(prometheus_next(&text, &sample));
	assert_true(slice_is(sample.name, "metric_without_timestamp_and_labels"));
	assert_true(sample.value == 12.47);
	assert_false(prometheus_label(&sample, "code", &value));
	assert_true(prometheus_next(&text, &sample));
	assert_true(prometheus_label(&sample, "le", &value));
	assert_string_equal(strbuf_text(&value), "+Inf");
	assert_true(sample.value == 1500);
	assert_true(prometheus_next(&text, &sample));
	assert_true(isinf(sample.value));
	assert_true(prometheus_next(&text, &sample));
	assert_true(sample.value == -7);
	assert_false(prometheus_next(&text, &sample));
	strbuf_free(&value);
}

static void label_values_are_unescaped(void **state)
{
	struct slice text = slice_of(
		"fs{path=\"C:\\\\DIR\\\\FILE.TXT\", error = \"no:\\n\\\"FILE}\\\"\" } 1\n");
	struct prometheus_sample sample;
	struct strbuf value = { 0 };

	(void)state;
	assert_true(prometheus_next(&text, &sample));
	assert_true(prometheus_label(&sample, "path", &value));
	assert_string_equal(strbuf_text(&value), "C:\\DIR\\FILE.TXT");
	assert_true(prometheus_label(&sample, "error", &value));
	assert_string_equal(strbuf_text(&value), "no:\n\"FILE}\"");
	strbuf_free(&value);
}

static void wrong_lines_are_passed_over(void **state)
{
	static const char *const lines[] = { "a{",	    "a{b",	 "a{b=",      "a{b=\"",
					     "a{b=\"c",	    "a{b=\"c\\", "a{b=\"c\"", "a{b=\"c\"} ",
					     "a",	    "a x",	 "a 1x",      "{} 1",
					     "a{=\"c\"} 1", "a{b=c} 1",	 "=1",	      "<html>" };

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct strbuf both = { 0 };
		struct prometheus_sample sample;
		struct slice text = slice_of(lines[i]);

		if (prometheus_next(&text, &sample))
			fail_msg("accepted: %s", lines[i]);
		strbuf_addf(&both, "%s\ngood 1\n", lines[i]);
		text = strbuf_slice(&both);
		assert_true(prometheus_next(&text, &sample));
		assert_true(slice_is(sample.name, "good"));
		strbuf_free(&both);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_read_between_comments),
		cmocka_unit_test(label_values_are_unescaped),
		cmocka_unit_test(wrong_lines_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
