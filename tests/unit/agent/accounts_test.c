/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: what /metrics says of stacks by binary, and of the program's time per sample. */
#include "agent/collect/accounts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/metrics.h"

static struct strbuf rendered;

static const char *metrics_text(void)
{
	strbuf_clear(&rendered);
	metrics_render(&rendered);
	return strbuf_text(&rendered);
}

static bool says(const char *line)
{
	return strstr(metrics_text(), line) != NULL;
}

static size_t lines_with(const char *text, const char *part)
{
	size_t lines = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		lines++;
	return lines;
}

static void stacks_count_for_the_binary_in_which_they_ended(void **state)
{
	struct accounts *accounts = accounts_new();

	(void)state;
	accounts_add(accounts, slice_of("/usr/bin/busy"), STACK_COMPLETE, 7);
	accounts_add(accounts, slice_of("/opt/busy"), STACK_COMPLETE, 1);
	accounts_add(accounts, slice_of("/usr/bin/busy"), STACK_TABLE_PENDING, 2);
	accounts_add(accounts, slice_of("[anon]"), STACK_NO_FRAME_POINTER, 3);
	accounts_add(accounts, (struct slice){ 0 }, STACK_NO_MAPPINGS, 4);
	accounts_add(accounts, slice_of("/tmp/a \"b\""), STACK_TOO_DEEP, 5);
	assert_true(says("firn_agent_binary_stacks_total{binary=\"busy\",end=\"complete\"} 8\n"));
	assert_true(
		says("firn_agent_binary_stacks_total{binary=\"busy\",end=\"table_pending\"} 2\n"));
	assert_true(says("{binary=\"[anon]\",end=\"no_frame_pointer\"} 3\n"));
	assert_true(says("{binary=\"[unknown]\",end=\"no_mappings\"} 4\n"));
	assert_true(says("{binary=\"a \\\"b\\\"\",end=\"too_deep\"} 5\n"));
	accounts_free(accounts);
	assert_false(says("firn_agent_binary_stacks_total"));
}

static void those_with_most_cut_stacks_are_shown(void **state)
{
	struct accounts *accounts = accounts_new();
	char path[32];

	(void)state;
	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof(path), "/lib/whole%d", i);
		accounts_add(accounts, slice_of(path), STACK_COMPLETE, 1000);
	}
	accounts_add(accounts, slice_of("/lib/cut"), STACK_UNREADABLE, 1);
	assert_true(says("{binary=\"cut\",end=\"unreadable\"} 1\n"));
	assert_int_equal(lines_with(metrics_text(), "firn_agent_binary_stacks_total{"),
			 ACCOUNTS_SHOWN);
	accounts_free(accounts);
}

static void names_are_bounded_and_nothing_is_lost(void **state)
{
	struct accounts *accounts = accounts_new();
	char path[300];

	(void)state;
	memset(path, 'x', sizeof(path));
	accounts_add(accounts, slice_from(path, sizeof(path)), STACK_32_BIT, 9000);
	for (int i = 0; i < ACCOUNTS_MAX + 500; i++) {
		snprintf(path, sizeof(path), "%d", i);
		accounts_add(accounts, slice_of(path), STACK_UNREADABLE, 1);
	}
	accounts_add(accounts, slice_of("0"), STACK_UNREADABLE, 10);
	assert_true(says("{binary=\"0\",end=\"unreadable\"} 11\n"));
	snprintf(path, sizeof(path), "{binary=\"[other]\",end=\"unreadable\"} %d\n",
		 ACCOUNTS_MAX + 500 - (ACCOUNTS_MAX - 2));
	assert_true(says(path));
	memset(path, 'x', ACCOUNTS_NAME_BYTES - 1);
	snprintf(path + ACCOUNTS_NAME_BYTES - 1, 64, "\",end=\"32_bit\"} 9000\n");
	assert_true(says(path));
	accounts_free(accounts);
}

static void times_per_sample_are_a_histogram(void **state)
{
	struct accounts *accounts = accounts_new();
	struct sample_counters counters = { 0 };

	(void)state;
	counters.of[COUNTER_RUN_NS] = 5000;
	counters.of[COUNTER_RUN_LOG2_FIRST] = 1;
	counters.of[COUNTER_RUN_LOG2_FIRST + 3] = 2;
	counters.of[COUNTER_RUN_LOG2_FIRST + RUN_LOG2_BUCKETS - 1] = 4;
	accounts_set_counters(accounts, &counters);
	assert_true(says("# TYPE firn_agent_bpf_sample_seconds histogram\n"));
	assert_true(says("firn_agent_bpf_sample_seconds_bucket{le=\"2.56e-07\"} 1\n"));
	assert_true(says("firn_agent_bpf_sample_seconds_bucket{le=\"1.024e-06\"} 1\n"));
	assert_true(says("firn_agent_bpf_sample_seconds_bucket{le=\"2.048e-06\"} 3\n"));
	assert_true(says("firn_agent_bpf_sample_seconds_bucket{le=\"0.000262144\"} 3\n"));
	assert_true(says("firn_agent_bpf_sample_seconds_bucket{le=\"+Inf\"} 7\n"));
	assert_true(says("firn_agent_bpf_sample_seconds_sum 5e-06\n"));
	assert_true(says("firn_agent_bpf_sample_seconds_count 7\n"));
	accounts_free(accounts);
}

static void every_end_has_a_name(void **state)
{
	(void)state;
	for (int end = 0; end < STACK_ENDS; end++)
		assert_non_null(accounts_end_name(end));
}

static int free_text(void **state)
{
	(void)state;
	strbuf_free(&rendered);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_count_for_the_binary_in_which_they_ended),
		cmocka_unit_test(those_with_most_cut_stacks_are_shown),
		cmocka_unit_test(names_are_bounded_and_nothing_is_lost),
		cmocka_unit_test(times_per_sample_are_a_histogram),
		cmocka_unit_test(every_end_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, free_text);
}
