/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - one handler for each remote call, whatever way it is spoken:
 *
 *   gRPC, gRPC-Web          as they are
 *   Connect, unary          POST of application/proto or application/json to the same path
 *                           (connectrpc.com/docs/protocol)
 *   Parca's JSON gateway    GET /api/profiles/... with fields as parameters, answers with defaults
 *
 * Handlers know protobuf alone (schema.h has the tables for JSON).
 */
#ifndef FIRN_SERVER_SERVE_CALLS_H
#define FIRN_SERVER_SERVE_CALLS_H

#include "net/server.h"

/* Context of both is the struct serve. */
net_handler_f calls_serve;   /* paths "/package.Service/Method" */
net_handler_f calls_gateway; /* paths below /api/profiles/ */

#endif
