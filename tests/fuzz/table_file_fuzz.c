/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind table files from any bytes; checksums are put right, or nothing would get past them. */
#include "agent/unwind/table_file.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void repair(uint8_t *bytes, size_t size)
{
	struct table_file_header header;

	if (size < sizeof(header))
		return;
	memcpy(&header, bytes, sizeof(header));
	memcpy(header.magic, TABLE_FILE_MAGIC, sizeof(header.magic));
	header.version = TABLE_FILE_VERSION;
	header.file_bytes = size;
	header.rows_count = 0;
	for (uint32_t i = 0; i < header.segments_count && i < TABLE_SEGMENTS_MAX; i++) {
		struct table_file_segment *segment = &header.segments[i];

		header.rows_count += segment->rows_count;
		if (segment->image_at <= size && segment->image_bytes <= size - segment->image_at)
			segment->image_crc =
				hash_crc32c(0, bytes + segment->image_at, segment->image_bytes);
	}
	header.crc = hash_crc32c(0, &header, offsetof(struct table_file_header, crc));
	memcpy(bytes, &header, sizeof(header));
}

static int count_row(void *context, uint64_t offset, const struct unwind_rule *rule)
{
	uint64_t *sum = context;

	*sum += offset + rule->cfa;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = mem_calloc(1, size + 1);
	struct table_file file;
	struct err err;
	uint64_t sum = 0;

	memcpy(bytes, data, size);
	repair(bytes, size);
	if (!table_file_parse(slice_from(bytes, size), "input", &file, &err)) {
		for (uint32_t i = 0; i < file.header.segments_count; i++) {
			struct unwind_rule rule;
			struct table_image image;

			if (table_image_load(&file, i, &image, &err))
				continue;
			table_image_walk(&image, count_row, &sum);
			for (uint64_t at = 0; at < 8192; at += 7)
				table_image_find(&image,
						 (uint64_t)image.segment.first_block *
								 TABLE_BLOCK_BYTES +
							 at,
						 &rule);
			table_image_free(&image);
		}
	}
	free(bytes);
	return 0;
}
