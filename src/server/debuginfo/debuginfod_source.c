/* SPDX-License-Identifier: Apache-2.0 */
/* Source files from debuginfod servers, and those of them that are kept. */
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
#define SOURCE_PREFIX "source-"
#define NONE_SUFFIX ".none"
#define MISSES_KEPT (MISSES_MAX / 4 * 3) /* so that there is room again */

static void source_name(struct slice build_id, struct slice path, struct strbuf *ret)
{
	uint8_t digest[SHA256_DIGEST_BYTES];
	struct sha256 sha;

	sha256_init(&sha);
	sha256_add(&sha, build_id.data, build_id.len);
	sha256_add(&sha, " ", 1);
	sha256_add(&sha, path.data, path.len);
	sha256_finish(&sha, digest);
	strbuf_add_text(ret, SOURCE_PREFIX);
	for (size_t i = 0; i < sizeof(digest); i++)
		strbuf_addf(ret, "%02x", digest[i]);
}

static bool read_kept(const struct debuginfod *debuginfod, const char *name, struct strbuf *out)
{
	struct strbuf path = { 0 };
	struct stat status;
	ssize_t got = -1;
	int fd;

	debuginfod_path(debuginfod, name, &path);
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
static void keep(const struct debuginfod *debuginfod, const char *name, struct slice text)
{
	struct strbuf place = { 0 }, path = { 0 };
	int fd, code = 0;

	if (disk_check_room(debuginfod->store->path, text.len, NULL))
		return;
	debuginfod_path(debuginfod, name, &place);
	debuginfod_path(debuginfod, "XXXXXX", &path);
	fd = mkostemp(path.data, O_CLOEXEC);
	if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len ||
	    rename(strbuf_text(&path), strbuf_text(&place)))
		code = errno;
	if (code && fd >= 0)
		unlink(strbuf_text(&path));
	if (code)
		log_warn("debuginfod", "a source file is not kept", "cause=\"%s\"",
			 strerrordesc_np(code));
	if (fd >= 0)
		close(fd);
	strbuf_free(&place);
	strbuf_free(&path);
}

static int take_source(void *context, struct slice bytes, struct err *err)
{
	(void)err;
	strbuf_add_slice(context, bytes);
	return 0;
}

/* Without "." and "..": a proxy before the server would take them for another part of its site. */
static void resolve_dots(struct slice path, struct strbuf *ret)
{
	while (path.len) {
		struct slice name = slice_cut(path, '/', &path);

		if (slice_is(name, "..")) {
			while (ret->len && ret->data[ret->len - 1] != '/')
				ret->len--;
			ret->len -= ret->len > 0;
		} else if (name.len && !slice_is(name, ".")) {
			strbuf_add_byte(ret, '/');
			strbuf_add_slice(ret, name);
		}
	}
}

/* 1, 0 when it does not have it, or a negative code. */
static int fetch_source(struct debuginfod *debuginfod, const struct strbuf *server,
			struct slice build_id, struct slice path, int64_t until_ns,
			struct strbuf *out, struct err *err)
{
	struct strbuf url = { 0 }, resolved = { 0 };
	struct fetch fetch = { .tls = debuginfod->tls,
			       .deadline_at_ns = until_ns,
			       .body_bytes_max = SOURCE_FILE_BYTES_MAX,
			       .take = take_source,
			       .context = out,
			       .cancelled = &debuginfod->stopping };
	int status = 0, rc;

	strbuf_addf(&url, "%s/buildid/%.*s/source", strbuf_text(server), SLICE_FMT(build_id));
	resolve_dots(path, &resolved);
	fetch_add_path(&url, strbuf_slice(&resolved));
	strbuf_free(&resolved);
	fetch.url = strbuf_text(&url);
	strbuf_clear(out);
	rc = fetch_get(&fetch, &status, err);
	strbuf_free(&url);
	metric_add(rc		   ? &debuginfod_failed
		   : status == 200 ? &debuginfod_fetched
				   : &debuginfod_not_there,
		   1);
	if (rc)
		return rc;
	if (status == 200)
		return FOUND;
	return status == 404 ? 0
			     : err_set(err, ERR_UNAVAILABLE, "\"%s\" answers HTTP %d",
				       strbuf_text(server), status);
}

int debuginfod_source(struct debuginfod *debuginfod, struct slice build_id, struct slice path,
		      int64_t until_ns, struct strbuf *out, struct strbuf *why, struct err *err)
{
	struct strbuf name = { 0 }, none = { 0 };
	bool has_failed = false, is_miss;
	int rc = 0;

	(void)err;
	if (path.data[0] != '/') {
		strbuf_add_text(why, "; debuginfod needs a path that begins with /");
		return 0;
	}
	source_name(build_id, path, &name);
	strbuf_addf(&none, "%s" NONE_SUFFIX, strbuf_text(&name));
	is_miss = debuginfod_read_miss(debuginfod, strbuf_text(&none));
	if (read_kept(debuginfod, strbuf_text(&name), out))
		rc = FOUND;
	for (size_t i = 0; !rc && !is_miss && i < debuginfod->urls_count; i++) {
		struct err one;

		rc = fetch_source(debuginfod, &debuginfod->urls[i], build_id, path,
				  debuginfod_share(debuginfod, i, until_ns), out, &one);
		if (rc == FOUND) {
			keep(debuginfod, strbuf_text(&name), strbuf_slice(out));
		} else if (rc) {
			has_failed = true;
			strbuf_addf(why, "; debuginfod: %s", one.message);
			rc = 0;
		}
	}
	if (!rc && !has_failed) {
		strbuf_add_text(why, "; no debuginfod server has it");
		if (!is_miss)
			debuginfod_write_miss(debuginfod, strbuf_text(&none));
	}
	strbuf_free(&name);
	strbuf_free(&none);
	return rc;
}

/* Files of the folder, of one kind. */
struct kept_list {
	struct kept {
		char name[NAME_MAX + 1];
		uint64_t bytes;
		int64_t at_ns;
	} * items;
	size_t count, capacity;
	uint64_t bytes;
};

static int older_first(const void *a, const void *b)
{
	const struct kept *left = a, *right = b;

	return left->at_ns < right->at_ns ? -1 : left->at_ns > right->at_ns;
}

static void add_kept(struct kept_list *list, const char *name, const struct stat *status)
{
	struct kept *kept;

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
		if (!strncmp(name, SOURCE_PREFIX, strlen(SOURCE_PREFIX)) &&
		    !strstr(name, NONE_SUFFIX))
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
