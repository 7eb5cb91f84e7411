/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/procs/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define DELETED " (deleted)"
#define PROC_PATH_BYTES 96

static int64_t changed_ns(const struct stat *stat)
{
	return stat->st_mtim.tv_sec * CLOCK_NS_PER_S + stat->st_mtim.tv_nsec;
}

/*
 * Inodes are those of the file that has the pages; stat shows another one where a file system lies
 * on top (overlayfs), which passes the time of change on. Device numbers say less: btrfs shows one
 * per subvolume.
 */
static bool is_same_file(const struct stat *stat, const struct file_key *key)
{
	return S_ISREG(stat->st_mode) &&
	       (stat->st_ino == key->inode || changed_ns(stat) == key->changed_ns);
}

static void path_of_range(char *text, uint32_t pid, uint64_t start, uint64_t end)
{
	snprintf(text, PROC_PATH_BYTES, "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, pid,
		 start, end);
}

static void read_path(const char *link, struct strbuf *ret)
{
	struct slice deleted = SLICE_LITERAL(DELETED);
	char path[PATH_MAX];
	ssize_t len = readlink(link, path, sizeof(path));
	struct slice text = slice_from(path, len > 0 ? (size_t)len : 0);

	if (text.len > deleted.len &&
	    slice_equal(slice_tail(text, text.len - deleted.len), deleted))
		text.len -= deleted.len;
	strbuf_clear(ret);
	strbuf_add_slice(ret, text);
	strbuf_add_byte(ret, '\0');
	ret->len--;
}

/* Looks before it opens: a mapped device must not be opened. Sets errno. */
static int open_range(uint32_t pid, const struct opener_place *place, const struct file_key *key,
		      struct strbuf *ret_path)
{
	char link[PROC_PATH_BYTES];
	struct stat stat_before, stat_after;
	int fd;

	path_of_range(link, pid, place->start, place->end);
	if (stat(link, &stat_before))
		return -1;
	if (!is_same_file(&stat_before, key)) {
		errno = ESTALE;
		return -1;
	}
	fd = open(link, OPEN_FLAGS);
	if (fd < 0)
		return -1;
	if (fstat(fd, &stat_after) || !is_same_file(&stat_after, key)) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	read_path(link, ret_path);
	return fd;
}

/* A path as the process sees it, opened as it would; O_PATH first, as above. */
static int open_path(uint32_t pid, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char root_path[32];
	int root, fd;

	snprintf(root_path, sizeof(root_path), "/proc/%" PRIu32 "/root", pid);
	root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	close(root);
	return fd;
}

/* What the range's line in the process's maps says; false when there is none. */
static bool find_range(uint32_t pid, uint64_t start, struct maps_range *ret)
{
	struct maps_file maps = { 0 };
	bool found = false;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	maps_file_read(&maps, fd, NULL);
	close(fd);
	for (size_t i = 0; i < maps.count && !found; i++) {
		found = maps.ranges[i].start == start && maps.ranges[i].path;
		if (found) {
			*ret = maps.ranges[i];
			maps.ranges[i].path = NULL;
		}
	}
	maps_file_free(&maps);
	return found;
}

static int open_by_maps(uint32_t pid, const struct opener_place *place, const struct file_key *key,
			struct strbuf *ret_path)
{
	struct maps_range range;
	struct stat stat;
	int found, fd = -1;

	if (!find_range(pid, place->start, &range))
		return -1;
	found = open_path(pid, range.path, O_PATH | O_CLOEXEC);
	if (found >= 0 && !fstat(found, &stat) && stat.st_ino == range.inode &&
	    is_same_file(&stat, key))
		fd = open_path(pid, range.path, OPEN_FLAGS);
	if (found >= 0)
		close(found);
	if (fd >= 0 && (fstat(fd, &stat) || stat.st_ino != range.inode)) {
		close(fd);
		fd = -1;
	}
	strbuf_clear(ret_path);
	strbuf_add(ret_path, range.path, strlen(range.path) + 1);
	ret_path->len--;
	free(range.path);
	return fd;
}

int opener_open(const struct opener_place *place, const struct file_key *key,
		struct strbuf *ret_path)
{
	for (size_t i = 0; i < place->pids_count; i++) {
		int fd = open_range(place->pids[i], place, key, ret_path);

		if (fd < 0 && (errno == EPERM || errno == EACCES))
			fd = open_by_maps(place->pids[i], place, key, ret_path);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

struct file_key opener_key(const struct opener_place *place, const struct maps_range *range)
{
	struct file_key key = { .inode = range->inode, .device = range->device };
	char link[PROC_PATH_BYTES];
	struct stat stat_of;

	for (size_t i = 0; i < place->pids_count; i++) {
		int fd;

		path_of_range(link, place->pids[i], place->start, place->end);
		if (!stat(link, &stat_of) && S_ISREG(stat_of.st_mode)) {
			key.changed_ns = changed_ns(&stat_of);
			break;
		}
		fd = open_path(place->pids[i], range->path, O_PATH | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &stat_of) && stat_of.st_ino == range->inode)
			key.changed_ns = changed_ns(&stat_of);
		if (fd >= 0)
			close(fd);
		if (key.changed_ns)
			break;
	}
	return key;
}
