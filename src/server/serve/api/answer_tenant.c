/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/tenant: whose the request is, what that tenant uses of this server, and what it may. */
#include <stdio.h>

#include "codec/wire/json.h"
#include "server/serve/admission/quota.h"
#include "server/serve/serve.h"
#include "server/serve/tenant.h"

/* In so many of the smallest unit; null: no limit. */
static void put_limit(struct json *json, const char *key, uint64_t limit, uint64_t unit)
{
	json_put_key(json, key);
	if (limit == TENANT_LIMITS_NONE)
		json_put_null(json);
	else
		json_put_uint(json, limit / unit);
}

static void put_limits(struct json *json, const struct tenant_limits *limits)
{
	json_member_object(json, "limits");
	put_limit(json, "ingest_rows_per_second", limits->ingest_rows_per_s, 1);
	put_limit(json, "ingest_bytes_per_second", limits->ingest_bytes_per_s, 1);
	put_limit(json, "active_series", limits->active_series, 1);
	put_limit(json, "labels_per_series", limits->labels_per_series, 1);
	put_limit(json, "concurrent_queries", limits->concurrent_queries, 1);
	put_limit(json, "query_range_s", limits->query_range_ns, CLOCK_NS_PER_S);
	put_limit(json, "retention_s", limits->retention_ns, CLOCK_NS_PER_S);
	json_close_object(json);
}

static void put_usage(struct json *json, const struct quota_usage *usage)
{
	json_member_object(json, "usage");
	json_member_uint(json, "ingest_rows", usage->rows);
	json_member_uint(json, "ingest_reports", usage->reports);
	json_member_uint(json, "ingest_bytes", usage->bytes);
	json_member_uint(json, "active_series", usage->active_series);
	json_member_uint(json, "queries_running", usage->queries_running);
	json_member_uint(json, "queries", usage->queries);
	json_member_object(json, "refused");
	for (int i = 0; i < QUOTA_REFUSALS; i++)
		json_member_uint(json, quota_refusal_name((enum quota_refusal)i),
				 usage->refused[i]);
	json_close_object(json);
	json_close_object(json);
}

void answer_tenant(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct tenant_limits limits;
	struct quota_usage usage = { 0 };
	char name[TENANT_BYTES_MAX + 1];
	struct slice tenant;
	struct json json;
	struct err err;
	int rc = tenant_of(serve, request, &tenant, &err);

	if (!rc && !serve->quota)
		rc = err_set(&err, ERR_NOT_FOUND,
			     "tenants are not told apart here; that is --tenants");
	if (rc) {
		net_response_error(request, response, &err);
		return;
	}
	quota_usage(serve->quota, tenant, clock_monotonic_ns(), &usage, &limits);
	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	snprintf(name, sizeof(name), "%.*s", SLICE_FMT(tenant));
	json_member_text(&json, "tenant", name);
	put_limits(&json, &limits);
	put_usage(&json, &usage);
	json_member_int(&json, "since_ms", serve->started_at_ns / CLOCK_NS_PER_MS);
	json_close_object(&json);
}
