/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - the threads that run requests, with a bounded queue before them and a list of finished
 * ones behind.
 *
 * Own threads rather than libuv's: those are four, and shared with name look-ups and file I/O.
 */
#ifndef FIRN_NET_POOL_H
#define FIRN_NET_POOL_H

#include "net/http/exchange.h"

struct pool;

/* `finished` is called on a worker whenever the list of finished exchanges became non-empty. */
int pool_start(unsigned workers, unsigned queue_max, void (*finished)(void *context), void *context,
	       struct pool **ret, struct err *err);

/* False when the queue is full. Any thread. */
bool pool_submit(struct pool *pool, struct exchange *exchange);

/* All finished exchanges, oldest first, linked by queue_next; NULL when there are none. */
struct exchange *pool_take_finished(struct pool *pool);

/*
 * Waits for running handlers, frees exchanges that wait or are finished, joins the threads.
 * Nobody submits any more. Accepts NULL.
 */
void pool_stop(struct pool *pool);

#endif
