/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_bucket.h"

#include <assert.h>
#include <pthread.h>

#include "base/mem.h"

struct object {
	struct strbuf key, bytes;
};

struct sim_bucket {
	struct bucket bucket;
	struct object *objects; /* ascending by key */
	size_t count, capacity;
	enum sim_bucket_fault fault;
	uint64_t at, calls;
	bool hit, is_cut, ignores_conditions;
	pthread_mutex_t lock; /* of all of it; recursive, as entries of a list may lead to calls */
};

static struct sim_bucket *of(struct bucket *bucket)
{
	return (struct sim_bucket *)bucket;
}

static struct sim_bucket *take(struct bucket *bucket)
{
	pthread_mutex_lock(&of(bucket)->lock);
	return of(bucket);
}

static void give(struct sim_bucket **held)
{
	pthread_mutex_unlock(&(*held)->lock);
}

/* Until the end of the block. */
#define HOLD(bucket) __attribute__((cleanup(give))) struct sim_bucket *held = take(bucket)

/* Whether this call does anything, and whether it says so. */
static bool begins(struct sim_bucket *sim, bool *ret_answers)
{
	bool is_hit = sim->at && ++sim->calls == sim->at;

	*ret_answers = !sim->is_cut && !is_hit;
	if (sim->is_cut)
		return false;
	if (is_hit) {
		sim->hit = true;
		sim->is_cut = sim->fault == SIM_BUCKET_CUT || sim->fault == SIM_BUCKET_CUT_LATE;
	}
	return !is_hit || sim->fault == SIM_BUCKET_FORGETS || sim->fault == SIM_BUCKET_CUT_LATE;
}

static int end(bool answers, int rc, struct err *err)
{
	return answers ? rc : err_set(err, ERR_UNAVAILABLE, "the bucket does not answer");
}

static size_t place_of(const struct sim_bucket *sim, const char *key)
{
	size_t i = 0;

	while (i < sim->count &&
	       slice_compare(strbuf_slice(&sim->objects[i].key), slice_of(key)) < 0)
		i++;
	return i;
}

static struct object *find(const struct sim_bucket *sim, const char *key)
{
	size_t i = place_of(sim, key);

	return i < sim->count && slice_is(strbuf_slice(&sim->objects[i].key), key)
		       ? &sim->objects[i]
		       : NULL;
}

static int do_put(struct sim_bucket *sim, const char *key, struct slice bytes, bool only_new,
		  struct err *err)
{
	struct object *object = find(sim, key);
	size_t place = place_of(sim, key);

	if (object && only_new && !sim->ignores_conditions)
		return err_set(err, ERR_EXISTS, "\"%s\" is there", key);
	if (!object) {
		mem_grow(sim->objects, sim->count, sim->capacity);
		memmove(sim->objects + place + 1, sim->objects + place,
			(sim->count - place) * sizeof(*sim->objects));
		sim->count++;
		object = &sim->objects[place];
		*object = (struct object){ 0 };
		strbuf_add_text(&object->key, key);
	}
	strbuf_clear(&object->bytes);
	strbuf_add_slice(&object->bytes, bytes);
	return 0;
}

static int put(struct bucket *bucket, const char *key, struct slice bytes, bool only_new,
	       struct err *err)
{
	HOLD(bucket);
	bool answers;
	int rc = 0;

	if (begins(held, &answers))
		rc = do_put(held, key, bytes, only_new, err);
	return end(answers, rc, err);
}

static int put_source(struct bucket *bucket, const char *key, const struct bucket_source *source,
		      struct err *err)
{
	HOLD(bucket);
	char *bytes = mem_calloc(source->bytes + 1, 1);
	bool answers;
	int rc = 0;

	if (begins(held, &answers)) {
		rc = source->read(source->context, bytes, source->bytes, 0, err);
		if (!rc)
			rc = do_put(held, key, slice_from(bytes, source->bytes), false, err);
	}
	free(bytes);
	return end(answers, rc, err);
}

static int do_get(struct sim_bucket *sim, const char *key, struct slice *ret, struct err *err)
{
	struct object *object = find(sim, key);

	if (!object)
		return err_set(err, ERR_NOT_FOUND, "\"%s\" is not there", key);
	*ret = strbuf_slice(&object->bytes);
	return 0;
}

static int get_range(struct bucket *bucket, const char *key, uint64_t from, size_t len,
		     struct strbuf *out, struct err *err)
{
	HOLD(bucket);
	struct slice bytes = { 0 };
	bool answers;
	int rc = 0;

	if (begins(held, &answers))
		rc = do_get(held, key, &bytes, err);
	rc = end(answers, rc, err);
	if (!rc && (from > bytes.len || len > bytes.len - from))
		rc = err_set(err, ERR_INVALID, "\"%s\" is shorter", key);
	if (!rc)
		strbuf_add_slice(out, slice_from(bytes.data + from, len));
	return rc;
}

static int get(struct bucket *bucket, const char *key, size_t max_bytes, struct strbuf *out,
	       struct err *err)
{
	HOLD(bucket);
	struct slice bytes = { 0 };
	bool answers;
	int rc = 0;

	if (begins(held, &answers))
		rc = do_get(held, key, &bytes, err);
	rc = end(answers, rc, err);
	if (!rc && bytes.len > max_bytes)
		rc = err_set(err, ERR_LIMIT, "\"%s\" is too large", key);
	if (!rc)
		strbuf_add_slice(out, bytes);
	return rc;
}

static int size(struct bucket *bucket, const char *key, uint64_t *ret, struct err *err)
{
	HOLD(bucket);
	struct slice bytes = { 0 };
	bool answers;
	int rc = 0;

	if (begins(held, &answers))
		rc = do_get(held, key, &bytes, err);
	rc = end(answers, rc, err);
	if (!rc)
		*ret = bytes.len;
	return rc;
}

static int remove_object(struct bucket *bucket, const char *key, struct err *err)
{
	HOLD(bucket);
	struct object *object;
	bool answers;

	if (begins(held, &answers) && (object = find(held, key))) {
		strbuf_free(&object->key);
		strbuf_free(&object->bytes);
		held->count--;
		memmove(object, object + 1,
			(size_t)(held->objects + held->count - object) * sizeof(*object));
	}
	return end(answers, 0, err);
}

static int list(struct bucket *bucket, const char *prefix, const char *after, bool folders,
		bucket_entry_f *entry, void *context, struct err *err)
{
	HOLD(bucket);
	struct slice last = { 0 };
	bool answers;
	int rc = 0;

	if (!begins(held, &answers) || !answers)
		return end(answers, 0, err);
	for (size_t i = 0; !rc && i < held->count; i++) {
		struct slice key = strbuf_slice(&held->objects[i].key);
		struct bucket_entry item = { key, held->objects[i].bytes.len };
		size_t slash = slice_find_byte(slice_tail(key, strlen(prefix)), '/');

		if (!slice_starts_with(key, slice_of(prefix)) ||
		    (after && slice_compare(key, slice_of(after)) <= 0))
			continue;
		if (folders && slash != SIZE_MAX) {
			item = (struct bucket_entry){ { key.data, strlen(prefix) + slash + 1 }, 0 };
			if (slice_equal(item.key, last))
				continue;
			last = item.key;
		}
		rc = entry(context, &item, err);
	}
	return rc;
}

static void cancel(struct bucket *bucket)
{
	HOLD(bucket);
	held->is_cut = true;
}

static void close_bucket(struct bucket *bucket)
{
	struct sim_bucket *sim = of(bucket);

	for (size_t i = 0; i < sim->count; i++) {
		strbuf_free(&sim->objects[i].key);
		strbuf_free(&sim->objects[i].bytes);
	}
	free(sim->objects);
	pthread_mutex_destroy(&sim->lock);
	free(sim);
}

struct bucket *sim_bucket_new(void)
{
	struct sim_bucket *sim = mem_new(struct sim_bucket);
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&sim->lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
	sim->bucket = (struct bucket){ put,	      put_source, get_range, get,	  size,
				       remove_object, list,	  cancel,    close_bucket };
	return &sim->bucket;
}

void sim_bucket_plan(struct bucket *bucket, enum sim_bucket_fault fault, uint64_t at)
{
	struct sim_bucket *sim = of(bucket);

	sim->fault = fault;
	sim->at = at;
	sim->calls = 0;
	sim->hit = sim->is_cut = false;
}

bool sim_bucket_hit(const struct bucket *bucket)
{
	return ((const struct sim_bucket *)bucket)->hit;
}

void sim_bucket_ignore_conditions(struct bucket *bucket)
{
	of(bucket)->ignores_conditions = true;
}

size_t sim_bucket_count(const struct bucket *bucket, const char *part_of_key)
{
	const struct sim_bucket *sim = (const struct sim_bucket *)bucket;
	size_t count = 0;

	for (size_t i = 0; i < sim->count; i++)
		count += strstr(sim->objects[i].key.data, part_of_key) != NULL;
	return count;
}
