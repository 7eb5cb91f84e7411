/* SPDX-License-Identifier: Apache-2.0 */
/* What tenants may use: rows by time, series by span, queries at once, ranges. */
#include "server/serve/admission/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S CLOCK_NS_PER_S
#define NAME SLICE_LITERAL("acme")
#define HASH(i) (((i) + 1) * 0x9e3779b97f4a7c15ull)

static void limits_of(void *context, struct slice tenant, struct tenant_limits *ret)
{
	(void)tenant;
	*ret = *(const struct tenant_limits *)context;
}

static const struct tenant_limits unlimited = { TENANT_LIMITS_NONE, TENANT_LIMITS_NONE,
						TENANT_LIMITS_NONE, TENANT_LIMITS_NONE,
						TENANT_LIMITS_NONE, TENANT_LIMITS_NONE,
						TENANT_LIMITS_NONE };

/* One request of so many rows. */
static int ingest(struct quota *quota, uint64_t rows, int64_t now_ns)
{
	struct quota_tenant *tenant = quota_enter(quota, NAME);
	struct err err;
	int rc = quota_check_ingest(quota, tenant, now_ns, &err);

	if (!rc)
		quota_charge(quota, tenant, rows, 1, 100);
	quota_leave(quota, tenant);
	return rc;
}

static void rows_are_taken_at_the_rate(void **state)
{
	struct tenant_limits limits = unlimited;
	struct quota *quota = quota_new(limits_of, &limits);
	struct quota_usage usage;
	uint64_t taken = 0;

	(void)state;
	assert_int_equal(ingest(quota, 1000000, S), 0); /* before there is a limit */
	limits.ingest_rows_per_s = 100;
	for (int64_t second = 2; second < 1002; second++)
		taken += ingest(quota, 700, second * S) ? 0 : 700;
	/* Ten seconds' worth at first, the debt of one request at the end. */
	assert_in_range(taken, 1000 * 100 - 700, 1000 * 100 + 1000 + 700);
	quota_usage(quota, NAME, 1002 * S, &usage, &limits);
	assert_int_equal(usage.rows, 1000000 + taken);
	assert_int_equal(usage.reports, 1 + taken / 700);
	assert_int_equal(usage.refused[QUOTA_INGEST_RATE], 1000 - taken / 700);
	limits.ingest_rows_per_s = TENANT_LIMITS_NONE;
	assert_int_equal(ingest(quota, 1, 1002 * S), 0);
	quota_free(quota);
}

static void bytes_are_taken_at_the_rate(void **state)
{
	struct tenant_limits limits = unlimited;
	struct quota *quota = quota_new(limits_of, &limits);
	struct quota_usage usage;
	struct quota_tenant *tenant;
	uint64_t taken = 0;
	struct err err;

	(void)state;
	limits.ingest_bytes_per_s = 10; /* a request has 100 */
	limits.ingest_rows_per_s = 1000000;
	for (int64_t second = 1; second < 1001; second++)
		taken += !ingest(quota, 1, second * S);
	assert_in_range(taken, 99, 102);
	quota_usage(quota, NAME, 1002 * S, &usage, &limits);
	assert_int_equal(usage.refused[QUOTA_INGEST_BYTES], 1000 - taken);
	assert_int_equal(usage.refused[QUOTA_INGEST_RATE], 0);
	assert_int_equal(ingest(quota, 1, 1001 * S), -ERR_RATE);
	tenant = quota_enter(quota, NAME);
	assert_int_equal(quota_check_ingest(quota, tenant, 1001 * S, &err), -ERR_RATE);
	assert_non_null(strstr(err.message, "ingest_bytes_per_second, 10;"));
	quota_leave(quota, tenant);
	quota_free(quota);
}

static void long_series_are_refused(void **state)
{
	struct tenant_limits limits = unlimited;
	struct quota *quota = quota_new(limits_of, &limits);
	struct quota_tenant *tenant;
	struct quota_usage usage;
	struct err err;

	(void)state;
	limits.labels_per_series = 4;
	tenant = quota_enter(quota, NAME);
	assert_int_equal(quota_check_series(quota, tenant, 1, 4, S, &err), 0);
	assert_int_equal(quota_check_series(quota, tenant, 2, 5, S, &err), -ERR_QUOTA);
	assert_non_null(strstr(err.message, "5 labels"));
	quota_usage(quota, NAME, S, &usage, &limits);
	assert_int_equal(usage.refused[QUOTA_LABELS], 1);
	assert_int_equal(usage.active_series, 1); /* what is refused is not counted */
	quota_leave(quota, tenant);
	quota_free(quota);
}

static void series_are_those_of_two_spans(void **state)
{
	struct tenant_limits limits = unlimited;
	struct quota *quota = quota_new(limits_of, &limits);
	struct quota_tenant *tenant;
	struct quota_usage usage;
	struct err err;

	(void)state;
	limits.active_series = 1000;
	tenant = quota_enter(quota, NAME);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(quota_check_series(quota, tenant, HASH(i), 3, S, &err), 0);
	assert_int_equal(quota_check_series(quota, tenant, HASH(5000), 3, S, &err), -ERR_QUOTA);
	assert_non_null(strstr(err.message, "1000 active series"));
	for (uint64_t i = 2; i < 1000; i++)
		assert_int_equal(quota_check_series(quota, tenant, HASH(i), 3, S, &err), 0);
	/* A hundred go on in the next span; after it the others are not active any more. */
	for (uint64_t i = 100; i < 200; i++)
		assert_int_equal(quota_check_series(quota, tenant, HASH(i), 3,
						    S + QUOTA_SERIES_SPAN_NS, &err),
				 0);
	assert_int_equal(
		quota_check_series(quota, tenant, HASH(5000), 3, S + QUOTA_SERIES_SPAN_NS, &err),
		-ERR_QUOTA);
	quota_usage(quota, NAME, S + 2 * QUOTA_SERIES_SPAN_NS, &usage, &limits);
	assert_int_equal(usage.active_series, 100);
	assert_int_equal(usage.refused[QUOTA_ACTIVE_SERIES], 2);
	assert_int_equal(quota_check_series(quota, tenant, HASH(5000), 3,
					    S + 2 * QUOTA_SERIES_SPAN_NS, &err),
			 0);
	quota_usage(quota, NAME, S + 9 * QUOTA_SERIES_SPAN_NS, &usage, &limits);
	assert_int_equal(usage.active_series, 0);
	quota_leave(quota, tenant);
	quota_free(quota);
}

static void queries_are_counted_until_they_end(void **state)
{
	struct tenant_limits limits = unlimited;
	struct quota *quota = quota_new(limits_of, &limits);
	struct quota_tenant *tenant;
	struct err err;

	(void)state;
	limits.concurrent_queries = 2;
	tenant = quota_enter(quota, NAME);
	assert_int_equal(quota_begin_query(quota, tenant, &err), 0);
	assert_int_equal(quota_begin_query(quota, tenant, &err), 0);
	assert_int_equal(quota_begin_query(quota, tenant, &err), -ERR_RATE);
	quota_end_query(quota, tenant);
	assert_int_equal(quota_begin_query(quota, tenant, &err), 0);
	quota_end_query(quota, tenant);
	quota_end_query(quota, tenant);
	quota_leave(quota, tenant);
	quota_free(quota);
}

static void ranges_end_now_at_most(void **state)
{
	struct tenant_limits limits = unlimited;
	struct quota *quota = quota_new(limits_of, &limits);
	struct quota_tenant *tenant;
	struct err err;

	(void)state;
	limits.query_range_ns = (uint64_t)(10 * S);
	tenant = quota_enter(quota, NAME);
	assert_int_equal(quota_check_range(quota, tenant, 90 * S, INT64_MAX, 100 * S, &err), 0);
	assert_int_equal(quota_check_range(quota, tenant, 89 * S, INT64_MAX, 100 * S, &err),
			 -ERR_QUOTA);
	assert_int_equal(quota_check_range(quota, tenant, INT64_MIN, 50 * S, 100 * S, &err),
			 -ERR_QUOTA);
	assert_int_equal(quota_check_range(quota, tenant, 200 * S, 100 * S, 100 * S, &err), 0);
	quota_leave(quota, tenant);
	quota_free(quota);
}

static bool sees(const void *context, struct slice tenant)
{
	return !context || slice_is(tenant, context);
}

static void only_so_many_tenants_are_known(void **state)
{
	struct tenant_limits limits = unlimited;
	struct quota *quota = quota_new(limits_of, &limits);
	struct quota_tenant *kept = quota_enter(quota, NAME);
	struct strbuf text = { 0 };
	size_t lines = 0;
	char name[32];

	(void)state;
	quota_charge(quota, kept, 42, 1, 1);
	for (unsigned i = 0; i < 2 * QUOTA_TENANTS_MAX; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		quota_leave(quota, quota_enter(quota, slice_of(name)));
	}
	quota_render(quota, sees, NULL, S, &text);
	for (const char *at = strbuf_text(&text); (at = strstr(at, "firn_tenant_queries_total{"));
	     at++)
		lines++;
	assert_int_equal(lines, QUOTA_TENANTS_MAX);
	assert_non_null(strstr(strbuf_text(&text), "rows_total{tenant=\"acme\"} 42\n"));
	strbuf_clear(&text);
	quota_render(quota, sees, "t1999", S, &text);
	assert_null(strstr(strbuf_text(&text), "acme"));
	assert_non_null(strstr(strbuf_text(&text), "queries_running{tenant=\"t1999\"} 0\n"));
	strbuf_free(&text);
	quota_leave(quota, kept);
	quota_free(quota);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_taken_at_the_rate),
		cmocka_unit_test(bytes_are_taken_at_the_rate),
		cmocka_unit_test(long_series_are_refused),
		cmocka_unit_test(series_are_those_of_two_spans),
		cmocka_unit_test(queries_are_counted_until_they_end),
		cmocka_unit_test(ranges_end_now_at_most),
		cmocka_unit_test(only_so_many_tenants_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
