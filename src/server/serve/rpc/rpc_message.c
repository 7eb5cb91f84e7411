/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/rpc/rpc_message.h"

#include "config/units.h"

int rpc_read_time(const struct pb_reader *outer, struct slice bytes, int64_t *ret_ns,
		  struct err *err)
{
	struct pb_reader in = pb_reader_into(outer, bytes);
	struct pb_field field;
	int64_t seconds = 0, nanos = 0;

	while (pb_next(&in, &field)) {
		if (field.wire == PB_VARINT && field.number == 1)
			seconds = (int64_t)field.value;
		else if (field.wire == PB_VARINT && field.number == 2)
			nanos = (int64_t)field.value;
	}
	if (in.problem)
		return pb_fail(&in, "Timestamp", err);
	if (nanos < 0 || nanos >= CLOCK_NS_PER_S)
		return err_set(err, ERR_INVALID, "Timestamp: nanos are out of range");
	if (seconds >= UNITS_TIME_MAX_NS / CLOCK_NS_PER_S)
		*ret_ns = UNITS_TIME_MAX_NS;
	else if (seconds <= UNITS_TIME_MIN_NS / CLOCK_NS_PER_S)
		*ret_ns = UNITS_TIME_MIN_NS;
	else
		*ret_ns = seconds * CLOCK_NS_PER_S + nanos;
	return 0;
}

void rpc_put_texts(struct strbuf *out, const struct slice *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pb_put_bytes_always(out, 1, texts[i]);
}

void rpc_put_label(struct strbuf *out, struct slice name, struct slice value)
{
	size_t begun = pb_begin(out, 1);

	pb_put_bytes(out, 1, name);
	pb_put_bytes(out, 2, value);
	pb_end(out, begun);
}

void rpc_finish(const struct net_request *request, struct net_response *response, int rc,
		struct query_request *query, const struct err *err)
{
	query_request_end(query);
	if (rc)
		net_response_error(request, response, err);
}
