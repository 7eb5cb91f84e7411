/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of part files (its body is tables_codec_fuzz), and state files, repaired. */
#include <stdint.h>

#include "base/hash.h"
#include "server/persist/ledger.h"
#include "server/persist/part.h"

#define TRAILER_BYTES 48

static void repair_part(struct strbuf *bytes)
{
	char *trailer = bytes->data + bytes->len - TRAILER_BYTES;
	uint64_t footer;
	struct identity hash;
	uint32_t crc;

	memcpy(&footer, trailer, sizeof(footer));
	if (footer > bytes->len - TRAILER_BYTES)
		return;
	hash = identity_of_bytes(bytes->data, footer);
	memcpy(trailer + 16, &hash, sizeof(hash));
	crc = hash_crc32c(0, bytes->data + footer, bytes->len - 12 - footer);
	memcpy(trailer + 36, &crc, sizeof(crc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf bytes = { 0 };
	struct tables_image image;
	struct ledger ledger;
	struct identity hash;
	struct err err;

	strbuf_add(&bytes, data, size);
	if (size >= TRAILER_BYTES) {
		uint32_t crc = hash_crc32c(0, bytes.data + 16, size - 16);

		repair_part(&bytes);
		if (!part_decode(strbuf_slice(&bytes), 1, &image, &hash, &err))
			tables_image_free(&image);
		memcpy(bytes.data + 12, &crc, sizeof(crc));
	}
	if (!ledger_decode_file(strbuf_slice(&bytes), 2, &ledger, &err))
		ledger_fini(&ledger);
	strbuf_free(&bytes);
	return 0;
}
