/* SPDX-License-Identifier: Apache-2.0 */
/* Records of mappings, one after the other: what comes out is sorted, without overlaps, bounded. */
#include <stdlib.h>
#include <string.h>

#include "agent/procs/space_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct space_list *list)
{
	uint64_t last = 0;

	if (list->count > SPACE_PARTS_MAPPINGS_MAX)
		abort();
	for (size_t i = 0; i < list->count; i++) {
		const struct space_mapping *mapping = &list->mappings[i];

		if (mapping->start < last || mapping->start >= mapping->end ||
		    mapping->offset + (mapping->end - mapping->start) < mapping->offset)
			abort();
		last = mapping->end;
	}
}

/* Each record has its length before it, in 8 bytes so that all stays aligned. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct space_parts parts = { 0 };

	while (size > 8) {
		size_t len = (size_t)data[0] | (size_t)data[1] << 8, left = size - 8;
		struct space_record *record;
		struct space_list list;

		len = len < left ? len : left;
		record = malloc(len ? len : 1); /* exactly as long as it says */
		if (!record)
			abort();
		memcpy(record, data + 8, len);
		if (len >= sizeof(record->head) &&
		    space_parts_take(&parts, record, len, &list) == SPACE_PARTS_WHOLE)
			check(&list);
		free(record);
		data += 8 + len;
		size -= 8 + len;
	}
	space_parts_fini(&parts);
	return 0;
}
