/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota - what each tenant uses of this server, and what it may use (config/tenant_limits.h).
 *
 *   rows, bytes  in token buckets that fill at the rate and hold QUOTA_BURST_S of it. A request is
 *                accepted while neither is empty, and may leave a debt, so that no request is too
 *                large; while there is debt, requests are refused before they are read: ERR_RATE
 *   series       distinct sets of labels that came within the last 20 to 40 minutes. A new one
 *                beyond the limit is refused: ERR_QUOTA; so is one with too many labels
 *   queries      that run or wait: ERR_RATE beyond
 *   range        of one query: ERR_QUOTA beyond
 *
 * QUOTA_TENANTS_MAX tenants are known; the one that was seen longest ago gives way, and begins anew
 * when it comes again. Where nothing limits a tenant's series, they are counted as long as all
 * tenants together have fewer than QUOTA_SERIES_MAX. Any thread.
 */
#ifndef FIRN_SERVER_SERVE_ADMISSION_QUOTA_H
#define FIRN_SERVER_SERVE_ADMISSION_QUOTA_H

#include "base/clock.h"
#include "base/strbuf.h"
#include "config/tenant_limits.h"

#define QUOTA_TENANTS_MAX 1000u
#define QUOTA_SERIES_MAX ((size_t)1 << 22) /* 8 to 32 bytes each */
#define QUOTA_SERIES_SPAN_NS (1200 * CLOCK_NS_PER_S)
#define QUOTA_BURST_S 10

struct quota;
struct quota_tenant;

enum quota_refusal {
	QUOTA_INGEST_RATE,
	QUOTA_INGEST_BYTES,
	QUOTA_ACTIVE_SERIES,
	QUOTA_LABELS,
	QUOTA_CONCURRENT_QUERIES,
	QUOTA_QUERY_RANGE,
	QUOTA_REFUSALS
};

struct quota_usage {
	uint64_t rows, reports, bytes; /* taken, since the tenant is known */
	uint64_t active_series, queries_running, queries;
	uint64_t refused[QUOTA_REFUSALS]; /* requests; of QUOTA_ACTIVE_SERIES and _LABELS series */
};

/* Asked for each request: limits may change at any time. */
typedef void quota_limits_f(void *context, struct slice tenant, struct tenant_limits *ret);

struct quota *quota_new(quota_limits_f *limits, void *context);
void quota_free(struct quota *quota); /* accepts NULL; nobody is in it */

/* The tenant, known until it is given back. NULL if the quota is NULL: all below does nothing. */
struct quota_tenant *quota_enter(struct quota *quota, struct slice tenant);
void quota_leave(struct quota *quota, struct quota_tenant *tenant); /* accepts NULL */

/* Times are monotonic. */
int quota_check_ingest(struct quota *quota, struct quota_tenant *tenant, int64_t now_ns,
		       struct err *err);
void quota_charge(struct quota *quota, struct quota_tenant *tenant, uint64_t rows, uint64_t reports,
		  uint64_t bytes);
int quota_check_series(struct quota *quota, struct quota_tenant *tenant, uint64_t hash,
		       uint32_t labels, int64_t now_ns, struct err *err);

int quota_begin_query(struct quota *quota, struct quota_tenant *tenant, struct err *err);
void quota_end_query(struct quota *quota, struct quota_tenant *tenant);
int quota_check_range(struct quota *quota, struct quota_tenant *tenant, int64_t from_ns,
		      int64_t to_ns, int64_t now_ns /* of day */, struct err *err);

void quota_usage(struct quota *quota, struct slice tenant, int64_t now_ns, struct quota_usage *ret,
		 struct tenant_limits *ret_limits);
const char *quota_refusal_name(enum quota_refusal refusal);

/* Lines for /metrics, of those tenants that may be seen. */
typedef bool quota_sees_f(const void *context, struct slice tenant);
void quota_render(struct quota *quota, quota_sees_f *sees, const void *context, int64_t now_ns,
		  struct strbuf *out);

#endif
