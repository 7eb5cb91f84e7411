/* SPDX-License-Identifier: Apache-2.0 */
/* Section bodies of tables: the checksums are repaired first, so that the bytes get past them. */
#include <assert.h>
#include <stdint.h>

#include "base/hash.h"
#include "server/persist/log/tables_codec.h"

#define RAW_BYTES_MAX ((uint64_t)1 << 20)

static uint64_t read_u64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void repair(struct strbuf *bytes)
{
	size_t at = 0;

	while (bytes->len - at >= TABLES_SECTION_HEADER_BYTES) {
		char *header = bytes->data + at;
		uint64_t stored = read_u64(header + 16);
		uint32_t crc;

		at += TABLES_SECTION_HEADER_BYTES;
		if (stored > bytes->len - at)
			return;
		crc = hash_crc32c(hash_crc32c(0, header, 24), bytes->data + at, stored);
		memcpy(header + 24, &crc, sizeof(crc));
		at += stored;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tables_image image, again;
	struct strbuf bytes = { 0 }, out = { 0 };
	struct err err;

	strbuf_add(&bytes, data, size);
	repair(&bytes);
	if (!tables_decode(strbuf_slice(&bytes), RAW_BYTES_MAX, &image, &err)) {
		tables_encode(&image.view, 0, &out, NULL); /* what was taken can be written */
		assert(!tables_decode(strbuf_slice(&out), UINT64_MAX, &again, &err));
		assert(again.view.rows_count == image.view.rows_count);
		tables_image_free(&again);
		tables_image_free(&image);
	}
	strbuf_free(&bytes);
	strbuf_free(&out);
	return 0;
}
