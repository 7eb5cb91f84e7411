/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfs - every file operation of the store goes through it.
 *
 * A small table of functions, so that tests can put a simulated disk under the store and crash
 * it, or fail it, at any operation (tests/unit/persist/sim_disk.h). Everything here blocks.
 *
 * Operations return 0 (or a count) or -errno. Durability: bytes after fdatasync of their file,
 * names (create, rename, unlink) after sync_dir of their directory; nothing before that.
 * An instance may be used from many threads; one file by one thread at a time, except pread, and
 * pwrite of bytes that no other thread writes.
 */
#ifndef FIRN_SERVER_PERSIST_DISK_VFS_H
#define FIRN_SERVER_PERSIST_DISK_VFS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"

enum vfs_open_flag {
	VFS_READ = 0,
	VFS_WRITE = 1,	  /* and read */
	VFS_CREATE = 2,	  /* with VFS_WRITE: made when missing */
	VFS_TRUNCATE = 4, /* with VFS_CREATE: an old one is emptied */
};

struct vfs;

/* The head of an implementation's file. */
struct vfs_file {
	const struct vfs *vfs;
	const char *path; /* for messages; lives as long as the file */
};

typedef void vfs_name_f(void *context, const char *name);

struct vfs_owner {
	uid_t user;
	gid_t group;
	mode_t mode; /* who may do what, without the kind of file */
};

struct vfs {
	/* Never waits: -ELOOP for a symbolic link, -ESPIPE for other files that are not regular. */
	int (*open)(const struct vfs *vfs, const char *path, unsigned int flags,
		    struct vfs_file **ret);
	int (*close)(struct vfs_file *file); /* frees it, whatever it returns */
	ssize_t (*pread)(struct vfs_file *file, void *data, size_t len, uint64_t offset);
	ssize_t (*pwrite)(struct vfs_file *file, const void *data, size_t len, uint64_t offset);
	int (*fdatasync)(struct vfs_file *file);
	int (*allocate)(struct vfs_file *file, uint64_t bytes); /* zeros, up to that size */
	int (*size)(struct vfs_file *file, uint64_t *ret);
	/* A hint that the bytes will be read soon; does not wait. NULL: there is no gain. */
	void (*will_read)(struct vfs_file *file, uint64_t offset, uint64_t len);
	int (*drop_cache)(struct vfs_file *file); /* later reads come from the disk; a hint */
	int (*lock)(
		struct vfs_file *file); /* exclusive until closed; -EAGAIN when held elsewhere */
	int (*rename)(const struct vfs *vfs, const char *from, const char *to);
	int (*link)(const struct vfs *vfs, const char *from, const char *to); /* a second name */
	int (*unlink)(const struct vfs *vfs, const char *path);
	int (*mkdir)(const struct vfs *vfs, const char *path);
	int (*owner)(const struct vfs *vfs, const char *path,
		     struct vfs_owner *ret); /* NULL: nobody else is there */
	int (*sync_dir)(const struct vfs *vfs, const char *path);
	int (*list_dir)(const struct vfs *vfs, const char *path, vfs_name_f *name, void *context);
	int (*space)(const struct vfs *vfs, const char *path, uint64_t *ret_free,
		     uint64_t *ret_total); /* bytes of the file system, free to this user */
};

extern const struct vfs vfs_posix;

/*
 * True if a failed write means that the disk cannot be trusted any more (poison); false if only
 * space or descriptors were missing.
 */
bool vfs_is_fault(int rc);

/* For callers: they complete the whole operation, or set an error that names the file. */
MUST_USE int vfs_open(const struct vfs *vfs, const char *path, unsigned int flags,
		      struct vfs_file **ret, struct err *err);
void vfs_close(struct vfs_file
		       *file); /* of a file that was only read, or that is given up; accepts NULL */
MUST_USE int vfs_write_all(struct vfs_file *file, const void *data, size_t len, uint64_t offset,
			   struct err *err);
MUST_USE int vfs_sync(struct vfs_file *file, struct err *err);
MUST_USE int vfs_sync_dir(const struct vfs *vfs, const char *path, struct err *err);

/* Appends the file to `out`. ERR_CORRUPT when it has more than max_bytes. */
MUST_USE int vfs_read_whole(const struct vfs *vfs, const char *path, uint64_t max_bytes,
			    struct strbuf *out, struct err *err);

/*
 * Makes the file `path` have these bytes or, after a crash, the ones it had before: writes
 * `path`.tmp, syncs it, renames it, syncs the directory `dir_path`.
 */
MUST_USE int vfs_replace(const struct vfs *vfs, const char *dir_path, const char *path,
			 struct slice bytes, struct err *err);

#endif
