/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic - the server's own counters: requests, bytes, connections, time in handlers.
 */
#ifndef FIRN_NET_TRAFFIC_H
#define FIRN_NET_TRAFFIC_H

#include "net/server.h"

void traffic_register(void);

void traffic_count_answer(const struct net_request *request, const struct net_response *response);
int64_t traffic_begin_handler(void); /* returns what traffic_end_handler wants */
void traffic_end_handler(int64_t begun_ns);
void traffic_add_connection(int change);  /* +1 opened, -1 closed */
void traffic_set_inflight(int64_t bytes); /* of heads, bodies and answers in memory */
void traffic_count_received(size_t bytes);
void traffic_count_sent(size_t bytes);

#endif
