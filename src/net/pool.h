/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - the threads that run requests, with a bounded queue of waiting requests and a list of
 * finished ones.
 *
 * It does not use libuv's threads: there are only four, shared with name lookups and file I/O.
 */
#ifndef FIRN_NET_POOL_H
#define FIRN_NET_POOL_H

#include "net/http/exchange.h"

struct pool;

/* A worker calls `finished` whenever the list of finished exchanges becomes non-empty. */
int pool_start(unsigned workers, unsigned queue_max, void (*finished)(void *context), void *context,
	       struct pool **ret, struct err *err);

/* False when the queue is full. Any thread. */
bool pool_submit(struct pool *pool, struct exchange *exchange);

/* All finished exchanges, oldest first, linked by queue_next; NULL when there are none. */
struct exchange *pool_take_finished(struct pool *pool);

/*
 * Waits for running handlers, frees waiting and finished exchanges, joins the threads. Nobody may
 * submit any more. Accepts NULL.
 */
void pool_stop(struct pool *pool);

#endif
