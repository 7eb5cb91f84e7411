/* SPDX-License-Identifier: Apache-2.0 */
/* admin - what only the role admin may: delete profiles, see what was deleted, reload. */
#include <stdio.h>

#include "config/units.h"
#include "server/scrape/scrape.h"
#include "server/serve/api/operations.h"
#include "server/serve/origin.h"
#include "server/serve/tenant.h"

#define BY_BYTES 256

/* Where nobody logs in, whoever reaches the port would be an administrator. */
static int check_enabled(const struct serve *serve, struct err *err)
{
	if (serve->has_users || serve->admin_enabled)
		return 0;
	return err_set(
		err, ERR_DENIED,
		"this server has no users, so nobody may administer it: add users or tokens in "
		"--web-config-file, or start the server with --web-enable-admin-api");
}

static int time_parameter(const struct net_request *request, const char *name, int64_t fallback_ns,
			  int64_t *ret_ns, struct err *err)
{
	struct strbuf text = { 0 };
	int rc = 0;

	*ret_ns = fallback_ns;
	if (net_request_parameter(request, name, 0, &text) && text.len)
		rc = units_parse_time(strbuf_slice(&text), clock_real_ns(), ret_ns, err);
	strbuf_free(&text);
	return rc ? err_wrap(err, "parameter \"%s\"", name) : 0;
}

/* The author of a request, for the record: address and user agent. */
static void describe_client(const struct net_request *request, char ret[static BY_BYTES])
{
	struct slice agent = net_request_header(request, "user-agent");
	size_t len;

	snprintf(ret, BY_BYTES, "%.*s %.*s", SLICE_FMT(request->peer), SLICE_FMT(agent));
	len = strlen(ret);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)ret[i] < ' ' || (unsigned char)ret[i] > '~')
			ret[i] = '?';
}

static void put_time(struct json *json, const char *key, int64_t at_ns)
{
	json_put_key(json, key);
	if (at_ns <= UNITS_TIME_MIN_NS || at_ns >= UNITS_TIME_MAX_NS)
		json_put_null(json); /* no bound */
	else
		json_put_int(json, at_ns / CLOCK_NS_PER_MS);
}

static int read_order(const struct serve *serve, const struct net_request *request,
		      struct strbuf *selector, struct store_delete *ret, struct err *err)
{
	int rc = check_enabled(serve, err);

	if (!rc)
		rc = origin_check(request, err);
	if (rc)
		return rc;
	if (!net_request_parameter(request, "query", 0, selector))
		return err_set(err, ERR_INVALID, "parameter \"query\" is missing: which series?");
	ret->selector = strbuf_slice(selector);
	rc = time_parameter(request, "from", UNITS_TIME_MIN_NS, &ret->from_ns, err);
	return rc ? rc : time_parameter(request, "to", UNITS_TIME_MAX_NS, &ret->to_ns, err);
}

static void put_answer(struct net_response *response, uint64_t number)
{
	struct json json;

	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_member_uint(&json, "id", number);
	json_close_object(&json);
}

void admin_delete(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct store_delete order = { 0 };
	struct strbuf selector = { 0 };
	uint64_t number = 0;
	char by[BY_BYTES];
	struct err err;
	int rc = read_order(serve, request, &selector, &order, &err);

	if (!rc)
		rc = tenant_of(serve, request, &order.tenant, &err);
	order.one_tenant = serve->tenants;
	describe_client(request, by);
	order.by = by;
	if (!rc)
		rc = store_delete(serve->store, &order, &number, &err);
	if (rc)
		net_response_error(request, response, &err);
	else
		put_answer(response, number);
	strbuf_free(&selector);
}

void operations_put_deletes(struct json *json, const struct store_deletes *deletes)
{
	json_open_array(json);
	for (size_t i = 0; i < deletes->count; i++) {
		const struct store_deleted *deleted = &deletes->items[i];

		json_open_object(json);
		json_member_uint(json, "id", deleted->number);
		json_member_text(json, "query", deleted->selector);
		put_time(json, "from_ms", deleted->from_ns);
		put_time(json, "to_ms", deleted->to_ns);
		json_member_text(json, "by", deleted->by);
		put_time(json, "created_ms", deleted->created_ns);
		json_put_key(json, "done_ms");
		if (deleted->done_ns)
			json_put_int(json, deleted->done_ns / CLOCK_NS_PER_MS);
		else
			json_put_null(json);
		json_close_object(json);
	}
	json_close_array(json);
}

void admin_deletes(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct store_deletes deletes;
	struct slice tenant;
	struct json json;
	struct err err;

	if (check_enabled(serve, &err) || tenant_of(serve, request, &tenant, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	store_deletes(serve->store, serve->tenants ? &tenant : NULL, &deletes);
	response->content_type = "application/json";
	json_begin(&json, &response->body);
	json_open_object(&json);
	json_put_key(&json, "deletes");
	operations_put_deletes(&json, &deletes);
	json_close_object(&json);
	store_deletes_free(&deletes);
}

/* Changes nothing that is not in the file: no need of --web-enable-admin-api. */
void admin_reload(void *context, const struct net_request *request, struct net_response *response)
{
	struct serve *serve = context;
	struct err err;
	int rc = origin_check(request, &err);

	if (!rc && !serve->scrape)
		rc = err_set(&err, ERR_INVALID,
			     "nothing to reload: the server has no --config-file");
	if (!rc)
		rc = scrape_reload(serve->scrape, &err);
	if (rc)
		net_response_error(request, response, &err);
	else
		response->content_type = "text/plain; charset=utf-8";
}
