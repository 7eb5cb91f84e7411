/* SPDX-License-Identifier: Apache-2.0 */
#include "server/debuginfo/source.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/tar.h"
#include "codec/unpack.h"
#include "server/debuginfo/debuginfo_int.h"
#include "server/debuginfo/debuginfod.h"

#define READ_BYTES ((size_t)256 * 1024)
#define FOUND 1 /* ends the reading of an archive */
#define FOLDERS_DROPPED_MAX 64

/* One reading of an archive. */
struct reading {
	struct tar_reader tar;
	struct slice wanted; /* without its leading "/"; empty: all is only looked at */
	struct slice chosen; /* read the entry of this name, exactly */
	struct strbuf best;  /* name of the best entry so far */
	size_t best_len;     /* components' bytes that agree */
	struct strbuf *out;
};

static struct slice strip(struct slice path)
{
	while (path.len && (path.data[0] == '/' || slice_starts_with(path, SLICE_LITERAL("./"))))
		path = slice_tail(path, path.data[0] == '/' ? 1 : 2);
	return path;
}

/* Whether `whole` ends in `end`, at the beginning of a name. */
static bool ends_in(struct slice whole, struct slice end)
{
	if (!end.len || whole.len <= end.len || whole.data[whole.len - end.len - 1] != '/')
		return false;
	return slice_equal(slice_tail(whole, whole.len - end.len), end);
}

static void compare(struct reading *reading, struct slice name)
{
	size_t len = 0;

	if (ends_in(reading->wanted, name))
		len = name.len;
	else if (ends_in(name, reading->wanted))
		len = reading->wanted.len;
	if (len <= reading->best_len)
		return;
	reading->best_len = len;
	strbuf_clear(&reading->best);
	strbuf_add_slice(&reading->best, name);
}

static int see_entry(void *context, const struct tar_entry *entry, bool *ret_wanted,
		     struct err *err)
{
	struct reading *reading = context;
	struct slice name = strip(entry->name);

	if (!entry->is_file)
		return 0;
	if (reading->chosen.len)
		*ret_wanted = slice_equal(name, reading->chosen);
	else if (reading->wanted.len)
		*ret_wanted = slice_equal(name, reading->wanted);
	if (*ret_wanted && entry->bytes > SOURCE_FILE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the file has %llu bytes, more than %zu",
			       (unsigned long long)entry->bytes, SOURCE_FILE_BYTES_MAX);
	if (!*ret_wanted && reading->wanted.len && !reading->chosen.len)
		compare(reading, name);
	return 0;
}

static int see_content(void *context, struct slice bytes, uint64_t left, struct err *err)
{
	struct reading *reading = context;

	(void)err;
	strbuf_add_slice(reading->out, bytes);
	return left ? 0 : FOUND;
}

static int see_plain(void *context, struct slice plain, struct err *err)
{
	struct reading *reading = context;

	return tar_add(&reading->tar, plain, err);
}

static int read_archive(int fd, struct reading *reading, struct err *err)
{
	const struct tar_sink sink = { see_entry, see_content, reading };
	struct unpack *unpack = unpack_new(SOURCE_ARCHIVE_BYTES_MAX, see_plain, reading);
	char *bytes = mem_calloc(READ_BYTES, 1);
	ssize_t got = 1;
	off_t at = 0;
	int rc = 0;

	tar_begin(&reading->tar, &sink);
	while (!rc && got > 0) {
		got = pread(fd, bytes, READ_BYTES, at);
		if (got < 0)
			rc = err_set_errno(err, errno, "read the archive");
		else if (got > 0)
			rc = unpack_add(unpack, slice_from(bytes, (size_t)got), err);
		at += got;
	}
	if (!rc)
		rc = unpack_end(unpack, err);
	if (!rc)
		rc = tar_end(&reading->tar, err);
	tar_free(&reading->tar);
	unpack_free(unpack);
	free(bytes);
	return rc;
}

int source_check(int fd, struct err *err)
{
	struct reading reading = { .wanted = { 0 } };

	return read_archive(fd, &reading, err);
}

/* FOUND, 0 when the archive has no such file, or a negative code. */
static int find_in_archive(int fd, struct slice path, struct strbuf *out, struct err *err)
{
	struct reading reading = { .wanted = path, .out = out };
	int rc = read_archive(fd, &reading, err);

	if (!rc && reading.best_len) {
		reading.chosen = strbuf_slice(&reading.best);
		rc = read_archive(fd, &reading, err);
	}
	strbuf_free(&reading.best);
	return rc;
}

static int find_uploaded(struct debuginfo *debuginfo, struct slice build_id, struct slice path,
			 struct strbuf *out, struct strbuf *why, struct err *err)
{
	bool is_here;
	int fd, rc;

	pthread_mutex_lock(&debuginfo->lock);
	is_here = debuginfo_find(debuginfo, build_id, DEBUGINFO_SOURCES);
	debuginfo_touch(debuginfo, build_id, DEBUGINFO_SOURCES, debuginfo_now_ns(debuginfo));
	pthread_mutex_unlock(&debuginfo->lock);
	if (!is_here) {
		strbuf_add_text(why, "no archive of sources was uploaded for this build id (firn "
				     "debuginfo upload --source DIR FILE)");
		return 0;
	}
	fd = open(disk_file_path(debuginfo->path, build_id, DEBUGINFO_SOURCES).text,
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		strbuf_add_text(why, "the uploaded archive has just been removed");
		return 0;
	}
	rc = find_in_archive(fd, strip(path), out, err);
	close(fd);
	if (!rc)
		strbuf_add_text(why, "the uploaded archive has no such file");
	return rc;
}

static int open_beneath(int folder, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
}

static int read_file(int fd, struct strbuf *out, struct err *err)
{
	struct stat status;
	ssize_t got;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		return 0;
	if ((uint64_t)status.st_size > SOURCE_FILE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the file has %lld bytes, more than %zu",
			       (long long)status.st_size, SOURCE_FILE_BYTES_MAX);
	while (out->len <= SOURCE_FILE_BYTES_MAX &&
	       (got = read(fd, strbuf_reserve(out, READ_BYTES), READ_BYTES)) > 0)
		out->len += (size_t)got;
	strbuf_reserve(out, 1)[0] = '\0'; /* as other text in a strbuf has it */
	return FOUND;
}

/* The path without as many of its first folders as it takes to be there. */
static int open_below(int folder, struct slice path)
{
	int fd = -1;

	path = strip(path);
	for (int i = 0; fd < 0 && path.len && i < FOLDERS_DROPPED_MAX; i++) {
		char text[SOURCE_PATH_BYTES_MAX + 1];
		struct slice rest;

		snprintf(text, sizeof(text), "%.*s", SLICE_FMT(path));
		fd = open_beneath(folder, text);
		slice_cut(path, '/', &rest);
		path = strip(rest);
		if (slice_find_byte(path, '/') == SIZE_MAX)
			break; /* a name alone could be anybody's */
	}
	return fd;
}

static int find_local(const struct debuginfo *debuginfo, struct slice path, struct strbuf *out,
		      struct strbuf *why, struct err *err)
{
	const struct debuginfo_options *options = &debuginfo->options;
	int rc = 0;

	for (size_t i = 0; !rc && i < options->source_paths_count; i++) {
		struct slice root = slice_of(options->source_paths[i]);
		int folder = open(options->source_paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		int fd = -1;

		while (root.len > 1 && root.data[root.len - 1] == '/')
			root.len--;
		if (folder >= 0 && slice_starts_with(path, root) && path.len > root.len &&
		    path.data[root.len] == '/')
			fd = open_below(folder, slice_tail(path, root.len));
		if (folder >= 0 && fd < 0)
			fd = open_below(folder, path);
		if (fd >= 0) {
			rc = read_file(fd, out, err);
			close(fd);
		}
		if (folder >= 0)
			close(folder);
	}
	if (!rc && options->source_paths_count)
		strbuf_add_text(why, "; it is in no folder of --source-path");
	return rc;
}

static int check_question(struct slice build_id, struct slice path,
			  char ret_id[ELF_BUILD_ID_TEXT_BYTES], struct err *err)
{
	if (build_id.len && !debuginfo_normalise_id(build_id, ret_id))
		return err_set(err, ERR_INVALID, "\"%.*s\" is no build id",
			       (int)(build_id.len < 200 ? build_id.len : 200), build_id.data);
	if (!strip(path).len || path.len > SOURCE_PATH_BYTES_MAX || !slice_is_utf8(path))
		return err_set(err, ERR_INVALID, "no path of a source file");
	return 0;
}

int source_find(struct debuginfo *debuginfo, struct slice build_id, struct slice path,
		int64_t until_ns, struct strbuf *out, const char **ret_from, struct err *err)
{
	char id[ELF_BUILD_ID_TEXT_BYTES] = "";
	struct strbuf why = { 0 };
	const char *from = "upload";
	int rc = check_question(build_id, path, id, err);

	if (rc)
		return rc;
	strbuf_clear(out);
	if (id[0])
		rc = find_uploaded(debuginfo, slice_of(id), path, out, &why, err);
	if (!rc) {
		from = "local";
		rc = find_local(debuginfo, path, out, &why, err);
	}
	if (!rc && id[0] && debuginfo->debuginfod) {
		from = "debuginfod";
		rc = debuginfod_source(debuginfo->debuginfod, slice_of(id), path, until_ns, out,
				       &why, err);
	}
	if (!rc)
		rc = err_set(err, ERR_NOT_FOUND, "source file \"%.*s\": %s", SLICE_FMT(path),
			     why.len ? strbuf_text(&why) : "nothing is known of its build id");
	strbuf_free(&why);
	if (rc < 0)
		return rc;
	*ret_from = from;
	return 0;
}
