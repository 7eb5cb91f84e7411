/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/rpc/calls.h"

#include "base/budget.h"
#include "base/mem.h"
#include "codec/wire/json.h"
#include "net/http/grpc.h"
#include "server/serve/rpc/schema.h"
#include "server/serve/serve.h"

#define QUERY "/parca.query.v1alpha1.QueryService/"
#define STORE "/parca.profilestore.v1alpha1.ProfileStoreService/"
#define AGENTS "/parca.profilestore.v1alpha1.AgentsService/"
#define TELEMETRY "/parca.telemetry.v1alpha1.TelemetryService/"
#define QUERIER "/querier.v1.QuerierService/"
#define FLAGS "/capabilities.v1.FeatureFlagsService/"
#define SETTINGS "/settings.v1.SettingsService/"
#define HEALTH "/grpc.health.v1.Health/"
#define GATEWAY_LABELS "/api/profiles/labels/"
#define GATEWAY_VALUES "/values"
#define PARAMETERS_MAX 256u
#define MEMORY_SHARE 2 /* of what all requests may become, for one */
#define MEMORY_SHARE_OF 3

static const struct call calls[] = {
	{ QUERY "ProfileTypes", rpc_profile_types, &schema_parca_types_request,
	  &schema_parca_types_response, "/api/profiles/types" },
	{ QUERY "Labels", rpc_labels, &schema_parca_labels_request, &schema_parca_labels_response,
	  "/api/profiles/labels" },
	{ QUERY "Values", rpc_values, &schema_parca_values_request, &schema_parca_values_response,
	  NULL /* find_values */ },
	{ QUERY "QueryRange", rpc_query_range, &schema_parca_range_request,
	  &schema_parca_range_response, "/api/profiles/query_range" },
	{ QUERY "Query", rpc_query, &schema_parca_query_request, &schema_parca_query_response,
	  "/api/profiles/query" },
	{ QUERY "HasProfileData", rpc_has_data, &schema_parca_has_data_request,
	  &schema_parca_has_data_response, "/api/profiles/has_profile_data" },
	{ QUERY "Series", rpc_series, &schema_parca_series_request, &schema_parca_series_response,
	  "/api/profiles/series" },
	{ QUERY "ShareProfile", rpc_share, &schema_parca_share_request,
	  &schema_parca_share_response, NULL },
	{ STORE "WriteRaw", write_raw, &schema_parca_raw_request, &schema_parca_empty,
	  "/api/profiles/writeraw" },
	{ STORE "WriteArrow", write_arrow, &schema_parca_arrow_request, &schema_parca_empty, NULL },
	{ AGENTS "Agents", rpc_agents, &schema_parca_empty, &schema_parca_agents, "/api/agents" },
	{ TELEMETRY "ReportPanic", rpc_report_panic, &schema_parca_panic, &schema_parca_empty,
	  "/api/telemetry/panic" },
	{ QUERIER "ProfileTypes", pyro_profile_types, &schema_pyro_types_request,
	  &schema_pyro_types_response, NULL },
	{ QUERIER "LabelNames", pyro_label_names, &schema_pyro_names_request,
	  &schema_pyro_names_response, NULL },
	{ QUERIER "LabelValues", pyro_label_values, &schema_pyro_values_request,
	  &schema_pyro_names_response, NULL },
	{ QUERIER "Series", pyro_series, &schema_pyro_series_request, &schema_pyro_series_response,
	  NULL },
	{ QUERIER "SelectSeries", pyro_select_series, &schema_pyro_select_series_request,
	  &schema_pyro_select_series_response, NULL },
	{ QUERIER "SelectMergeStacktraces", pyro_stacktraces, &schema_pyro_stacks_request,
	  &schema_pyro_stacks_response, NULL },
	{ QUERIER "SelectMergeProfile", pyro_profile, &schema_pyro_profile_request,
	  &schema_pyro_profile, NULL },
	{ QUERIER "SelectMergeSpanProfile", pyro_span_profile, &schema_pyro_span_request,
	  &schema_pyro_stacks_response, NULL },
	{ QUERIER "Diff", pyro_diff, &schema_pyro_diff_request, &schema_pyro_diff_response, NULL },
	{ QUERIER "SelectHeatmap", pyro_heatmap, &schema_pyro_heatmap_request,
	  &schema_pyro_heatmap_response, NULL },
	{ QUERIER "AnalyzeQuery", pyro_analyze, &schema_pyro_analyze_request,
	  &schema_pyro_analyze_response, NULL },
	{ QUERIER "GetProfileStats", pyro_stats, &schema_pyro_stats_request,
	  &schema_pyro_stats_response, NULL },
	{ FLAGS "GetFeatureFlags", pyro_feature_flags, &schema_pyro_flags_request,
	  &schema_pyro_flags_response, NULL },
	{ SETTINGS "Get", pyro_settings, &schema_pyro_settings_request,
	  &schema_pyro_settings_response, NULL },
	{ SETTINGS "Set", pyro_settings_change, &schema_pyro_set_request, &schema_pyro_set_response,
	  NULL },
	{ SETTINGS "Delete", pyro_settings_change, &schema_pyro_delete_request,
	  &schema_pyro_delete_response, NULL },
	{ "/push.v1.PusherService/Push", pyro_push, &schema_pyro_push_request,
	  &schema_pyro_push_response, NULL },
	{ HEALTH "Check", health_check, &schema_health_request, &schema_health_response, NULL },
	{ HEALTH "Watch", NULL, &schema_health_request, &schema_health_response, NULL },
};

/* Connect's names of gRPC's codes. */
static const char *code_name(int grpc_status)
{
	static const char *const names[] = {
		"ok",
		"canceled",
		"unknown",
		"invalid_argument",
		"deadline_exceeded",
		"not_found",
		"already_exists",
		"permission_denied",
		"resource_exhausted",
		"failed_precondition",
		"aborted",
		"out_of_range",
		"unimplemented",
		"internal",
		"unavailable",
		"data_loss",
		"unauthenticated",
	};

	if (grpc_status < 0 || (size_t)grpc_status >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[grpc_status];
}

/* The HTTP status of a code in Connect and in the gateway. */
static int http_status(int grpc_status)
{
	static const int statuses[] = { 200, 499, 500, 400, 504, 404, 409, 403, 429,
					400, 409, 400, 501, 500, 503, 500, 401 };

	if (grpc_status < 0 || (size_t)grpc_status >= sizeof(statuses) / sizeof(statuses[0]))
		return 500;
	return statuses[grpc_status];
}

static void answer_error(struct net_response *response, int grpc_status, const char *message)
{
	struct json json;

	response->status = http_status(grpc_status);
	response->grpc_status = 0;
	response->content_type = "application/json";
	strbuf_clear(&response->body);
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_put_key(&json, "code");
	json_put_text(&json, code_name(grpc_status));
	json_put_key(&json, "message");
	json_put_text(&json, message);
	json_close_object(&json);
}

/* Runs the handler on a message, as if it had come by gRPC; errors are turned into JSON. */
static bool run(const struct call *call, void *context, const struct net_request *request,
		struct slice message, struct net_response *response)
{
	struct net_request inner = *request;

	inner.rpc = NET_RPC_GRPC;
	inner.body = message;
	call->handler(context, &inner, response);
	if (!response->grpc_status)
		return true;
	answer_error(response, response->grpc_status, response->message);
	return false;
}

/* The answer's message becomes JSON. */
static void turn_to_json(const struct call *call, bool defaults, struct net_response *response)
{
	struct strbuf json = { 0 };
	struct err err;

	response->content_type = "application/json";
	if (transcode_to_json(call->answer, strbuf_slice(&response->body), defaults, &json, &err)) {
		answer_error(response, GRPC_INTERNAL, err.message);
	} else {
		strbuf_free(&response->body);
		response->body = json;
		json = (struct strbuf){ 0 };
	}
	strbuf_free(&json);
}

const struct call *calls_list(size_t *ret_count)
{
	*ret_count = sizeof(calls) / sizeof(calls[0]);
	return calls;
}

static const struct call *find(struct slice path)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (slice_is(path, calls[i].path))
			return &calls[i];
	return NULL;
}

static bool has_type(const struct net_request *request, const char *type)
{
	struct slice parameters;

	return slice_is(slice_trim(slice_cut(net_request_header(request, "content-type"), ';',
					     &parameters)),
			type);
}

/* A message of JSON; what reading it takes is bounded as what a write takes is. */
static int read_json(const struct serve *serve, const struct call *call, struct slice json,
		     struct strbuf *message, struct err *err)
{
	struct budget budget = { .max_bytes =
					 serve->memory->max_bytes / MEMORY_SHARE_OF * MEMORY_SHARE,
				 .parent = serve->memory };

	return transcode_from_json(call->request, json, &budget, message, err);
}

static void answer_unread(struct net_response *response, const struct err *err)
{
	int code = GRPC_INVALID_ARGUMENT;

	if (err->code == ERR_NOT_FOUND)
		code = GRPC_NOT_FOUND;
	else if (err->code == ERR_LIMIT || err->code == ERR_NO_MEMORY)
		code = GRPC_RESOURCE_EXHAUSTED;
	answer_error(response, code, err->message);
}

static void serve_json(const struct call *call, void *context, const struct net_request *request,
		       struct net_response *response)
{
	struct strbuf message = { 0 };
	struct err err;

	if (read_json(context, call, request->body, &message, &err))
		answer_unread(response, &err);
	else if (run(call, context, request, strbuf_slice(&message), response))
		turn_to_json(call, false, response);
	strbuf_free(&message);
}

void calls_serve(void *context, const struct net_request *request, struct net_response *response)
{
	const struct call *call = find(request->path);

	if (!call) {
		response->grpc_status = GRPC_UNIMPLEMENTED;
		if (request->rpc == NET_RPC_NONE)
			answer_error(response, GRPC_UNIMPLEMENTED, "no such call");
	} else if (request->rpc != NET_RPC_NONE) {
		call->handler(context, request, response);
	} else if (has_type(request, "application/json")) {
		serve_json(call, context, request, response);
	} else if (has_type(request, "application/proto")) {
		response->content_type = "application/proto";
		run(call, context, request, request->body, response);
	} else {
		answer_error(response, GRPC_INVALID_ARGUMENT,
			     "content-type must be application/proto, application/json or "
			     "application/grpc");
		response->status = 415;
	}
}

/* Parca's JSON gateway. */

struct parameters {
	struct transcode_parameter list[PARAMETERS_MAX];
	size_t count;
	struct arena arena; /* their texts */
};

static void add_parameter(struct parameters *parameters, struct slice path, struct slice value)
{
	parameters->list[parameters->count++] =
		(struct transcode_parameter){ arena_copy(&parameters->arena, path),
					      arena_copy(&parameters->arena, value) };
}

static int read_parameters(struct slice query, struct parameters *ret, struct err *err)
{
	struct strbuf name = { 0 }, value = { 0 };
	int more;

	while ((more = net_parameter_next(&query, &name, &value)) > 0) {
		if (ret->count == PARAMETERS_MAX - 1) /* one more may stand in the path */
			break;
		add_parameter(ret, strbuf_slice(&name), strbuf_slice(&value));
	}
	strbuf_free(&name);
	strbuf_free(&value);
	if (more > 0)
		return err_set(err, ERR_LIMIT, "more than %u parameters", PARAMETERS_MAX - 1);
	if (more < 0)
		return err_set(err, ERR_INVALID, "a parameter is not percent-encoded right");
	return 0;
}

/* Of ".../labels/NAME/values" the name is a parameter like any other. */
static const struct call *find_values(struct slice path, struct parameters *parameters)
{
	struct slice name = slice_tail(path, strlen(GATEWAY_LABELS));
	size_t tail = strlen(GATEWAY_VALUES);

	if (!slice_starts_with(path, SLICE_LITERAL(GATEWAY_LABELS)) || name.len <= tail ||
	    !slice_is(slice_tail(name, name.len - tail), GATEWAY_VALUES))
		return NULL;
	add_parameter(parameters, SLICE_LITERAL("label_name"),
		      slice_from(name.data, name.len - tail));
	return find(SLICE_LITERAL(QUERY "Values"));
}

static const struct call *find_gateway(struct slice path, struct parameters *parameters)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].gateway && slice_is(path, calls[i].gateway))
			return &calls[i];
	return find_values(path, parameters);
}

/* The call and its message. */
static int read_gateway(const struct serve *serve, const struct net_request *request,
			const struct call **ret, struct strbuf *message, struct err *err)
{
	struct parameters *parameters = mem_new(struct parameters);
	int rc;

	arena_init(&parameters->arena, 0); /* the query string bounds it */
	rc = read_parameters(request->query, parameters, err);
	*ret = rc ? NULL : find_gateway(request->path, parameters);
	if (!rc && !*ret)
		rc = err_set(err, ERR_NOT_FOUND, "nothing here");
	if (!rc && slice_is(request->method, "POST"))
		rc = read_json(serve, *ret, request->body, message, err);
	else if (!rc)
		rc = transcode_from_parameters((*ret)->request, parameters->list, parameters->count,
					       message, err);
	arena_free(&parameters->arena);
	free(parameters);
	return rc;
}

void calls_gateway(void *context, const struct net_request *request, struct net_response *response)
{
	struct strbuf message = { 0 };
	const struct call *call;
	struct err err;
	int rc = read_gateway(context, request, &call, &message, &err);

	if (rc)
		answer_unread(response, &err);
	else if (run(call, context, request, strbuf_slice(&message), response))
		turn_to_json(call, true, response);
	strbuf_free(&message);
}
