/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/disk/object_files.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/persist/disk/persist_locks.h"
#include "server/persist/disk/persist_metrics.h"

#define RUN_EXTENTS_MAX 64u   /* in one request */
#define AHEAD_EXTENTS_MAX 16u /* likewise of what nobody waits for yet: several come at once */
#define FETCHERS 16u
#define JOBS_MAX 1024u
#define AHEAD_PART 4 /* of the cache that is fetched ahead at once */
#define SLOT_NONE UINT32_MAX
#define SLOT_LOADING (UINT32_MAX - 1)
#define LOG_PAUSE_NS (60 * CLOCK_NS_PER_S)

/* One object. Freed when it has neither a name nor readers. */
struct entry {
	struct object_files *files;
	struct bucket *bucket;
	char *path, *key;
	uint64_t bytes;
	uint32_t extents_count;
	uint32_t *extents; /* the slot of each, SLOT_NONE or SLOT_LOADING */
	uint32_t readers;
	bool is_named;
};

/* A place in the local file. */
struct slot {
	struct entry *entry; /* NULL: empty */
	uint32_t extent;
	uint32_t pins;	/* threads that read or write its bytes now */
	bool is_in_use; /* since the hand came by */
};

/* Extents to be fetched ahead of who reads them: marked as loading. Their entry has a reader. */
struct job {
	struct entry *entry;
	uint32_t first, count;
};

struct object_files {
	struct vfs vfs;
	struct vfs_file *cache;
	struct lock lock;
	struct lock_condition loaded;
	struct lock_condition changed; /* jobs, or stopping */
	struct job jobs[JOBS_MAX];     /* a ring */
	uint32_t jobs_first, jobs_count;
	bool stopping;
	pthread_t fetchers[FETCHERS];
	uint32_t fetchers_count, fetchers_idle;
	struct entry **entries; /* those with a name */
	size_t count, capacity;
	struct slot *slots;
	uint32_t slots_count, slots_filled, hand;
	uint64_t missing;
	int64_t quiet_until_ns; /* failures are logged once a minute */
};

struct open_file {
	struct vfs_file head;
	struct entry *entry;
};

static struct object_files *files_of(const struct vfs *vfs)
{
	return (struct object_files *)(uintptr_t)vfs; /* its first member, made writable by us */
}

/* Entries. */

static void free_entry(struct entry *entry)
{
	struct object_files *files = entry->files;

	lock_assert_held(&files->lock);
	assert(!entry->readers && !entry->is_named);
	for (uint32_t i = 0; i < entry->extents_count; i++) {
		uint32_t slot = entry->extents[i];

		assert(slot != SLOT_LOADING);
		if (slot == SLOT_NONE)
			continue;
		assert(files->slots[slot].entry == entry && !files->slots[slot].pins);
		files->slots[slot] = (struct slot){ 0 };
		files->slots_filled--;
	}
	free(entry->extents);
	free(entry->path);
	free(entry->key);
	free(entry);
}

static size_t find_entry(const struct object_files *files, const char *path)
{
	size_t i = 0;

	while (i < files->count && strcmp(files->entries[i]->path, path) != 0)
		i++;
	return i;
}

void object_files_add(struct object_files *files, struct bucket *bucket, const char *path,
		      const char *key, uint64_t bytes)
{
	struct entry *entry = mem_new(struct entry);

	assert(bytes && bytes / OBJECT_EXTENT_BYTES < SLOT_LOADING);
	*entry = (struct entry){
		.files = files,
		.bucket = bucket,
		.path = mem_strndup(path, strlen(path)),
		.key = mem_strndup(key, strlen(key)),
		.bytes = bytes,
		.extents_count = (uint32_t)((bytes - 1) / OBJECT_EXTENT_BYTES + 1),
		.is_named = true,
	};
	entry->extents = mem_new_array(uint32_t, entry->extents_count);
	for (uint32_t i = 0; i < entry->extents_count; i++)
		entry->extents[i] = SLOT_NONE;
	lock_take(&files->lock);
	assert(find_entry(files, path) == files->count);
	mem_grow(files->entries, files->count, files->capacity);
	files->entries[files->count++] = entry;
	lock_give(&files->lock);
}

static int unlink_file(const struct vfs *vfs, const char *path)
{
	struct object_files *files = files_of(vfs);
	struct entry *entry;
	size_t at;

	lock_take(&files->lock);
	at = find_entry(files, path);
	if (at == files->count) {
		lock_give(&files->lock);
		return -ENOENT;
	}
	entry = files->entries[at];
	files->entries[at] = files->entries[--files->count];
	entry->is_named = false;
	if (!entry->readers)
		free_entry(entry);
	lock_give(&files->lock);
	return 0;
}

static int open_object(const struct vfs *vfs, const char *path, unsigned int flags,
		       struct vfs_file **ret)
{
	struct object_files *files = files_of(vfs);
	struct open_file *file;
	size_t at;

	if (flags != VFS_READ)
		return -EROFS;
	lock_take(&files->lock);
	at = find_entry(files, path);
	if (at == files->count) {
		lock_give(&files->lock);
		return -ENOENT;
	}
	file = mem_new(struct open_file);
	file->entry = files->entries[at];
	file->entry->readers++;
	file->head = (struct vfs_file){ vfs, file->entry->path };
	lock_give(&files->lock);
	*ret = &file->head;
	return 0;
}

static void leave_entry(struct entry *entry)
{
	lock_assert_held(&entry->files->lock);
	assert(entry->readers);
	if (!--entry->readers && !entry->is_named)
		free_entry(entry);
}

static int close_object(struct vfs_file *head)
{
	struct open_file *file = (struct open_file *)head;
	struct entry *entry = file->entry;
	struct object_files *files = entry->files;

	lock_take(&files->lock);
	leave_entry(entry);
	lock_give(&files->lock);
	free(file);
	return 0;
}

static int size_of(struct vfs_file *head, uint64_t *ret)
{
	*ret = ((struct open_file *)head)->entry->bytes;
	return 0;
}

/* Slots. */

static uint64_t extent_bytes(const struct entry *entry, uint32_t extent)
{
	uint64_t from = extent * OBJECT_EXTENT_BYTES;

	return entry->bytes - from < OBJECT_EXTENT_BYTES ? entry->bytes - from
							 : OBJECT_EXTENT_BYTES;
}

/* An empty one, or one whose extent goes: the hand passes over those that were read since. */
static uint32_t take_slot(struct object_files *files)
{
	lock_assert_held(&files->lock);
	for (uint32_t tries = 0; tries < 2 * files->slots_count; tries++) {
		uint32_t at = files->hand;
		struct slot *slot = &files->slots[at];

		files->hand = at + 1 < files->slots_count ? at + 1 : 0;
		if (slot->pins)
			continue;
		if (slot->entry && slot->is_in_use) {
			slot->is_in_use = false;
			continue;
		}
		if (slot->entry) {
			assert(slot->entry->extents[slot->extent] == at);
			slot->entry->extents[slot->extent] = SLOT_NONE;
			files->slots_filled--;
		}
		*slot = (struct slot){ .pins = 1 };
		return at;
	}
	return SLOT_NONE; /* all are being read */
}

static int read_local(struct object_files *files, uint32_t slot, uint64_t from, char *to,
		      size_t len)
{
	uint64_t offset = slot * OBJECT_EXTENT_BYTES + from;

	while (len) {
		ssize_t done = files->cache->vfs->pread(files->cache, to, len, offset);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return -EIO;
		to += done;
		offset += (uint64_t)done;
		len -= (size_t)done;
	}
	return 0;
}

/* The extent is marked as loading. Where it cannot be kept, it is fetched again the next time. */
static void keep_extent(struct entry *entry, uint32_t extent, const char *bytes)
{
	struct object_files *files = entry->files;
	uint32_t at;
	int rc = -ENOSPC;

	lock_take(&files->lock);
	at = take_slot(files);
	lock_give(&files->lock);
	if (at != SLOT_NONE)
		rc = vfs_write_all(files->cache, bytes, extent_bytes(entry, extent),
				   at * OBJECT_EXTENT_BYTES, NULL);
	lock_take(&files->lock);
	assert(entry->extents[extent] == SLOT_LOADING);
	entry->extents[extent] = rc ? SLOT_NONE : at;
	if (at != SLOT_NONE) {
		files->slots[at] = (struct slot){ 0 };
		if (!rc)
			files->slots[at] = (struct slot){ entry, extent, 0, true };
	}
	files->slots_filled += !rc;
	metric_set(&store_object_cache_bytes, (int64_t)(files->slots_filled * OBJECT_EXTENT_BYTES));
	lock_give(&files->lock);
}

/* Fetching. */

static int note_failure(struct entry *entry, int rc, const struct err *err)
{
	struct object_files *files = entry->files;
	bool is_told;

	metric_add(&store_object_read_errors, 1);
	lock_take(&files->lock);
	files->missing += rc == -ERR_NOT_FOUND;
	is_told = clock_monotonic_ns() < files->quiet_until_ns;
	if (!is_told)
		files->quiet_until_ns = clock_monotonic_ns() + LOG_PAUSE_NS;
	lock_give(&files->lock);
	if (!is_told)
		log_warn("store", "an object cannot be read; logged once a minute",
			 "file=\"%s\" error=\"%s\"", entry->path, err->message);
	return rc == -ERR_NOT_FOUND ? -ENOENT : -EIO;
}

/* The extents are marked as loading; each is kept, or missing again, when this returns. */
static ssize_t fetch(struct entry *entry, uint32_t first, uint32_t count, char *to, size_t len,
		     uint64_t offset)
{
	struct object_files *files = entry->files;
	uint64_t from = first * OBJECT_EXTENT_BYTES, left = entry->bytes - from;
	size_t bytes = count * OBJECT_EXTENT_BYTES < left ? count * OBJECT_EXTENT_BYTES : left;
	struct strbuf got = { 0 };
	struct err err = { 0 };
	int rc = entry->bucket->get_range(entry->bucket, entry->key, from, bytes, &got, &err);

	assert(rc || got.len == bytes);
	metric_add(&store_object_reads, 1);
	metric_add(&store_object_read_bytes, (int64_t)got.len);
	if (!rc && len) {
		if (len > bytes - (offset - from))
			len = bytes - (offset - from);
		memcpy(to, got.data + (offset - from), len);
	}
	for (uint32_t i = 0; !rc && i < count; i++)
		keep_extent(entry, first + i, got.data + i * OBJECT_EXTENT_BYTES);
	lock_take(&files->lock);
	for (uint32_t i = 0; rc && i < count; i++)
		entry->extents[first + i] = SLOT_NONE;
	lock_broadcast(&files->loaded);
	lock_give(&files->lock);
	strbuf_free(&got);
	return rc ? note_failure(entry, rc, &err) : (ssize_t)len;
}

/* Marks those from `first` on that [.., end) needs and nobody has or loads. With the lock. */
static uint32_t mark_loading(struct entry *entry, uint32_t first, uint64_t end, uint32_t count_max)
{
	uint32_t count = 0;

	lock_assert_held(&entry->files->lock);
	while (count < count_max && first + count < entry->extents_count &&
	       (first + count) * OBJECT_EXTENT_BYTES < end &&
	       entry->extents[first + count] == SLOT_NONE)
		entry->extents[first + count++] = SLOT_LOADING;
	return count;
}

static void leave_slot(struct entry *entry, uint32_t extent, bool is_readable)
{
	struct object_files *files = entry->files;
	struct slot *slot = &files->slots[entry->extents[extent]];

	lock_take(&files->lock);
	assert(slot->entry == entry && slot->pins);
	if (!--slot->pins && !is_readable) {
		*slot = (struct slot){ 0 };
		files->slots_filled--;
		entry->extents[extent] = SLOT_NONE;
	}
	lock_give(&files->lock);
}

/* What one extent has of it, or one request brings: callers ask for the rest. */
static ssize_t pread_object(struct vfs_file *head, void *data, size_t len, uint64_t offset)
{
	struct entry *entry = ((struct open_file *)head)->entry;
	struct object_files *files = entry->files;
	uint32_t extent = (uint32_t)(offset / OBJECT_EXTENT_BYTES), slot, count = 0;
	uint64_t within = offset % OBJECT_EXTENT_BYTES;
	size_t here;
	int rc;

	if (offset >= entry->bytes || !len)
		return 0;
	lock_take(&files->lock);
	while (entry->extents[extent] == SLOT_LOADING)
		lock_wait(&files->loaded, &files->lock);
	slot = entry->extents[extent];
	if (slot == SLOT_NONE) {
		count = mark_loading(entry, extent, offset + len, RUN_EXTENTS_MAX);
	} else {
		files->slots[slot].pins++;
		files->slots[slot].is_in_use = true;
	}
	lock_give(&files->lock);
	if (count)
		return fetch(entry, extent, count, data, len, offset);
	here = extent_bytes(entry, extent) - within;
	here = len < here ? len : here;
	rc = read_local(files, slot, within, data, here);
	metric_add(&store_object_cache_hits, !rc);
	leave_slot(entry, extent, !rc);
	return rc ? -EINTR : (ssize_t)here; /* the caller comes again, and it is fetched */
}

/* Fetching ahead. */

static void *run_fetcher(void *context)
{
	struct object_files *files = context;

	pthread_setname_np(pthread_self(), "firn-objects");
	lock_take(&files->lock);
	while (!files->stopping) {
		struct job job;

		if (!files->jobs_count) {
			lock_wait(&files->changed, &files->lock);
			continue;
		}
		job = files->jobs[files->jobs_first];
		files->jobs_first = (files->jobs_first + 1) % JOBS_MAX;
		files->jobs_count--;
		files->fetchers_idle--;
		lock_give(&files->lock);
		(void)fetch(job.entry, job.first, job.count, NULL, 0,
			    job.first * OBJECT_EXTENT_BYTES); /* who reads it tries again */
		lock_take(&files->lock);
		leave_entry(job.entry);
		files->fetchers_idle++;
	}
	lock_give(&files->lock);
	return NULL;
}

/* As many as there are jobs that no idle one takes. False: there is none. */
static bool start_fetchers(struct object_files *files)
{
	lock_assert_held(&files->lock);
	while (files->fetchers_count < FETCHERS && files->fetchers_idle <= files->jobs_count &&
	       !pthread_create(&files->fetchers[files->fetchers_count], NULL, run_fetcher, files)) {
		files->fetchers_count++;
		files->fetchers_idle++;
	}
	return files->fetchers_count > 0;
}

static void stop_fetchers(struct object_files *files)
{
	lock_take(&files->lock);
	files->stopping = true;
	lock_broadcast(&files->changed);
	lock_give(&files->lock);
	for (uint32_t i = 0; i < files->fetchers_count; i++)
		pthread_join(files->fetchers[i], NULL);
	lock_take(&files->lock);
	for (; files->jobs_count; files->jobs_count--) {
		struct job *job = &files->jobs[files->jobs_first];

		files->jobs_first = (files->jobs_first + 1) % JOBS_MAX;
		for (uint32_t i = 0; i < job->count; i++)
			job->entry->extents[job->first + i] = SLOT_NONE;
		leave_entry(job->entry);
	}
	lock_give(&files->lock);
}

static void will_read(struct vfs_file *head, uint64_t offset, uint64_t len)
{
	struct entry *entry = ((struct open_file *)head)->entry;
	struct object_files *files = entry->files;
	uint64_t end = len < entry->bytes - offset ? offset + len : entry->bytes;
	uint32_t extent = (uint32_t)(offset / OBJECT_EXTENT_BYTES);

	assert(offset < entry->bytes);
	lock_take(&files->lock);
	while (extent * OBJECT_EXTENT_BYTES < end && files->jobs_count < JOBS_MAX &&
	       files->jobs_count * AHEAD_EXTENTS_MAX < files->slots_count / AHEAD_PART) {
		uint32_t count;

		if (entry->extents[extent] == SLOT_NONE && !start_fetchers(files))
			break;
		count = mark_loading(entry, extent, end, AHEAD_EXTENTS_MAX);
		if (count) {
			files->jobs[(files->jobs_first + files->jobs_count++) % JOBS_MAX] =
				(struct job){ entry, extent, count };
			entry->readers++;
		}
		extent += count ? count : 1;
	}
	lock_broadcast(&files->changed);
	lock_give(&files->lock);
}

/* The rest of the vfs. */

static ssize_t refuse_write(struct vfs_file *file, const void *data, size_t len, uint64_t offset)
{
	(void)file, (void)data, (void)len, (void)offset;
	return -EROFS;
}

static int refuse(struct vfs_file *file)
{
	(void)file;
	return -EROFS;
}

static int pass(struct vfs_file *file)
{
	(void)file;
	return 0;
}

static int refuse_allocate(struct vfs_file *file, uint64_t bytes)
{
	(void)file, (void)bytes;
	return -EROFS;
}

static int refuse_two(const struct vfs *vfs, const char *from, const char *to)
{
	(void)vfs, (void)from, (void)to;
	return -EROFS;
}

static int refuse_path(const struct vfs *vfs, const char *path)
{
	(void)vfs, (void)path;
	return -EROFS;
}

static int list_files(const struct vfs *vfs, const char *path, vfs_name_f *name, void *context)
{
	struct object_files *files = files_of(vfs);
	size_t len = strlen(path);

	lock_take(&files->lock);
	for (size_t i = 0; i < files->count; i++) {
		const char *file = files->entries[i]->path;

		if (!strncmp(file, path, len) && file[len] == '/' && !strchr(file + len + 1, '/'))
			name(context, file + len + 1);
	}
	lock_give(&files->lock);
	return 0;
}

static int refuse_space(const struct vfs *vfs, const char *path, uint64_t *ret_free,
			uint64_t *ret_total)
{
	(void)vfs, (void)path, (void)ret_free, (void)ret_total;
	return -EROFS;
}

static const struct vfs object_vfs = {
	.open = open_object,
	.close = close_object,
	.pread = pread_object,
	.pwrite = refuse_write,
	.fdatasync = refuse,
	.allocate = refuse_allocate,
	.size = size_of,
	.will_read = will_read,
	.drop_cache = pass,
	.lock = refuse,
	.rename = refuse_two,
	.link = refuse_two,
	.unlink = unlink_file,
	.mkdir = refuse_path,
	.sync_dir = refuse_path,
	.list_dir = list_files,
	.space = refuse_space,
};

int object_files_open(const struct vfs *local, const char *dir, uint64_t cache_bytes,
		      struct object_files **ret, struct err *err)
{
	struct object_files *files = mem_new(struct object_files);
	struct strbuf path = { 0 };
	int rc;

	if (cache_bytes < OBJECT_CACHE_BYTES_MIN)
		cache_bytes = OBJECT_CACHE_BYTES_MIN;
	files->vfs = object_vfs;
	files->slots_count = (uint32_t)(cache_bytes / OBJECT_EXTENT_BYTES);
	strbuf_addf(&path, "%s/extents.tmp", dir);
	rc = vfs_open(local, strbuf_text(&path), VFS_WRITE | VFS_CREATE | VFS_TRUNCATE,
		      &files->cache, err);
	if (!rc && local->unlink(local, strbuf_text(&path))) {
		vfs_close(files->cache);
		rc = err_set(err, ERR_IO, "make \"%s\"", strbuf_text(&path));
	}
	strbuf_free(&path);
	if (rc) {
		free(files);
		return rc;
	}
	files->slots = mem_new_array(struct slot, files->slots_count);
	lock_init(&files->lock, "object_files", OBJECT_FILES_RANK);
	lock_condition_init(&files->loaded);
	lock_condition_init(&files->changed);
	*ret = files;
	return 0;
}

void object_files_close(struct object_files *files)
{
	if (!files)
		return;
	stop_fetchers(files);
	lock_take(&files->lock);
	for (size_t i = 0; i < files->count; i++) {
		files->entries[i]->is_named = false;
		free_entry(files->entries[i]);
	}
	lock_give(&files->lock);
	vfs_close(files->cache);
	lock_free(&files->lock);
	lock_condition_free(&files->loaded);
	lock_condition_free(&files->changed);
	free(files->entries);
	free(files->slots);
	free(files);
}

const struct vfs *object_files_vfs(struct object_files *files)
{
	return &files->vfs;
}

uint64_t object_files_missing(struct object_files *files)
{
	uint64_t missing;

	lock_take(&files->lock);
	missing = files->missing;
	lock_give(&files->lock);
	return missing;
}
