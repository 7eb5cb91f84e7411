/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests, with repaired checksums. */
#include <stdint.h>

#include "base/hash.h"
#include "server/persist/manifest/manifest.h"

static void repair(struct strbuf *bytes)
{
	size_t at = 16;
	uint32_t chain;

	if (bytes->len < at)
		return;
	chain = hash_crc32c(0, bytes->data, 12);
	memcpy(bytes->data + 12, &chain, 4);
	while (bytes->len - at >= 12) {
		char *header = bytes->data + at;
		uint32_t len;

		memcpy(&len, header, 4);
		memcpy(header + 4, &chain, 4);
		at += 12;
		if (len > bytes->len - at)
			return;
		chain = hash_crc32c(hash_crc32c(0, header, 8), bytes->data + at, len);
		memcpy(header + 8, &chain, 4);
		at += len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest_state state;
	struct strbuf bytes = { 0 };
	struct err err;

	strbuf_add(&bytes, data, size);
	repair(&bytes);
	if (!manifest_decode(strbuf_slice(&bytes), &state, &err))
		manifest_state_free(&state);
	strbuf_free(&bytes);
	return 0;
}
