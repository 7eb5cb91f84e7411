/* SPDX-License-Identifier: Apache-2.0 */
/* answer_targets - GET /api/v1/targets: who has sent profiles, how fresh, with which errors. */
#include <stdlib.h>

#include "base/clock.h"
#include "codec/wire/json.h"
#include "server/serve/api/answer_scraped.h"
#include "server/serve/api/targets.h"
#include "server/serve/tenant.h"

static void put_target(struct json *json, const struct target *target)
{
	json_open_object(json);
	json_member_text(json, "peer", target->peer);
	json_member_text(json, "sender", target->sender);
	json_member_object(json, "labels");
	if (target->node[0])
		json_member_text(json, "node", target->node);
	json_close_object(json);
	json_member_int(json, "first_ms", target->first_at_ns / CLOCK_NS_PER_MS);
	json_member_int(json, "last_ms", target->last_at_ns / CLOCK_NS_PER_MS);
	json_member_int(json, "interval_ms", target->interval_ns / CLOCK_NS_PER_MS);
	json_member_uint(json, "requests", target->requests);
	json_member_uint(json, "reports", target->reports);
	json_member_uint(json, "bytes", target->bytes);
	json_member_uint(json, "samples", target->samples);
	json_put_key(json, "samples_per_s");
	json_put_double(json, target->samples_per_s);
	json_member_uint(json, "lost", target->lost);
	if (target->lost_at_ns)
		json_member_int(json, "lost_ms", target->lost_at_ns / CLOCK_NS_PER_MS);
	json_member_uint(json, "refused", target->refused);
	json_member_uint(json, "errors", target->errors);
	if (target->errors) {
		json_member_text(json, "last_error", target->error);
		json_member_int(json, "last_error_ms", target->error_at_ns / CLOCK_NS_PER_MS);
	}
	json_close_object(json);
}

void answer_targets(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct strbuf state = { 0 };
	struct target *list;
	struct slice tenant;
	struct json json;
	struct err err;
	size_t count;

	if (tenant_of(serve, request, &tenant, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	list = targets_list(serve->targets, tenant, &count);
	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_member_int(&json, "now_ms", clock_real_ns() / CLOCK_NS_PER_MS);
	json_member_array(&json, "targets");
	for (size_t i = 0; i < count; i++)
		put_target(&json, &list[i]);
	json_close_array(&json);
	(void)net_request_parameter(request, "state", 0, &state);
	/* The file is the operator's: other tenants have no such targets. */
	answer_scraped_put(&json, tenant.len ? NULL : serve->scrape,
			   (struct slice){ strbuf_text(&state), state.len });
	json_close_object(&json);
	strbuf_free(&state);
	free(list);
}
