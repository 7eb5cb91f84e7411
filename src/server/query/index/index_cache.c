/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/index/index_cache.h"

#include <assert.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"

#define SETS 2048u
#define WAYS 8u
#define RECENT_QUESTIONS 16u /* what they used stays */
#define IDLE_NS (600 * CLOCK_NS_PER_S)
#define LOOK_NS (30 * CLOCK_NS_PER_S)
#define ASKED_MAX 8u /* then there may be room */

static METRIC_COUNTER(made, "firn_query_indexes_made_total", "",
		      "Indexes of the functions of a segment that were made for tables.");
static METRIC_COUNTER(used, "firn_query_indexes_used_total", "",
		      "Segments that a table was made of by such an index.");
static METRIC_GAUGE(cached_bytes, "firn_query_indexes_bytes", "", "Memory of these indexes.");

/* An index; what is in use when nothing leads to it any more is freed with its last user. */
struct cached_index {
	struct function_index *index;
	struct cached_index *next, *before; /* of all that are not dropped */
	enum demangle_mode demangle;
	uint32_t users;
	bool dropped;
	uint64_t query; /* the last that used it */
	int64_t used_at_ns, looked_at_ns;
};

/* A segment that was asked about. */
struct entry {
	struct index_cache_key key; /* segment 0: free */
	struct cached_index *kept;  /* NULL: no index yet */
	uint32_t member;	    /* which of the index's segments it is */
	uint32_t asked;
	uint64_t query; /* the last that did */
	int64_t used_at_ns;
};

struct index_cache {
	struct lock lock;
	struct entry *entries; /* SETS of WAYS */
	struct cached_index *kept;
	size_t bytes, limit_bytes;
	uint64_t queries;
	int64_t swept_at_ns;
};

struct index_cache *index_cache_new(size_t limit_bytes)
{
	static struct metric *const metrics[] = { &made, &used, &cached_bytes };
	struct index_cache *cache = mem_new(struct index_cache);

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	cache->limit_bytes = limit_bytes;
	cache->entries = mem_new_array(struct entry, (size_t)SETS * WAYS);
	lock_init(&cache->lock, "index_cache", LOCK_QUERY);
	return cache;
}

static void free_kept(struct index_cache *cache, struct cached_index *kept)
{
	cache->bytes -= function_index_bytes(kept->index);
	metric_set(&cached_bytes, (int64_t)cache->bytes);
	function_index_free(kept->index);
	free(kept);
}

static struct entry *set_of(struct index_cache *cache, uint64_t segment,
			    enum demangle_mode demangle)
{
	return &cache->entries[(hash_mix(segment, demangle) >> 32) % SETS * WAYS];
}

/*
 * With all entries that lead to it. Their segments count as asked for so often: once, and the next
 * query makes an index again.
 */
static void drop_kept(struct index_cache *cache, struct cached_index *kept, uint32_t asked)
{
	assert(cache->bytes >= kept->index->memory_bytes);
	for (uint32_t i = 0; i < kept->index->members_count; i++) {
		struct entry *set = set_of(cache, kept->index->members[i].segment, kept->demangle);

		for (unsigned way = 0; way < WAYS; way++)
			if (set[way].kept == kept) {
				set[way].kept = NULL;
				set[way].asked = asked;
			}
	}
	if (kept->before)
		kept->before->next = kept->next;
	else
		cache->kept = kept->next;
	if (kept->next)
		kept->next->before = kept->before;
	kept->dropped = true;
	if (!kept->users)
		free_kept(cache, kept);
}

void index_cache_free(struct index_cache *cache)
{
	if (!cache)
		return;
	while (cache->kept)
		drop_kept(cache, cache->kept, 0);
	free(cache->entries);
	lock_free(&cache->lock);
	free(cache);
}

/* Indexes that nobody asked for in a while. */
static void sweep(struct index_cache *cache, int64_t now_ns)
{
	if (now_ns - cache->swept_at_ns < IDLE_NS / 10)
		return;
	cache->swept_at_ns = now_ns;
	for (struct cached_index *kept = cache->kept, *next; kept; kept = next) {
		next = kept->next;
		if (now_ns - kept->used_at_ns > IDLE_NS)
			drop_kept(cache, kept, 1);
	}
}

uint64_t index_cache_begin(struct index_cache *cache)
{
	uint64_t query;

	lock_take(&cache->lock);
	sweep(cache, clock_monotonic_ns());
	query = ++cache->queries;
	lock_give(&cache->lock);
	return query;
}

/* The entry that the segment has, or takes: of its set the one that is missed least. */
static struct entry *entry_of(struct index_cache *cache, const struct index_cache_key *key)
{
	struct entry *set = set_of(cache, key->segment, key->demangle), *worst = set;

	for (unsigned i = 0; i < WAYS; i++) {
		if (set[i].key.segment == key->segment && set[i].key.demangle == key->demangle)
			return &set[i];
		if (!set[i].kept != !worst->kept ? !set[i].kept
						 : set[i].used_at_ns < worst->used_at_ns)
			worst = &set[i];
	}
	*worst = (struct entry){ .key = *key };
	return worst;
}

/* True if there is room for so many bytes, once what can be missed has gone. */
static bool make_room(struct index_cache *cache, uint64_t query, size_t bytes)
{
	while (cache->bytes + bytes > cache->limit_bytes) {
		struct cached_index *oldest = NULL;

		for (struct cached_index *kept = cache->kept; kept; kept = kept->next)
			if (!kept->users && kept->query + RECENT_QUESTIONS < query &&
			    (!oldest || kept->query < oldest->query))
				oldest = kept;
		if (!oldest)
			return false;
		drop_kept(cache, oldest, 2);
	}
	return true;
}

static void use(struct cached_index *kept, uint64_t query, int64_t now_ns)
{
	kept->users++;
	kept->query = query;
	kept->used_at_ns = now_ns;
}

struct index_cache_found index_cache_get(struct index_cache *cache, uint64_t query,
					 const struct index_cache_key *key)
{
	int64_t now_ns = clock_monotonic_ns();
	struct index_cache_found found = { 0 };
	struct entry *entry;
	struct cached_index *kept;

	lock_take(&cache->lock);
	entry = entry_of(cache, key);
	if (entry->key.version != key->version) {
		if (entry->kept)
			drop_kept(cache, entry->kept, 1);
		*entry = (struct entry){ .key = *key };
	}
	kept = entry->kept;
	entry->used_at_ns = now_ns;
	if (kept) {
		found.index = kept->index;
		found.member = entry->member;
		use(kept, query, now_ns);
		metric_add(&used, 1);
		found.look = now_ns - kept->looked_at_ns > LOOK_NS;
		if (found.look)
			kept->looked_at_ns = now_ns;
	} else if (entry->query != query) {
		found.due = entry->asked++ == 1;
		if (entry->asked > ASKED_MAX)
			entry->asked = 1;
	}
	entry->query = query;
	lock_give(&cache->lock);
	return found;
}

bool index_cache_make_room(struct index_cache *cache, uint64_t query, size_t bytes)
{
	bool is_room;

	lock_take(&cache->lock);
	is_room = make_room(cache, query, bytes);
	lock_give(&cache->lock);
	return is_room;
}

/* With the lock: from its segments' entries; indexes that none is left of go. */
static void lead_to(struct index_cache *cache, struct cached_index *kept, uint64_t version)
{
	for (uint32_t i = 0; i < kept->index->members_count; i++) {
		const struct index_cache_key key = { kept->index->members[i].segment, version,
						     kept->demangle };
		struct entry *entry = entry_of(cache, &key);

		if (entry->key.version != version)
			continue;
		if (entry->kept && entry->kept != kept)
			drop_kept(cache, entry->kept, 1);
		entry->kept = kept;
		entry->member = i;
		entry->used_at_ns = kept->used_at_ns;
	}
}

void index_cache_put(struct index_cache *cache, uint64_t query, const struct index_cache_key *key,
		     struct function_index *index)
{
	struct cached_index *kept = mem_new(struct cached_index);

	assert(index->memory_bytes > 0);
	*kept = (struct cached_index){ .index = index, .demangle = key->demangle };
	index->keeper = kept;
	metric_add(&made, 1);
	lock_take(&cache->lock);
	use(kept, query, clock_monotonic_ns());
	kept->looked_at_ns = kept->used_at_ns;
	kept->next = cache->kept;
	if (kept->next)
		kept->next->before = kept;
	cache->kept = kept;
	lead_to(cache, kept, key->version);
	cache->bytes += function_index_bytes(index);
	if (!make_room(cache, query, 0)) /* which leaves this one, as it is in use */
		drop_kept(cache, kept, 2);
	metric_set(&cached_bytes, (int64_t)cache->bytes);
	lock_give(&cache->lock);
}

void index_cache_release(struct index_cache *cache, const struct function_index *index)
{
	struct cached_index *kept = index->keeper;

	lock_take(&cache->lock);
	if (!--kept->users && kept->dropped)
		free_kept(cache, kept);
	lock_give(&cache->lock);
}

size_t index_cache_bytes(struct index_cache *cache)
{
	size_t bytes;

	lock_take(&cache->lock);
	bytes = cache->bytes;
	lock_give(&cache->lock);
	return bytes;
}
