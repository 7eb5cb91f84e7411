/* SPDX-License-Identifier: Apache-2.0 */
/*
 * response - encodes what a handler filled in as what an engine sends: statuses, gRPC trailers,
 * gRPC-Web frames, compression, standard headers. Any thread.
 */
#ifndef FIRN_NET_HTTP_RESPONSE_H
#define FIRN_NET_HTTP_RESPONSE_H

#include "net/http/exchange.h"

/* The presets of net/server.h; `memory` pays for large bodies. NULL = nobody does. */
void response_init(struct net_response *response, struct budget *memory);
void response_fini(struct net_response *response);

/* Fills the response with a refusal; `detail` replaces the default text if not NULL. */
void response_refuse(const struct net_request *request, enum refusal refusal, const char *detail,
		     struct net_response *response);

/* The HTTP status that corresponds to a gRPC status, for counters and clients without gRPC. */
int response_http_of_grpc(int grpc_status);

/* Makes the head of a gRPC answer that has replies before its end, in an empty `ret`. */
void response_begin(const struct net_request *request, struct http_answer *ret);

/* Encodes into `ret`, which is empty or begun. Takes the response's body; static bodies are
 * borrowed. */
void response_encode(const struct net_request *request, struct net_response *response,
		     struct http_answer *ret);

#endif
