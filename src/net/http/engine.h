/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine - the server's side of one connection in one protocol, as a state machine over bytes:
 * received bytes go in, bytes to send come out, whole requests go to the host. It has no sockets,
 * clock or threads of its own, so that tests and fuzzers can drive it. Loop thread only.
 *
 * The owner calls feed, then pull, as long as there is something to do; answer when a submitted
 * request comes back; tick from time to time. After `is_done` it sends what pull still returns,
 * then closes. If `lingers`, it first shuts down its sending side and continues to read for a
 * while, so that a peer that is still sending gets the last answer instead of a reset.
 */
#ifndef FIRN_NET_HTTP_ENGINE_H
#define FIRN_NET_HTTP_ENGINE_H

#include "net/http/exchange.h"

#define ENGINE_HEAD_TIMEOUT_NS (10 * CLOCK_NS_PER_S)   /* first byte to the end of the headers */
#define ENGINE_FIRST_REQUEST_NS ENGINE_HEAD_TIMEOUT_NS /* from nothing to a first head */
#define ENGINE_LINGER_NS (5 * CLOCK_NS_PER_S)	       /* reading on after an early answer */
#define ENGINE_PARK_TIMEOUT_NS (10 * CLOCK_NS_PER_S)   /* waiting for the budget */

/* The environment of an engine; outlives it. */
struct engine_host {
	struct http_service *service;
	struct slice peer;
	int64_t now_ns; /* monotonic; the owner sets it before each call */
	int64_t idle_timeout_ns;
	/* Takes a whole request. False, and nothing taken, if the queue is full. */
	bool (*submit)(struct engine_host *host, struct exchange *exchange);
};

struct engine_ops {
	/* Takes bytes from the front; fewer than all while it waits for an answer or the budget. */
	size_t (*feed)(struct engine *engine, struct slice bytes);
	/* The peer sends no more. */
	void (*end)(struct engine *engine);
	/* Appends bytes to send until `out` holds about bytes_max. */
	void (*pull)(struct engine *engine, struct strbuf *out, size_t bytes_max);
	/* A submitted request comes back with its answer. */
	void (*answer)(struct engine *engine, struct exchange *exchange);
	/* Ends what has timed out; resumes parked bodies once there is budget again. */
	void (*tick)(struct engine *engine);
	/* Since when it has been waiting for a request's head; INT64_MAX: it is not. */
	int64_t (*idle_since)(const struct engine *engine);
	/* Takes no new requests; done once the running ones are answered. */
	void (*stop)(struct engine *engine);
	/* Marks running requests as cancelled and leaves them to their workers. */
	void (*free)(struct engine *engine);
};

struct engine {
	const struct engine_ops *ops;
	struct engine_host *host;
	bool is_done;
	bool lingers;
	bool is_parked; /* some body waits for the budget */
	bool is_proven; /* a whole head has arrived: it may be idle for longer from now on */
};

struct engine *http1_new(struct engine_host *host);
/* Answers a request that has not been read with a refusal, and ends. */
void http1_turn_away(struct engine *engine, enum refusal refusal);

struct engine *http2_new(struct engine_host *host);

/* How long it may be idle. */
int64_t engine_idle_max_ns(const struct engine *engine);

/* Gives the request to the host, or refuses it if the queue is full. True if it was taken. */
bool engine_submit(struct engine *engine, struct exchange *exchange);

/* The exchange is back from its worker: from RUNNING to ANSWER, or to BODY if it wants more. */
void engine_take_back(struct exchange *exchange);

/* Tells the worker that runs the exchange that its answer is no longer needed. */
void engine_abandon(struct exchange *exchange);

#endif
