/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_agents - Parca's AgentsService, and the TelemetryService that agents tell their end to. */
#include <stdlib.h>

#include "base/log.h"
#include "codec/wire/pb.h"
#include "server/serve/api/targets.h"
#include "server/serve/serve.h"

#define PANIC_BYTES_MAX 2000u /* that are logged */

/* Agent{ id = 1; last_error = 2; last_push = 3 { seconds = 1; nanos = 2 } } */
static void put_agent(const struct target *target, struct strbuf *out)
{
	size_t begun = pb_begin(out, 1), time;
	struct strbuf id = { 0 };

	strbuf_addf(&id, "%s%s%s", target->node, target->node[0] ? "@" : "", target->peer);
	pb_put_bytes(out, 1, strbuf_slice(&id));
	if (target->error_at_ns && target->error_at_ns >= target->last_at_ns)
		pb_put_bytes(out, 2, slice_of(target->error));
	time = pb_begin(out, 3);
	pb_put_varint(out, 1, (uint64_t)(target->last_at_ns / CLOCK_NS_PER_S));
	pb_put_varint(out, 2, (uint64_t)(target->last_at_ns % CLOCK_NS_PER_S));
	pb_end(out, time);
	pb_end(out, begun);
	strbuf_free(&id);
}

/* AgentsResponse{ agents = 1 }: all that send, whatever they speak. */
void rpc_agents(void *context, const struct net_request *request, struct net_response *response)
{
	const struct serve *serve = context;
	struct target *targets;
	struct slice tenant;
	struct err err;
	size_t count;

	if (tenant_of(serve, request, &tenant, &err)) {
		net_response_error(request, response, &err);
		return;
	}
	targets = targets_list(serve->targets, tenant, &count);
	for (size_t i = 0; i < count; i++)
		put_agent(&targets[i], &response->body);
	free(targets);
}

/* ReportPanicRequest{ stderr = 1; metadata = 2 }: its end goes into the log. */
void rpc_report_panic(void *context, const struct net_request *request,
		      struct net_response *response)
{
	struct pb_reader in = pb_reader_of(request->body);
	struct pb_field field;
	struct slice text = { "", 0 };
	struct err err;

	(void)context;
	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == 1)
			text = field.bytes;
	if (in.problem && pb_fail(&in, "ReportPanicRequest", &err)) {
		net_response_error(request, response, &err);
		return;
	}
	if (text.len > PANIC_BYTES_MAX)
		text = slice_tail(text, text.len - PANIC_BYTES_MAX);
	log_warn("agents", "an agent reported a crash", "peer=%.*s stderr=\"%.*s\"",
		 SLICE_FMT(request->peer), SLICE_FMT(text));
}
