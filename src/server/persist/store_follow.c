/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/store_follow.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/persist/disk/object_files.h"
#include "server/persist/manifest/bucket_manifest.h"
#include "server/persist/store_int.h"

#define STORES_MAX 1000u
#define DISCOVER_NS (60 * CLOCK_NS_PER_S)
#define AGE_NS (60 * CLOCK_NS_PER_S)
#define LOG_PAUSE_NS (60 * CLOCK_NS_PER_S)

/* One store in a bucket. Made once, and there until the end. */
struct followed {
	struct store_disk *disk; /* its parts and deletions, as of a manifest; has no directory */
	struct bucket *bucket;
	char store[BUCKET_ID_BYTES];
	uint64_t manifest; /* 0: none was read yet. This and the rest: under the follower's lock */
	int64_t covered_ns, at_ns, looked_ns;
};

struct source {
	struct bucket *bucket;
	char *url;
	int64_t discovered_ns; /* monotonic; 0: no store was found yet */
	char error[ERR_MESSAGE_BYTES];
};

struct follower {
	struct store base;
	struct object_files *files;
	int64_t refresh_ns;
	clock_f *clock;
	void *clock_context;
	struct source sources[STORE_FOLLOW_SOURCES_MAX];
	size_t sources_count;

	struct lock refresh_lock; /* one thread at a time looks at the buckets */
	struct lock lock;	  /* of what follows, and of what `followed` says */
	struct lock_condition wake;
	struct followed *followed[STORES_MAX];
	size_t followed_count;
	uint64_t looks;		 /* begun so far */
	int64_t refreshed_ns;	 /* monotonic: when the last look began */
	int64_t refreshed_at_ns; /* likewise, by the clock of the store */
	bool stopping, runs;
	pthread_t thread;
};

/* One snapshot of each followed store. */
struct follow_pins {
	struct followed **followed;
	struct store_snapshot *snapshots;
	size_t count;
};

static struct follower *follower_of(struct store *base)
{
	return (struct follower *)base;
}

static int64_t now_ns(const struct follower *follower)
{
	return follower->clock ? follower->clock(follower->clock_context) : clock_real_ns();
}

/* A manifest is taken in. */

/* Parts ascend by number. */
static bool has_part(const struct manifest_state *state, const struct part_info *part)
{
	size_t from = 0, to = state->parts_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (state->parts[middle].number < part->number)
			from = middle + 1;
		else
			to = middle;
	}
	return from < state->parts_count && state->parts[from].number == part->number &&
	       identity_equal(state->parts[from].hash, part->hash);
}

static void drop_parts(struct store_disk *disk, const struct manifest_state *newer)
{
	const struct manifest_state *state = &disk->manifest.state;

	for (size_t i = 0; i < state->parts_count; i++)
		if (!has_part(newer, &state->parts[i]))
			part_cache_drop(&disk->cache, state->parts[i].number);
}

static void add_parts(struct follower *follower, struct followed *followed,
		      const struct manifest_state *newer)
{
	struct store_disk *disk = followed->disk;

	for (size_t i = 0; i < newer->parts_count; i++) {
		const struct part_info *part = &newer->parts[i];
		struct layout_path path = layout_path(disk->path, LAYOUT_PART, part->number);

		if (has_part(&disk->manifest.state, part))
			continue;
		if (!part->damaged)
			object_files_add(follower->files, followed->bucket, path.text,
					 bucket_part_key(followed->store, part).text, part->bytes);
		part_cache_add(&disk->cache, part);
	}
}

/* Snapshots see either what was before, or all of it. Takes the manifest's state. */
static int take_in(struct follower *follower, struct followed *followed,
		   struct bucket_manifest *manifest, struct err *err)
{
	struct store_disk *disk = followed->disk;
	struct tombstones *made, *old;
	int rc = tombstones_of(&manifest->state, &made, err);

	if (rc) {
		manifest_state_free(&manifest->state);
		return rc;
	}
	lock_take(&disk->seal_lock);
	lock_take(&disk->lock);
	drop_parts(disk, &manifest->state);
	add_parts(follower, followed, &manifest->state);
	old = disk->tombstones;
	disk->tombstones = made;
	lock_give(&disk->lock);
	manifest_state_free(&disk->manifest.state);
	disk->manifest.state = manifest->state;
	lock_give(&disk->seal_lock);
	tombstones_unref(old);
	lock_take(&follower->lock);
	followed->manifest = manifest->number;
	followed->covered_ns = manifest->covered_ns;
	followed->at_ns = manifest->at_ns;
	lock_give(&follower->lock);
	return 0;
}

static int look(struct follower *follower, struct followed *followed, struct err *err)
{
	struct bucket_manifest manifest;
	int64_t looked_ns = now_ns(follower);
	uint64_t newest = 0;
	int rc = bucket_manifest_newest(followed->bucket, followed->store, followed->manifest,
					&newest, err);

	if (!rc && newest > followed->manifest)
		rc = bucket_manifest_get(followed->bucket, followed->store, newest, &manifest, err);
	else
		newest = 0;
	if (!rc && newest)
		rc = take_in(follower, followed, &manifest, err);
	if (rc)
		return rc;
	lock_take(&follower->lock);
	followed->looked_ns = looked_ns;
	lock_give(&follower->lock);
	return 0;
}

/* Stores of a bucket. */

struct discovery {
	struct follower *follower;
	struct source *source;
	size_t found;
};

static bool is_followed(const struct follower *follower, const struct bucket *bucket,
			struct slice store)
{
	for (size_t i = 0; i < follower->followed_count; i++)
		if (follower->followed[i]->bucket == bucket &&
		    slice_is(store, follower->followed[i]->store))
			return true;
	return false;
}

static void follow(struct follower *follower, struct source *source, struct slice store)
{
	struct followed *followed = mem_new(struct followed);
	struct strbuf path = { 0 };
	struct store_options options = { .vfs = object_files_vfs(follower->files),
					 .clock = follower->clock,
					 .clock_context = follower->clock_context,
					 .read_only = true,
					 .no_background = true };

	strbuf_addf(&path, "%s/%.*s", source->url, SLICE_FMT(store));
	options.path = strbuf_text(&path);
	followed->disk = store_disk_new(&options);
	followed->bucket = source->bucket;
	snprintf(followed->store, sizeof(followed->store), "%.*s", SLICE_FMT(store));
	strbuf_free(&path);
	lock_take(&follower->lock);
	follower->followed[follower->followed_count++] = followed;
	lock_give(&follower->lock);
	log_info("store", "a store in a bucket is followed", "bucket=\"%s\" store=%s", source->url,
		 followed->store);
}

static int see_store(void *context, const struct bucket_entry *entry, struct err *err)
{
	struct discovery *discovery = context;
	struct follower *follower = discovery->follower;
	struct slice name = entry->key;

	(void)err;
	if (!name.len || name.data[name.len - 1] != '/')
		return 0;
	name.len--;
	if (!bucket_is_id(name))
		return 0;
	discovery->found++;
	if (!is_followed(follower, discovery->source->bucket, name) &&
	    follower->followed_count < STORES_MAX)
		follow(follower, discovery->source, name);
	return 0;
}

static int discover(struct follower *follower, struct source *source, struct err *err)
{
	struct discovery discovery = { follower, source, 0 };
	int rc;

	if (source->discovered_ns && clock_monotonic_ns() - source->discovered_ns < DISCOVER_NS)
		return 0;
	rc = source->bucket->list(source->bucket, "", NULL, true, see_store, &discovery, err);
	if (rc)
		return rc;
	if (!discovery.found)
		return err_set(err, ERR_NOT_FOUND, "no firn store in bucket \"%s\" yet",
			       source->url);
	source->discovered_ns = clock_monotonic_ns();
	return 0;
}

/* Refreshing. */

static int refresh_source(struct follower *follower, struct source *source, struct err *err)
{
	struct err later;
	int rc = discover(follower, source, err);

	for (size_t i = 0; i < follower->followed_count; i++)
		if (follower->followed[i]->bucket == source->bucket &&
		    look(follower, follower->followed[i], rc ? &later : err) && !rc)
			rc = -(int)err->code;
	return rc;
}

static void publish(struct follower *follower)
{
	struct store_bucket_stat stat;

	store_bucket_stat(&follower->base, &stat);
	metric_set(&store_follow_behind_seconds, stat.behind_ns / CLOCK_NS_PER_S);
	metric_set(&store_follow_looked_seconds,
		   stat.looked_at_ns ? (now_ns(follower) - stat.looked_at_ns) / CLOCK_NS_PER_S
				     : -1);
}

/* All of them, whatever fails; the first error. With the refresh lock. */
static int refresh_all(struct follower *follower, struct err *err)
{
	int result = 0;

	lock_assert_held(&follower->refresh_lock);
	lock_take(&follower->lock);
	follower->looks++;
	follower->refreshed_ns = clock_monotonic_ns();
	follower->refreshed_at_ns = now_ns(follower);
	lock_give(&follower->lock);
	for (size_t i = 0; i < follower->sources_count; i++) {
		struct err cause = { 0 };
		int rc = refresh_source(follower, &follower->sources[i], &cause);

		metric_add(&store_follow_refreshes, 1);
		metric_add(&store_follow_errors, rc != 0);
		lock_take(&follower->lock);
		snprintf(follower->sources[i].error, ERR_MESSAGE_BYTES, "%s",
			 rc ? cause.message : "");
		lock_give(&follower->lock);
		if (rc && !result && err)
			*err = cause;
		result = result ? result : rc;
	}
	return result;
}

static int refresh(struct follower *follower, struct err *err)
{
	int rc;

	lock_take(&follower->refresh_lock);
	rc = refresh_all(follower, err);
	lock_give(&follower->refresh_lock);
	publish(follower);
	return rc;
}

static uint64_t looks_begun(struct follower *follower)
{
	uint64_t looks;

	lock_take(&follower->lock);
	looks = follower->looks;
	lock_give(&follower->lock);
	return looks;
}

/* None began since `looks` had, or a moment ago. */
static bool may_look_again(struct follower *follower, uint64_t looks)
{
	int64_t at_ns = now_ns(follower);
	bool may;

	lock_take(&follower->lock);
	may = !follower->stopping && follower->looks == looks &&
	      llabs(at_ns - follower->refreshed_at_ns) > CLOCK_NS_PER_S;
	lock_give(&follower->lock);
	return may;
}

/* Waits for a look under way. All who wait for one share the next. */
static void look_again(struct follower *follower)
{
	uint64_t looks = looks_begun(follower);
	struct err cause = { 0 };
	int rc = 0;

	lock_take(&follower->refresh_lock);
	if (may_look_again(follower, looks))
		rc = refresh_all(follower, &cause);
	lock_give(&follower->refresh_lock);
	publish(follower);
	if (rc)
		log_warn("store", "objects are missing, and a bucket cannot be looked at",
			 "error=\"%s\"", cause.message);
}

static size_t copy_followed(struct follower *follower, struct followed ***ret)
{
	size_t count;

	lock_take(&follower->lock);
	count = follower->followed_count;
	*ret = mem_new_array(struct followed *, count + 1);
	memcpy(*ret, follower->followed, count * sizeof(**ret));
	lock_give(&follower->lock);
	return count;
}

static void age_caches(struct follower *follower)
{
	struct followed **followed;
	size_t count = copy_followed(follower, &followed);

	for (size_t i = 0; i < count; i++)
		part_cache_age(&followed[i]->disk->cache);
	free(followed);
}

static void *run(void *context)
{
	struct follower *follower = context;
	int64_t quiet_until_ns = 0, aged_ns = clock_monotonic_ns();

	pthread_setname_np(pthread_self(), "firn-follow");
	lock_take(&follower->lock);
	while (!follower->stopping) {
		struct err err = { 0 };
		int rc = 0;

		if (!lock_wait_until(&follower->wake, &follower->lock,
				     follower->refreshed_ns + follower->refresh_ns)) {
			lock_give(&follower->lock);
			rc = refresh(follower, &err);
			if (clock_monotonic_ns() - aged_ns > AGE_NS) {
				age_caches(follower);
				aged_ns = clock_monotonic_ns();
			}
			lock_take(&follower->lock);
		}
		if (rc && !follower->stopping && clock_monotonic_ns() >= quiet_until_ns) {
			quiet_until_ns = clock_monotonic_ns() + LOG_PAUSE_NS;
			log_error(
				"store",
				"a bucket cannot be followed; it is retried, logged once a minute",
				"error=\"%s\"", err.message);
		}
	}
	lock_give(&follower->lock);
	return NULL;
}

/* Reading. */

static void release_pins(struct follow_pins *pins)
{
	for (size_t i = 0; i < pins->count; i++)
		store_disk_snapshot_release(&pins->followed[i]->disk->base, &pins->snapshots[i]);
	free(pins->followed);
	free(pins->snapshots);
	free(pins);
}

static int take_pins(struct follower *follower, const struct store_query *query,
		     struct follow_pins **ret, struct err *err)
{
	struct follow_pins *pins = mem_new(struct follow_pins);
	size_t count = copy_followed(follower, &pins->followed);
	int rc = 0;

	pins->snapshots = mem_new_array(struct store_snapshot, count + 1);
	for (; !rc && pins->count < count; pins->count += !rc)
		rc = store_disk_snapshot(&pins->followed[pins->count]->disk->base, query,
					 &pins->snapshots[pins->count], err);
	if (rc)
		release_pins(pins);
	else
		*ret = pins;
	return rc;
}

static struct store_snapshot gather(struct follow_pins *pins)
{
	struct store_snapshot all = { .pins = pins, .version = pins->count ? 1 : 0 };

	for (size_t i = 0; i < pins->count; i++)
		all.count += pins->snapshots[i].count;
	all.segments = mem_new_array(struct segment, all.count + 1);
	all.count = 0;
	for (size_t i = 0; i < pins->count; i++) {
		const struct store_snapshot *one = &pins->snapshots[i];

		if (one->count)
			memcpy(all.segments + all.count, one->segments,
			       one->count * sizeof(struct segment));
		all.count += one->count;
		all.parts_unreadable += one->parts_unreadable;
		all.version = one->version && all.version ? hash_mix(all.version, one->version) : 0;
	}
	return all;
}

static int follow_snapshot(struct store *base, const struct store_query *query,
			   struct store_snapshot *ret, struct err *err)
{
	struct follower *follower = follower_of(base);
	uint64_t missing = object_files_missing(follower->files);
	struct follow_pins *pins;
	int rc = take_pins(follower, query, &pins, err);

	if (rc)
		return rc;
	*ret = gather(pins);
	if (!ret->parts_unreadable || object_files_missing(follower->files) == missing)
		return 0;
	/* The objects are gone: this manifest is an old one. */
	free(ret->segments);
	release_pins(pins);
	look_again(follower);
	rc = take_pins(follower, query, &pins, err);
	if (!rc)
		*ret = gather(pins);
	return rc;
}

/* What queries loaded meanwhile is in their copies of the segments. */
static void follow_snapshot_release(struct store *base, struct store_snapshot *snapshot)
{
	struct follow_pins *pins = snapshot->pins;
	size_t at = 0;

	(void)base;
	for (size_t i = 0; i < pins->count; i++) {
		struct store_snapshot *one = &pins->snapshots[i];

		if (one->count)
			memcpy(one->segments, snapshot->segments + at,
			       one->count * sizeof(struct segment));
		at += one->count;
	}
	assert(at == snapshot->count);
	release_pins(pins);
	free(snapshot->segments);
	*snapshot = (struct store_snapshot){ 0 };
}

static void add_stat(struct store_stat *sum, const struct store_stat *one)
{
	if (one->reports && (!sum->reports || one->oldest_ns < sum->oldest_ns))
		sum->oldest_ns = one->oldest_ns;
	if (one->reports && (!sum->reports || one->newest_ns > sum->newest_ns))
		sum->newest_ns = one->newest_ns;
	sum->rows += one->rows;
	sum->reports += one->reports;
	sum->series += one->series;
	sum->stacks += one->stacks;
	sum->parts += one->parts;
	sum->parts_quarantined += one->parts_quarantined;
	sum->bytes_total += one->bytes_total;
	sum->bytes_samples += one->bytes_samples;
	sum->bytes_stacks += one->bytes_stacks;
	sum->bytes_symbols += one->bytes_symbols;
	sum->bytes_rollups += one->bytes_rollups;
	sum->bytes_moments += one->bytes_moments;
}

static int follow_stat(struct store *base, struct store_stat *ret, struct err *err)
{
	struct followed **followed;
	size_t count = copy_followed(follower_of(base), &followed);
	struct store_stat sum = { 0 };
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		struct store_stat one;

		rc = store_disk_stat(&followed[i]->disk->base, &one, err);
		if (!rc)
			add_stat(&sum, &one);
	}
	free(followed);
	if (!rc)
		*ret = sum;
	return rc;
}

/* With the lock: of several stores, what holds for all of them. */
static void add_followed(struct store_bucket_stat *stat, const struct followed *followed,
			 int64_t *covered_ns)
{
	if (!followed->manifest)
		return;
	if (followed->covered_ns < *covered_ns)
		*covered_ns = followed->covered_ns;
	if (!stat->manifest || followed->looked_ns < stat->looked_at_ns)
		stat->looked_at_ns = followed->looked_ns;
	if (followed->at_ns > stat->saved_at_ns)
		stat->saved_at_ns = followed->at_ns;
	stat->manifest = followed->manifest;
	snprintf(stat->store, sizeof(stat->store), "%s", followed->store);
}

static void follow_bucket_stat(struct store *base, struct store_bucket_stat *ret)
{
	struct follower *follower = follower_of(base);
	int64_t covered_ns = INT64_MAX;

	*ret = (struct store_bucket_stat){ .on = true, .follows = true };
	lock_take(&follower->lock);
	for (size_t i = 0; i < follower->followed_count; i++)
		add_followed(ret, follower->followed[i], &covered_ns);
	for (size_t i = 0; i < follower->sources_count && !ret->error[0]; i++)
		memcpy(ret->error, follower->sources[i].error, sizeof(ret->error));
	if (follower->followed_count > 1)
		ret->store[0] = '\0';
	for (size_t i = 0; i < follower->followed_count; i++)
		ret->parts += follower->followed[i]->disk->cache.count;
	lock_give(&follower->lock);
	if (covered_ns != INT64_MAX && covered_ns < now_ns(follower))
		ret->behind_ns = now_ns(follower) - covered_ns;
}

static int follow_takes_appends(struct store *base, struct err *err)
{
	struct follower *follower = follower_of(base);
	int rc = 0;

	lock_take(&follower->lock);
	for (size_t i = 0; !rc && i < follower->sources_count; i++)
		if (!follower->sources[i].discovered_ns)
			rc = err_set(err, ERR_UNAVAILABLE, "bucket \"%s\" was not read yet: %s",
				     follower->sources[i].url, follower->sources[i].error);
	for (size_t i = 0; !rc && i < follower->followed_count; i++)
		if (!follower->followed[i]->manifest)
			rc = err_set(err, ERR_UNAVAILABLE, "store %s has no manifest yet",
				     follower->followed[i]->store);
	lock_give(&follower->lock);
	return rc;
}

static void follow_deletes(struct store *base, const struct slice *tenant,
			   struct store_deletes *ret)
{
	struct followed **followed;
	size_t count = copy_followed(follower_of(base), &followed), capacity = 0;

	*ret = (struct store_deletes){ 0 };
	for (size_t i = 0; i < count; i++) {
		struct store_deletes one;

		store_disk_deletes(&followed[i]->disk->base, tenant, &one);
		for (size_t k = 0; k < one.count; k++) {
			mem_grow(ret->items, ret->count, capacity);
			ret->items[ret->count++] = one.items[k]; /* with its texts */
		}
		free(one.items);
	}
	free(followed);
}

/* Writing is the business of others. */

static int refuse(struct err *err)
{
	return err_set(err, ERR_READ_ONLY,
		       "this server only reads what others keep in a bucket (--object-read): send "
		       "profiles and deletions to the one that writes it");
}

static int follow_append(struct store *base, const struct tables_view *batch,
			 struct append_result *ret, struct err *err)
{
	(void)base, (void)batch, (void)ret;
	return refuse(err);
}

static int follow_delete(struct store *base, const struct store_delete *order, uint64_t *ret_number,
			 struct err *err)
{
	(void)base, (void)order, (void)ret_number;
	return refuse(err);
}

static int follow_tick(struct store *base, struct err *err)
{
	return refresh(follower_of(base), err);
}

/* Opening and closing. */

static void cancel(struct follower *follower)
{
	lock_take(&follower->lock);
	follower->stopping = true;
	lock_signal(&follower->wake);
	lock_give(&follower->lock);
	for (size_t i = 0; i < follower->sources_count; i++)
		follower->sources[i].bucket->cancel(follower->sources[i].bucket);
}

/* Queries that wait for a bucket end at once. */
static void follow_end_by(struct store *base, int64_t at_ns)
{
	(void)at_ns;
	cancel(follower_of(base));
}

static void follow_close(struct store *base)
{
	struct follower *follower = follower_of(base);

	if (follower->runs) {
		cancel(follower);
		pthread_join(follower->thread, NULL);
	}
	for (size_t i = 0; i < follower->followed_count; i++) {
		store_disk_free(follower->followed[i]->disk);
		free(follower->followed[i]);
	}
	object_files_close(follower->files);
	for (size_t i = 0; i < follower->sources_count; i++)
		free(follower->sources[i].url);
	lock_free(&follower->refresh_lock);
	lock_free(&follower->lock);
	lock_condition_free(&follower->wake);
	free(follower);
}

static const struct store_engine follow_engine = {
	.append = follow_append,
	.takes_appends = follow_takes_appends,
	.snapshot = follow_snapshot,
	.snapshot_release = follow_snapshot_release,
	.stat = follow_stat,
	.bucket_stat = follow_bucket_stat,
	.delete_reports = follow_delete,
	.deletes = follow_deletes,
	.end_by = follow_end_by,
	.tick = follow_tick,
	.close = follow_close,
};

static struct follower *follower_new(const struct store_follow_options *options)
{
	struct follower *follower = mem_new(struct follower);

	assert(options->sources_count && options->sources_count <= STORE_FOLLOW_SOURCES_MAX);
	follower->base.engine = &follow_engine;
	follower->refresh_ns = options->refresh_ns ? options->refresh_ns : STORE_FOLLOW_REFRESH_NS;
	follower->clock = options->clock;
	follower->clock_context = options->clock_context;
	for (size_t i = 0; i < options->sources_count; i++)
		follower->sources[i] = (struct source){
			.bucket = options->sources[i].bucket,
			.url = mem_strndup(options->sources[i].url,
					   strlen(options->sources[i].url)),
		};
	follower->sources_count = options->sources_count;
	lock_init(&follower->refresh_lock, "store.refresh", STORE_COMPACT_RANK);
	lock_init(&follower->lock, "store.follow", STORE_FOLLOW_RANK);
	lock_condition_init(&follower->wake);
	return follower;
}

int store_follow_open(const struct store_follow_options *options, struct store **ret,
		      struct err *err)
{
	struct follower *follower;
	struct object_files *files;
	struct err cause = { 0 };
	int rc = object_files_open(options->vfs ? options->vfs : &vfs_posix, options->cache_dir,
				   options->cache_bytes, &files, err);

	if (rc)
		return rc;
	store_metrics_register();
	follower = follower_new(options);
	follower->files = files;
	if (refresh(follower, &cause))
		log_warn("store", "a bucket cannot be read yet; it will be retried", "error=\"%s\"",
			 cause.message);
	if (!options->no_background) {
		rc = pthread_create(&follower->thread, NULL, run, follower);
		follower->runs = !rc;
	}
	if (rc) {
		follow_close(&follower->base);
		return err_set_errno(err, rc, "start the thread that follows buckets");
	}
	*ret = &follower->base;
	return 0;
}
