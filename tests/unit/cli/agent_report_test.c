/* SPDX-License-Identifier: Apache-2.0 */
/* The report on an agent: what is read out of its metrics, quantiles, and hostile metrics. */
#include "cli/agent_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/collect/accounts.h"

static const char metrics[] =
	"# TYPE firn_agent_stacks_total counter\n"
	"firn_agent_stacks_total{end=\"complete\"} 90\n"
	"firn_agent_stacks_total{end=\"table_pending\"} 7\n"
	"firn_agent_stacks_total{end=\"no_mappings\"} 3\n"
	"firn_agent_stacks_total{end=\"of a later version\"} 5\n"
	"firn_agent_binary_stacks_total{binary=\"libx.so\",end=\"complete\"} 1\n"
	"firn_agent_binary_stacks_total{binary=\"libx.so\",end=\"table_pending\"} 7\n"
	"firn_agent_binary_stacks_total{binary=\"bash\",end=\"complete\"} 89\n"
	"firn_agent_samples_total 105\n"
	"firn_agent_lost_samples_total{reason=\"ring_full\"} 2\n"
	"firn_agent_unwind_tables 4\n"
	"firn_agent_unwind_rows 1000\n"
	"firn_agent_unwind_missing{path=\"/lib/large.so\",reason=\"no room\"} 1\n"
	"firn_agent_bpf_sample_seconds_bucket{le=\"1e-06\"} 0\n"
	"firn_agent_bpf_sample_seconds_bucket{le=\"2e-06\"} 50\n"
	"firn_agent_bpf_sample_seconds_bucket{le=\"4e-06\"} 90\n"
	"firn_agent_bpf_sample_seconds_bucket{le=\"+Inf\"} 100\n"
	"firn_agent_bpf_sample_seconds_sum 0.0003\n"
	"firn_agent_bpf_sample_seconds_count 100\n";

static void it_says_what_was_cut_lost_and_loaded(void **state)
{
	struct agent_report report;
	struct strbuf out = { 0 };
	const char *text;

	(void)state;
	agent_report_read(&report, slice_of(metrics));
	agent_report_text(&report, 10, &out);
	text = strbuf_text(&out);
	assert_non_null(strstr(text, "100: 90 whole (90.00 %), 10 cut"));
	assert_non_null(strstr(text, "libx.so  7 of 8: table_pending 7\n"));
	assert_null(strstr(text, "bash")); /* nothing of it was cut */
	assert_non_null(strstr(text, "105 taken, 2 lost, ring_full 2\n"));
	assert_non_null(strstr(text, "4 loaded: 1000 rows"));
	assert_non_null(strstr(text, "no table\n  /lib/large.so: no room\n"));
	assert_non_null(strstr(text, "3.0 us per sample; half under 2.0, 90 % under 4.0"));
	strbuf_free(&out);
	agent_report_free(&report);
}

static void each_end_has_its_words(void **state)
{
	struct strbuf text = { 0 }, out = { 0 };
	struct agent_report report;

	(void)state;
	for (int end = 0; end < STACK_ENDS; end++)
		strbuf_addf(&text, "firn_agent_stacks_total{end=\"%s\"} 7\n",
			    accounts_end_name((enum stack_end)end));
	agent_report_read(&report, strbuf_slice(&text));
	agent_report_text(&report, 10, &out);
	assert_null(strstr(strbuf_text(&out), "(null)"));
	agent_report_free(&report);
	strbuf_free(&text);
	strbuf_free(&out);
}

static void languages_are_told_with_their_names(void **state)
{
	static const char seen[] =
		"firn_agent_runtime_offsets{runtime=\"python\",version=\"3.11.7\",source=\"table\"}"
		" 1\n"
		"firn_agent_runtime_offsets{runtime=\"python\",version=\"3.13.0\",source=\"debug_"
		"offsets\"} 1\n"
		"firn_agent_runtime_offsets{runtime=\"beam\",version=\"99\x1b\",source=\"unknown "
		"layout\"} 1\n"
		"firn_agent_runtime_frames_total{runtime=\"python\",result=\"named\"} 999\n"
		"firn_agent_runtime_frames_total{runtime=\"python\",result=\"not_read\"} 1\n"
		"firn_agent_runtime_frames_total{runtime=\"python\",result=\"cut\"} 3\n"
		"firn_agent_runtime_frames_total{runtime=\"php\",result=\"named\"} 0\n"
		"firn_agent_runtime_frames_total{runtime=\"beam\",result=\"unknown\"} 7\n";
	struct agent_report report;
	struct strbuf out = { 0 };
	struct json json;

	(void)state;
	agent_report_read(&report, slice_of(seen));
	agent_report_text(&report, 10, &out);
	assert_non_null(strstr(
		strbuf_text(&out),
		"  python 3.11.7, 3.13.0: 99.90 % of 1000 frames have names; of 3 stacks some "
		"could not be read\n"));
	assert_non_null(
		strstr(strbuf_text(&out), "  beam 99\\u001b (unknown layout); 7 stacks of"));
	assert_null(strstr(strbuf_text(&out), "php"));
	strbuf_clear(&out);
	json_begin(&json, &out);
	json_open_object(&json);
	agent_report_json(&report, 5, &json);
	json_close_object(&json);
	assert_non_null(strstr(strbuf_text(&out),
			       "{\"version\":\"3.13.0\",\"layout\":\"debug_offsets\"}],"
			       "\"frames\":1000,\"frames_named\":999,\"stacks_cut\":3"));
	agent_report_free(&report);
	strbuf_free(&out);
}

static bool about(double value, double want)
{
	return value > want * 0.999999 && value < want * 1.000001;
}

static void quantiles_are_interpolated(void **state)
{
	struct agent_report report;

	(void)state;
	agent_report_read(&report, slice_of(metrics));
	assert_true(about(agent_report_quantile(&report, 0.25), 1.5e-6));
	assert_true(about(agent_report_quantile(&report, 0.7), 3e-6));
	assert_true(about(agent_report_quantile(&report, 0.99), 4e-6)); /* beyond is not known */
	agent_report_free(&report);
	agent_report_read(&report, (struct slice){ 0 });
	assert_true(agent_report_quantile(&report, 0.5) == 0);
	agent_report_free(&report);
}

static void hostile_metrics_do_no_harm(void **state)
{
	struct strbuf text = { 0 }, out = { 0 };
	struct agent_report report;
	struct json json;

	(void)state;
	for (int i = 0; i < 3000; i++)
		strbuf_addf(&text,
			    "firn_agent_binary_stacks_total{binary=\"\x1b[2J%d\",end=\"too_deep\"} "
			    "1e300\nfirn_agent_lost_samples_total{reason=\"%0200d\"} -4\n"
			    "firn_agent_bpf_sample_seconds_bucket{le=\"NaN\"} NaN\n",
			    i, i);
	strbuf_add_text(&text, "firn_agent_samples_total NaN\n"
			       "firn_agent_bpf_sample_seconds_count 1e99\n");
	agent_report_read(&report, strbuf_slice(&text));
	assert_int_equal(report.binaries_count, AGENT_REPORT_BINARIES_MAX);
	assert_int_equal(report.losses_count, AGENT_REPORT_LOSSES_MAX);
	assert_int_equal(report.buckets_count, AGENT_REPORT_BUCKETS_MAX);
	assert_false(report.told[AGENT_SAMPLES]);
	agent_report_text(&report, 1000, &out);
	assert_null(strchr(strbuf_text(&out), '\x1b'));
	strbuf_clear(&out);
	json_begin(&json, &out);
	json_open_object(&json);
	agent_report_json(&report, 5, &json);
	json_close_object(&json);
	agent_report_free(&report);
	strbuf_free(&text);
	strbuf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_says_what_was_cut_lost_and_loaded),
		cmocka_unit_test(each_end_has_its_words),
		cmocka_unit_test(languages_are_told_with_their_names),
		cmocka_unit_test(quantiles_are_interpolated),
		cmocka_unit_test(hostile_metrics_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
