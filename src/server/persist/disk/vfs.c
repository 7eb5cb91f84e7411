/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/disk/vfs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#define PATH_BYTES_MAX 4096

bool vfs_is_fault(int rc)
{
	return rc && rc != -ERR_NO_SPACE && rc != -ERR_BUSY && rc != -ERR_NO_MEMORY;
}

int vfs_open(const struct vfs *vfs, const char *path, unsigned int flags, struct vfs_file **ret,
	     struct err *err)
{
	int rc = vfs->open(vfs, path, flags, ret);

	if (rc == -EMFILE || rc == -ENFILE)
		return err_set(err, ERR_BUSY, "open \"%s\": no file descriptor left", path);
	if (rc == -ELOOP)
		return err_set(err, ERR_CORRUPT,
			       "open \"%s\": it is a symbolic link, which is not followed", path);
	if (rc == -ESPIPE || rc == -EISDIR || rc == -ENXIO)
		return err_set(err, ERR_CORRUPT, "open \"%s\": it is not a regular file", path);
	if (rc)
		return err_set_errno(err, -rc, "open \"%s\"", path);
	return 0;
}

void vfs_close(struct vfs_file *file)
{
	if (file)
		file->vfs->close(file);
}

int vfs_write_all(struct vfs_file *file, const void *data, size_t len, uint64_t offset,
		  struct err *err)
{
	const char *from = data;

	assert(file && (data || !len));
	while (len) {
		ssize_t done = file->vfs->pwrite(file, from, len, offset);

		if (done == -EINTR)
			continue;
		if (done <= 0)
			return err_set_errno(err, done ? (int)-done : EIO,
					     "write \"%s\" at offset %llu", file->path,
					     (unsigned long long)offset);
		from += done;
		offset += (uint64_t)done;
		len -= (size_t)done;
	}
	return 0;
}

int vfs_sync(struct vfs_file *file, struct err *err)
{
	int rc;

	assert(file);
	rc = file->vfs->fdatasync(file);
	if (rc)
		return err_set_errno(err, -rc, "sync \"%s\"", file->path);
	return 0;
}

int vfs_sync_dir(const struct vfs *vfs, const char *path, struct err *err)
{
	int rc = vfs->sync_dir(vfs, path);

	if (rc)
		return err_set_errno(err, -rc, "sync directory \"%s\"", path);
	return 0;
}

static int read_all(struct vfs_file *file, char *to, size_t len, struct err *err)
{
	size_t offset = 0;

	while (offset < len) {
		ssize_t done = file->vfs->pread(file, to + offset, len - offset, offset);

		if (done == -EINTR)
			continue;
		if (done < 0)
			return err_set_errno(err, (int)-done, "read \"%s\" at offset %zu",
					     file->path, offset);
		if (done == 0)
			return err_set(err, ERR_CORRUPT, "read \"%s\": ends at %zu of %zu bytes",
				       file->path, offset, len);
		offset += (size_t)done;
	}
	return 0;
}

int vfs_read_whole(const struct vfs *vfs, const char *path, uint64_t max_bytes, struct strbuf *out,
		   struct err *err)
{
	struct vfs_file *file;
	uint64_t bytes = 0;
	int rc = vfs_open(vfs, path, VFS_READ, &file, err);

	if (rc)
		return rc;
	rc = vfs->size(file, &bytes);
	if (rc)
		rc = err_set_errno(err, -rc, "read the size of \"%s\"", path);
	else if (bytes > max_bytes)
		rc = err_set(err, ERR_CORRUPT, "read \"%s\": %llu bytes are over the limit of %llu",
			     path, (unsigned long long)bytes, (unsigned long long)max_bytes);
	else
		rc = read_all(file, strbuf_reserve(out, bytes), bytes, err);
	if (!rc) {
		out->len += bytes;
		out->data[out->len] = '\0';
	}
	vfs_close(file);
	return rc;
}

static int write_new(const struct vfs *vfs, const char *path, struct slice bytes, struct err *err)
{
	struct vfs_file *file;
	int close_rc;
	int rc = vfs_open(vfs, path, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &file, err);

	if (rc)
		return rc;
	rc = vfs_write_all(file, bytes.data, bytes.len, 0, err);
	if (!rc)
		rc = vfs_sync(file, err);
	close_rc = vfs->close(file);
	if (!rc && close_rc)
		rc = err_set_errno(err, -close_rc, "close \"%s\"", path);
	return rc;
}

int vfs_replace(const struct vfs *vfs, const char *dir_path, const char *path, struct slice bytes,
		struct err *err)
{
	char temporary[PATH_BYTES_MAX];
	int rc;

	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary))
		return err_set(err, ERR_INVALID, "path \"%s\" is too long", path);
	rc = write_new(vfs, temporary, bytes, err);
	if (rc) {
		vfs->unlink(vfs, temporary); /* best effort: open removes what is left */
		return rc;
	}
	rc = vfs->rename(vfs, temporary, path);
	if (rc)
		return err_set_errno(err, -rc, "rename \"%s\" to \"%s\"", temporary, path);
	return vfs_sync_dir(vfs, dir_path, err);
}
