/* SPDX-License-Identifier: Apache-2.0 */
/* The operating system's files behind vfs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/persist/disk/vfs.h"

#define ZEROS_BYTES ((size_t)256 * 1024)

struct posix_file {
	struct vfs_file base;
	int fd;
	char *path;
};

static int fd_of(const struct vfs_file *file)
{
	return ((const struct posix_file *)file)->fd;
}

static int posix_open(const struct vfs *vfs, const char *path, unsigned int flags,
		      struct vfs_file **ret)
{
	/* O_NONBLOCK: a pipe in a file's place is to be refused, not waited for. */
	int how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (flags & VFS_WRITE ? O_RDWR : O_RDONLY);
	struct posix_file *file;
	struct stat status;
	int fd;

	how |= flags & VFS_CREATE ? O_CREAT : 0;
	how |= flags & VFS_TRUNCATE ? O_TRUNC : 0;
	do
		fd = open(path, how, 0640);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
		close(fd);
		return -ESPIPE;
	}
	file = mem_new(struct posix_file);
	file->fd = fd;
	file->path = mem_strndup(path, strlen(path));
	file->base = (struct vfs_file){ vfs, file->path };
	*ret = &file->base;
	return 0;
}

static int posix_close(struct vfs_file *file)
{
	struct posix_file *posix = (struct posix_file *)file;
	int rc = close(posix->fd) && errno != EINTR ? -errno : 0;

	free(posix->path);
	free(posix);
	return rc;
}

static ssize_t posix_pread(struct vfs_file *file, void *data, size_t len, uint64_t offset)
{
	ssize_t done = pread(fd_of(file), data, len, (off_t)offset);

	return done < 0 ? -errno : done;
}

static ssize_t posix_pwrite(struct vfs_file *file, const void *data, size_t len, uint64_t offset)
{
	ssize_t done = pwrite(fd_of(file), data, len, (off_t)offset);

	return done < 0 ? -errno : done;
}

static int posix_fdatasync(struct vfs_file *file)
{
	return fdatasync(fd_of(file)) ? -errno : 0;
}

/* For file systems without fallocate: the space is taken by writing it. */
static int write_zeros(int fd, uint64_t bytes)
{
	char *zeros = mem_calloc(ZEROS_BYTES, 1);
	uint64_t offset = 0;
	int rc = 0;

	while (!rc && offset < bytes) {
		size_t len = bytes - offset < ZEROS_BYTES ? (size_t)(bytes - offset) : ZEROS_BYTES;
		ssize_t done = pwrite(fd, zeros, len, (off_t)offset);

		if (done > 0)
			offset += (uint64_t)done;
		else if (done == 0 || errno != EINTR)
			rc = done == 0 ? -EIO : -errno;
	}
	free(zeros);
	return rc;
}

static int posix_allocate(struct vfs_file *file, uint64_t bytes)
{
	int rc;

	do
		rc = fallocate(fd_of(file), 0, 0, (off_t)bytes) ? -errno : 0;
	while (rc == -EINTR);
	if (rc == -EOPNOTSUPP || rc == -ENOSYS)
		rc = write_zeros(fd_of(file), bytes);
	return rc;
}

static int posix_size(struct vfs_file *file, uint64_t *ret)
{
	struct stat status;

	if (fstat(fd_of(file), &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	*ret = (uint64_t)status.st_size;
	return 0;
}

static int posix_drop_cache(struct vfs_file *file)
{
	return -posix_fadvise(fd_of(file), 0, 0, POSIX_FADV_DONTNEED);
}

static int posix_lock(struct vfs_file *file)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (!fcntl(fd_of(file), F_OFD_SETLK, &lock))
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

static int posix_rename(const struct vfs *vfs, const char *from, const char *to)
{
	(void)vfs;
	return rename(from, to) ? -errno : 0;
}

static int posix_link(const struct vfs *vfs, const char *from, const char *to)
{
	(void)vfs;
	return link(from, to) ? -errno : 0;
}

static int posix_unlink(const struct vfs *vfs, const char *path)
{
	(void)vfs;
	return unlink(path) ? -errno : 0;
}

static int posix_mkdir(const struct vfs *vfs, const char *path)
{
	(void)vfs;
	return mkdir(path, 0750) ? -errno : 0;
}

static int posix_owner(const struct vfs *vfs, const char *path, struct vfs_owner *ret)
{
	struct stat status;

	(void)vfs;
	if (stat(path, &status))
		return -errno;
	*ret = (struct vfs_owner){ status.st_uid, status.st_gid, status.st_mode & 07777 };
	return 0;
}

static int posix_sync_dir(const struct vfs *vfs, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	(void)vfs;
	if (fd < 0)
		return -errno;
	rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

static int posix_list_dir(const struct vfs *vfs, const char *path, vfs_name_f *name, void *context)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int rc;

	(void)vfs;
	if (!dir)
		return -errno;
	for (errno = 0; (entry = readdir(dir)); errno = 0)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			name(context, entry->d_name);
	rc = -errno;
	closedir(dir);
	return rc;
}

static int posix_space(const struct vfs *vfs, const char *path, uint64_t *ret_free,
		       uint64_t *ret_total)
{
	struct statvfs fs;

	(void)vfs;
	if (statvfs(path, &fs))
		return -errno;
	*ret_free = (uint64_t)fs.f_bavail * fs.f_frsize;
	*ret_total = (uint64_t)fs.f_blocks * fs.f_frsize;
	return 0;
}

const struct vfs vfs_posix = {
	.open = posix_open,
	.close = posix_close,
	.pread = posix_pread,
	.pwrite = posix_pwrite,
	.fdatasync = posix_fdatasync,
	.allocate = posix_allocate,
	.size = posix_size,
	.drop_cache = posix_drop_cache,
	.lock = posix_lock,
	.rename = posix_rename,
	.link = posix_link,
	.unlink = posix_unlink,
	.mkdir = posix_mkdir,
	.owner = posix_owner,
	.sync_dir = posix_sync_dir,
	.list_dir = posix_list_dir,
	.space = posix_space,
};
