/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/answer_cache.h"

#include "base/hash.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"

struct answer {
	struct strbuf key;
	uint64_t version;
	int64_t made_at_ns;
	uint64_t used_at; /* in look-ups; 0: there is none here */
	size_t bytes;
	struct net_response response;
};

struct answer_cache {
	struct lock lock; /* guards the rest */
	uint64_t hashes[ANSWER_CACHE_COUNT_MAX];
	struct answer answers[ANSWER_CACHE_COUNT_MAX];
	uint64_t uses;
	size_t bytes, bytes_max;
};

static METRIC_COUNTER(kept_total, "firn_queries_kept_total", "",
		      "Queries answered from the cache of answers.");

struct answer_cache *answer_cache_new(size_t bytes_max)
{
	static struct metric *const metrics[] = { &kept_total };
	struct answer_cache *cache = mem_new(struct answer_cache);

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	lock_init(&cache->lock, "answer_cache", LOCK_SERVE + 2);
	cache->bytes_max = bytes_max;
	return cache;
}

static bool is_old(const struct answer *answer, int64_t now_ns)
{
	return now_ns - answer->made_at_ns > ANSWER_CACHE_NS;
}

static void drop(struct answer_cache *cache, struct answer *answer)
{
	cache->bytes -= answer->bytes;
	strbuf_free(&answer->key);
	strbuf_free(&answer->response.body);
	strbuf_free(&answer->response.headers);
	*answer = (struct answer){ 0 };
}

void answer_cache_free(struct answer_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < ANSWER_CACHE_COUNT_MAX; i++)
		if (cache->answers[i].used_at)
			drop(cache, &cache->answers[i]);
	lock_free(&cache->lock);
	free(cache);
}

/* With the lock, as those below. */
static struct answer *find(struct answer_cache *cache, struct slice key, uint64_t hash)
{
	for (size_t i = 0; i < ANSWER_CACHE_COUNT_MAX; i++)
		if (cache->hashes[i] == hash && cache->answers[i].used_at &&
		    slice_equal(strbuf_slice(&cache->answers[i].key), key))
			return &cache->answers[i];
	return NULL;
}

static struct answer *least_used(struct answer_cache *cache, bool or_free)
{
	struct answer *least = NULL;

	for (size_t i = 0; i < ANSWER_CACHE_COUNT_MAX; i++) {
		struct answer *answer = &cache->answers[i];

		if ((or_free || answer->used_at) && (!least || answer->used_at < least->used_at))
			least = answer;
	}
	return least;
}

bool answer_cache_find(struct answer_cache *cache, struct slice key, uint64_t version,
		       int64_t now_ns, struct net_response *response)
{
	uint64_t hash = hash_bytes(key.data, key.len);
	struct answer *answer;

	lock_take(&cache->lock);
	answer = find(cache, key, hash);
	if (answer && (answer->version != version || is_old(answer, now_ns))) {
		drop(cache, answer);
		answer = NULL;
	}
	if (answer) {
		answer->used_at = ++cache->uses;
		net_response_copy(&answer->response, response);
		metric_add(&kept_total, 1);
	}
	lock_give(&cache->lock);
	return answer;
}

void answer_cache_put(struct answer_cache *cache, struct slice key, uint64_t version,
		      int64_t now_ns, const struct net_response *response)
{
	size_t bytes = key.len + response->body.len + response->headers.len;
	uint64_t hash = hash_bytes(key.data, key.len);
	struct answer *answer;

	if (bytes > cache->bytes_max / 4)
		return;
	lock_take(&cache->lock);
	answer = find(cache, key, hash);
	if (answer)
		drop(cache, answer);
	while (cache->bytes + bytes > cache->bytes_max)
		drop(cache, least_used(cache, false));
	answer = least_used(cache, true);
	if (answer->used_at)
		drop(cache, answer);
	cache->hashes[answer - cache->answers] = hash;
	*answer = (struct answer){
		.version = version,
		.made_at_ns = now_ns,
		.used_at = ++cache->uses,
		.bytes = bytes,
	};
	strbuf_add_slice(&answer->key, key);
	net_response_copy(response, &answer->response);
	cache->bytes += bytes;
	lock_give(&cache->lock);
}

void answer_cache_age(struct answer_cache *cache, int64_t now_ns)
{
	lock_take(&cache->lock);
	for (size_t i = 0; i < ANSWER_CACHE_COUNT_MAX; i++)
		if (cache->answers[i].used_at && is_old(&cache->answers[i], now_ns))
			drop(cache, &cache->answers[i]);
	lock_give(&cache->lock);
}
