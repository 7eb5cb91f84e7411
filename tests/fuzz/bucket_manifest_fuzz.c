/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of a bucket, with a repaired checksum: what is read is written the same again. */
#include <assert.h>
#include <stdint.h>

#include "base/hash.h"
#include "server/persist/manifest/bucket_manifest.h"

#define HEADER_BYTES 20 /* magic, version, length, checksum */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void repair(struct strbuf *bytes)
{
	uint32_t len, crc;

	if (bytes->len < HEADER_BYTES)
		return;
	len = (uint32_t)(bytes->len - HEADER_BYTES);
	crc = hash_crc32c(0, bytes->data + HEADER_BYTES, len);
	memcpy(bytes->data + 12, &len, 4);
	memcpy(bytes->data + 16, &crc, 4);
}

static void check_again(const struct bucket_manifest *manifest)
{
	struct strbuf encoded = { 0 };
	struct bucket_manifest again;
	struct err err;

	bucket_manifest_encode(manifest, &encoded);
	assert(!bucket_manifest_decode(strbuf_slice(&encoded), &again, &err));
	assert(again.number == manifest->number && again.covered_ns == manifest->covered_ns);
	assert(again.state.parts_count == manifest->state.parts_count);
	manifest_state_free(&again.state);
	strbuf_free(&encoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bucket_manifest manifest;
	struct strbuf bytes = { 0 };
	struct err err = { 0 };

	strbuf_add(&bytes, data, size);
	repair(&bytes);
	if (!bucket_manifest_decode(strbuf_slice(&bytes), &manifest, &err)) {
		check_again(&manifest);
		manifest_state_free(&manifest.state);
	} else {
		assert(err.code && err.message[0]);
	}
	strbuf_free(&bytes);
	return 0;
}
