/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/store_bucket.h"

#include <errno.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/persist/manifest/bucket_manifest.h"
#include "server/persist/store_bucket_int.h"
#include "server/persist/store_int.h"

#define MANIFESTS_KEPT 100
#define SWEEP_NS (3600 * CLOCK_NS_PER_S)
#define STEP_NS CLOCK_NS_PER_S
#define RETRY_NS (5 * CLOCK_NS_PER_S)
#define LOG_PAUSE_NS (60 * CLOCK_NS_PER_S)

/* A generation that is parts already, and not in the bucket yet. */
struct pending_generation {
	uint64_t generation;
	int64_t created_ns; /* receipt of its first batch */
};

struct store_bucket {
	struct bucket *bucket;
	char session[BUCKET_ID_BYTES];
	struct bucket_place place; /* what the file BUCKET says */
	bool has_put;		   /* a manifest, in this process */
	bool is_attached;	   /* the bucket was asked what it has */
	uint64_t *there;	   /* numbers of parts that are in it */
	size_t there_count, there_capacity;
	uint64_t state_generation, state_hash; /* of the state object that is there */
	uint64_t seen_number, seen_offset;     /* of the local manifest when it was saved */
	struct strbuf unnamed;		       /* keys that the last sweep found named by none */
	int64_t swept_ns;

	struct lock lock; /* of what follows, which others read */
	struct lock_condition wake;
	struct pending_generation *pending;
	size_t pending_count, pending_capacity;
	bool is_fenced, stopping;
	int64_t saved_ns;
	uint64_t manifest, parts;
	char error[ERR_MESSAGE_BYTES];
	pthread_t thread;
	bool runs;
};

/* What is known of parts. */

static bool is_there(const struct store_bucket *own, uint64_t number)
{
	for (size_t i = own->there_count; i--;)
		if (own->there[i] == number)
			return true;
	return false;
}

static void note_there(struct store_bucket *own, uint64_t number)
{
	mem_grow(own->there, own->there_count, own->there_capacity);
	own->there[own->there_count++] = number;
}

/* Parts that the store has no more are not looked for any more either. */
static void forget_parts(struct store_bucket *own, const struct manifest_state *state)
{
	size_t kept = 0;

	for (size_t i = 0; i < own->there_count; i++)
		for (size_t k = 0; k < state->parts_count; k++)
			if (state->parts[k].number == own->there[i]) {
				own->there[kept++] = own->there[i];
				break;
			}
	own->there_count = kept;
}

/* Attaching. */

static int fence(struct store_disk *store, struct err *err)
{
	struct store_bucket *own = store->bucket;
	int rc = err_set(err, ERR_BUSY,
			 "another server writes store %s of bucket \"%s\": this one takes no more "
			 "profiles; start it with an empty --storage-path, or restore that one",
			 own->place.store, store->options.bucket_url);

	lock_take(&own->lock);
	own->is_fenced = true;
	lock_give(&own->lock);
	metric_set(&store_bucket_fenced, 1);
	store_poison(store, err);
	return rc;
}

/* Put by this directory, and not by a copy of it while this process was putting, too. */
static bool may_be_ours(const struct store_bucket *own, const struct bucket_manifest *manifest)
{
	return !strcmp(manifest->writer, own->place.writer) &&
	       (!own->has_put || !strcmp(manifest->session, own->session));
}

/* What the bucket lacks of what is sealed. With seal_lock, or before there are threads. */
static void note_lacking(struct store_disk *store)
{
	struct store_bucket *own = store->bucket;
	const struct manifest_state *state = &store->manifest.state;
	int64_t since_ns = own->place.saved_ns;

	if (!since_ns && state->parts_count) {
		since_ns = state->parts[0].min_start_ns;
		for (size_t i = 1; i < state->parts_count; i++)
			if (state->parts[i].min_start_ns < since_ns)
				since_ns = state->parts[i].min_start_ns;
	}
	if (state->log_generation > own->place.generation && state->parts_count)
		store_bucket_note_sealed(store, state->log_generation - 1, since_ns);
}

/* The bucket was emptied, or is an older copy: it is behind by all that the store has. */
static void start_over(struct store_disk *store, uint64_t newest)
{
	struct store_bucket *own = store->bucket;

	log_warn("store", "the bucket has lost manifests: all parts are uploaded again",
		 "bucket=\"%s\" newest=%llu expected=%llu", store->options.bucket_url,
		 (unsigned long long)newest, (unsigned long long)own->place.manifest);
	own->place.generation = 0;
	own->place.saved_ns = 0;
	own->state_generation = 0;
	lock_take(&store->seal_lock);
	note_lacking(store);
	lock_give(&store->seal_lock);
	lock_take(&own->lock);
	own->saved_ns = 0;
	lock_give(&own->lock);
}

/* Takes over what the newest manifest says is there; it must be ours, or the one we came from. */
static int adopt(struct store_disk *store, uint64_t newest, struct err *err)
{
	struct store_bucket *own = store->bucket;
	struct bucket_manifest manifest;
	int rc;

	if (newest < own->place.manifest) {
		start_over(store, newest);
		return 0;
	}
	if (!newest)
		return 0;
	rc = bucket_manifest_get(own->bucket, own->place.store, newest, &manifest, err);
	if (rc)
		return rc;
	if (newest > own->place.manifest && !may_be_ours(own, &manifest)) {
		manifest_state_free(&manifest.state);
		return fence(store, err);
	}
	for (size_t i = 0; i < manifest.state.parts_count; i++)
		if (!manifest.state.parts[i].damaged)
			note_there(own, manifest.state.parts[i].number);
	own->state_generation = manifest.state.state_generation;
	own->state_hash = manifest.state_hash;
	own->place.manifest = newest;
	lock_take(&own->lock);
	own->saved_ns = manifest.at_ns;
	own->manifest = newest;
	lock_give(&own->lock);
	manifest_state_free(&manifest.state);
	return 0;
}

/* Without the condition nobody would notice a second writer. */
static int probe(struct store_disk *store, struct err *err)
{
	struct store_bucket *own = store->bucket;
	struct bucket *bucket = own->bucket;
	struct bucket_key key;
	int rc, again = 0;

	if (store->options.bucket_single_writer)
		return 0;
	snprintf(key.text, sizeof(key.text), "%s/probe/%s", own->place.store, own->session);
	rc = bucket->put(bucket, key.text, SLICE_LITERAL("firn"), true, err);
	if (!rc || rc == -ERR_EXISTS) { /* or an answer was lost: it is there */
		again = bucket->put(bucket, key.text, SLICE_LITERAL("firn"), true, err);
		rc = again == -ERR_EXISTS ? 0 : again;
	}
	if (!rc && !again)
		rc = err_set(
			err, ERR_UNSUPPORTED,
			"bucket \"%s\" does not honour If-None-Match, so a second writer would "
			"not be noticed; see to it that there is none, and say so by "
			"--object-single-writer",
			store->options.bucket_url);
	(void)bucket->remove(bucket, key.text, NULL); /* else a sweep does */
	return rc;
}

static int attach(struct store_disk *store, struct err *err)
{
	struct store_bucket *own = store->bucket;
	uint64_t newest = 0;
	int rc = probe(store, err);

	if (!rc)
		rc = bucket_manifest_newest(own->bucket, own->place.store, 0, &newest, err);
	own->there_count = 0;
	if (!rc)
		rc = adopt(store, newest, err);
	own->is_attached = !rc;
	return rc;
}

/* Parts. */

struct reading {
	struct vfs_file *file;
};

static int read_part(void *context, void *data, size_t len, uint64_t offset, struct err *err)
{
	struct reading *reading = context;
	char *to = data;

	while (len) {
		ssize_t done = reading->file->vfs->pread(reading->file, to, len, offset);

		if (done == -EINTR)
			continue;
		if (done < 0)
			return err_set_errno(err, (int)-done, "read \"%s\"", reading->file->path);
		if (!done)
			return err_set(err, ERR_CORRUPT, "\"%s\" is shorter than it was",
				       reading->file->path);
		to += done;
		offset += (uint64_t)done;
		len -= (size_t)done;
	}
	return 0;
}

static int put_part(struct store_disk *store, const struct part_info *part, struct vfs_file *file,
		    struct err *err)
{
	struct store_bucket *own = store->bucket;
	struct bucket_key key = bucket_part_key(own->place.store, part);
	struct reading reading = { file };
	const struct bucket_source source = { part->bytes, read_part, &reading };
	uint64_t bytes = 0;
	int rc = own->bucket->put_source(own->bucket, key.text, &source, err);

	if (!rc)
		rc = own->bucket->size(own->bucket, key.text, &bytes, err);
	if (!rc && bytes != part->bytes)
		rc = err_set(err, ERR_CORRUPT, "object \"%s\" has %llu bytes, not %llu", key.text,
			     (unsigned long long)bytes, (unsigned long long)part->bytes);
	if (rc)
		return rc;
	note_there(own, part->number);
	metric_add(&store_bucket_uploads, 1);
	metric_add(&store_bucket_uploaded_bytes, (int64_t)part->bytes);
	return 0;
}

/* The first part that is missing there, opened while it cannot be dropped. */
static int next_part(struct store_disk *store, struct part_info *ret, struct vfs_file **ret_file,
		     struct err *err)
{
	const struct manifest_state *state = &store->manifest.state;
	int rc = 0;

	*ret_file = NULL;
	lock_take(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++) {
		struct layout_path path =
			layout_path(store->path, LAYOUT_PART, state->parts[i].number);

		if (state->parts[i].damaged || is_there(store->bucket, state->parts[i].number))
			continue;
		*ret = state->parts[i];
		rc = vfs_open(store->vfs, path.text, VFS_READ, ret_file, err);
		break;
	}
	lock_give(&store->seal_lock);
	return rc;
}

static bool is_stopping(struct store_bucket *own)
{
	bool stopping;

	lock_take(&own->lock);
	stopping = own->stopping;
	lock_give(&own->lock);
	return stopping;
}

static int put_parts(struct store_disk *store, struct err *err)
{
	struct vfs_file *file = NULL;
	struct part_info part;
	int rc = 0;

	while (!rc && !(rc = next_part(store, &part, &file, err)) && file) {
		rc = is_stopping(store->bucket) ? err_set(err, ERR_CANCELLED, "stopping")
						: put_part(store, &part, file, err);
		vfs_close(file);
	}
	return rc;
}

/* The manifest. */

/* One moment of the store, of which all parts are there. */
struct save {
	struct bucket_manifest manifest; /* owns `object`, not its state */
	struct strbuf object;		 /* the manifest encoded */
	struct strbuf state;		 /* the state file; empty when it is there or none */
	uint64_t seen_number, seen_offset, generation;
	bool is_complete, is_new;
};

/* Receipt of the oldest batch in memory; INT64_MAX: there is none. */
static int64_t oldest_in_memory(struct store_disk *store)
{
	int64_t oldest_ns = INT64_MAX;

	lock_take(&store->lock);
	for (size_t i = 0; i < store->memtables_count; i++) {
		int64_t created_ns = store->memtables[i]->created_ns;

		if (created_ns && created_ns < oldest_ns)
			oldest_ns = created_ns;
	}
	lock_give(&store->lock);
	return oldest_ns;
}

static int take_state(struct store_disk *store, struct save *save, struct err *err)
{
	struct store_bucket *own = store->bucket;
	uint64_t generation = store->manifest.state.state_generation;
	struct layout_path path = layout_path(store->path, LAYOUT_STATE, generation);
	int rc;

	if (!generation)
		return 0;
	if (generation == own->state_generation) {
		save->manifest.state_hash = own->state_hash;
		return 0;
	}
	rc = vfs_read_whole(store->vfs, path.text, LEDGER_FILE_BYTES_MAX, &save->state, err);
	if (rc == -ERR_NOT_FOUND)
		return 0; /* lost: recovery told it */
	if (!rc)
		save->manifest.state_hash = hash_stable(save->state.data, save->state.len, 0);
	return rc;
}

/* What was damaged here after it was put there is whole there. */
static void encode_save(struct store_disk *store, struct save *save)
{
	struct manifest_state state = store->manifest.state; /* but for the parts, lent */

	state.parts = mem_new_array(struct part_info, state.parts_count + 1);
	for (size_t i = 0; i < state.parts_count; i++) {
		state.parts[i] = store->manifest.state.parts[i];
		if (is_there(store->bucket, state.parts[i].number))
			state.parts[i].damaged = false;
	}
	save->manifest.state = state;
	bucket_manifest_encode(&save->manifest, &save->object);
	free(state.parts);
	save->manifest.state = (struct manifest_state){ 0 };
}

static int take_save(struct store_disk *store, struct save *save, struct err *err)
{
	struct store_bucket *own = store->bucket;
	const struct manifest_state *state = &store->manifest.state;
	int rc;

	lock_assert_held(&store->seal_lock);
	save->is_complete = true;
	for (size_t i = 0; i < state->parts_count; i++)
		if (!state->parts[i].damaged && !is_there(own, state->parts[i].number))
			save->is_complete = false; /* made just now: once more */
	save->is_new = store->manifest.number != own->seen_number ||
		       store->manifest.offset != own->seen_offset;
	if (!save->is_complete || !save->is_new)
		return 0;
	rc = take_state(store, save, err);
	if (rc)
		return rc;
	save->manifest.number = own->place.manifest + 1;
	save->manifest.at_ns = store_now_ns(store);
	save->manifest.covered_ns = oldest_in_memory(store);
	if (save->manifest.covered_ns > save->manifest.at_ns)
		save->manifest.covered_ns = save->manifest.at_ns;
	memcpy(save->manifest.writer, own->place.writer, BUCKET_ID_BYTES);
	memcpy(save->manifest.session, own->session, BUCKET_ID_BYTES);
	save->seen_number = store->manifest.number;
	save->seen_offset = store->manifest.offset;
	save->generation = state->log_generation;
	save->manifest.state.state_generation = state->state_generation;
	forget_parts(own, state);
	encode_save(store, save);
	save->manifest.state.state_generation = state->state_generation;
	return 0;
}

/* 412 may be the answer to our own call, whose first answer was lost. */
static int is_ours(struct store_disk *store, const char *key, struct slice object, struct err *err)
{
	struct store_bucket *own = store->bucket;
	struct strbuf bytes = { 0 };
	int rc = own->bucket->get(own->bucket, key, BUCKET_MANIFEST_BYTES_MAX, &bytes, err);

	if (!rc && !slice_equal(strbuf_slice(&bytes), object))
		rc = fence(store, err);
	strbuf_free(&bytes);
	return rc;
}

static int put_manifest(struct store_disk *store, struct save *save, struct err *err)
{
	struct store_bucket *own = store->bucket;
	struct bucket_key key = bucket_manifest_key(own->place.store, save->manifest.number);
	uint64_t generation = save->manifest.state.state_generation;
	int rc = 0;

	if (save->state.len) {
		struct bucket_key state =
			bucket_state_key(own->place.store, generation, save->manifest.state_hash);

		rc = own->bucket->put(own->bucket, state.text, strbuf_slice(&save->state), false,
				      err);
	}
	if (rc)
		return rc;
	rc = own->bucket->put(own->bucket, key.text, strbuf_slice(&save->object), true, err);
	if (rc == -ERR_EXISTS)
		rc = is_ours(store, key.text, strbuf_slice(&save->object), err);
	if (rc == -ERR_INVALID || rc == -ERR_UNSUPPORTED)
		return rc;
	if (rc) /* it may have been put: look again what is there */
		own->is_attached = rc == -ERR_BUSY;
	else {
		own->state_generation = generation;
		own->state_hash = save->manifest.state_hash;
	}
	return rc;
}

static void note_saved(struct store_disk *store, const struct save *save)
{
	struct store_bucket *own = store->bucket;
	size_t kept = 0;

	own->seen_number = save->seen_number;
	own->seen_offset = save->seen_offset;
	own->place.manifest = save->manifest.number;
	own->place.generation = save->generation;
	own->place.saved_ns = save->manifest.covered_ns;
	own->has_put = true;
	lock_take(&own->lock);
	for (size_t i = 0; i < own->pending_count; i++)
		if (own->pending[i].generation >= save->generation)
			own->pending[kept++] = own->pending[i];
	own->pending_count = kept;
	own->saved_ns = save->manifest.at_ns;
	own->manifest = save->manifest.number;
	lock_give(&own->lock);
}

/* Removes an old manifest if there are too many; the newest stay. */
static int remove_old_manifest(struct store_bucket *own, struct err *err)
{
	struct bucket_key key;

	if (own->place.manifest <= MANIFESTS_KEPT)
		return 0;
	key = bucket_manifest_key(own->place.store, own->place.manifest - MANIFESTS_KEPT);
	return own->bucket->remove(own->bucket, key.text, err);
}

static int save_now(struct store_disk *store, bool *ret_again, struct err *err)
{
	struct store_bucket *own = store->bucket;
	struct save save = { 0 };
	int rc;

	lock_take(&store->seal_lock);
	rc = take_save(store, &save, err);
	lock_give(&store->seal_lock);
	*ret_again = !rc && !save.is_complete;
	if (!rc && save.is_complete && save.is_new) {
		rc = put_manifest(store, &save, err);
		if (!rc) {
			note_saved(store, &save);
			rc = bucket_place_write(&own->place, store->vfs, store->path, err);
		}
		if (!rc)
			rc = remove_old_manifest(own, err);
	}
	strbuf_free(&save.object);
	strbuf_free(&save.state);
	return rc;
}

/* Garbage: what no manifest names, seen so twice, an hour apart. */

struct sweep {
	struct store_disk *store;
	struct strbuf named;   /* keys of the state that was saved last, a line each */
	struct strbuf unnamed; /* those that are there besides */
	struct strbuf doomed;  /* and were the last time */
};

static bool has_line(const struct strbuf *lines, struct slice key)
{
	struct slice rest = strbuf_slice(lines);

	while (rest.len)
		if (slice_equal(slice_cut(rest, '\n', &rest), key))
			return true;
	return false;
}

static int sweep_entry(void *context, const struct bucket_entry *entry, struct err *err)
{
	struct sweep *sweep = context;

	(void)err;
	if (has_line(&sweep->named, entry->key))
		return 0;
	if (has_line(&sweep->store->bucket->unnamed, entry->key))
		strbuf_addf(&sweep->doomed, "%.*s\n", SLICE_FMT(entry->key));
	else
		strbuf_addf(&sweep->unnamed, "%.*s\n", SLICE_FMT(entry->key));
	return 0;
}

static void add_named(struct sweep *sweep)
{
	struct store_disk *store = sweep->store;
	struct store_bucket *own = store->bucket;
	const struct manifest_state *state = &store->manifest.state;

	lock_take(&store->seal_lock);
	for (size_t i = 0; i < state->parts_count; i++)
		strbuf_addf(&sweep->named, "%s\n",
			    bucket_part_key(own->place.store, &state->parts[i]).text);
	lock_give(&store->seal_lock);
	strbuf_addf(
		&sweep->named, "%s\n",
		bucket_state_key(own->place.store, own->state_generation, own->state_hash).text);
}

static int remove_doomed(struct sweep *sweep, struct err *err)
{
	struct store_bucket *own = sweep->store->bucket;
	struct slice rest = strbuf_slice(&sweep->doomed);
	uint64_t newer = 0;
	int rc = 0;

	if (!rest.len)
		return 0;
	/* They may be the parts of a writer that has taken over. */
	rc = bucket_manifest_newest(own->bucket, own->place.store, own->place.manifest, &newer,
				    err);
	if (!rc && newer)
		rc = fence(sweep->store, err);
	while (!rc && rest.len) {
		struct slice line = slice_cut(rest, '\n', &rest);
		struct bucket_key key;

		snprintf(key.text, sizeof(key.text), "%.*s", SLICE_FMT(line));
		rc = own->bucket->remove(own->bucket, key.text, err);
		metric_add(&store_bucket_removed, !rc);
	}
	return rc;
}

static int sweep(struct store_disk *store, struct err *err)
{
	static const char *const folders[] = { "part", "state", "probe" };
	struct store_bucket *own = store->bucket;
	struct sweep sweep = { .store = store };
	int rc = 0;

	if (store_now_ns(store) - own->swept_ns < SWEEP_NS)
		return 0;
	add_named(&sweep);
	for (size_t i = 0; !rc && i < sizeof(folders) / sizeof(*folders); i++) {
		char prefix[BUCKET_ID_BYTES + 16];

		snprintf(prefix, sizeof(prefix), "%s/%s/", own->place.store, folders[i]);
		rc = own->bucket->list(own->bucket, prefix, NULL, false, sweep_entry, &sweep, err);
	}
	if (!rc)
		rc = remove_doomed(&sweep, err);
	if (!rc) {
		strbuf_free(&own->unnamed);
		own->unnamed = sweep.unnamed;
		sweep.unnamed = (struct strbuf){ 0 };
		own->swept_ns = store_now_ns(store);
	}
	strbuf_free(&sweep.named);
	strbuf_free(&sweep.unnamed);
	strbuf_free(&sweep.doomed);
	return rc;
}

/* Steps. */

static int step(struct store_disk *store, struct err *err)
{
	struct store_bucket *own = store->bucket;
	bool again = true;
	int rc = own->is_attached ? 0 : attach(store, err);

	while (!rc && again) {
		rc = put_parts(store, err);
		if (!rc)
			rc = save_now(store, &again, err);
	}
	return rc ? rc : sweep(store, err);
}

int store_disk_bucket_step(struct store_disk *store, struct err *err)
{
	struct store_bucket *own = store->bucket;
	struct err cause = { 0 };
	bool is_fenced;
	int rc;

	lock_take(&own->lock);
	is_fenced = own->is_fenced;
	lock_give(&own->lock);
	if (is_fenced)
		return err_set(err, ERR_BUSY, "another server writes this store's bucket");
	rc = step(store, &cause);
	lock_take(&own->lock);
	memcpy(own->error, rc && rc != -ERR_CANCELLED ? cause.message : "",
	       rc && rc != -ERR_CANCELLED ? sizeof(own->error) : 1);
	own->parts = own->there_count;
	lock_give(&own->lock);
	metric_add(&store_bucket_errors, rc && rc != -ERR_CANCELLED);
	if (rc && err)
		*err = cause;
	return rc;
}

void store_bucket_note_sealed(struct store_disk *store, uint64_t generation, int64_t created_ns)
{
	struct store_bucket *own = store->bucket;

	if (!own || !created_ns)
		return;
	lock_take(&own->lock);
	mem_grow(own->pending, own->pending_count, own->pending_capacity);
	own->pending[own->pending_count++] = (struct pending_generation){ generation, created_ns };
	lock_signal(&own->wake);
	lock_give(&own->lock);
}

void store_disk_bucket_stat(struct store *base, struct store_bucket_stat *ret)
{
	struct store_disk *store = store_disk_of(base);
	struct store_bucket *own = store->bucket;
	int64_t now_ns = store_now_ns(store), oldest_ns;

	*ret = (struct store_bucket_stat){ .on = own != NULL };
	if (!own)
		return;
	oldest_ns =
		oldest_in_memory(store); /* before what waits: a memtable goes from here to there */
	lock_take(&own->lock);
	for (size_t i = 0; i < own->pending_count; i++)
		if (own->pending[i].created_ns < oldest_ns)
			oldest_ns = own->pending[i].created_ns;
	ret->fenced = own->is_fenced;
	ret->saved_at_ns = own->saved_ns;
	ret->manifest = own->manifest;
	ret->parts = own->parts;
	memcpy(ret->error, own->error, sizeof(ret->error));
	lock_give(&own->lock);
	if (oldest_ns != INT64_MAX) /* what came just now is missing, too */
		ret->behind_ns = oldest_ns < now_ns ? now_ns - oldest_ns : 1;
	snprintf(ret->store, sizeof(ret->store), "%s", own->place.store);
}

void store_bucket_publish(struct store_disk *store)
{
	struct store_bucket_stat stat;

	store_disk_bucket_stat(&store->base, &stat);
	metric_set(&store_bucket_behind_seconds, stat.behind_ns / CLOCK_NS_PER_S);
}

static void *run(void *context)
{
	struct store_disk *store = context;
	struct store_bucket *own = store->bucket;
	int64_t quiet_until_ns = 0;

	pthread_setname_np(pthread_self(), "firn-bucket");
	lock_take(&own->lock);
	while (!own->stopping) {
		struct store_bucket_stat stat;
		struct err err = { 0 };
		int rc;

		lock_give(&own->lock);
		rc = store_disk_bucket_step(store, &err);
		store_disk_bucket_stat(&store->base, &stat);
		if (rc && rc != -ERR_CANCELLED && clock_monotonic_ns() >= quiet_until_ns) {
			quiet_until_ns = clock_monotonic_ns() + LOG_PAUSE_NS;
			log_error("store",
				  "the bucket is behind; the upload is retried, logged once a "
				  "minute",
				  "behind_s=%lld error=\"%s\"",
				  (long long)(stat.behind_ns / CLOCK_NS_PER_S), err.message);
		}
		lock_take(&own->lock);
		if (!own->stopping)
			lock_wait_until(&own->wake, &own->lock,
					clock_monotonic_ns() + (rc ? RETRY_NS : STEP_NS));
	}
	lock_give(&own->lock);
	return NULL;
}

/* Mistakes are told at once; a bucket that is away for a while does not keep the store closed. */
static int attach_at_start(struct store_disk *store, struct err *err)
{
	struct err cause = { 0 };
	int rc = attach(store, &cause);

	if (rc == -ERR_UNAVAILABLE || rc == -ERR_DEADLINE) {
		log_warn("store", "the bucket does not answer; it will be retried",
			 "bucket=\"%s\" error=\"%s\"", store->options.bucket_url, cause.message);
		return 0;
	}
	if (rc && err)
		*err = cause;
	return rc;
}

static int start(struct store_disk *store, struct err *err)
{
	struct store_bucket *own = store->bucket;
	int rc = attach_at_start(store, err);

	if (rc)
		return rc;
	rc = pthread_create(&own->thread, NULL, run, store);
	if (rc)
		return err_set_errno(err, rc, "start the thread that fills the bucket");
	own->runs = true;
	log_info("store", "parts go to a bucket", "bucket=\"%s\" store=%s manifest=%llu",
		 store->options.bucket_url, own->place.store,
		 (unsigned long long)own->place.manifest);
	return 0;
}

int store_bucket_open(struct store_disk *store, struct err *err)
{
	struct store_bucket *own;
	bool is_known;
	int rc;

	if (!store->options.bucket)
		return 0;
	own = mem_new(struct store_bucket);
	own->bucket = store->options.bucket;
	own->swept_ns = store_now_ns(store);
	bucket_make_id(own->session);
	lock_init(&own->lock, "store.bucket", STORE_BUCKET_RANK);
	lock_condition_init(&own->wake);
	store->bucket = own;
	rc = bucket_place_read(&own->place, store->options.bucket_url, store->vfs, store->path,
			       &is_known, err);
	if (!rc && !is_known)
		rc = bucket_place_write(&own->place, store->vfs, store->path, err);
	if (rc)
		return rc;
	if (!is_known)
		own->place.saved_ns = 0;
	note_lacking(store);
	return store->options.no_background ? 0 : start(store, err);
}

void store_bucket_close(struct store_disk *store)
{
	struct store_bucket *own = store->bucket;

	if (!own)
		return;
	lock_take(&own->lock);
	own->stopping = true;
	lock_signal(&own->wake);
	lock_give(&own->lock);
	if (own->runs) {
		own->bucket->cancel(own->bucket);
		pthread_join(own->thread, NULL);
	}
	store->bucket = NULL;
	free(own->there);
	free(own->pending);
	strbuf_free(&own->unnamed);
	lock_free(&own->lock);
	lock_condition_free(&own->wake);
	free(own);
}
