/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/names/known_codes.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

static uint64_t hash_code(uint64_t key, uint32_t proof)
{
	return hash_mix(key, proof);
}

static bool same_code(const void *context, uint32_t id, const void *key)
{
	const struct known_codes *codes = context;
	const struct known_code *sought = key;

	return codes->items[id].key == sought->key && codes->items[id].proof == sought->proof;
}

struct known_code *known_codes_find(const struct known_codes *codes, uint64_t key, uint32_t proof)
{
	struct known_code sought = { .key = key, .proof = proof };
	uint32_t id = idmap_find(&codes->map, hash_code(key, proof), same_code, codes, &sought);

	return id == IDMAP_NONE ? NULL : &codes->items[id];
}

struct known_code *known_codes_add(struct known_codes *codes, uint64_t key, uint32_t proof)
{
	struct known_code *code;

	mem_grow(codes->items, codes->count, codes->capacity);
	idmap_add(&codes->map, hash_code(key, proof), (uint32_t)codes->count);
	code = &codes->items[codes->count++];
	*code = (struct known_code){ .key = key, .proof = proof, .state = CODE_WANTED };
	codes->bytes += sizeof(*code);
	return code;
}

void known_codes_free(struct known_codes *codes)
{
	for (size_t i = 0; i < codes->count; i++)
		script_code_fini(&codes->items[i].code);
	free(codes->items);
	idmap_free(&codes->map);
}

void known_codes_shrink(struct known_codes *codes, uint32_t window, size_t bytes_max)
{
	struct known_codes kept = { 0 };
	bool keep = codes->bytes <= bytes_max;

	for (size_t i = 0; i < codes->count; i++) {
		struct known_code *old = &codes->items[i], *code;

		if (!keep || window - old->window > 1 || old->state != CODE_KNOWN)
			continue;
		code = known_codes_add(&kept, old->key, old->proof);
		*code = *old;
		code->read_after = 1; /* the functions that a place names may not be kept */
		old->code = (struct script_code){ 0 };
		kept.bytes += script_code_bytes(&code->code);
	}
	known_codes_free(codes);
	*codes = kept;
}
