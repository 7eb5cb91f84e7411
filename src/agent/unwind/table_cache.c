/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/table_cache.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/unwind/table_file.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"

#define SUFFIX ".table"
#define DRAFT_PREFIX ".draft-"
#define DRAFT_STALE_NS (600 * CLOCK_NS_PER_S) /* no build takes that long */
#define TOUCH_NS (3600 * CLOCK_NS_PER_S)      /* an age that is precise enough */
#define FILES_MAX 65536			      /* looked at in one listing */

struct table_cache {
	int folder_fd;
	uint64_t max_bytes;
	uint64_t bytes;
};

struct cached_file {
	char *name;
	int64_t used_ns; /* wall clock */
	uint64_t bytes;
};

struct listing {
	struct cached_file *files;
	size_t count, capacity;
	uint64_t bytes;
};

static int make_folders(const char *path, struct err *err)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (!len || len >= sizeof(part))
		return err_set(err, ERR_INVALID, "open cache folder \"%s\": no usable path", path);
	for (size_t i = 1; i <= len; i++) {
		if (i < len && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, i < len ? 0755 : 0700) && errno != EEXIST)
			return err_set_errno(err, errno, "make cache folder \"%s\"", part);
	}
	return 0;
}

static int open_folder(const char *path, int *ret_fd, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat stat;

	if (fd < 0)
		return err_set_errno(err, errno, "open cache folder \"%s\"", path);
	if (fstat(fd, &stat) || stat.st_uid != geteuid() || stat.st_mode & (S_IWGRP | S_IWOTH)) {
		close(fd);
		return err_set(err, ERR_DENIED,
			       "open cache folder \"%s\": it has to be ours and writable by "
			       "nobody else",
			       path);
	}
	*ret_fd = fd;
	return 0;
}

static bool has_suffix(const char *name)
{
	size_t len = strlen(name);

	return len > strlen(SUFFIX) && !strcmp(name + len - strlen(SUFFIX), SUFFIX);
}

static bool is_ours(const struct stat *stat)
{
	return S_ISREG(stat->st_mode) && stat->st_uid == geteuid();
}

static int64_t modified_ns(const struct stat *stat)
{
	return stat->st_mtim.tv_sec * CLOCK_NS_PER_S + stat->st_mtim.tv_nsec;
}

/* Adds a file to the listing, or removes it when it is a draft whose maker has died. */
static void list_file(struct table_cache *cache, struct listing *listing, const char *name,
		      int64_t now_ns)
{
	bool is_draft = !strncmp(name, DRAFT_PREFIX, strlen(DRAFT_PREFIX));
	struct stat stat;

	assert(listing->count <= listing->capacity);
	if (!is_draft && (name[0] == '.' || !has_suffix(name)))
		return;
	if (fstatat(cache->folder_fd, name, &stat, AT_SYMLINK_NOFOLLOW) || !is_ours(&stat))
		return;
	if (is_draft && now_ns - modified_ns(&stat) > DRAFT_STALE_NS) {
		unlinkat(cache->folder_fd, name, 0);
	} else if (!is_draft) {
		mem_grow(listing->files, listing->count, listing->capacity);
		listing->files[listing->count++] = (struct cached_file){
			.name = mem_strndup(name, strlen(name)),
			.used_ns = modified_ns(&stat),
			.bytes = (uint64_t)stat.st_size,
		};
		listing->bytes += (uint64_t)stat.st_size;
	}
}

static int list(struct table_cache *cache, struct listing *listing, struct err *err)
{
	int64_t now_ns = clock_real_ns();
	/* Another open file: a duplicate would share the place in the folder. */
	int fd = openat(cache->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!folder) {
		int code = err_set_errno(err, errno, "list the cache folder");

		if (fd >= 0)
			close(fd);
		return code;
	}
	while (listing->count < FILES_MAX && (entry = readdir(folder)))
		list_file(cache, listing, entry->d_name, now_ns);
	closedir(folder);
	return 0;
}

static void listing_free(struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->files[i].name);
	free(listing->files);
}

static int by_use(const void *a, const void *b)
{
	const struct cached_file *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

/* Counts what is there, and removes the oldest when that is too much: a bit more than needed. */
static int make_room(struct table_cache *cache, struct err *err)
{
	struct listing listing = { 0 };
	uint64_t keep_bytes;
	int code = list(cache, &listing, err);

	assert(cache->folder_fd >= 0);
	keep_bytes = listing.bytes > cache->max_bytes ? cache->max_bytes - cache->max_bytes / 8
						      : cache->max_bytes;
	if (listing.bytes > keep_bytes)
		qsort(listing.files, listing.count, sizeof(*listing.files), by_use);
	for (size_t i = 0; i < listing.count && listing.bytes > keep_bytes; i++) {
		const struct cached_file *file = &listing.files[i];

		if (!unlinkat(cache->folder_fd, file->name, 0) || errno == ENOENT)
			listing.bytes -= file->bytes;
	}
	if (!code)
		cache->bytes = listing.bytes;
	listing_free(&listing);
	return code;
}

int table_cache_open(const char *path, uint64_t max_bytes, struct table_cache **ret,
		     struct err *err)
{
	struct table_cache *cache = mem_new(struct table_cache);
	int code;

	cache->folder_fd = -1;
	cache->max_bytes = max_bytes ? max_bytes : TABLE_CACHE_DEFAULT_BYTES;
	code = make_folders(path, err);
	if (!code)
		code = open_folder(path, &cache->folder_fd, err);
	if (!code)
		code = make_room(cache, err);
	if (code) {
		table_cache_close(cache);
		return code;
	}
	*ret = cache;
	return 0;
}

void table_cache_close(struct table_cache *cache)
{
	if (!cache)
		return;
	if (cache->folder_fd >= 0)
		close(cache->folder_fd);
	free(cache);
}

static uint64_t origin_hash(const struct elf_info *info, uid_t owner)
{
	uint64_t whole[] = { info->file_bytes, info->machine, owner };
	uint64_t hash = hash_stable(whole, sizeof(whole), 0);

	for (size_t i = 0; i < info->segments_count; i++) {
		const struct elf_segment *segment = &info->segments[i];
		uint64_t parts[] = { segment->offset, segment->address, segment->file_bytes,
				     segment->memory_bytes, segment->executable };

		hash = hash_stable(parts, sizeof(parts), hash);
	}
	return hash;
}

bool table_cache_name(const struct elf_info *info, uid_t owner, char ret[TABLE_CACHE_NAME_BYTES])
{
	size_t len = strlen(info->build_id);

	if (!len || strspn(info->build_id, "0123456789abcdef") != len)
		return false;
	snprintf(ret, TABLE_CACHE_NAME_BYTES, "%s-%016" PRIx64 ".v%u" SUFFIX, info->build_id,
		 origin_hash(info, owner), TABLE_FILE_VERSION);
	return true;
}

static void touch(int fd, const struct stat *stat)
{
	if (clock_real_ns() - modified_ns(stat) > TOUCH_NS)
		futimens(fd,
			 NULL); /* on a read-only disk the age stays: nothing is removed there */
}

int table_cache_find(struct table_cache *cache, const char *name, int *ret_fd, struct err *err)
{
	int fd = openat(cache->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat stat;

	assert(cache->folder_fd >= 0);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "open cached table \"%s\": there is none", name);
	if (fd < 0)
		return err_set_errno(err, errno, "open cached table \"%s\"", name);
	if (fstat(fd, &stat) || !is_ours(&stat)) {
		close(fd);
		return err_set(err, ERR_DENIED, "open cached table \"%s\": not a file of ours",
			       name);
	}
	touch(fd, &stat);
	*ret_fd = fd;
	return 0;
}

int table_cache_create(struct table_cache *cache, struct table_cache_draft *ret, struct err *err)
{
	struct table_cache_draft draft;
	uint64_t number; /* not the pid: it may be another agent's in its own namespace */

	assert(cache->folder_fd >= 0);
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return err_set_errno(err, errno, "name a cache file");
	snprintf(draft.name, sizeof(draft.name), DRAFT_PREFIX "%016" PRIx64, number);
	draft.fd = openat(cache->folder_fd, draft.name,
			  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (draft.fd < 0)
		return err_set_errno(err, errno, "make cache file \"%s\"", draft.name);
	*ret = draft;
	return 0;
}

int table_cache_publish(struct table_cache *cache, struct table_cache_draft *draft,
			const char *name, struct err *err)
{
	struct stat stat;
	int code;

	assert(draft->fd >= 0 && name[0]);
	if (fstat(draft->fd, &stat) ||
	    renameat(cache->folder_fd, draft->name, cache->folder_fd, name)) {
		code = err_set_errno(err, errno, "name cached table \"%s\"", name);
		table_cache_discard(cache, draft);
		return code;
	}
	cache->bytes += (uint64_t)stat.st_size;
	return cache->bytes > cache->max_bytes ? make_room(cache, err) : 0;
}

void table_cache_discard(struct table_cache *cache, struct table_cache_draft *draft)
{
	unlinkat(cache->folder_fd, draft->name, 0);
}

void table_cache_remove(struct table_cache *cache, const char *name)
{
	struct stat stat;

	assert(cache->folder_fd >= 0);
	if (fstatat(cache->folder_fd, name, &stat, AT_SYMLINK_NOFOLLOW) ||
	    unlinkat(cache->folder_fd, name, 0))
		return;
	cache->bytes -=
		cache->bytes < (uint64_t)stat.st_size ? cache->bytes : (uint64_t)stat.st_size;
}

uint64_t table_cache_bytes(const struct table_cache *cache)
{
	return cache->bytes;
}
