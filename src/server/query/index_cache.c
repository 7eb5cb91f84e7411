/* SPDX-License-Identifier: Apache-2.0 */
#include "server/query/index_cache.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"

#define SETS 4096u
#define WAYS 4u
#define RECENT_QUESTIONS 16u /* what they used stays */
#define IDLE_NS (600 * CLOCK_NS_PER_S)
#define LOOK_NS (30 * CLOCK_NS_PER_S)

static METRIC_COUNTER(made, "firn_query_indexes_made_total", "",
		      "Indexes of the functions of a segment that were made for tables.");
static METRIC_COUNTER(used, "firn_query_indexes_used_total", "",
		      "Segments that a table was made of by such an index.");
static METRIC_GAUGE(cached_bytes, "firn_query_indexes_bytes", "", "Memory of these indexes.");

/* What is in use after its entry has gone is freed with its last user. */
struct kept {
	struct function_index *index;
	uint32_t users;
	bool dropped;
};

/* A segment that was asked about. */
struct entry {
	struct index_cache_key key; /* segment 0: free */
	struct kept *kept;	    /* NULL: no index yet */
	uint32_t asked;
	uint64_t question; /* the last that did */
	int64_t used_at_ns, looked_at_ns;
};

struct index_cache {
	pthread_mutex_t lock;
	struct entry *entries; /* SETS of WAYS */
	size_t bytes, limit_bytes;
	uint64_t questions;
	int64_t swept_at_ns;
	void *room; /* that nobody has taken; may be NULL */
	size_t room_bytes;
};

struct index_cache *index_cache_new(size_t limit_bytes)
{
	static struct metric *const metrics[] = { &made, &used, &cached_bytes };
	struct index_cache *cache = mem_new(struct index_cache);

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	cache->limit_bytes = limit_bytes;
	cache->entries = mem_new_array(struct entry, (size_t)SETS * WAYS);
	pthread_mutex_init(&cache->lock, NULL);
	return cache;
}

static void free_kept(struct index_cache *cache, struct kept *kept)
{
	cache->bytes -= function_index_bytes(kept->index);
	metric_set(&cached_bytes, (int64_t)cache->bytes);
	function_index_free(kept->index);
	free(kept);
}

static void drop_index(struct index_cache *cache, struct entry *entry)
{
	if (!entry->kept)
		return;
	entry->kept->dropped = true;
	if (!entry->kept->users)
		free_kept(cache, entry->kept);
	entry->kept = NULL;
}

void index_cache_free(struct index_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < (size_t)SETS * WAYS; i++)
		drop_index(cache, &cache->entries[i]);
	free(cache->room);
	free(cache->entries);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* Indexes that nobody asked for in a while. */
static void sweep(struct index_cache *cache, int64_t now_ns)
{
	if (now_ns - cache->swept_at_ns < IDLE_NS / 10)
		return;
	cache->swept_at_ns = now_ns;
	for (size_t i = 0; i < (size_t)SETS * WAYS; i++)
		if (cache->entries[i].kept && now_ns - cache->entries[i].used_at_ns > IDLE_NS)
			drop_index(cache, &cache->entries[i]);
}

uint64_t index_cache_begin(struct index_cache *cache)
{
	uint64_t question;

	pthread_mutex_lock(&cache->lock);
	sweep(cache, clock_monotonic_ns());
	question = ++cache->questions;
	pthread_mutex_unlock(&cache->lock);
	return question;
}

/* The entry that the segment has, or takes: of its set the one that is missed least. */
static struct entry *entry_of(struct index_cache *cache, const struct index_cache_key *key)
{
	uint64_t hash = hash_mix(key->segment, key->demangle);
	struct entry *set = &cache->entries[(hash >> 32) % SETS * WAYS], *worst = set;

	for (unsigned i = 0; i < WAYS; i++) {
		if (set[i].key.segment == key->segment && set[i].key.demangle == key->demangle)
			return &set[i];
		if (!set[i].kept != !worst->kept ? !set[i].kept
						 : set[i].used_at_ns < worst->used_at_ns)
			worst = &set[i];
	}
	drop_index(cache, worst);
	*worst = (struct entry){ .key = *key };
	return worst;
}

/* With the lock: the room that is kept, which counts no more. */
static void *take_kept(struct index_cache *cache, size_t *ret_bytes)
{
	void *room = cache->room;

	*ret_bytes = cache->room_bytes;
	cache->bytes -= cache->room_bytes;
	cache->room = NULL;
	cache->room_bytes = 0;
	return room;
}

/* Whether there is room for so many bytes, once what can be missed has gone. */
static bool make_room(struct index_cache *cache, uint64_t question, size_t bytes)
{
	if (cache->bytes + bytes > cache->limit_bytes) {
		size_t kept_bytes;

		free(take_kept(cache, &kept_bytes));
	}
	while (cache->bytes + bytes > cache->limit_bytes) {
		struct entry *oldest = NULL;

		for (size_t i = 0; i < (size_t)SETS * WAYS; i++) {
			struct entry *entry = &cache->entries[i];

			if (entry->kept && !entry->kept->users &&
			    entry->question + RECENT_QUESTIONS < question &&
			    (!oldest || entry->question < oldest->question))
				oldest = entry;
		}
		if (!oldest)
			return false;
		drop_index(cache, oldest);
	}
	return true;
}

static void use(struct kept *kept)
{
	kept->users++;
	metric_add(&used, 1);
}

const struct function_index *index_cache_get(struct index_cache *cache, uint64_t question,
					     const struct index_cache_key *key, size_t bytes_about,
					     bool *ret_make, bool *ret_look)
{
	int64_t now_ns = clock_monotonic_ns();
	const struct function_index *index = NULL;
	struct entry *entry;

	*ret_make = false;
	*ret_look = false;
	pthread_mutex_lock(&cache->lock);
	entry = entry_of(cache, key);
	if (entry->key.version != key->version) {
		drop_index(cache, entry);
		*entry = (struct entry){ .key = *key };
	}
	entry->used_at_ns = now_ns;
	if (entry->kept) {
		index = entry->kept->index;
		use(entry->kept);
		*ret_look = now_ns - entry->looked_at_ns > LOOK_NS;
		if (*ret_look)
			entry->looked_at_ns = now_ns;
	} else if (entry->question != question) {
		*ret_make = entry->asked++ == 1 && make_room(cache, question, bytes_about);
		if (entry->asked > 8)
			entry->asked = 1; /* there may be room now */
	}
	entry->question = question;
	pthread_mutex_unlock(&cache->lock);
	return index;
}

void index_cache_put(struct index_cache *cache, uint64_t question,
		     const struct index_cache_key *key, struct function_index *index)
{
	struct kept *kept = mem_new(struct kept);
	size_t bytes = function_index_bytes(index);
	struct entry *entry;

	*kept = (struct kept){ .index = index, .dropped = true };
	index->keeper = kept;
	metric_add(&made, 1);
	pthread_mutex_lock(&cache->lock);
	entry = entry_of(cache, key);
	if (!entry->kept && entry->key.version == key->version &&
	    make_room(cache, question, bytes)) {
		kept->dropped = false;
		entry->kept = kept;
		entry->question = question;
		entry->used_at_ns = entry->looked_at_ns = clock_monotonic_ns();
	}
	cache->bytes += bytes;
	metric_set(&cached_bytes, (int64_t)cache->bytes);
	use(kept);
	pthread_mutex_unlock(&cache->lock);
}

void index_cache_release(struct index_cache *cache, const struct function_index *index)
{
	struct kept *kept = index->keeper;

	pthread_mutex_lock(&cache->lock);
	if (!--kept->users && kept->dropped)
		free_kept(cache, kept);
	pthread_mutex_unlock(&cache->lock);
}

void *index_cache_take_room(struct index_cache *cache, size_t bytes)
{
	size_t kept_bytes;
	void *room;

	pthread_mutex_lock(&cache->lock);
	room = take_kept(cache, &kept_bytes);
	pthread_mutex_unlock(&cache->lock);
	if (room && kept_bytes >= bytes)
		return memset(room, 0, bytes);
	free(room);
	room = mem_calloc(bytes ? bytes : 1, 1);
	mem_prefer_huge_pages(room, bytes);
	return room;
}

void index_cache_give_room(struct index_cache *cache, void *room, size_t bytes)
{
	void *old = room;

	if (!room)
		return;
	pthread_mutex_lock(&cache->lock);
	if (bytes > cache->room_bytes && bytes <= cache->limit_bytes / 4 &&
	    cache->bytes - cache->room_bytes + bytes <= cache->limit_bytes) {
		size_t old_bytes;

		old = take_kept(cache, &old_bytes);
		cache->room = room;
		cache->room_bytes = bytes;
		cache->bytes += bytes;
	}
	pthread_mutex_unlock(&cache->lock);
	free(old);
}

size_t index_cache_bytes(struct index_cache *cache)
{
	size_t bytes;

	pthread_mutex_lock(&cache->lock);
	bytes = cache->bytes;
	pthread_mutex_unlock(&cache->lock);
	return bytes;
}
