/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health - grpc.health.v1 (grpc/health/v1/health.proto of the gRPC project): Check answers once,
 * Watch at once and whenever it has changed. The server is one: all its services serve, or none.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/wire/pb.h"
#include "server/serve/rpc/reflection.h"
#include "server/serve/rpc/schema.h"
#include "server/serve/serve.h"

enum { SERVING = 1, NOT_SERVING, SERVICE_UNKNOWN };
enum { REQUEST_SERVICE = 1 };
enum { RESPONSE_STATUS = 1 };

static const char *const status_names[] = { "UNKNOWN", "SERVING", "NOT_SERVING",
					    "SERVICE_UNKNOWN" };
static const struct transcode_enum statuses = { status_names, 4 };

static const struct transcode_field request_fields[] = {
	{ REQUEST_SERVICE, "service", TRANSCODE_TEXT, false, false, NULL, NULL },
};
static const struct transcode_field response_fields[] = {
	{ RESPONSE_STATUS, "status", TRANSCODE_ENUM, false, false, NULL, &statuses },
};
const struct transcode_message schema_health_request = { "HealthCheckRequest", request_fields, 1 };
const struct transcode_message schema_health_response = { "HealthCheckResponse", response_fields,
							  1 };

struct health_watch {
	bool is_known; /* the service that is asked about */
};

/* Without a name, the whole server. */
static int read_request(struct slice message, bool *ret_known, struct err *err)
{
	struct pb_reader in = pb_reader_of(message);
	struct slice service = { 0 };
	struct pb_field field;

	while (pb_next(&in, &field))
		if (field.number == REQUEST_SERVICE && field.wire == PB_BYTES)
			service = field.bytes;
	if (in.problem)
		return pb_fail(&in, "HealthCheckRequest", err);
	*ret_known = !service.len || reflection_has_service(service);
	return 0;
}

static int status_of(struct serve *serve)
{
	return atomic_load(&serve->ready) ? SERVING : NOT_SERVING;
}

void health_check(void *context, const struct net_request *request, struct net_response *response)
{
	bool is_known = false;
	struct err err;
	int rc = read_request(request->body, &is_known, &err);

	if (!rc && !is_known)
		rc = err_set(&err, ERR_NOT_FOUND, "no service of that name");
	if (rc)
		net_response_error(request, response, &err);
	else
		pb_put_varint(&response->body, RESPONSE_STATUS, (uint64_t)status_of(context));
}

static int begin(void *context, const struct net_request *request, void **state,
		 struct strbuf *reply, struct err *err)
{
	struct health_watch *watch;
	bool is_known;
	int rc = read_request(request->body, &is_known, err);

	(void)context;
	(void)reply;
	if (rc)
		return rc;
	watch = mem_new(struct health_watch);
	watch->is_known = is_known;
	*state = watch;
	return NET_STREAM_DONE;
}

static void put_status(void *context, const void *state, struct strbuf *out)
{
	const struct health_watch *watch = state;

	pb_put_varint(out, RESPONSE_STATUS,
		      watch->is_known ? (uint64_t)status_of(context) : SERVICE_UNKNOWN);
}

static void finish(void *context, const struct net_request *request, void *state,
		   struct net_response *response)
{
	struct err err;

	if (state) {
		put_status(context, state, &response->body);
		return;
	}
	err_set(&err, ERR_INVALID, "HealthCheckRequest: the call ended without one");
	net_response_error(request, response, &err);
}

static void abandon(void *context, void *state)
{
	(void)context;
	free(state);
}

const struct net_stream health_watch = {
	.message = begin, .finish = finish, .abandon = abandon, .watch = put_status
};
