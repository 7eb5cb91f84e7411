/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writing - one request with profiles, from its arrival to its answer: its buffers, its tenant, the
 * append that makes it durable, and its entry in the list of senders.
 *
 *     struct writing writing;
 *
 *     if (!writing_begin(&writing, serve, request, WRITING_OTLP) && !...ingest_from_...)
 *             writing_append(&writing);
 *     writing_end(&writing, response);
 *
 * Each request becomes one batch, appended as a whole; the answer goes out after the store made it
 * durable. A writing belongs to its handler's thread; buffers are shared through serve->writes.
 */
#ifndef FIRN_SERVER_SERVE_INTAKE_WRITING_H
#define FIRN_SERVER_SERVE_INTAKE_WRITING_H

#include "server/ingest/ingest.h"
#include "server/serve/serve.h"

/* X(name, label of the metrics) */
#define WRITING_PROTOCOLS(X)                                                                       \
	X(OTLP, "otlp")                                                                            \
	X(PARCA, "parca")                                                                          \
	X(ARROW, "parca_arrow")                                                                    \
	X(PYROSCOPE, "pyroscope")                                                                  \
	X(DATADOG, "datadog")                                                                      \
	X(SCRAPE, "scrape")

enum writing_protocol {
#define X(name, label) WRITING_##name,
	WRITING_PROTOCOLS(X)
#undef X
		WRITING_PROTOCOL_COUNT
};

struct writing {
	struct serve *serve;
	const struct net_request *request;
	enum writing_protocol protocol;
	struct quota_tenant *tenant;	/* NULL: tenants are not told apart */
	struct write_slot *slot;	/* NULL after writing_begin failed */
	struct ingest_scratch *scratch; /* the slot's */
	struct tables *batch;		/* likewise, being built */
	struct budget *budget;		/* pays for this request */
	struct ingest_limits limits;
	struct append_result result;
	struct err err;	    /* of the first step that failed; code 0: none did */
	struct err partial; /* what was rejected of a request that was taken; code 0: nothing */
	uint64_t rejected;  /* profiles, besides those that `result` counts */
	struct err refusal; /* of the first series that was refused */
	unsigned refused;   /* series */
};

/*
 * ERR_INVALID: the request names a tenant wrongly; ERR_RATE: the tenant sends too much. In any case
 * writing_end must follow.
 */
MUST_USE int writing_begin(struct writing *writing, struct serve *serve,
			   const struct net_request *request, enum writing_protocol protocol);

/* Stores what is in the batch; nothing is no error. `result` tells what was refused of it. */
MUST_USE int writing_append(struct writing *writing);

/*
 * The same for protocols whose answer cannot say that a part was refused: that is ERR_INVALID then,
 * so that the client does not believe it is kept. What was stored stays; a retry counts once.
 */
MUST_USE int writing_append_all(struct writing *writing);

/*
 * For such protocols, where a request has several series: one that failed as invalid hinders no
 * other. writing_refuse keeps the first one's error and says whether to go on; writing_append_rest
 * stores the others, and fails if any of the `series` was refused.
 */
MUST_USE bool writing_refuse(struct writing *writing, unsigned index);
MUST_USE int writing_append_rest(struct writing *writing, unsigned series);

/* Answers the error, if there is one; notes the sender; gives the buffers back. */
void writing_end(struct writing *writing, struct net_response *response);

/* Notes a sender whose request brought nothing and failed. */
void writing_note_failure(struct serve *serve, const struct net_request *request,
			  const struct err *err);

void writing_register_metrics(void);

#endif
