/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest/label_guard.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/metrics.h"

static METRIC_COUNTER(refused_series, "firn_ingest_series_refused_total", "",
		      "Series refused because a label had too many values within an hour");

/* The values of one span. */
struct values {
	uint64_t *hashes;
	size_t count, capacity;
	struct idmap map;
};

struct name {
	uint64_t hash; /* of tenant and name */
	struct values now, before;
};

struct label_guard {
	struct lock lock; /* guards the rest */
	uint32_t values_max;
	int64_t span_begun_ns;
	struct name *names;
	size_t names_count, names_capacity;
	struct idmap map;
};

struct label_guard *label_guard_new(uint32_t values_max)
{
	struct label_guard *guard = mem_new(struct label_guard);
	struct metric *all[] = { &refused_series };

	assert(values_max);
	metrics_register(all, 1);
	lock_init(&guard->lock, "label_guard", LOCK_SERVE + 20);
	guard->values_max = values_max;
	guard->span_begun_ns = INT64_MIN;
	return guard;
}

static void free_values(struct values *values)
{
	free(values->hashes);
	idmap_free(&values->map);
	*values = (struct values){ .hashes = NULL };
}

static void free_names(struct label_guard *guard)
{
	for (size_t i = 0; i < guard->names_count; i++) {
		free_values(&guard->names[i].now);
		free_values(&guard->names[i].before);
	}
	guard->names_count = 0;
	idmap_clear(&guard->map);
}

void label_guard_free(struct label_guard *guard)
{
	if (!guard)
		return;
	free_names(guard);
	free(guard->names);
	idmap_free(&guard->map);
	lock_free(&guard->lock);
	free(guard);
}

static bool value_equal(const void *context, uint32_t id, const void *key)
{
	const struct values *values = context;

	return values->hashes[id] == *(const uint64_t *)key;
}

static bool has_value(const struct values *values, uint64_t hash)
{
	return idmap_find(&values->map, hash, value_equal, values, &hash) != IDMAP_NONE;
}

static void add_value(struct values *values, uint64_t hash)
{
	mem_grow(values->hashes, values->count, values->capacity);
	idmap_add(&values->map, hash, (uint32_t)values->count);
	values->hashes[values->count++] = hash;
}

static bool name_equal(const void *context, uint32_t id, const void *key)
{
	const struct label_guard *guard = context;

	return guard->names[id].hash == *(const uint64_t *)key;
}

static struct name *find_name(struct label_guard *guard, uint64_t hash)
{
	uint32_t id = idmap_find(&guard->map, hash, name_equal, guard, &hash);

	return id == IDMAP_NONE ? NULL : &guard->names[id];
}

static struct name *add_name(struct label_guard *guard, uint64_t hash)
{
	mem_grow(guard->names, guard->names_count, guard->names_capacity);
	idmap_add(&guard->map, hash, (uint32_t)guard->names_count);
	guard->names[guard->names_count] = (struct name){ .hash = hash };
	return &guard->names[guard->names_count++];
}

/* What did not come in the last span is forgotten. */
static void begin_span(struct label_guard *guard, int64_t now_ns)
{
	bool is_next = guard->span_begun_ns != INT64_MIN &&
		       now_ns - guard->span_begun_ns < 2 * LABEL_GUARD_SPAN_NS;
	struct name *names = guard->names;
	size_t count = guard->names_count;

	guard->span_begun_ns = now_ns;
	if (!is_next) {
		free_names(guard);
		return;
	}
	guard->names = NULL;
	guard->names_count = guard->names_capacity = 0;
	idmap_clear(&guard->map);
	for (size_t i = 0; i < count; i++) {
		free_values(&names[i].before);
		if (names[i].now.count)
			add_name(guard, names[i].hash)->before = names[i].now;
	}
	free(names);
}

static uint64_t hash_name(struct slice tenant, struct slice name)
{
	return hash_pair(hash_bytes(tenant.data, tenant.len), hash_bytes(name.data, name.len));
}

static int refuse(const struct label_guard *guard, struct slice name, struct err *err)
{
	metric_add(&refused_series, 1);
	return err_set(err, ERR_INVALID,
		       "take profile: label \"%.*s\" had %u new values within an hour, each a "
		       "series of its own: leave it out, or raise --series-label-values",
		       name.len > 128 ? 128 : (int)name.len, name.data, guard->values_max);
}

static int check_pair(struct label_guard *guard, uint64_t name_hash,
		      const struct label_guard_pair *pair, struct err *err)
{
	const struct name *name = find_name(guard, name_hash);
	uint64_t hash = hash_bytes(pair->value.data, pair->value.len);

	if (!name && guard->names_count >= LABEL_GUARD_NAMES_MAX) {
		metric_add(&refused_series, 1);
		return err_set(err, ERR_INVALID,
			       "take profile: label \"%.*s\" would be one of more than %u names "
			       "of labels within an hour",
			       pair->name.len > 128 ? 128 : (int)pair->name.len, pair->name.data,
			       LABEL_GUARD_NAMES_MAX);
	}
	if (!name || name->now.count < guard->values_max || has_value(&name->now, hash) ||
	    has_value(&name->before, hash))
		return 0;
	return refuse(guard, pair->name, err);
}

static void note_pair(struct label_guard *guard, uint64_t name_hash,
		      const struct label_guard_pair *pair)
{
	uint64_t hash = hash_bytes(pair->value.data, pair->value.len);
	struct name *name = find_name(guard, name_hash);

	if (!name)
		name = add_name(guard, name_hash);
	if (!has_value(&name->now, hash) && name->now.count < guard->values_max)
		add_value(&name->now, hash);
}

int label_guard_check(struct label_guard *guard, struct slice tenant,
		      const struct label_guard_pair *pairs, size_t count, int64_t now_ns,
		      struct err *err)
{
	int rc = 0;

	lock_take(&guard->lock);
	if (guard->span_begun_ns == INT64_MIN ||
	    now_ns - guard->span_begun_ns >= LABEL_GUARD_SPAN_NS)
		begin_span(guard, now_ns);
	for (size_t i = 0; i < count && !rc; i++)
		rc = check_pair(guard, hash_name(tenant, pairs[i].name), &pairs[i], err);
	for (size_t i = 0; i < count && !rc; i++)
		note_pair(guard, hash_name(tenant, pairs[i].name), &pairs[i]);
	lock_give(&guard->lock);
	return rc;
}
