/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange - one request and its answer, from the first header to the last byte; knows HTTP but no
 * wire format and no socket.
 *
 *     HEAD -> BODY -> RUNNING -> ANSWER
 *        \______\________\________^   refused
 *
 * An engine (http1, http2) creates it on the loop thread and feeds it. Once the request is
 * complete, the engine submits it; a worker then owns it and calls exchange_run, which decodes the
 * body, checks the permission, runs the handler and encodes the answer. It then returns to the loop
 * thread, and the engine sends the answer and frees the exchange. A refusal at any point fills the
 * answer and goes straight to ANSWER. A streamed request goes BODY -> RUNNING -> BODY with each
 * batch of whole messages until its end; replies are sent in both phases. While a worker owns the
 * exchange, the loop thread may only set `cancelled` and use the engine's members.
 */
#ifndef FIRN_NET_HTTP_EXCHANGE_H
#define FIRN_NET_HTTP_EXCHANGE_H

#include "base/budget.h"
#include "net/http/durations.h"
#include "net/http/head.h"
#include "net/http/pace.h"
#include "net/http/refusal.h"
#include "net/server.h"

struct engine;

/* Shared by all exchanges of one server. Read-only while the server runs, except for counters. */
struct http_service {
	const struct net_route *routes;
	size_t routes_count;
	int (*authorize)(void *context, const struct net_request *request, enum net_role role,
			 bool at_once);
	void *authorize_context;
	const struct hosts *hosts;
	struct slice headers, path_prefix;
	struct durations *durations;
	struct budget budget;
	/*
	 * The part of it that answers hold until they are sent. A client that does not read a large
	 * answer takes memory from all others. Therefore, when this budget is short, slow clients
	 * are cut off, and a large answer that finds no room is refused. Small answers always pass.
	 */
	struct budget answers;
};

#define SERVICE_ANSWERS_SHARE 3 /* a third of the budget */
#define SMALL_ANSWER_BYTES ((size_t)64 << 10)
#define SMALL_ANSWERS_SHARE 8 /* of these */

/* True if the budget for answers is short. */
static inline bool service_answers_are_short(const struct http_service *service)
{
	return atomic_load(&service->answers.used_bytes) > service->answers.max_bytes / 4 * 3;
}

enum exchange_phase { EXCHANGE_HEAD, EXCHANGE_BODY, EXCHANGE_RUNNING, EXCHANGE_ANSWER };

/* An encoded answer. Its lines are valid: engines write them as they are. */
struct http_answer {
	int status;
	struct strbuf lines;	/* with content-type and content-length */
	struct strbuf trailers; /* lines after the body; HTTP/2 only */
	struct strbuf owned;
	struct slice body; /* of `owned` or static; not to be sent for HEAD */
	bool is_head;
	bool is_begun; /* replies precede it: `lines` went with the first, the end is in trailers */
};

struct exchange {
	struct http_service *service;
	enum exchange_phase phase;
	struct head head;
	struct strbuf path; /* decoded */
	struct strbuf body; /* as received; decoded while the handler runs */
	size_t body_bytes_max;
	size_t ignored_bytes; /* of a body that its route ignores */
	size_t charged_bytes; /* taken from the budget, returned when freed */
	size_t answer_bytes;  /* the same for the answer, from its budget */
	struct net_request request;
	const struct net_route *route;
	void *stream_state;    /* for a streamed request: its receiver's */
	bool is_admitted;      /* authorize was called */
	bool is_last;	       /* for a streamed request: its end has arrived; set before it runs */
	bool wants_more;       /* exchange_run made no answer */
	bool is_watched;       /* the answer continues: exchange_watch */
	struct strbuf replies; /* frames made while it ran, not yet taken by the engine */
	_Atomic bool cancelled;	   /* visible to the handler */
	_Atomic bool is_abandoned; /* nobody will read the answer */
	struct http_answer answer;
	struct exchange *queue_next; /* while RUNNING: pool.h's */

	/* The engine's; loop thread only. */
	struct engine *engine;		  /* NULL: the connection has gone */
	struct exchange *next, *previous; /* in the engine's list */
	struct pace pace;
	int32_t stream;
	struct strbuf replying; /* frames to send before the answer's body */
	size_t replied_bytes;	/* number of these already sent */
	size_t answered_bytes;
	bool is_sending;     /* its head was sent */
	bool is_answered;    /* all of it was sent */
	bool is_parked;	     /* the body waits on the wire for the budget */
	size_t unread_bytes; /* held back from the peer's window while parked or running */
	struct strbuf more;  /* for a streamed request: received while it runs */
	bool has_ended;	     /* the peer has sent all */
	bool is_over_budget; /* `more` is incomplete */
};

/* `peer` must outlive the exchange's time in HEAD; it is copied. */
struct exchange *exchange_new(struct http_service *service, enum net_protocol protocol,
			      struct slice peer, int64_t now_ns);
void exchange_free(struct exchange *exchange);

/* Refuses the request; `detail` replaces the default text if not NULL. */
void exchange_refuse(struct exchange *exchange, enum refusal refusal, const char *detail);

/*
 * The head is complete: finds the route and checks what can be checked before the body. `length` is
 * the announced size of the body, 0 for none, -1 for unknown. Ends in BODY or ANSWER.
 */
void exchange_begin_body(struct exchange *exchange, int64_t length, int64_t now_ns);

/* Adds received bytes. Ends in BODY or ANSWER. */
void exchange_add_body(struct exchange *exchange, struct slice bytes, int64_t now_ns);

bool exchange_is_stream(const struct exchange *exchange);

/* True if a streamed request has a complete message. */
bool exchange_has_message(const struct exchange *exchange);

/* Stores bytes of a streamed request that is RUNNING. */
void exchange_add_more(struct exchange *exchange, struct slice bytes);

/* A streamed request is in BODY again: adds the bytes stored meanwhile. May end in ANSWER. */
void exchange_resume(struct exchange *exchange, int64_t now_ns);

/*
 * Worker thread, once (for a streamed request: each time), for an exchange that is RUNNING: makes
 * the answer. Only the loop thread reads and changes the phase: it stays RUNNING until
 * engine_take_back.
 */
void exchange_run(struct exchange *exchange);

/* Loop thread, after it ran: takes its replies for sending. True if there are any. */
bool exchange_take_replies(struct exchange *exchange);

/*
 * Loop thread: copies up to `length` bytes to be sent next, replies first, into `to`. Returns their
 * number; sets *ret_is_end if these are the last bytes of the answer.
 */
size_t exchange_read(struct exchange *exchange, uint8_t *to, size_t length, bool *ret_is_end);

/*
 * Loop thread, for a watched answer that was sent completely: replaces it by the next message.
 * False if the message has not changed.
 */
bool exchange_watch(struct exchange *exchange);

#endif
