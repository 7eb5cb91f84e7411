/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a request for gRPC's reflection or an error. The answer is a message that repeats
 * the request and is no larger than it and the largest descriptor.
 */
#include <assert.h>
#include <stdint.h>

#include "codec/wire/pb.h"
#include "net/server.h"
#include "server/serve/serve.h"

#define DESCRIPTOR_BYTES_MAX ((size_t)64 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct slice answer, struct slice asked)
{
	struct pb_reader in = pb_reader_of(answer);
	struct pb_field field;
	unsigned repeated = 0;

	assert(answer.len <= asked.len + DESCRIPTOR_BYTES_MAX);
	while (pb_next(&in, &field))
		repeated += field.number == 2 && slice_equal(field.bytes, asked);
	assert(!in.problem && repeated == (asked.len > 0)); /* empty ones are left out */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct net_request request = { .body = slice_from(data, size) };
	struct strbuf reply = { 0 };
	struct err err = { 0 };
	void *state = NULL;
	int rc = rpc_reflection.message(NULL, &request, &state, &reply, &err);

	if (rc)
		assert(rc < 0 && err.message[0]);
	else
		check(strbuf_slice(&reply), request.body);
	assert(!state);
	strbuf_free(&reply);
	return 0;
}
