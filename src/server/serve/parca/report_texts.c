/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/parca/report_texts.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

static bool is_same(const void *context, uint32_t id, const void *key)
{
	const struct report_texts *texts = context;
	const struct slice *text = key;

	return slice_equal(texts->list[id], *text);
}

int32_t report_text(struct report_texts *texts, struct slice text)
{
	uint64_t hash = hash_bytes(text.data, text.len);
	uint32_t id = idmap_find(&texts->map, hash, is_same, texts, &text);

	if (id == IDMAP_NONE) {
		id = (uint32_t)texts->count;
		mem_grow(texts->list, texts->count, texts->capacity);
		texts->list[texts->count++] = text;
		idmap_add(&texts->map, hash, id);
	}
	return (int32_t)id;
}

void report_texts_free(struct report_texts *texts)
{
	idmap_free(&texts->map);
	free(texts->list);
	*texts = (struct report_texts){ 0 };
}

uint64_t report_address(struct slice name)
{
	uint64_t address = 0;

	if (!slice_starts_with(name, SLICE_LITERAL("0x")))
		return 0;
	for (size_t i = 2; i < name.len && i < 18 && slice_hex_digit(name.data[i]) >= 0; i++)
		address = address << 4 | (uint64_t)slice_hex_digit(name.data[i]);
	return address;
}
