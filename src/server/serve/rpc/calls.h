/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - one handler for each remote call, whatever its protocol:
 *
 *   gRPC, gRPC-Web          as they are
 *   Connect, unary          POST of application/proto or application/json to the same path
 *                           (connectrpc.com/docs/protocol)
 *   Parca's JSON gateway    GET /api/profiles/... with fields as parameters, answers with defaults
 *
 * Handlers know protobuf alone (schema.h has the tables for JSON).
 */
#ifndef FIRN_SERVER_SERVE_RPC_CALLS_H
#define FIRN_SERVER_SERVE_RPC_CALLS_H

#include "codec/wire/transcode.h"
#include "net/server.h"

struct call {
	const char *path;	/* "/package.Service/Method" */
	net_handler_f *handler; /* NULL: answers are a stream, which the route has */
	const struct transcode_message *request, *answer;
	const char *gateway; /* path of the JSON gateway, or NULL */
};

/* All calls whose messages are known; those of one service stand together. */
const struct call *calls_list(size_t *ret_count);

/* Context of both is the struct serve. */
net_handler_f calls_serve;   /* paths "/package.Service/Method" */
net_handler_f calls_gateway; /* paths below /api/profiles/ */

#endif
