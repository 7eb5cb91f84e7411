/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/push/push_folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define QUIET_NS (10 * CLOCK_NS_PER_S) /* of a file of which nobody knows whether it is written */

struct entry {
	char *name;
	ino_t inode;
	off_t size;
	int64_t changed_ns;
	int64_t seen_at_ns; /* when it was first seen as it is */
	bool seen_before, done;
};

struct push_folder {
	char *path;
	int fd;
	struct entry *entries; /* by inode */
	size_t count, capacity;
	size_t given; /* by push_folder_next; count: none */
	struct strbuf given_path;
};

int push_folder_open(const char *path, struct push_folder **ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct push_folder *folder;

	if (fd < 0)
		return err_set_errno(err, errno, "watch \"%s\"", path);
	signal(SIGIO, SIG_IGN); /* somebody writes a file that we ask about */
	folder = mem_new(struct push_folder);
	folder->path = mem_strndup(path, strlen(path));
	folder->fd = fd;
	*ret = folder;
	return 0;
}

static void free_entries(struct entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(entries[i].name);
	free(entries);
}

void push_folder_free(struct push_folder *folder)
{
	if (!folder)
		return;
	free_entries(folder->entries, folder->count);
	strbuf_free(&folder->given_path);
	close(folder->fd);
	free(folder->path);
	free(folder);
}

static bool is_wanted(const char *name)
{
	static const char *const endings[] = { ".tmp", ".part", ".partial", ".swp", "~" };
	struct slice text = slice_of(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (slice_ends_with(text, slice_of(endings[i])))
			return false;
	return name[0] != '.';
}

static void add(struct push_folder *folder, const char *name, const struct stat *file)
{
	mem_grow(folder->entries, folder->count, folder->capacity);
	folder->entries[folder->count++] = (struct entry){
		.name = mem_strndup(name, strlen(name)),
		.inode = file->st_ino,
		.size = file->st_size,
		.changed_ns = file->st_mtim.tv_sec * CLOCK_NS_PER_S + file->st_mtim.tv_nsec,
	};
}

static int list(struct push_folder *folder, struct err *err)
{
	int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat file;

	if (!entries) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return err_set_errno(err, error, "watch \"%s\"", folder->path);
	}
	while ((entry = readdir(entries)) && folder->count < PUSH_FOLDER_FILES_MAX)
		if (is_wanted(entry->d_name) &&
		    !fstatat(folder->fd, entry->d_name, &file, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(file.st_mode) && file.st_size)
			add(folder, entry->d_name, &file);
	closedir(entries);
	if (entry)
		return err_set(err, ERR_LIMIT, "watch \"%s\": more than %d files; remove old ones",
			       folder->path, PUSH_FOLDER_FILES_MAX);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return left->inode < right->inode ? -1 : left->inode > right->inode;
}

/* What was known of a file that is as it was. */
static void remember(struct entry *entry, const struct entry *before, size_t before_count)
{
	const struct entry *known =
		before_count ? bsearch(entry, before, before_count, sizeof(*before), compare)
			     : NULL;

	entry->seen_before =
		known && known->size == entry->size && known->changed_ns == entry->changed_ns;
	if (!entry->seen_before) {
		entry->seen_at_ns = clock_monotonic_ns();
		return;
	}
	entry->seen_at_ns = known->seen_at_ns;
	entry->done = known->done;
}

/* Names of one file: it is one. */
static void unite_links(struct push_folder *folder)
{
	size_t kept = 0;

	for (size_t i = 0; i < folder->count; i++) {
		if (kept && folder->entries[kept - 1].inode == folder->entries[i].inode)
			free(folder->entries[i].name);
		else
			folder->entries[kept++] = folder->entries[i];
	}
	folder->count = kept;
}

int push_folder_look(struct push_folder *folder, struct err *err)
{
	struct entry *before = folder->entries;
	size_t before_count = folder->count;
	int rc;

	folder->entries = NULL;
	folder->count = folder->capacity = 0;
	rc = list(folder, err);
	if (rc) {
		free_entries(folder->entries, folder->count);
		folder->entries = before;
		folder->count = folder->capacity = before_count;
		folder->given = folder->count;
		return rc;
	}
	if (folder->count)
		qsort(folder->entries, folder->count, sizeof(*folder->entries), compare);
	unite_links(folder);
	for (size_t i = 0; i < folder->count; i++)
		remember(&folder->entries[i], before, before_count);
	free_entries(before, before_count);
	folder->given = folder->count;
	return 0;
}

/* A reader gets a lease only while nobody writes. */
static bool is_complete(const struct push_folder *folder, const struct entry *entry)
{
	bool quiet = clock_monotonic_ns() - entry->seen_at_ns > QUIET_NS;
	int fd, error = 0;

	fd = openat(folder->fd, entry->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return quiet; /* reading it says why not */
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		error = errno;
	else
		fcntl(fd, F_SETLEASE, F_UNLCK);
	close(fd);
	return !error || (quiet && error != EAGAIN);
}

const char *push_folder_next(struct push_folder *folder)
{
	const struct entry *oldest = NULL;

	for (size_t i = 0; i < folder->count; i++) {
		const struct entry *entry = &folder->entries[i];

		if (!entry->done && entry->seen_before &&
		    (!oldest || entry->changed_ns < oldest->changed_ns) &&
		    is_complete(folder, entry))
			oldest = entry;
	}
	if (!oldest)
		return NULL;
	folder->given = (size_t)(oldest - folder->entries);
	strbuf_clear(&folder->given_path);
	strbuf_addf(&folder->given_path, "%s/%s", folder->path, oldest->name);
	return strbuf_text(&folder->given_path);
}

void push_folder_done(struct push_folder *folder)
{
	assert(folder->given < folder->count);
	folder->entries[folder->given].done = true;
}
