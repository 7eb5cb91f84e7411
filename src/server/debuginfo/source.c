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
#include "server/debuginfo/debuginfo_int.h"
#include "server/debuginfo/debuginfod.h"
#include "server/debuginfo/local_source.h"
#include "server/debuginfo/shared.h"
#include "server/debuginfo/source_tar.h"

#define READ_BYTES ((size_t)256 * 1024)
#define FOLDERS_DROPPED_MAX 64

static int find_uploaded(struct debuginfo *debuginfo, struct slice build_id, struct slice path,
			 const struct slice *tenant, struct strbuf *out, struct strbuf *why,
			 struct err *err)
{
	const struct entry *entry;
	bool is_here;
	int fd, rc;

	lock_take(&debuginfo->lock);
	entry = debuginfo_find(debuginfo, build_id, DEBUGINFO_SOURCES);
	is_here = entry && (!tenant || debuginfo_record_has_owner(&entry->record, *tenant));
	debuginfo_touch(debuginfo, build_id, DEBUGINFO_SOURCES, debuginfo_now_ns(debuginfo));
	lock_give(&debuginfo->lock);
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
	rc = source_tar_find(fd, path, out, err);
	close(fd);
	if (!rc)
		strbuf_add_text(why, "the uploaded archive has no such file");
	return rc;
}

/* The archive that another server was sent, unless one is here. */
static void fetch_shared(struct debuginfo *debuginfo, struct slice build_id, int64_t until_ns)
{
	bool is_here;

	if (!debuginfo->shared)
		return;
	lock_take(&debuginfo->lock);
	is_here = debuginfo_find(debuginfo, build_id, DEBUGINFO_SOURCES);
	lock_give(&debuginfo->lock);
	if (!is_here)
		shared_want_sources(debuginfo->shared, build_id, until_ns);
}

static int open_beneath(int folder, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
}

static int read_file(int fd, bool public_only, struct strbuf *out, struct err *err)
{
	struct stat status;
	ssize_t got;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		return 0;
	if (public_only && !(status.st_mode & S_IROTH))
		return err_set(
			err, ERR_DENIED,
			"some users of this host may not read the file, and no login is required "
			"here (--web-config-file)");
	if ((uint64_t)status.st_size > SOURCE_FILE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the file has %lld bytes, more than %zu",
			       (long long)status.st_size, SOURCE_FILE_BYTES_MAX);
	while (out->len <= SOURCE_FILE_BYTES_MAX &&
	       (got = read(fd, strbuf_reserve(out, READ_BYTES), READ_BYTES)) > 0)
		out->len += (size_t)got;
	strbuf_reserve(out, 1)[0] = '\0'; /* as other text in a strbuf has it */
	return SOURCE_TAR_FOUND;
}

/* The path without as many of its first folders as it takes to be there. */
static int open_below(int folder, struct slice path)
{
	int fd = -1;

	path = source_tar_path(path);
	for (int i = 0; fd < 0 && path.len && i < FOLDERS_DROPPED_MAX; i++) {
		char text[SOURCE_PATH_BYTES_MAX + 1];
		struct slice rest;

		snprintf(text, sizeof(text), "%.*s", SLICE_FMT(path));
		fd = open_beneath(folder, text);
		slice_cut(path, '/', &rest);
		path = source_tar_path(rest);
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
			rc = read_file(fd, options->public_files_only, out, err);
			close(fd);
		}
		if (folder >= 0)
			close(folder);
	}
	if (!rc && options->source_paths_count)
		strbuf_add_text(why, "; it is in no folder of --source-path");
	return rc;
}

static int check_query(struct slice build_id, struct slice path,
		       char ret_id[ELF_BUILD_ID_TEXT_BYTES], struct err *err)
{
	if (build_id.len && !debuginfo_normalise_id(build_id, ret_id))
		return err_set(err, ERR_INVALID, "\"%.*s\" is not a build id",
			       (int)(build_id.len < 200 ? build_id.len : 200), build_id.data);
	if (!source_tar_path(path).len || path.len > SOURCE_PATH_BYTES_MAX || !slice_is_utf8(path))
		return err_set(err, ERR_INVALID, "no path of a source file");
	return 0;
}

int source_find(struct debuginfo *debuginfo, const struct source_wanted *wanted, struct strbuf *out,
		const char **ret_from, struct err *err)
{
	struct debuginfod *debuginfod = atomic_load(&debuginfo->debuginfod);
	bool is_own = !wanted->tenant || !wanted->tenant->len;
	char id[ELF_BUILD_ID_TEXT_BYTES] = "";
	struct strbuf why = { 0 };
	const char *from = "upload";
	int rc = check_query(wanted->build_id, wanted->path, id, err);

	if (rc)
		return rc;
	strbuf_clear(out);
	if (id[0])
		fetch_shared(debuginfo, slice_of(id), wanted->until_ns);
	if (id[0])
		rc = find_uploaded(debuginfo, slice_of(id), wanted->path, wanted->tenant, out, &why,
				   err);
	if (!rc && is_own) {
		from = "local";
		rc = find_local(debuginfo, wanted->path, out, &why, err);
	}
	if (!rc && is_own && wanted->local &&
	    local_source_read(wanted->local, wanted->path, wanted->until_ns, out, &why))
		rc = SOURCE_TAR_FOUND;
	if (!rc && id[0] && debuginfod) {
		from = "debuginfod";
		rc = debuginfod_source(debuginfod, slice_of(id), wanted->path, wanted->until_ns,
				       out, &why, err);
	}
	if (!rc)
		rc = err_set(err, ERR_NOT_FOUND, "source file \"%.*s\": %s",
			     SLICE_FMT(wanted->path),
			     why.len ? strbuf_text(&why) : "nothing is known of its build id");
	strbuf_free(&why);
	if (rc < 0)
		return rc;
	*ret_from = from;
	return 0;
}
