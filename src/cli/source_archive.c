/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/source_archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/whole_file.h"
#include "codec/archive/compress.h"
#include "codec/archive/tar.h"

#define FILE_BYTES_MAX ((size_t)16 << 20) /* what servers show */
#define ALL_BYTES_MAX ((uint64_t)4 << 30)
#define FRAME_BYTES ((size_t)4 << 20) /* packed at a time */
#define ZSTD_LEVEL 6
#define DEPTH_MAX 64
#define LOOK_BYTES 8192

struct packing {
	int fd;
	struct strbuf plain; /* not packed yet */
	struct strbuf file;
	size_t files;
	uint64_t bytes;
};

/* What has gathered becomes a frame; frames one after the other are a zstd file. */
static int flush(struct packing *packing, struct err *err)
{
	struct strbuf frame = { 0 };
	int rc;

	compress_zstd(strbuf_slice(&packing->plain), ZSTD_LEVEL, &frame);
	strbuf_clear(&packing->plain);
	rc = whole_file_write(packing->fd, strbuf_slice(&frame));
	if (rc)
		rc = err_set_errno(err, -rc, "write the archive");
	strbuf_free(&frame);
	return rc;
}

static bool is_text(struct slice bytes)
{
	return !memchr(bytes.data ? bytes.data : "x", '\0',
		       bytes.len < LOOK_BYTES ? bytes.len : LOOK_BYTES);
}

static int add_file(struct packing *packing, const char *path, struct err *err)
{
	static const char zeros[TAR_BLOCK_BYTES];
	struct slice content;

	strbuf_clear(&packing->file);
	if (whole_file_read(path, FILE_BYTES_MAX, &packing->file, NULL))
		return 0; /* too large, or not ours to read: the rest is of use without it */
	content = strbuf_slice(&packing->file);
	if (!is_text(content))
		return 0;
	packing->bytes += content.len;
	if (packing->bytes > ALL_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "more than %llu GB of source files",
			       (unsigned long long)(ALL_BYTES_MAX >> 30));
	packing->files++;
	tar_put_header(&packing->plain, slice_of(path + 1), content.len);
	strbuf_add_slice(&packing->plain, content);
	strbuf_add(&packing->plain, zeros, -content.len % TAR_BLOCK_BYTES);
	return packing->plain.len < FRAME_BYTES ? 0 : flush(packing, err);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* In the order of names, so that the same files give the same archive. */
static int add_folder(struct packing *packing, const char *path, int depth, struct err *err)
{
	struct dirent **entries;
	int count = depth < DEPTH_MAX ? scandir(path, &entries, is_visible, alphasort) : 0;
	int rc = 0;

	if (count < 0)
		return depth ? 0 : err_set_errno(err, errno, "read folder \"%s\"", path);
	for (int i = 0; i < count; i++) {
		struct strbuf child = { 0 };
		struct stat status;

		strbuf_addf(&child, "%s/%s", path, entries[i]->d_name);
		free(entries[i]);
		if (!rc && child.len <= TAR_NAME_BYTES_MAX &&
		    !lstat(strbuf_text(&child), &status)) {
			if (S_ISDIR(status.st_mode))
				rc = add_folder(packing, strbuf_text(&child), depth + 1, err);
			else if (S_ISREG(status.st_mode))
				rc = add_file(packing, strbuf_text(&child), err);
		}
		strbuf_free(&child);
	}
	if (depth < DEPTH_MAX)
		free(entries);
	return rc;
}

static int open_temporary(struct err *err)
{
	const char *folder = getenv("TMPDIR");
	struct strbuf path = { 0 };
	int fd;

	strbuf_addf(&path, "%s/firn-sources-XXXXXX", folder && *folder ? folder : "/tmp");
	fd = mkostemp(path.data, O_CLOEXEC);
	if (fd < 0)
		fd = err_set_errno(err, errno, "make temporary file \"%s\"", path.data);
	else
		unlink(path.data);
	strbuf_free(&path);
	return fd;
}

static int pack(struct packing *packing, const char *const *paths, size_t count, struct err *err)
{
	static const char zeros[2 * TAR_BLOCK_BYTES];
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		char *path = realpath(paths[i], NULL);

		if (!path)
			return err_set_errno(err, errno, "open folder \"%s\"", paths[i]);
		rc = add_folder(packing, path, 0, err);
		free(path);
	}
	if (!rc && !packing->files)
		rc = err_set(err, ERR_NOT_FOUND, "no source files below \"%s\"", paths[0]);
	strbuf_add(&packing->plain, zeros, sizeof(zeros));
	return rc ? rc : flush(packing, err);
}

int source_archive_open(const char *const *paths, size_t count, size_t *ret_files, struct err *err)
{
	struct packing packing = { .files = 0 };
	struct stat status;
	int rc;

	if (count == 1 && !stat(paths[0], &status) && S_ISREG(status.st_mode)) {
		packing.fd = open(paths[0], O_RDONLY | O_CLOEXEC);
		if (packing.fd < 0)
			return err_set_errno(err, errno, "open \"%s\"", paths[0]);
		return packing.fd;
	}
	packing.fd = open_temporary(err);
	if (packing.fd < 0)
		return packing.fd;
	rc = pack(&packing, paths, count, err);
	strbuf_free(&packing.plain);
	strbuf_free(&packing.file);
	if (rc) {
		close(packing.fd);
		return rc;
	}
	*ret_files = packing.files;
	return packing.fd;
}
