/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange - one request and its answer, from the first header to the last byte; knows HTTP but no
 * wire format and no socket.
 *
 *     HEAD -> BODY -> RUNNING -> ANSWER
 *        \______\________\________^   refused
 *
 * An engine (http1, http2) makes it on the loop thread and feeds it. When the request is whole the
 * engine submits it; a worker then owns it and calls exchange_run, which decodes the body, asks for
 * permission, runs the handler and encodes the answer; it comes back to the loop thread, and the
 * engine sends the answer and frees the exchange. A refusal at any point fills the answer and goes
 * straight to ANSWER. A streamed request goes BODY -> RUNNING -> BODY with each batch of whole
 * messages until its end has come; what is replied meanwhile is sent while it is in either. While a
 * worker has it, the loop thread may only set `cancelled` and touch what is the engine's.
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

/* What all exchanges of one server share. Read-only while the server runs, but for what counts. */
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
	 * Of it, what answers hold until they are sent. Who does not read a large one takes it from
	 * all: so when it is short those who are slow are cut off, and a large answer that finds no
	 * room is a refusal. Small ones are always made.
	 */
	struct budget answers;
};

#define SERVICE_ANSWERS_SHARE 3 /* a third of the budget */
#define SMALL_ANSWER_BYTES ((size_t)64 << 10)

/* Whether others wait for what answers hold. */
static inline bool service_answers_are_short(const struct http_service *service)
{
	return atomic_load(&service->answers.used_bytes) > service->answers.max_bytes / 4 * 3;
}

enum exchange_phase { EXCHANGE_HEAD, EXCHANGE_BODY, EXCHANGE_RUNNING, EXCHANGE_ANSWER };

/* How an answer goes out. Lines are clean: engines write them as they are. */
struct http_answer {
	int status;
	struct strbuf lines;	/* with content-type and content-length */
	struct strbuf trailers; /* lines after the body; HTTP/2 only */
	struct strbuf owned;
	struct slice body; /* of `owned` or static; not to be sent for HEAD */
	bool is_head;
	bool is_begun; /* replies go before it: lines are those of the first, the end is in trailers
			*/
};

struct exchange {
	struct http_service *service;
	enum exchange_phase phase;
	struct head head;
	struct strbuf path; /* decoded */
	struct strbuf body; /* as received; decoded while the handler runs */
	size_t body_bytes_max;
	size_t ignored_bytes; /* of a body that its route ignores */
	size_t charged_bytes; /* taken from the budget, given back when freed */
	size_t answer_bytes;  /* the same of the answer, from its budget */
	struct net_request request;
	const struct net_route *route;
	void *stream_state;	   /* of a streamed request: its receiver's */
	bool is_admitted;	   /* authorize was asked */
	bool is_last;		   /* of a streamed request: its end has come; set before it runs */
	bool wants_more;	   /* exchange_run made no answer */
	bool is_watched;	   /* the answer goes on: exchange_watch */
	struct strbuf replies;	   /* frames made while it ran, not yet taken by the engine */
	_Atomic bool cancelled;	   /* told to the handler */
	_Atomic bool is_abandoned; /* nobody will read the answer */
	struct http_answer answer;
	struct exchange *queue_next; /* while RUNNING: pool.h's */

	/* The engine's; loop thread only. */
	struct engine *engine;		  /* NULL: the connection has gone */
	struct exchange *next, *previous; /* in the engine's list */
	struct pace pace;
	int32_t stream;
	struct strbuf replying; /* frames that go out before the answer's body */
	size_t replied_bytes;	/* of these */
	size_t answered_bytes;
	bool is_sending;     /* its head is on its way */
	bool is_answered;    /* all of it */
	bool is_parked;	     /* the body waits on the wire for the budget */
	size_t unread_bytes; /* held back from the peer's window while parked or running */
	struct strbuf more;  /* of a streamed request: received while it runs */
	bool has_ended;	     /* the peer has sent all */
	bool is_over_budget; /* `more` was not all kept */
};

/* `peer` must outlive the exchange's time in HEAD; it is copied. */
struct exchange *exchange_new(struct http_service *service, enum net_protocol protocol,
			      struct slice peer, int64_t now_ns);
void exchange_free(struct exchange *exchange);

/* Turns the request away; `detail` replaces the standing text when not NULL. */
void exchange_refuse(struct exchange *exchange, enum refusal refusal, const char *detail);

/*
 * The head is whole: finds the route and checks what can be checked before a body. `length` is the
 * announced body, 0 for none, -1 for unknown. Ends in BODY or ANSWER.
 */
void exchange_begin_body(struct exchange *exchange, int64_t length, int64_t now_ns);

/* Adds received bytes. Ends in BODY or ANSWER. */
void exchange_add_body(struct exchange *exchange, struct slice bytes, int64_t now_ns);

bool exchange_is_stream(const struct exchange *exchange);

/* True if a streamed request has a message to run for. */
bool exchange_has_message(const struct exchange *exchange);

/* Keeps bytes of a streamed request that is RUNNING. */
void exchange_add_more(struct exchange *exchange, struct slice bytes);

/* A streamed request is back for more, in BODY: takes what came meanwhile. May end in ANSWER. */
void exchange_resume(struct exchange *exchange, int64_t now_ns);

/*
 * Worker thread, once (for a streamed request: each time), for an exchange that is RUNNING: makes
 * the answer. The phase is the loop thread's to read and change: it stays RUNNING until
 * engine_take_back.
 */
void exchange_run(struct exchange *exchange);

/* Loop thread, after it ran: what it replied is to be sent. True if there is something. */
bool exchange_take_replies(struct exchange *exchange);

/*
 * Loop thread: up to `length` bytes of what is to be sent next, replies first, into `to`. Returns
 * how many; *ret_is_end when nothing of the answer is left, and none will come.
 */
size_t exchange_read(struct exchange *exchange, uint8_t *to, size_t length, bool *ret_is_end);

/*
 * Loop thread, for an answer that is watched and of which all has been sent: replaces it by what is
 * to be said next. False when that is still the same.
 */
bool exchange_watch(struct exchange *exchange);

#endif
