/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_filter - Parca's Filter messages (query.proto) as our filters. Texts fit in any case. */
#ifndef FIRN_SERVER_SERVE_RPC_RPC_FILTER_H
#define FIRN_SERVER_SERVE_RPC_RPC_FILTER_H

#include "codec/wire/pb.h"
#include "server/query/tree/filter.h"

/* Adds one Filter{ stack_filter = 1; frame_filter = 2 }. */
int rpc_filter_read(const struct pb_reader *outer, struct slice bytes, struct filter_list *filters,
		    struct err *err);

#endif
