/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ProfileStoreService/Write: how Parca's agents send samples that do not know WriteArrow yet.
 *
 *     client                             server
 *       WriteRequest{ samples }    -->
 *                                  <--   WriteResponse{ ids of their stacks }
 *       WriteRequest{ locations }  -->   stores both, ends the call
 *
 * Each is an Arrow stream (arrow_input.h). Samples whose locations do not come, because the client
 * ends the call instead, are stored without stacks, and counted; of a call that breaks off nothing
 * is kept. Between the messages the samples stay in memory, which the server's budget pays for; the
 * last quarter of it is left to those that need not wait.
 */
#include "base/budget.h"
#include "base/mem.h"
#include "codec/wire/pb.h"
#include "server/serve/intake/arrow_input.h"

#define FIELD_RECORD 1

struct write_call {
	struct budget *budget;
	struct strbuf samples, locations;
};

static int read_record(struct slice message, struct slice *ret, struct err *err)
{
	struct pb_reader in = pb_reader_of(message);
	struct pb_field field;

	*ret = SLICE_LITERAL("");
	while (pb_next(&in, &field))
		if (field.wire == PB_BYTES && field.number == FIELD_RECORD)
			*ret = field.bytes;
	return in.problem ? pb_fail(&in, "WriteRequest", err) : 0;
}

static int keep(struct write_call *call, struct strbuf *to, struct slice record, struct err *err)
{
	if (budget_is_tight(call->budget) || !budget_take(call->budget, record.len))
		return budget_fail(call->budget, record.len, "take Arrow", err);
	strbuf_add_slice(to, record);
	return 0;
}

static void free_call(struct write_call *call)
{
	budget_give(call->budget, call->samples.len + call->locations.len);
	strbuf_free(&call->samples);
	strbuf_free(&call->locations);
	free(call);
}

/* The samples: asks for their stacks, or is done when they name none. */
static int take_samples(struct write_call *call, struct slice record, struct strbuf *reply,
			struct err *err)
{
	struct strbuf ids = { 0 };
	int rc = keep(call, &call->samples, record, err);

	if (!rc)
		rc = arrow_input_ask(record, call->budget, &ids, err);
	if (!rc && ids.len)
		pb_put_bytes(reply, FIELD_RECORD, strbuf_slice(&ids));
	else if (!rc)
		rc = NET_STREAM_DONE;
	strbuf_free(&ids);
	return rc;
}

static int message(void *context, const struct net_request *request, void **state,
		   struct strbuf *reply, struct err *err)
{
	struct serve *serve = context;
	struct write_call *call = *state;
	struct slice record;
	int rc = read_record(request->body, &record, err);

	if (rc)
		return rc;
	if (call) {
		rc = keep(call, &call->locations, record, err);
		return rc ? rc : NET_STREAM_DONE;
	}
	call = *state = mem_new(struct write_call);
	call->budget = serve->memory;
	return take_samples(call, record, reply, err);
}

static void finish(void *context, const struct net_request *request, void *state,
		   struct net_response *response)
{
	struct write_call *call = state;
	struct writing writing;
	int rc = writing_begin(&writing, context, request, WRITING_ARROW);

	if (!rc && !call)
		rc = err_set(&writing.err, ERR_INVALID, "Write: no message came");
	if (!rc)
		rc = arrow_input_take(&writing, strbuf_slice(&call->samples),
				      strbuf_slice(&call->locations));
	if (!rc)
		rc = writing_append_all(&writing);
	(void)rc; /* writing has the error */
	writing_end(&writing, response);
	if (call)
		free_call(call);
}

static void abandon(void *context, void *state)
{
	(void)context;
	free_call(state);
}

const struct net_stream write_stream = {
	.message = message, .finish = finish, .replies = true, .abandon = abandon
};
