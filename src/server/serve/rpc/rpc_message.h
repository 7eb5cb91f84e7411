/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_message - what the protobuf messages of Parca's and Pyroscope's calls have in common. */
#ifndef FIRN_SERVER_SERVE_RPC_RPC_MESSAGE_H
#define FIRN_SERVER_SERVE_RPC_RPC_MESSAGE_H

#include "codec/wire/pb.h"
#include "server/serve/api/query_request.h"

/*
 * google.protobuf.Timestamp and Duration { seconds = 1; nanos = 2 } as nanoseconds. `bytes` is the
 * message within what `outer` reads. Times out of our range become its ends.
 */
int rpc_read_time(const struct pb_reader *outer, struct slice bytes, int64_t *ret_ns,
		  struct err *err);

/* Field 1, repeated. */
void rpc_put_texts(struct strbuf *out, const struct slice *texts, size_t count);

/* Field 1: a message { name = 1; value = 2 }. */
void rpc_put_label(struct strbuf *out, struct slice name, struct slice value);

/* Ends the query, and answers with the error when rc is one. */
void rpc_finish(const struct net_request *request, struct net_response *response, int rc,
		struct query_request *query, const struct err *err);

#endif
