/* SPDX-License-Identifier: Apache-2.0 */
#include "server/serve/admission/answer_cache.h"

#include <pthread.h>

#include "base/hash.h"
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

struct kept {
	pthread_mutex_t lock; /* guards the rest */
	uint64_t hashes[KEPT_ANSWERS_MAX];
	struct answer answers[KEPT_ANSWERS_MAX];
	uint64_t uses;
	size_t bytes, bytes_max;
};

static METRIC_COUNTER(kept_total, "firn_queries_kept_total", "",
		      "Questions that were answered by the kept answer to the same one.");

struct kept *kept_new(size_t bytes_max)
{
	static struct metric *const metrics[] = { &kept_total };
	struct kept *kept = mem_new(struct kept);

	metrics_register(metrics, sizeof(metrics) / sizeof(metrics[0]));
	pthread_mutex_init(&kept->lock, NULL);
	kept->bytes_max = bytes_max;
	return kept;
}

static void drop(struct kept *kept, struct answer *answer)
{
	kept->bytes -= answer->bytes;
	strbuf_free(&answer->key);
	strbuf_free(&answer->response.body);
	strbuf_free(&answer->response.headers);
	*answer = (struct answer){ 0 };
}

void kept_free(struct kept *kept)
{
	if (!kept)
		return;
	for (size_t i = 0; i < KEPT_ANSWERS_MAX; i++)
		if (kept->answers[i].used_at)
			drop(kept, &kept->answers[i]);
	pthread_mutex_destroy(&kept->lock);
	free(kept);
}

/* With the lock, as those below. */
static struct answer *find(struct kept *kept, struct slice key, uint64_t hash)
{
	for (size_t i = 0; i < KEPT_ANSWERS_MAX; i++)
		if (kept->hashes[i] == hash && kept->answers[i].used_at &&
		    slice_equal(strbuf_slice(&kept->answers[i].key), key))
			return &kept->answers[i];
	return NULL;
}

static struct answer *least_used(struct kept *kept, bool or_free)
{
	struct answer *least = NULL;

	for (size_t i = 0; i < KEPT_ANSWERS_MAX; i++) {
		struct answer *answer = &kept->answers[i];

		if ((or_free || answer->used_at) && (!least || answer->used_at < least->used_at))
			least = answer;
	}
	return least;
}

bool kept_find(struct kept *kept, struct slice key, uint64_t version, int64_t now_ns,
	       struct net_response *response)
{
	uint64_t hash = hash_bytes(key.data, key.len);
	struct answer *answer;

	pthread_mutex_lock(&kept->lock);
	answer = find(kept, key, hash);
	if (answer && (answer->version != version || now_ns - answer->made_at_ns > KEPT_NS)) {
		drop(kept, answer);
		answer = NULL;
	}
	if (answer) {
		answer->used_at = ++kept->uses;
		net_response_copy(&answer->response, response);
		metric_add(&kept_total, 1);
	}
	pthread_mutex_unlock(&kept->lock);
	return answer;
}

void kept_put(struct kept *kept, struct slice key, uint64_t version, int64_t now_ns,
	      const struct net_response *response)
{
	size_t bytes = key.len + response->body.len + response->headers.len;
	uint64_t hash = hash_bytes(key.data, key.len);
	struct answer *answer;

	if (bytes > kept->bytes_max / 4)
		return;
	pthread_mutex_lock(&kept->lock);
	answer = find(kept, key, hash);
	if (answer)
		drop(kept, answer);
	while (kept->bytes + bytes > kept->bytes_max)
		drop(kept, least_used(kept, false));
	answer = least_used(kept, true);
	if (answer->used_at)
		drop(kept, answer);
	kept->hashes[answer - kept->answers] = hash;
	*answer = (struct answer){
		.version = version,
		.made_at_ns = now_ns,
		.used_at = ++kept->uses,
		.bytes = bytes,
	};
	strbuf_add_slice(&answer->key, key);
	net_response_copy(response, &answer->response);
	kept->bytes += bytes;
	pthread_mutex_unlock(&kept->lock);
}
