/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of the log, with repaired checksums, and the batches in them. */
#include <stdint.h>

#include "base/hash.h"
#include "server/persist/batch/memtable.h"
#include "server/persist/log/wal.h"

static void put_u32(char *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static uint32_t get_u32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void repair(struct strbuf *bytes)
{
	size_t at = WAL_SEGMENT_HEADER_BYTES;

	if (bytes->len < at)
		return;
	put_u32(bytes->data + 44, hash_crc32c(0, bytes->data, 44));
	while (bytes->len - at >= WAL_RECORD_HEADER_BYTES) {
		char *header = bytes->data + at;
		uint32_t len = get_u32(header + 4), crc = hash_crc32c(0, header, 32);

		at += WAL_RECORD_HEADER_BYTES;
		if (len > bytes->len - at)
			return;
		put_u32(header + 32, crc);
		put_u32(header + 36, hash_crc32c(crc, bytes->data + at, len));
		at += (len + 7) & ~(size_t)7;
		if (at > bytes->len)
			return;
	}
}

static int take(void *context, const struct wal_record *record, struct err *err)
{
	struct memtable_window window;
	struct tables_image batch;
	int rc = memtable_decode_batch(record->payload, &window, &batch, err);

	(void)context;
	if (!rc)
		tables_image_free(&batch);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct layout_name name = { LAYOUT_WAL, 1, 0 };
	struct strbuf bytes = { 0 }, report = { 0 };
	struct wal_chain chain = { .report = &report };

	strbuf_add(&bytes, data, size);
	repair(&bytes);
	wal_read_segment(&chain, &name, strbuf_slice(&bytes), take, NULL);
	strbuf_free(&bytes);
	strbuf_free(&report);
	return 0;
}
