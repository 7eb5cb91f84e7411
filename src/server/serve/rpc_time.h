/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_time - google.protobuf.Timestamp and Duration { seconds = 1; nanos = 2 } as nanoseconds. */
#ifndef FIRN_SERVER_SERVE_RPC_TIME_H
#define FIRN_SERVER_SERVE_RPC_TIME_H

#include "codec/pb.h"

/* `bytes` is the message within what `outer` reads. Times out of our range become its ends. */
int rpc_read_time(const struct pb_reader *outer, struct slice bytes, int64_t *ret_ns,
		  struct err *err);

#endif
