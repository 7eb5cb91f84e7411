/* SPDX-License-Identifier: Apache-2.0 */
/*
 * durations - the time that the handlers of a server take, by route: the histogram
 * firn_net_handler_seconds{method,path} in /metrics, for routes with requests. Time that a call
 * waits (for the disk, for other queries) is included. durations_note may be called by any thread.
 */
#ifndef FIRN_NET_HTTP_DURATIONS_H
#define FIRN_NET_HTTP_DURATIONS_H

#include "net/server.h"

struct durations;

/* `routes` must live until durations_free. */
struct durations *durations_new(const struct net_route *routes, size_t count);
void durations_free(struct durations *durations); /* NULL is fine */

/* `route` is one of those that durations_new was given. */
void durations_note(struct durations *durations, const struct net_route *route, int64_t ns);

#endif
