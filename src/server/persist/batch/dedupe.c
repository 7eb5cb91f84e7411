/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/batch/dedupe.h"

#include <assert.h>

#include "base/mem.h"
#include "server/persist/batch/append.h"

#define ENTRY_BYTES_MIN 17u /* encoded */

void dedupe_fini(struct dedupe *dedupe)
{
	free(dedupe->entries);
	idmap_free(&dedupe->map);
	*dedupe = (struct dedupe){ 0 };
}

void dedupe_check(const struct dedupe *dedupe)
{
	assert(dedupe->count <= dedupe->capacity && dedupe->count <= DEDUPE_REPORTS_MAX);
	assert(dedupe->map.count == dedupe->count);
}

static bool entry_equal(const void *context, uint32_t id, const void *key)
{
	const struct dedupe *dedupe = context;
	const struct identity *report = key;

	return identity_equal(dedupe->entries[id].report, *report);
}

static bool is_current(const struct dedupe_entry *entry, int64_t now_ns)
{
	return entry->received_ns > now_ns - STORE_DEDUPE_NS;
}

/* Keeps the entries from `first` on that are current. */
static void rebuild(struct dedupe *dedupe, uint32_t first, int64_t now_ns)
{
	uint32_t kept = 0;

	assert(first <= dedupe->count);
	idmap_clear(&dedupe->map);
	for (uint32_t i = first; i < dedupe->count; i++) {
		if (!is_current(&dedupe->entries[i], now_ns))
			continue;
		dedupe->entries[kept] = dedupe->entries[i];
		idmap_add(&dedupe->map, dedupe->entries[kept].report.low, kept);
		kept++;
	}
	assert(kept <= dedupe->count);
	dedupe->count = kept;
}

void dedupe_expire(struct dedupe *dedupe, int64_t now_ns)
{
	uint32_t expired = 0;

	while (expired < dedupe->count && !is_current(&dedupe->entries[expired], now_ns))
		expired++;
	if (expired > dedupe->count / 4)
		rebuild(dedupe, expired, now_ns);
}

bool dedupe_seen(struct dedupe *dedupe, struct identity report, int64_t now_ns)
{
	uint32_t id = idmap_find(&dedupe->map, report.low, entry_equal, dedupe, &report);

	if (id != IDMAP_NONE) {
		bool seen = is_current(&dedupe->entries[id], now_ns);

		if (!seen)
			dedupe->entries[id].received_ns = now_ns;
		return seen;
	}
	if (dedupe->count == DEDUPE_REPORTS_MAX) {
		dedupe->forgotten += DEDUPE_REPORTS_MAX / 4;
		rebuild(dedupe, DEDUPE_REPORTS_MAX / 4, now_ns);
	}
	assert(dedupe->count < DEDUPE_REPORTS_MAX);
	mem_grow(dedupe->entries, dedupe->count, dedupe->capacity);
	dedupe->entries[dedupe->count] = (struct dedupe_entry){ report, now_ns };
	idmap_add(&dedupe->map, report.low, dedupe->count++);
	return false;
}

void dedupe_encode(const struct dedupe *dedupe, struct strbuf *out)
{
	int64_t previous = 0;

	dedupe_check(dedupe);
	strbuf_add_varint(out, dedupe->count);
	for (uint32_t i = 0; i < dedupe->count; i++) {
		const struct dedupe_entry *entry = &dedupe->entries[i];

		strbuf_add_zigzag(out,
				  (int64_t)((uint64_t)entry->received_ns - (uint64_t)previous));
		strbuf_add_u64(out, entry->report.low);
		strbuf_add_u64(out, entry->report.high);
		previous = entry->received_ns;
	}
}

bool dedupe_decode(struct dedupe *dedupe, struct byte_reader *in)
{
	uint64_t count = byte_reader_varint(in);
	uint64_t received = 0;

	assert(!dedupe->count);
	if (count > DEDUPE_REPORTS_MAX || count > byte_reader_left(in) / ENTRY_BYTES_MIN)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct dedupe_entry entry;

		received += (uint64_t)byte_reader_zigzag(in);
		entry.received_ns = (int64_t)received;
		entry.report.low = byte_reader_u64(in);
		entry.report.high = byte_reader_u64(in);
		if (in->failed)
			return false;
		mem_grow(dedupe->entries, dedupe->count, dedupe->capacity);
		dedupe->entries[dedupe->count] = entry;
		idmap_add(&dedupe->map, entry.report.low, dedupe->count++);
	}
	return true;
}
