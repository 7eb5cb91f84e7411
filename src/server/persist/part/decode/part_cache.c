/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/decode/part_cache.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/disk/persist_metrics.h"
#include "server/persist/disk/persist_locks.h"
#include "server/persist/part/decode/part_ahead.h"

void part_cache_init(struct part_cache *cache, const struct vfs *vfs, const char *dir,
		     uint64_t budget_bytes, bool read_only)
{
	*cache = (struct part_cache){ .vfs = vfs,
				      .dir = dir,
				      .budget = { .limit_bytes = (size_t)budget_bytes },
				      .read_only = read_only };
	lock_init(&cache->lock, "part_cache", PART_CACHE_RANK);
	lock_condition_init(&cache->opened);
}

static void remove_file(const struct part_cache *cache, const struct part *part)
{
	struct layout_path path = layout_path(cache->dir, LAYOUT_PART, part->info.number);

	cache->vfs->unlink(cache->vfs, path.text); /* else the next open does */
}

static void part_free(const struct part_cache *cache, struct part *part)
{
	assert(!part->opening);
	part_reader_close(part->reader);
	if (part->dropped && !part->removed)
		remove_file(cache, part);
	free(part);
}

void part_cache_fini(struct part_cache *cache)
{
	for (size_t i = 0; i < cache->count; i++)
		part_free(cache, cache->parts[i]);
	free(cache->parts);
	lock_free(&cache->lock);
	lock_condition_free(&cache->opened);
}

void part_cache_add(struct part_cache *cache, const struct part_info *info)
{
	struct part *part = mem_new(struct part);

	assert(info->number);
	part->info = *info;
	lock_take(&cache->lock);
	mem_grow(cache->parts, cache->count, cache->capacity);
	cache->parts[cache->count++] = part;
	lock_give(&cache->lock);
}

void part_cache_drop(struct part_cache *cache, uint64_t number)
{
	lock_take(&cache->lock);
	for (size_t i = 0; i < cache->count; i++) {
		struct part *part = cache->parts[i];

		if (part->info.number != number)
			continue;
		cache->count--;
		memmove(&cache->parts[i], &cache->parts[i + 1],
			(cache->count - i) * sizeof(*cache->parts));
		part->dropped = true;
		if (part->reader) { /* an open file stays readable without its name */
			remove_file(cache, part);
			part->removed = true;
		}
		if (!part->pins)
			part_free(cache, part);
		break;
	}
	lock_give(&cache->lock);
}

size_t part_cache_select(struct part_cache *cache, int64_t from_ns, int64_t to_ns,
			 struct part ***ret_parts)
{
	struct part **parts;
	size_t count = 0;

	lock_take(&cache->lock);
	parts = mem_new_array(struct part *, cache->count);
	for (size_t i = 0; i < cache->count; i++) {
		struct part *part = cache->parts[i];

		if (part->info.max_start_ns < from_ns || part->info.min_start_ns >= to_ns)
			continue;
		part->pins++;
		part->last_use = ++cache->uses;
		parts[count++] = part;
	}
	lock_give(&cache->lock);
	*ret_parts = parts;
	return count;
}

struct usage {
	uint64_t bytes;
	size_t files;
};

static struct usage usage_of(const struct part_cache *cache)
{
	struct usage usage = { 0 };

	for (size_t i = 0; i < cache->count; i++) {
		if (!cache->parts[i]->reader)
			continue;
		usage.bytes += part_reader_bytes(cache->parts[i]->reader);
		usage.files++;
	}
	return usage;
}

/* The open part that was used longest ago, but after `after`. */
static struct part *next_oldest(const struct part_cache *cache, uint64_t after)
{
	struct part *oldest = NULL;

	for (size_t i = 0; i < cache->count; i++) {
		struct part *part = cache->parts[i];

		if (part->reader && part->last_use > after &&
		    (!oldest || part->last_use < oldest->last_use))
			oldest = part;
	}
	return oldest;
}

/* Frees the dictionaries of pinned parts that no segment uses. */
static void shrink(struct part_cache *cache)
{
	struct usage usage = usage_of(cache);
	uint64_t after = 0;
	struct part *part;

	lock_assert_held(&cache->lock);
	while ((usage.bytes > cache->budget.limit_bytes || usage.files > PART_CACHE_FILES_MAX) &&
	       (part = next_oldest(cache, after))) {
		after = part->last_use;
		usage.bytes -= part_reader_bytes(part->reader);
		if (part->pins) {
			part_reader_trim(part->reader);
			usage.bytes += part_reader_bytes(part->reader);
			continue;
		}
		assert(!part->opening);
		part_reader_close(part->reader);
		part->reader = NULL;
		usage.files--;
		metric_add(&store_cache_evictions, 1);
	}
	metric_set(&store_cache_bytes, (int64_t)usage.bytes);
}

void part_cache_age(struct part_cache *cache)
{
	lock_take(&cache->lock);
	for (size_t i = 0; i < cache->count; i++) {
		struct part *part = cache->parts[i];

		if (part->reader && part->last_use <= cache->aged_uses)
			part_reader_trim(part->reader);
	}
	cache->aged_uses = cache->uses;
	metric_set(&store_cache_bytes, (int64_t)usage_of(cache).bytes);
	lock_give(&cache->lock);
}

static void note_damage(struct part *part, const struct err *err)
{
	part->info.damaged = true;
	part->newly_damaged = true;
	metric_add(&store_parts_damaged, 1);
	log_error("store", "part is damaged and will be set aside; answers will lack its data",
		  "part=%llu reports=%llu error=\"%s\"", (unsigned long long)part->info.number,
		  (unsigned long long)part->info.reports, err->message);
}

void part_cache_note_damaged(struct part_cache *cache, uint64_t number, const struct err *err)
{
	lock_take(&cache->lock);
	for (size_t i = 0; i < cache->count; i++)
		if (cache->parts[i]->info.number == number && !cache->parts[i]->info.damaged)
			note_damage(cache->parts[i], err);
	lock_give(&cache->lock);
}

/* Gives the lock up while reading. */
static int open_part(struct part_cache *cache, struct part *part, struct err *err)
{
	struct part_reader *reader = NULL;
	struct err cause = { 0 };
	int rc;

	lock_assert_held(&cache->lock);
	assert(part->pins && !part->reader && !part->opening);
	part->opening = true;
	lock_give(&cache->lock);
	rc = part_reader_open(cache->vfs, cache->dir, &part->info, &reader, &cause);
	lock_take(&cache->lock);
	assert(part->opening && part->pins && !part->reader);
	part->opening = false;
	lock_broadcast(&cache->opened);
	if (!rc) {
		part_reader_set_budget(reader, &cache->budget);
		part->reader = reader;
		metric_add(&store_cache_loads, 1);
		shrink(cache);
		return 0;
	}
	if (rc == -ERR_NOT_FOUND && !part->dropped && !cache->read_only)
		rc = err_set(&cause, ERR_CORRUPT, "part %llu: its file is missing",
			     (unsigned long long)part->info.number);
	if (rc == -ERR_CORRUPT)
		note_damage(part, &cause);
	if (err)
		*err = cause;
	return rc;
}

int part_cache_load(struct part_cache *cache, struct part *part, struct err *err)
{
	int rc = 0;

	lock_take(&cache->lock);
	assert(part->pins);
	while (part->opening)
		lock_wait(&cache->opened, &cache->lock);
	if (part->info.damaged)
		rc = err_set(err, ERR_CORRUPT, "part %llu is damaged",
			     (unsigned long long)part->info.number);
	else if (!part->reader)
		rc = open_part(cache, part, err);
	lock_give(&cache->lock);
	return rc;
}

void part_cache_expect(struct part_cache *cache, const struct part *part)
{
	bool is_open;

	lock_take(&cache->lock);
	assert(part->pins);
	is_open = part->reader || part->opening || part->info.damaged;
	lock_give(&cache->lock);
	if (!is_open)
		part_ahead_open(cache->vfs, cache->dir, &part->info);
}

void part_cache_unpin(struct part_cache *cache, struct part *part)
{
	struct err damage;

	lock_take(&cache->lock);
	assert(part->pins);
	if (part->reader && !part->info.damaged && !part->dropped &&
	    part_reader_is_damaged(part->reader, &damage))
		note_damage(part, &damage);
	if (!--part->pins && part->dropped)
		part_free(cache, part);
	shrink(cache);
	lock_give(&cache->lock);
}

uint64_t part_cache_take_damaged(struct part_cache *cache)
{
	uint64_t number = 0;

	lock_take(&cache->lock);
	for (size_t i = 0; i < cache->count && !number; i++) {
		if (!cache->parts[i]->newly_damaged)
			continue;
		cache->parts[i]->newly_damaged = false;
		number = cache->parts[i]->info.number;
	}
	lock_give(&cache->lock);
	return number;
}
