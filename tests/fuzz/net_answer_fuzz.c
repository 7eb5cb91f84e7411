/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of other people's servers, in pieces whose size the first byte decides. */
#include <assert.h>

#include "net/client/answer.h"

#define BYTES_MAX 10000u

struct seen {
	uint64_t announced, bytes;
};

static int see_begin(void *context, uint64_t bytes, struct err *err)
{
	struct seen *seen = context;

	(void)err;
	assert(bytes <= BYTES_MAX);
	seen->announced = bytes;
	return 0;
}

static int see_bytes(void *context, struct slice bytes, struct err *err)
{
	struct seen *seen = context;

	(void)err;
	seen->bytes += bytes.len;
	assert(seen->bytes <= (seen->announced ? seen->announced : BYTES_MAX));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = { 0 };
	const struct answer_sink sink = { see_begin, see_bytes, &seen, BYTES_MAX, NULL, false };
	struct slice rest = slice_tail(slice_from(data, size), 1);
	size_t piece_bytes = size && data[0] ? data[0] : SIZE_MAX;
	struct answer answer;
	struct err err;
	int rc = 0;

	answer_begin(&answer, &sink);
	while (!rc && !answer.is_over && rest.len) {
		struct slice piece = rest;

		if (piece.len > piece_bytes)
			piece.len = piece_bytes;
		rc = answer_add(&answer, piece, &err);
		rest = slice_tail(rest, piece.len);
	}
	assert(rc <= 0);
	if (answer.is_over && answer.status == 200 && seen.announced)
		assert(seen.bytes == seen.announced);
	answer_free(&answer);
	return 0;
}
