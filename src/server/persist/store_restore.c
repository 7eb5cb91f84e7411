/* SPDX-License-Identifier: Apache-2.0 */
/* A directory made of what a bucket has: parts, state, manifest, and CURRENT last. */
#include <errno.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/persist/part/part_scrub.h"
#include "server/persist/store_bucket.h"
#include "server/persist/store_bucket_int.h"
#include "server/persist/store_int.h"

#define PIECE_BYTES ((size_t)8 << 20)
#define THREADS 16
#define TRIES_MAX 5
#define STORES_MAX 1000u

struct restore {
	struct bucket *bucket;
	const char *to;
	const struct vfs *vfs;
	struct bucket_place place;
	struct bucket_manifest manifest;
	struct store_restore *result;
};

/* Which store. */

struct stores {
	struct strbuf names; /* "a, b" */
	char one[BUCKET_ID_BYTES];
	size_t count;
};

static int see_store(void *context, const struct bucket_entry *entry, struct err *err)
{
	struct stores *stores = context;
	struct slice name = entry->key;

	(void)err;
	if (!name.len || name.data[name.len - 1] != '/')
		return 0;
	name.len--;
	if (!bucket_is_id(name) || stores->count >= STORES_MAX)
		return 0;
	strbuf_addf(&stores->names, "%s%.*s", stores->count++ ? ", " : "", SLICE_FMT(name));
	snprintf(stores->one, sizeof(stores->one), "%.*s", SLICE_FMT(name));
	return 0;
}

static int find_store(struct restore *restore, const char *url, const char *wanted, struct err *err)
{
	struct stores stores = { 0 };
	int rc = 0;

	if (wanted && !bucket_is_id(slice_of(wanted)))
		return err_set(err, ERR_INVALID, "\"%.100s\" is not a store name in a bucket",
			       wanted);
	if (!wanted)
		rc = restore->bucket->list(restore->bucket, "", NULL, true, see_store, &stores,
					   err);
	if (!rc && !wanted && !stores.count)
		rc = err_set(err, ERR_NOT_FOUND, "no firn store in bucket \"%s\"", url);
	if (!rc && stores.count > 1)
		rc = err_set(err, ERR_INVALID,
			     "bucket \"%s\" has several stores; name one with --store: %.300s", url,
			     strbuf_text(&stores.names));
	if (!rc)
		snprintf(restore->place.store, BUCKET_ID_BYTES, "%s", wanted ? wanted : stores.one);
	strbuf_free(&stores.names);
	return rc;
}

static int newest_manifest(struct restore *restore, struct err *err)
{
	uint64_t newest;
	int rc = bucket_manifest_newest(restore->bucket, restore->place.store, 0, &newest, err);

	if (!rc && !newest)
		rc = err_set(err, ERR_NOT_FOUND, "store %s of the bucket has no manifest",
			     restore->place.store);
	manifest_state_free(&restore->manifest.state);
	return rc ? rc
		  : bucket_manifest_get(restore->bucket, restore->place.store, newest,
					&restore->manifest, err);
}

/* Parts. Several threads fetch pieces of them: a bucket answers late, but many at once. */

/* One part while its pieces come. */
struct coming {
	struct vfs_file *file;
	uint64_t left; /* pieces that are not written */
};

struct fetching {
	struct restore *restore;
	struct lock lock;      /* of all below */
	struct coming *coming; /* by part */
	size_t part;	       /* the next piece's */
	uint64_t at;	       /* where it begins */
	int rc;		       /* the first failure: no further piece is begun */
	struct err err;
};

struct piece {
	size_t part;
	uint64_t at;
	size_t bytes;
};

/* With the lock. */
static int open_part(struct fetching *fetching, struct err *err)
{
	struct restore *restore = fetching->restore;
	const struct part_info *part = &restore->manifest.state.parts[fetching->part];
	struct layout_path path = layout_path(restore->to, LAYOUT_PART, part->number);
	struct coming *coming = &fetching->coming[fetching->part];

	lock_assert_held(&fetching->lock);
	coming->left = (part->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	return vfs_open(restore->vfs, path.text, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE,
			&coming->file, err);
}

static void note_failure(struct fetching *fetching, int rc, const struct err *err)
{
	lock_assert_held(&fetching->lock);
	if (rc && !fetching->rc) {
		fetching->rc = rc;
		fetching->err = *err;
	}
}

/* False: there is none left to begin. With the lock. */
static bool next_piece(struct fetching *fetching, struct piece *ret)
{
	const struct manifest_state *state = &fetching->restore->manifest.state;
	const struct part_info *part;
	struct err err = { 0 };

	lock_assert_held(&fetching->lock);
	while (fetching->part < state->parts_count && state->parts[fetching->part].damaged)
		fetching->part++;
	if (!fetching->rc && fetching->part < state->parts_count && !fetching->at)
		note_failure(fetching, open_part(fetching, &err), &err);
	if (fetching->rc || fetching->part == state->parts_count)
		return false;
	part = &state->parts[fetching->part];
	*ret = (struct piece){ fetching->part, fetching->at,
			       part->bytes - fetching->at < PIECE_BYTES
				       ? (size_t)(part->bytes - fetching->at)
				       : PIECE_BYTES };
	fetching->at += ret->bytes;
	if (fetching->at == part->bytes) {
		fetching->part++;
		fetching->at = 0;
	}
	return true;
}

static int get_piece(struct fetching *fetching, const struct piece *piece, struct strbuf *bytes,
		     struct err *err)
{
	struct restore *restore = fetching->restore;
	struct bucket_key key =
		bucket_part_key(restore->place.store, &restore->manifest.state.parts[piece->part]);
	int rc;

	strbuf_clear(bytes);
	rc = restore->bucket->get_range(restore->bucket, key.text, piece->at, piece->bytes, bytes,
					err);
	return rc ? rc
		  : vfs_write_all(fetching->coming[piece->part].file, bytes->data, bytes->len,
				  piece->at, err);
}

/* All of it is written: what came is what was put there. */
static int end_part(const struct restore *restore, const struct part_info *part,
		    struct vfs_file *file, struct err *err)
{
	struct bucket_key key = bucket_part_key(restore->place.store, part);
	int rc = vfs_sync(file, err);

	vfs_close(file);
	if (rc)
		return rc;
	rc = part_scrub(restore->vfs, restore->to, part, NULL, err);
	return rc ? err_wrap(err, "object \"%s\"", key.text) : 0;
}

static void *fetch(void *context)
{
	struct fetching *fetching = context;
	struct restore *restore = fetching->restore;
	struct strbuf bytes = { 0 };
	struct piece piece;

	lock_take(&fetching->lock);
	while (next_piece(fetching, &piece)) {
		const struct part_info *part = &restore->manifest.state.parts[piece.part];
		struct coming *coming = &fetching->coming[piece.part];
		struct err err = { 0 };
		int rc;

		lock_give(&fetching->lock);
		rc = get_piece(fetching, &piece, &bytes, &err);
		lock_take(&fetching->lock);
		note_failure(fetching, rc, &err);
		assert(coming->left);
		if (rc || --coming->left)
			continue;
		lock_give(&fetching->lock);
		rc = end_part(restore, part, coming->file, &err);
		lock_take(&fetching->lock);
		coming->file = NULL;
		note_failure(fetching, rc, &err);
		restore->result->parts += !rc;
		restore->result->bytes += rc ? 0 : part->bytes;
	}
	lock_give(&fetching->lock);
	strbuf_free(&bytes);
	return NULL;
}

static uint64_t pieces_count(const struct restore *restore)
{
	uint64_t count = 0;

	for (size_t i = 0; i < restore->manifest.state.parts_count; i++)
		count += (restore->manifest.state.parts[i].bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	return count;
}

static int get_parts(struct restore *restore, struct err *err)
{
	size_t count = restore->manifest.state.parts_count, begun = 0;
	struct fetching fetching = { .restore = restore,
				     .coming = mem_new_array(struct coming, count) };
	pthread_t threads[THREADS];

	lock_init(&fetching.lock, "store_restore", STORE_RESTORE_RANK);
	while (begun < THREADS && begun < pieces_count(restore) &&
	       !pthread_create(&threads[begun], NULL, fetch, &fetching))
		begun++;
	if (!begun)
		fetch(&fetching);
	while (begun)
		pthread_join(threads[--begun], NULL);
	for (size_t i = 0; i < count; i++)
		vfs_close(fetching.coming[i].file);
	free(fetching.coming);
	lock_free(&fetching.lock);
	if (fetching.rc && err)
		*err = fetching.err;
	return fetching.rc;
}

static int get_state(struct restore *restore, struct err *err)
{
	uint64_t generation = restore->manifest.state.state_generation;
	struct bucket_key key =
		bucket_state_key(restore->place.store, generation, restore->manifest.state_hash);
	struct layout_path path = layout_path(restore->to, LAYOUT_STATE, generation);
	struct strbuf bytes = { 0 };
	int rc = 0;

	if (!generation || !restore->manifest.state_hash)
		return 0;
	rc = restore->bucket->get(restore->bucket, key.text, LEDGER_FILE_BYTES_MAX, &bytes, err);
	if (!rc)
		rc = vfs_replace(restore->vfs, restore->to, path.text, strbuf_slice(&bytes), err);
	strbuf_free(&bytes);
	return rc;
}

/* As of the manifest. ERR_NOT_FOUND: a part is gone; there may be a newer manifest. */
static int get_all(struct restore *restore, struct err *err)
{
	int rc;

	restore->result->parts = restore->result->bytes = 0;
	rc = get_parts(restore, err);
	return rc ? rc : get_state(restore, err);
}

/* In force with it: the directory is a store then. */
static int put_in_force(struct restore *restore, struct err *err)
{
	struct manifest made = { .vfs = restore->vfs,
				 .dir = restore->to,
				 .state = restore->manifest.state /* lent */ };
	struct manifest_edit nothing = { 0 };
	int rc = vfs_sync_dir(restore->vfs, restore->to, err);

	restore->place.manifest = restore->manifest.number;
	restore->place.generation = restore->manifest.state.log_generation;
	restore->place.saved_ns = restore->manifest.covered_ns;
	if (!rc)
		rc = bucket_place_write(&restore->place, restore->vfs, restore->to, err);
	if (!rc)
		rc = manifest_commit(&made, &nothing, err);
	made.state = (struct manifest_state){ 0 };
	manifest_fini(&made);
	return rc;
}

static void note_name(void *context, const char *name)
{
	(void)name;
	++*(size_t *)context;
}

static int make_target(const struct vfs *vfs, const char *to, struct err *err)
{
	char *copy = mem_strndup(to, strlen(to));
	size_t entries = 0;
	int rc = vfs->mkdir(vfs, to);

	if (!rc)
		rc = vfs_sync_dir(vfs, dirname(copy), err);
	else if (rc != -EEXIST)
		rc = err_set_errno(err, -rc, "make directory \"%s\"", to);
	else if (vfs->list_dir(vfs, to, note_name, &entries) || entries)
		rc = err_set(err, ERR_EXISTS,
			     "\"%s\" is not empty; name a directory that does not exist", to);
	else
		rc = 0;
	free(copy);
	return rc;
}

static int restore_all(struct restore *restore, struct err *err)
{
	uint64_t tried = 0;
	int rc = -ERR_NOT_FOUND;

	for (int tries = 0; rc == -ERR_NOT_FOUND && tries < TRIES_MAX; tries++) {
		struct err later;

		if (newest_manifest(restore, tries ? &later : err))
			return tries ? rc : -(int)err->code;
		if (tries && restore->manifest.number == tried)
			return rc; /* nothing newer: it is missing */
		tried = restore->manifest.number;
		rc = get_all(restore, err);
	}
	return rc ? rc : put_in_force(restore, err);
}

int store_restore(struct bucket *bucket, const char *url, const char *store, const char *to,
		  const struct vfs *vfs, struct store_restore *ret, struct err *err)
{
	struct restore restore = {
		.bucket = bucket, .to = to, .vfs = vfs ? vfs : &vfs_posix, .result = ret
	};
	struct err cause = { 0 };
	int rc = layout_check_dir(to, &cause);

	*ret = (struct store_restore){ 0 };
	snprintf(restore.place.url, sizeof(restore.place.url), "%s", url);
	bucket_make_id(restore.place.writer);
	if (!rc)
		rc = find_store(&restore, url, store, &cause);
	if (!rc)
		rc = make_target(restore.vfs, to, &cause);
	if (!rc)
		rc = restore_all(&restore, &cause);
	snprintf(ret->store, sizeof(ret->store), "%s", restore.place.store);
	ret->covered_ns = restore.manifest.covered_ns;
	ret->at_ns = restore.manifest.at_ns;
	manifest_state_free(&restore.manifest.state);
	if (rc && err)
		*err = cause;
	return rc;
}
