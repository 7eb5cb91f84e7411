/* SPDX-License-Identifier: Apache-2.0 */
/* answer_queries - which queries are being answered, and stopping them. */
#include "base/clock.h"
#include "codec/wire/json.h"
#include "server/serve/origin.h"
#include "server/serve/admission/active_queries.h"
#include "server/serve/tenant.h"

struct listing {
	struct json json;
	struct slice id; /* empty: all */
};

static void put_query(void *context, const struct active_query_state *state)
{
	struct listing *listing = context;
	struct json *json = &listing->json;

	if (listing->id.len && !slice_equal(listing->id, state->what.id))
		return;
	json_open_object(json);
	json_member_string(json, "id", state->what.id);
	json_member_string(json, "path", state->what.path);
	json_member_string(json, "query", state->what.query);
	json_member_int(json, "from_ms", state->what.from_ns / CLOCK_NS_PER_MS);
	json_member_int(json, "to_ms", state->what.to_ns / CLOCK_NS_PER_MS);
	json_member_string(json, "by", state->what.by);
	json_member_int(json, "started_ms", state->started_at_ns / CLOCK_NS_PER_MS);
	json_member_int(json, "took_ms", state->took_ns / CLOCK_NS_PER_MS);
	json_member_uint(json, "blocks_done", state->blocks_done);
	json_member_uint(json, "blocks_all", state->blocks_all);
	json_member_uint(json, "bytes_done", state->bytes_done);
	json_member_uint(json, "bytes_all", state->bytes_all);
	json_member_bool(json, "cancelled", state->is_stopped);
	json_close_object(json);
}

void answer_queries(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct listing listing;
	struct strbuf id = { 0 };
	struct slice tenant;
	struct err err;

	if (tenant_of(serve, request, &tenant, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	net_request_parameter(request, "id", 0, &id);
	listing.id = strbuf_slice(&id);
	response->content_type = "application/json";
	json_begin(&listing.json, &response->body);
	json_open_object(&listing.json);
	json_member_array(&listing.json, "queries");
	active_queries_each(serve->active, tenant, put_query, &listing);
	json_close_array(&listing.json);
	json_close_object(&listing.json);
	strbuf_free(&id);
}

static int stop(struct serve *serve, const struct net_request *request, size_t *ret,
		struct err *err)
{
	struct strbuf id = { 0 };
	struct slice tenant = { 0 };
	int rc = origin_check(request, err);

	if (!rc)
		rc = tenant_of(serve, request, &tenant, err);
	if (!rc && (!net_request_parameter(request, "id", 0, &id) || !id.len))
		rc = err_set(err, ERR_INVALID, "parameter \"id\" is missing: which query?");
	if (!rc)
		*ret = active_queries_stop(serve->active, tenant, strbuf_slice(&id));
	strbuf_free(&id);
	return rc;
}

void answer_cancel(void *context, const struct net_request *request, struct net_response *response)
{
	struct json json;
	struct err err;
	size_t count;

	if (stop(context, request, &count, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_member_uint(&json, "cancelled", count);
	json_close_object(&json);
}
