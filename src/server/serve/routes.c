/* SPDX-License-Identifier: Apache-2.0 */
/* routes - every path of the server, in one list. */
#include "server/serve/api/unchanged.h"
#include "server/serve/rpc/calls.h"
#include "server/serve/serve.h"

#define SMALL_BODY_BYTES ((size_t)1 << 20)
#define PUSH_BODY_BYTES ((size_t)32 << 20) /* JSON too, which takes several times as much */
#define UNREAD_BODY_BYTES ((size_t)16 << 20)
#define WRITE_RECORD_BYTES ((size_t)32 << 20)	/* an agent sends no more */
#define UPLOAD_MESSAGE_BYTES ((size_t)16 << 20) /* Parca's agents send pieces of 8 MiB */

#define QUERY_SERVICE "/parca.query.v1alpha1.QueryService/"
#define HEALTH_SERVICE "/grpc.health.v1.Health/"
#define STORE_SERVICE "/parca.profilestore.v1alpha1.ProfileStoreService/"
#define DEBUGINFO_SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define OTLP_SERVICE "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/"

/* What is asked again and again while it is looked at. */
#define IF_CHANGED(name)                                                                           \
	static void name##_if_changed(void *context, const struct net_request *request,            \
				      struct net_response *response)                               \
	{                                                                                          \
		answer_##name(context, request, response);                                         \
		unchanged_check(request, response);                                                \
	}
IF_CHANGED(series)
IF_CHANGED(diff)
IF_CHANGED(query)
IF_CHANGED(lines)
IF_CHANGED(instructions)
IF_CHANGED(callgraph)
IF_CHANGED(heatmap)
IF_CHANGED(flamechart)

struct route_row {
	const char *method;
	const char *path;
	net_handler_f *handler;
	size_t body_bytes_max;
	const struct net_stream *stream;
	enum net_role role;
};

static const struct route_row rows[] = {
	/* profiles in */
	{ "POST", OTLP_SERVICE "Export", write_otlp, SERVE_BODY_BYTES_MAX, NULL, NET_ROLE_INGEST },
	{ "POST", "/v1development/profiles", write_otlp, SERVE_BODY_BYTES_MAX, NULL,
	  NET_ROLE_INGEST },
	{ "POST", "/v1experimental/profiles", write_otlp, SERVE_BODY_BYTES_MAX, NULL,
	  NET_ROLE_INGEST },
	{ "POST", STORE_SERVICE "WriteRaw", write_raw, SERVE_BODY_BYTES_MAX, NULL,
	  NET_ROLE_INGEST },
	{ "POST", STORE_SERVICE "Write", NULL, WRITE_RECORD_BYTES, &write_stream, NET_ROLE_INGEST },
	{ "POST", STORE_SERVICE "WriteArrow", write_arrow, SERVE_BODY_BYTES_MAX, NULL,
	  NET_ROLE_INGEST },
	{ "POST", "/api/profiles/writeraw", calls_gateway, PUSH_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "POST", "/parca.telemetry.v1alpha1.TelemetryService/ReportPanic", calls_serve,
	  SMALL_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "POST", "/api/telemetry/panic", calls_gateway, SMALL_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "POST", "/parca.profilestore.v1alpha1.AgentsService/Agents", calls_serve,
	  SMALL_BODY_BYTES, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/agents", calls_gateway, 0, NULL, NET_ROLE_QUERY },
	{ "POST", "/parca.scrape.v1alpha1.ScrapeService/Targets", rpc_targets, SMALL_BODY_BYTES,
	  NULL, NET_ROLE_QUERY },
	{ "GET", "/api/targets", answer_parca_targets, 0, NULL, NET_ROLE_QUERY },
	{ "POST", "/ingest", pyro_ingest, SERVE_BODY_BYTES_MAX, NULL, NET_ROLE_INGEST },
	{ "POST", "/pyroscope/ingest", pyro_ingest, SERVE_BODY_BYTES_MAX, NULL, NET_ROLE_INGEST },
	{ "POST", "/push.v1.PusherService/Push", calls_serve, PUSH_BODY_BYTES, NULL,
	  NET_ROLE_INGEST },
	{ "POST", "/profiling/v1/input", datadog_input, SERVE_BODY_BYTES_MAX, NULL,
	  NET_ROLE_INGEST },
	{ "POST", "/api/v2/profile", datadog_input, SERVE_BODY_BYTES_MAX, NULL, NET_ROLE_INGEST },
	{ "POST", "/v1/input", datadog_input, SERVE_BODY_BYTES_MAX, NULL, NET_ROLE_INGEST },
	{ "GET", "/info", datadog_info, 0, NULL, NET_ROLE_INGEST },
	/* queries */
	{ "GET", "/api/v1/types", answer_types, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/labels", answer_labels, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/label_values", answer_label_values, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/series", series_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/diff", diff_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/query", query_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/lines", lines_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/instructions", instructions_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/callgraph", callgraph_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/heatmap", heatmap_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/flamechart", flamechart_if_changed, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/services", answer_services, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/targets", answer_targets, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/tenant", answer_tenant, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/queries", answer_queries, 0, NULL, NET_ROLE_QUERY },
	{ "DELETE", "/api/v1/queries", answer_cancel, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/openapi.json", answer_openapi, 0, NULL, NET_ROLE_NONE },
	{ "GET", "/api/v1/status", operations_status, 0, NULL, NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "ProfileTypes", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "Labels", calls_serve, SMALL_BODY_BYTES, NULL, NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "Values", calls_serve, SMALL_BODY_BYTES, NULL, NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "QueryRange", calls_serve, SMALL_BODY_BYTES, NULL, NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "HasProfileData", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "Series", calls_serve, SMALL_BODY_BYTES, NULL, NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "ShareProfile", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	{ "POST", QUERY_SERVICE "Query", calls_serve, SMALL_BODY_BYTES, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/profiles/*", calls_gateway, 0, NULL, NET_ROLE_QUERY },
	{ "POST", "/querier.v1.QuerierService/*", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	{ "GET", "/pyroscope/render", pyro_render, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/pyroscope/render-diff", pyro_render_diff, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/pyroscope/label-values", pyro_render_values, 0, NULL, NET_ROLE_QUERY },
	{ "POST", "/capabilities.v1.FeatureFlagsService/*", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	{ "POST", "/settings.v1.SettingsService/*", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	/* clients ask whether these are there, too */
	{ "POST", "/settings.v1.RecordingRulesService/*", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	{ "POST", "/vcs.v1.VCSService/*", calls_serve, SMALL_BODY_BYTES, NULL, NET_ROLE_QUERY },
	{ "POST", "/adhocprofiles.v1.AdHocProfileService/*", calls_serve, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_QUERY },
	{ "GET", "/ready", pyro_ready, 0, NULL, NET_ROLE_NONE },
	{ "GET", "/api/v1/status/buildinfo", pyro_build_info, 0, NULL, NET_ROLE_QUERY },
	/* debug information */
	{ "POST", DEBUGINFO_SERVICE "ShouldInitiateUpload", rpc_debuginfo_should_upload,
	  SMALL_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "POST", DEBUGINFO_SERVICE "InitiateUpload", rpc_debuginfo_begin, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_INGEST },
	{ "POST", DEBUGINFO_SERVICE "Upload", NULL, UPLOAD_MESSAGE_BYTES, &rpc_debuginfo_upload,
	  NET_ROLE_INGEST },
	{ "POST", DEBUGINFO_SERVICE "MarkUploadFinished", rpc_debuginfo_finished, SMALL_BODY_BYTES,
	  NULL, NET_ROLE_INGEST },
	{ "GET", "/api/v1/debuginfo", answer_debuginfo, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/api/v1/debuginfo/consent", answer_consent_get, 0, NULL, NET_ROLE_QUERY },
	{ "POST", "/api/v1/debuginfo/consent", answer_consent, SMALL_BODY_BYTES, NULL,
	  NET_ROLE_ADMIN },
	{ "GET", "/api/v1/source", answer_source, 0, NULL, NET_ROLE_QUERY },
	/* administration */
	{ "POST", "/api/v1/admin/delete", admin_delete, SMALL_BODY_BYTES, NULL, NET_ROLE_ADMIN },
	{ "GET", "/api/v1/admin/deletes", admin_deletes, 0, NULL, NET_ROLE_ADMIN },
	/* operations */
	{ "POST", "/-/reload", admin_reload, SMALL_BODY_BYTES, NULL, NET_ROLE_ADMIN },
	{ "PUT", "/-/reload", admin_reload, SMALL_BODY_BYTES, NULL, NET_ROLE_ADMIN },
	{ "GET", "/metrics", operations_metrics, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/-/healthy", operations_healthy, 0, NULL, NET_ROLE_PROBE },
	{ "GET", "/-/ready", operations_ready, 0, NULL, NET_ROLE_PROBE },
	{ "GET", "/debug/pprof/", operations_profile_index, 0, NULL, NET_ROLE_QUERY },
	{ "GET", "/debug/pprof/profile", operations_profile, 0, NULL, NET_ROLE_QUERY },
	{ "POST", HEALTH_SERVICE "Check", calls_serve, SMALL_BODY_BYTES, NULL, NET_ROLE_PROBE },
	{ "POST", HEALTH_SERVICE "Watch", NULL, SMALL_BODY_BYTES, &health_watch, NET_ROLE_PROBE },
	{ "POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", NULL,
	  SMALL_BODY_BYTES, &rpc_reflection, NET_ROLE_QUERY },
	{ "POST", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", NULL,
	  SMALL_BODY_BYTES, &rpc_reflection, NET_ROLE_QUERY },
	{ "OPTIONS", "/*", web_options, 0, NULL, NET_ROLE_NONE },
	/* the UI has everything else */
	{ "GET", "/*", asset_get, 0, NULL, NET_ROLE_QUERY },
};

/* Bodies that nobody reads: what tracers send besides, and senders that came to the wrong place. */
static const struct route_row unread_rows[] = {
	{ "*", "/v0.1/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/v0.2/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/v0.3/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/v0.4/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/v0.5/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/v0.6/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/v0.7/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/v1.0/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/telemetry/proxy/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/dogstatsd/v2/proxy", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/evp_proxy/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "*", "/debugger/v1/*", datadog_ignored, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "POST", "/*", unknown_path, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
	{ "PUT", "/*", unknown_path, UNREAD_BODY_BYTES, NULL, NET_ROLE_INGEST },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define UNREAD_ROWS (sizeof(unread_rows) / sizeof(unread_rows[0]))

size_t serve_routes(struct serve *serve, struct net_route *routes)
{
	_Static_assert(ROWS + UNREAD_ROWS <= SERVE_ROUTES_MAX, "too many routes");
	for (size_t i = 0; i < ROWS + UNREAD_ROWS; i++) {
		const struct route_row *row = i < ROWS ? &rows[i] : &unread_rows[i - ROWS];

		routes[i] = (struct net_route){ .method = row->method,
						.path = row->path,
						.handler = row->handler,
						.context = serve,
						.body_bytes_max = row->body_bytes_max,
						.stream = row->stream,
						.role = row->role,
						.ignores_body = i >= ROWS };
	}
	return ROWS + UNREAD_ROWS;
}
