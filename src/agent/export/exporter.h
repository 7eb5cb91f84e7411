/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter - sends batches to a server as OTLP Profiles over gRPC, without ever blocking the agent.
 *
 * A batch is encoded at once and queued; one thread sends, retrying with exponential backoff and
 * jitter (1 s to 60 s, Retry-After honoured) on answers that OTLP calls retryable. The queue is
 * bounded in bytes: when full, the oldest batch goes and is counted. A retry sends the same bytes,
 * so the server can tell that it has them.
 */
#ifndef FIRN_AGENT_EXPORT_EXPORTER_H
#define FIRN_AGENT_EXPORT_EXPORTER_H

#include "base/err.h"
#include "model/tables.h"

struct exporter;

struct exporter_options {
	const char *address;		 /* HOST:PORT */
	const struct net_access *access; /* net/client/client.h; may be NULL; borrowed */
	uint64_t queue_bytes_max;	 /* 0 = default (64 MiB) */
	uint64_t (*lost)(void); /* samples lost so far, which the server is told; may be NULL */
};

int exporter_new(const struct exporter_options *options, struct exporter **ret, struct err *err);
void exporter_deliver(void *exporter, const struct tables_view *batch); /* an agent's deliver */
/* Tries to send what is queued for at most grace_ns, then frees. Accepts NULL. */
void exporter_free(struct exporter *exporter, int64_t grace_ns);

#endif
