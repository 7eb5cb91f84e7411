/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_status - what Pyroscope's clients ask beside profiles: whether the server is ready,
 * what it is, and what it can do (capabilities.v1.FeatureFlagsService, settings.v1.SettingsService;
 * handlers of calls.h but for the first two).
 */
#include "codec/wire/json.h"
#include "codec/wire/pb.h"
#include "server/serve/serve.h"

static const struct flag {
	const char *name;
	bool enabled;
	const char *description;
} flags[] = {
	{ "pyroscopeRuler", false, "Metrics made of profiles by rules." },
	{ "pyroscopeRulerFunctions", false, "Such metrics of single functions." },
	{ "utf8LabelNames", true, "Label names of any characters." },
	{ "v2StorageLayer", true, "Heatmaps, exemplars and statistics of queries." },
};

/* GET /ready */
void pyro_ready(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	bool ready = atomic_load(&serve->ready);

	(void)request;
	response->status = ready ? 200 : 503;
	response->content_type = "text/plain; charset=utf-8";
	strbuf_add_text(&response->body, ready ? "ready" : "starting");
}

/* GET /api/v1/status/buildinfo */
void pyro_build_info(void *context, const struct net_request *request,
		     struct net_response *response)
{
	struct json json;

	(void)context;
	(void)request;
	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_member_text(&json, "status", "success");
	json_member_object(&json, "data");
	json_member_text(&json, "application", "firn");
	json_member_text(&json, "version", FIRN_VERSION);
	json_close_object(&json);
	json_close_object(&json);
}

/* GetFeatureFlagsResponse{ feature_flags = 1 { name = 1; enabled = 2; description = 3 } } */
void pyro_feature_flags(void *context, const struct net_request *request,
			struct net_response *response)
{
	(void)context;
	(void)request;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		size_t begun = pb_begin(&response->body, 1);

		pb_put_bytes(&response->body, 1, slice_of(flags[i].name));
		pb_put_varint(&response->body, 2, flags[i].enabled);
		pb_put_bytes(&response->body, 3, slice_of(flags[i].description));
		pb_end(&response->body, begun);
	}
}

/* GetSettingsResponse{ settings = 1 }: there are none. */
void pyro_settings(void *context, const struct net_request *request, struct net_response *response)
{
	(void)context;
	(void)request;
	(void)response;
}

/* Set and Delete */
void pyro_settings_change(void *context, const struct net_request *request,
			  struct net_response *response)
{
	struct err err;

	(void)context;
	err_set(&err, ERR_UNSUPPORTED, "this server stores no user settings");
	net_response_error(request, response, &err);
}
