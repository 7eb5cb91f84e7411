/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC frames, time-outs, messages and retry details; base64. The first byte chooses. */
#include <stdlib.h>

#include "codec/wire/base64.h"
#include "net/http/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frames(struct slice bytes)
{
	struct slice message;
	bool is_compressed;

	if (!grpc_find_message(bytes, &message, &is_compressed, NULL) &&
	    message.len > bytes.len - GRPC_FRAME_BYTES)
		abort();
}

static void messages(struct slice bytes)
{
	struct strbuf encoded = { 0 };
	char decoded[256];

	grpc_decode_message(bytes, decoded, sizeof(decoded));
	grpc_encode_message(slice_of(decoded), &encoded);
	for (size_t i = 0; i < encoded.len; i++)
		if (encoded.data[i] < 0x20 || encoded.data[i] > 0x7e)
			abort();
	strbuf_free(&encoded);
}

/* What decodes without padding in the middle must encode to itself. */
static void base64(struct slice bytes)
{
	struct strbuf decoded = { 0 }, encoded = { 0 }, again = { 0 };

	if (base64_decode(bytes, &decoded)) {
		base64_encode(strbuf_slice(&decoded), true, &encoded);
		if (!base64_decode(strbuf_slice(&encoded), &again) ||
		    !slice_equal(strbuf_slice(&decoded), strbuf_slice(&again)))
			abort();
	}
	strbuf_free(&decoded);
	strbuf_free(&encoded);
	strbuf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_from(data + 1, size ? size - 1 : 0);
	int64_t ns = 0;

	if (!size)
		return 0;
	switch (data[0] % 5) {
	case 0:
		frames(bytes);
		break;
	case 1:
		messages(bytes);
		break;
	case 2:
		base64(bytes);
		break;
	case 3:
		if (grpc_parse_timeout(bytes, &ns) && ns < 0)
			abort();
		break;
	default:
		if (grpc_parse_retry_details(bytes) < 0)
			abort();
	}
	return 0;
}
