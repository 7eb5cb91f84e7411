/* SPDX-License-Identifier: Apache-2.0 */
/* What debuginfod keeps on disk: what no server has, and source files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/debuginfo/debuginfod_int.h"
#include "server/debuginfo/source_tar.h"

#define SOURCES_BYTES_MAX ((uint64_t)256 << 20)
#define MISSES_KEPT (MISSES_MAX / 4 * 3) /* so that there is room again */

static void path_of(const struct debuginfod *debuginfod, const char *name, struct strbuf *ret)
{
	strbuf_clear(ret);
	strbuf_addf(ret, "%s/%s", strbuf_text(&debuginfod->folder), name);
}

int64_t debuginfod_read_miss(const struct debuginfod *debuginfod, const char *name)
{
	int64_t now_ns = debuginfo_now_ns(debuginfod->store), at_ns = 0;
	struct strbuf path = { 0 }, text = { 0 };
	struct stat status;
	ssize_t len;
	int fd;

	path_of(debuginfod, name, &path);
	fd = open(strbuf_text(&path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !fstat(fd, &status)) {
		size_t room = debuginfod->servers.len + 1;

		len = read(fd, strbuf_reserve(&text, room), room);
		at_ns = status.st_mtim.tv_sec * CLOCK_NS_PER_S;
		if (len < 0 || !slice_equal(slice_from(text.data, (size_t)len),
					    strbuf_slice(&debuginfod->servers)))
			at_ns = 0; /* asked of others */
	}
	if (fd >= 0)
		close(fd);
	strbuf_free(&path);
	strbuf_free(&text);
	return now_ns - at_ns < NOT_THERE_NS && at_ns <= now_ns ? at_ns : 0;
}

void debuginfod_write_miss(struct debuginfod *debuginfod, const char *name)
{
	int64_t now_ns = debuginfo_now_ns(debuginfod->store);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = now_ns / CLOCK_NS_PER_S } };
	struct strbuf path = { 0 };
	int fd;

	if (atomic_load(&debuginfod->misses) >= MISSES_MAX)
		return;
	atomic_fetch_add(&debuginfod->misses, 1);
	path_of(debuginfod, name, &path);
	fd = open(strbuf_text(&path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (fd < 0 || write(fd, debuginfod->servers.data, debuginfod->servers.len) < 0 ||
	    futimens(fd, times))
		log_warn("debuginfod", "cannot store that a file was not found",
			 "file=\"%s\" cause=\"%s\"", strbuf_text(&path), strerrordesc_np(errno));
	if (fd >= 0)
		close(fd);
	strbuf_free(&path);
}

bool debuginfod_read_source(const struct debuginfod *debuginfod, const char *name,
			    struct strbuf *out)
{
	struct strbuf path = { 0 };
	struct stat status;
	ssize_t got = -1;
	int fd;

	path_of(debuginfod, name, &path);
	fd = open(strbuf_text(&path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && !fstat(fd, &status) && status.st_size <= (off_t)SOURCE_FILE_BYTES_MAX) {
		size_t bytes = (size_t)status.st_size;

		got = read(fd, strbuf_reserve(out, bytes), bytes);
		if (got == (ssize_t)bytes)
			out->len += bytes;
		else
			got = -1;
		strbuf_reserve(out, 1)[0] = '\0';
		futimens(fd, NULL); /* the last use */
	}
	if (fd >= 0)
		close(fd);
	strbuf_free(&path);
	return got >= 0;
}

/* Renamed into its place, so that a half is never read; losing it costs a request. */
void debuginfod_keep_source(const struct debuginfod *debuginfod, const char *name,
			    struct slice text)
{
	struct strbuf place = { 0 }, path = { 0 };
	int fd, code = 0;

	if (disk_check_room(debuginfod->store->path, text.len, NULL))
		return;
	path_of(debuginfod, name, &place);
	path_of(debuginfod, "XXXXXX", &path);
	fd = mkostemp(path.data, O_CLOEXEC);
	if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len ||
	    rename(strbuf_text(&path), strbuf_text(&place)))
		code = errno;
	if (code && fd >= 0)
		unlink(strbuf_text(&path));
	if (code)
		log_warn("debuginfod", "cannot store a source file", "cause=\"%s\"",
			 strerrordesc_np(code));
	if (fd >= 0)
		close(fd);
	strbuf_free(&place);
	strbuf_free(&path);
}

/* Files of the folder, of one kind. */
struct kept_list {
	struct stored_file {
		char name[NAME_MAX + 1];
		uint64_t bytes;
		int64_t at_ns;
	} * items;
	size_t count, capacity;
	uint64_t bytes;
};

static int older_first(const void *a, const void *b)
{
	const struct stored_file *left = a, *right = b;

	return left->at_ns < right->at_ns ? -1 : left->at_ns > right->at_ns;
}

static void add_kept(struct kept_list *list, const char *name, const struct stat *status)
{
	struct stored_file *kept;

	mem_grow(list->items, list->count, list->capacity);
	kept = &list->items[list->count++];
	snprintf(kept->name, sizeof(kept->name), "%s", name);
	kept->bytes = (uint64_t)status->st_size;
	kept->at_ns = status->st_mtim.tv_sec * CLOCK_NS_PER_S;
	list->bytes += kept->bytes;
}

/* Removes the oldest until no more than this is left. Frees the list. */
static size_t remove_oldest(int folder, struct kept_list *list, size_t count_max,
			    uint64_t bytes_max)
{
	size_t left = list->count;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), older_first);
	for (size_t i = 0; left > count_max || (left && list->bytes > bytes_max); i++, left--) {
		unlinkat(folder, list->items[i].name, 0);
		list->bytes -= list->items[i].bytes;
	}
	free(list->items);
	return left;
}

void debuginfod_collect(struct debuginfod *debuginfod)
{
	int64_t now_ns = debuginfo_now_ns(debuginfod->store);
	DIR *dir = opendir(strbuf_text(&debuginfod->folder));
	struct kept_list sources = { .count = 0 }, misses = { .count = 0 };
	struct dirent *entry;
	struct stat status;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (name[0] == '.' || fstatat(dirfd(dir), name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!strncmp(name, DEBUGINFOD_SOURCE_PREFIX, strlen(DEBUGINFOD_SOURCE_PREFIX)) &&
		    !strstr(name, DEBUGINFOD_NONE_SUFFIX))
			add_kept(&sources, name, &status);
		else if (now_ns - status.st_mtim.tv_sec * CLOCK_NS_PER_S > NOT_THERE_NS)
			unlinkat(dirfd(dir), name, 0);
		else
			add_kept(&misses, name, &status);
	}
	if (!dir)
		return;
	remove_oldest(dirfd(dir), &sources, SIZE_MAX, SOURCES_BYTES_MAX);
	atomic_store(&debuginfod->misses,
		     remove_oldest(dirfd(dir), &misses, MISSES_KEPT, UINT64_MAX));
	closedir(dir);
}
