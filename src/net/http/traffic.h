/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic - the server's own counters: requests, bytes, connections.
 */
#ifndef FIRN_NET_HTTP_TRAFFIC_H
#define FIRN_NET_HTTP_TRAFFIC_H

#include "net/server.h"

void traffic_register(void);

void traffic_count_answer(const struct net_request *request, const struct net_response *response);
void traffic_add_handler(int change);	  /* +1 begun, -1 ended */
void traffic_add_connection(int change);  /* +1 opened, -1 closed */
void traffic_count_evicted(void);	  /* a connection that made room for another */
void traffic_set_inflight(int64_t bytes); /* heads, bodies and answers in memory */
void traffic_count_received(size_t bytes);
void traffic_count_sent(size_t bytes);

#endif
