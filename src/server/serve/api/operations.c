/* SPDX-License-Identifier: Apache-2.0 */
/* ops - what operators ask: metrics, health, status, and a CPU profile of the server itself. */
#include "server/serve/api/operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/process_metrics.h"
#include "codec/wire/json.h"
#include "server/access/access.h"
#include "server/query/render/render.h"
#include "server/serve/admission/quota.h"
#include "server/serve/api/query_request.h"
#include "server/serve/self/self_profile.h"

#define PROFILE_SECONDS_DEFAULT 30
#define PROFILE_SECONDS_MAX 300
#define PROFILE_HZ 100

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

struct seeing {
	const struct serve *serve;
	const struct net_request *request;
};

static bool sees_tenant(const void *context, struct slice tenant)
{
	const struct seeing *seeing = context;

	return access_may_be(seeing->serve->access, seeing->request, tenant);
}

void operations_metrics(void *context, const struct net_request *request,
			struct net_response *response)
{
	struct serve *serve = context;
	const struct seeing seeing = { serve, request };

	response->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_render(&response->body);
	quota_render(serve->quota, sees_tenant, &seeing, clock_monotonic_ns(), &response->body);
}

static void plain(struct net_response *response, int status, const char *text)
{
	response->status = status;
	response->content_type = "text/plain; charset=utf-8";
	strbuf_add_text(&response->body, text);
}

void operations_healthy(void *context, const struct net_request *request,
			struct net_response *response)
{
	(void)context;
	(void)request;
	plain(response, 200, "firn is healthy.\n");
}

void operations_ready(void *context, const struct net_request *request,
		      struct net_response *response)
{
	struct serve *serve = context;
	struct store_bucket_stat stat;
	struct err err;

	(void)request;
	store_bucket_stat(serve->store, &stat);
	if (!atomic_load(&serve->ready))
		plain(response, 503, "firn is starting.\n");
	else if (store_takes_appends(serve->store, &err))
		plain(response, 503,
		      stat.follows ? "firn has not read all of its buckets yet.\n"
				   : "firn answers queries, but takes no profiles now.\n");
	else
		plain(response, 200, "firn is ready.\n");
}

void operations_put_stat(struct json *json, const struct store_stat *stat,
			 const struct store_deletes *deletes)
{
	json_open_object(json);
	json_member_uint(json, "rows", stat->rows);
	json_member_uint(json, "reports", stat->reports);
	json_member_uint(json, "series", stat->series);
	json_member_uint(json, "stacks", stat->stacks);
	if (stat->has_stacks_distinct)
		json_member_uint(json, "stacks_distinct", stat->stacks_distinct);
	json_member_object(json, "bytes");
	json_member_uint(json, "total", stat->bytes_total);
	json_member_uint(json, "wal", stat->bytes_wal);
	json_member_uint(json, "samples", stat->bytes_samples);
	json_member_uint(json, "stacks", stat->bytes_stacks);
	json_member_uint(json, "symbols", stat->bytes_symbols);
	json_member_uint(json, "rollups", stat->bytes_rollups);
	json_member_uint(json, "sample_times", stat->bytes_moments);
	json_close_object(json);
	json_member_uint(json, "parts", stat->parts);
	json_member_uint(json, "parts_quarantined", stat->parts_quarantined);
	json_member_uint(json, "memtables", stat->memtables);
	json_member_int(json, "oldest_ms", stat->oldest_ns / CLOCK_NS_PER_MS);
	json_member_int(json, "newest_ms", stat->newest_ns / CLOCK_NS_PER_MS);
	json_member_bool(json, "poisoned", stat->poisoned);
	if (deletes) {
		json_put_key(json, "deletes");
		operations_put_deletes(json, deletes);
	}
	json_close_object(json);
}

static void put_limit(struct json *json, const char *key, uint64_t limit)
{
	json_put_key(json, key);
	if (limit)
		json_put_uint(json, limit);
	else
		json_put_null(json);
}

/* Where tenants do not log in, nobody is known to be the administrator. */
static bool may_see_paths(const struct serve *serve, const struct net_request *request)
{
	if (serve->tenants && !serve->has_users)
		return false;
	return access_permits(serve->access, request, NET_ROLE_ADMIN);
}

/* In full: a server may work in its folder and know it as ".". */
static void put_folder(struct json *json, const char *path)
{
	char *whole = realpath(path, NULL);

	json_member_text(json, "path", whole ? whole : path);
	free(whole);
}

static void put_resources(struct json *json, struct serve *serve, const struct net_request *request)
{
	struct statvfs fs = { 0 };

	json_member_object(json, "memory");
	json_member_uint(json, "resident_bytes", process_metrics_resident_bytes());
	json_member_uint(json, "queries_bytes", atomic_load(&serve->queries.used_bytes));
	put_limit(json, "queries_limit_bytes", serve->queries.limit_bytes);
	json_close_object(json);
	json_member_object(json, "retention");
	put_limit(json, "time_s", (uint64_t)(serve->retention_ns / CLOCK_NS_PER_S));
	put_limit(json, "bytes", serve->retention_bytes);
	json_close_object(json);
	json_member_object(json, "disk");
	if (may_see_paths(serve, request))
		put_folder(json, serve->storage_path);
	if (!statvfs(serve->storage_path, &fs)) {
		json_member_uint(json, "bytes", (uint64_t)fs.f_blocks * fs.f_frsize);
		json_member_uint(json, "free_bytes", (uint64_t)fs.f_bavail * fs.f_frsize);
	}
	json_close_object(json);
}

static void put_build(struct json *json)
{
	struct utsname host = { 0 };

	uname(&host);
	json_member_object(json, "build");
	json_member_text(json, "compiler", COMPILER);
	json_member_text(json, "architecture", host.machine);
	json_member_text(json, "kernel", host.release);
	json_close_object(json);
}

/* Its address names people's accounts: only for who may see paths. */
static void put_bucket(struct json *json, struct serve *serve, bool with_detail)
{
	struct store_bucket_stat stat;

	store_bucket_stat(serve->store, &stat);
	if (!stat.on)
		return;
	json_member_object(json, "bucket");
	json_put_key(json, "behind_s");
	json_put_double(json, (double)stat.behind_ns / (double)CLOCK_NS_PER_S);
	json_member_int(json, "saved_ms", stat.saved_at_ns / CLOCK_NS_PER_MS);
	json_member_uint(json, "manifest", stat.manifest);
	json_member_uint(json, "parts", stat.parts);
	json_member_bool(json, "fenced", stat.fenced);
	if (stat.follows)
		json_member_int(json, "looked_ms", stat.looked_at_ns / CLOCK_NS_PER_MS);
	if (with_detail) {
		json_member_text(json, "store", stat.store);
		json_member_text(json, "error", stat.error);
	}
	json_close_object(json);
}

static void put_remote(struct json *json, struct serve *serve, bool with_detail)
{
	struct store_remote_stat stat;

	store_remote_stat(serve->store, &stat);
	if (!stat.kind)
		return;
	json_member_object(json, "remote");
	json_member_text(json, "kind", stat.kind);
	json_member_bool(json, "answers", !stat.error[0]);
	if (with_detail)
		json_member_text(json, "error", stat.error);
	json_close_object(json);
}

void operations_status(void *context, const struct net_request *request,
		       struct net_response *response)
{
	struct serve *serve = context;
	struct store_stat stat;
	struct json json;
	struct err err;

	if (store_stat(serve->store, &stat, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_member_text(&json, "version", FIRN_VERSION);
	json_member_int(&json, "uptime_s",
			(clock_real_ns() - serve->started_at_ns) / CLOCK_NS_PER_S);
	json_member_int(&json, "started_ms", serve->started_at_ns / CLOCK_NS_PER_MS);
	json_member_int(&json, "now_ms", clock_real_ns() / CLOCK_NS_PER_MS);
	put_build(&json);
	put_resources(&json, serve, request);
	put_bucket(&json, serve, may_see_paths(serve, request));
	put_remote(&json, serve, may_see_paths(serve, request));
	json_put_key(&json, "store");
	operations_put_stat(&json, &stat, NULL);
	json_close_object(&json);
}

void operations_profile_index(void *context, const struct net_request *request,
			      struct net_response *response)
{
	(void)context;
	(void)request;
	plain(response, 200,
	      "/debug/pprof/profile?seconds=N  CPU profile of this server, for go tool pprof\n");
}

/* Answers as Go's net/http/pprof does, so that `go tool pprof URL` shows errors as text. */
static void profile_error(struct net_response *response, int status, const struct err *err)
{
	strbuf_clear(&response->body);
	strbuf_add_text(&response->headers, "x-go-pprof: 1\r\n");
	plain(response, status, err->message);
	strbuf_add_byte(&response->body, '\n');
}

static int render_own_profile(struct serve *serve, struct tables *tables,
			      struct net_response *response, struct err *err)
{
	static const char type[] = "process_cpu:samples:count:cpu:nanoseconds:delta";
	struct tables_view view = tables_view_of(tables);
	struct segment segment;
	struct query_source source = { &segment, 1, serve->resolver, NULL };
	struct query_params params = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct selector selector;
	struct tree *tree;
	int rc = selector_parse(slice_of(type), &selector, err);

	if (rc)
		return rc;
	params.selector = &selector;
	segment_of_tables(&segment, &view);
	rc = query_tree(&source, &params, &tree, err);
	if (!rc) {
		response->content_type = "application/octet-stream";
		response->precompressed = true;
		render_pprof(tree, &response->body);
		tree_free(tree);
	}
	selector_free(&selector);
	return rc;
}

void operations_profile(void *context, const struct net_request *request,
			struct net_response *response)
{
	struct strbuf text = { 0 };
	uint64_t seconds = PROFILE_SECONDS_DEFAULT;
	struct tables tables;
	struct err err;
	int rc;

	if (net_request_parameter(request, "seconds", 0, &text) &&
	    (!slice_parse_u64(strbuf_slice(&text), &seconds) || !seconds ||
	     seconds > PROFILE_SECONDS_MAX)) {
		err_set(&err, ERR_INVALID, "parameter \"seconds\": expected 1 to %d",
			PROFILE_SECONDS_MAX);
		profile_error(response, 400, &err);
		strbuf_free(&text);
		return;
	}
	strbuf_free(&text);
	tables_init(&tables);
	rc = self_profile_run((int64_t)seconds * CLOCK_NS_PER_S, PROFILE_HZ, request->cancelled,
			      &tables, &err);
	if (!rc)
		rc = render_own_profile(context, &tables, response, &err);
	if (rc)
		profile_error(response, err.code == ERR_BUSY ? 503 : 500, &err);
	tables_free(&tables);
}
