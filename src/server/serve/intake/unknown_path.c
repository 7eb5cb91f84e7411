/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unknown_path - what is sent to where nobody listens. Many senders print nothing on an error, so
 * the answer names the door that was meant, and the sender stands in the list with this error.
 */
#include "server/serve/intake/unknown_path.h"

#include "base/metrics.h"
#include "base/printable.h"
#include "server/serve/intake/writing.h"
#include "server/serve/serve.h"

#define PATH_SHOWN_BYTES 120

static METRIC_COUNTER(unknown_paths, "firn_intake_unknown_paths_total", "",
		      "Requests to send something to a path that is not there; the list of senders "
		      "has who and where");

/* By what stands in the path; the first that fits. */
static const struct {
	const char *part, *door;
} doors[] = {
	{ "push.v1", "Pyroscope's agents push to /push.v1.PusherService/Push" },
	{ "ingest", "Pyroscope's senders post to /ingest" },
	{ "pyroscope", "Pyroscope's senders post to /ingest" },
	{ "/profiling/", "Datadog's tracers post to /profiling/v1/input" },
	{ "parca",
	  "Parca's agents call /parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw" },
	{ "traces", "only profiles are accepted; post OTLP profiles to /v1development/profiles" },
	{ "metrics", "only profiles are accepted; post OTLP profiles to /v1development/profiles" },
	{ "logs", "only profiles are accepted; post OTLP profiles to /v1development/profiles" },
	{ "profiles", "OTLP profiles are posted to /v1development/profiles" },
	{ "otlp", "OTLP profiles are posted to /v1development/profiles" },
	{ "opentelemetry",
	  "OTLP profiles go to "
	  "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export" },
};

static const char *nearest_door(struct slice path)
{
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++)
		if (memmem(path.data, path.len, doors[i].part, strlen(doors[i].part)))
			return doors[i].door;
	return "profiles go to /v1development/profiles (OTLP), /ingest (Pyroscope) or "
	       "/profiling/v1/input (Datadog)";
}

void unknown_path_register_metrics(void)
{
	struct metric *metric = &unknown_paths;

	metrics_register(&metric, 1);
}

void unknown_path(void *context, const struct net_request *request, struct net_response *response)
{
	struct strbuf path = { 0 };
	struct err err;

	printable_add(&path, slice_from(request->path.data, request->path.len < PATH_SHOWN_BYTES
								    ? request->path.len
								    : PATH_SHOWN_BYTES));
	err_set(&err, ERR_NOT_FOUND, "%.*s \"%s\": nothing takes this; %s",
		SLICE_FMT(request->method), strbuf_text(&path), nearest_door(request->path));
	strbuf_free(&path);
	metric_add(&unknown_paths, 1);
	writing_note_failure(context, request, &err);
	if (request->rpc != NET_RPC_NONE)
		err.code = ERR_UNSUPPORTED; /* what gRPC says of a call that is not there */
	net_response_error(request, response, &err);
}
