/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_disk.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "base/mem.h"

#define SECTOR_BYTES 512u

struct inode {
	struct strbuf seen, synced;
	bool lost; /* an fdatasync failed: unsynced bytes never reach the disk */
	bool locked;
};

struct name {
	char *path;
	struct inode *seen, *synced; /* NULL = absent */
	bool directory;
};

struct sim_disk {
	struct vfs vfs; /* first: functions get the disk from it */
	pthread_mutex_t lock;
	struct name *names;
	size_t names_count, names_capacity;
	struct inode **inodes; /* all ever made; freed at the end */
	size_t inodes_count, inodes_capacity;
	uint64_t random;
	uint64_t free_bytes; /* as told; not counted */
	enum sim_fault fault;
	uint64_t at, operations;
	uint64_t boots; /* files opened before a restart are dead */
	int error;
	bool hit, down;
};

struct sim_file {
	struct vfs_file base;
	struct inode *inode;
	char *path;
	uint64_t boot;
	bool locked;
};

enum verdict { DO_IT, DO_HALF, FAIL };

static struct sim_disk *disk_of(const struct vfs *vfs)
{
	return (struct sim_disk *)(uintptr_t)vfs;
}

static uint64_t next_random(struct sim_disk *disk)
{
	disk->random ^= disk->random << 13;
	disk->random ^= disk->random >> 7;
	disk->random ^= disk->random << 17;
	return disk->random;
}

/* What becomes of the operation that begins now. With the lock. */
static enum verdict begin(struct sim_disk *disk, int *ret_error)
{
	bool now = ++disk->operations == disk->at;

	if (disk->fault >= SIM_LOSE_WRITE)
		now = false; /* pwrite_locked sees to it */
	*ret_error = -EIO;
	if (disk->down)
		return FAIL;
	if (disk->fault == SIM_FAIL_FOR_EVER && disk->operations >= disk->at)
		now = true;
	if (!now || disk->fault == SIM_NO_FAULT)
		return DO_IT;
	disk->hit = true;
	if (disk->fault == SIM_STOP) {
		disk->down = true;
		return DO_HALF;
	}
	*ret_error = -disk->error;
	return disk->fault == SIM_SHORT ? DO_HALF : FAIL;
}

static struct name *find(struct sim_disk *disk, const char *path)
{
	for (size_t i = 0; i < disk->names_count; i++)
		if (!strcmp(disk->names[i].path, path))
			return &disk->names[i];
	return NULL;
}

static struct name *find_or_add(struct sim_disk *disk, const char *path)
{
	struct name *name = find(disk, path);

	if (name)
		return name;
	mem_grow(disk->names, disk->names_count, disk->names_capacity);
	disk->names[disk->names_count] = (struct name){ .path = mem_strndup(path, strlen(path)) };
	return &disk->names[disk->names_count++];
}

static struct inode *new_inode(struct sim_disk *disk)
{
	mem_grow(disk->inodes, disk->inodes_count, disk->inodes_capacity);
	disk->inodes[disk->inodes_count] = mem_new(struct inode);
	return disk->inodes[disk->inodes_count++];
}

static void set_len(struct strbuf *bytes, size_t len)
{
	if (len > bytes->len) {
		memset(strbuf_reserve(bytes, len - bytes->len), 0, len - bytes->len);
		bytes->len = len;
	}
}

static void copy(struct strbuf *to, const struct strbuf *from)
{
	strbuf_clear(to);
	strbuf_add_slice(to, strbuf_slice(from));
}

#define LOCKED(disk, type, expression)                                                             \
	({                                                                                         \
		pthread_mutex_lock(&(disk)->lock);                                                 \
		type ret_ = (expression);                                                          \
		pthread_mutex_unlock(&(disk)->lock);                                               \
		ret_;                                                                              \
	})

static int open_locked(struct sim_disk *disk, const char *path, unsigned int flags,
		       struct vfs_file **ret)
{
	int error;
	enum verdict verdict = begin(disk, &error);
	struct name *name = find(disk, path);
	struct sim_file *file;

	if (verdict == FAIL || disk->down)
		return error;
	if (name && name->directory)
		return -EISDIR;
	if (!name || !name->seen) {
		if (!(flags & VFS_CREATE))
			return -ENOENT;
		name = find_or_add(disk, path);
		name->seen = new_inode(disk);
	}
	if (flags & VFS_TRUNCATE)
		strbuf_clear(&name->seen->seen);
	file = mem_new(struct sim_file);
	file->inode = name->seen;
	file->path = mem_strndup(path, strlen(path));
	file->boot = disk->boots;
	file->base = (struct vfs_file){ &disk->vfs, file->path };
	*ret = &file->base;
	return 0;
}

static int sim_open(const struct vfs *vfs, const char *path, unsigned int flags,
		    struct vfs_file **ret)
{
	struct sim_disk *disk = disk_of(vfs);

	return LOCKED(disk, int, open_locked(disk, path, flags, ret));
}

static int close_locked(struct sim_disk *disk, struct sim_file *file)
{
	int error;
	enum verdict verdict = begin(disk, &error);

	if (file->locked && file->boot == disk->boots)
		file->inode->locked = false;
	free(file->path);
	free(file);
	return verdict == FAIL ? error : 0;
}

static int sim_close(struct vfs_file *file)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, int, close_locked(disk, (struct sim_file *)file));
}

static bool is_dead(const struct sim_disk *disk, const struct sim_file *file)
{
	return file->boot != disk->boots;
}

static ssize_t pread_locked(struct sim_disk *disk, struct sim_file *file, void *data, size_t len,
			    uint64_t offset)
{
	const struct strbuf *bytes = &file->inode->seen;
	int error;
	enum verdict verdict = begin(disk, &error);

	if (verdict == FAIL || disk->down || is_dead(disk, file))
		return error;
	if (offset >= bytes->len)
		return 0;
	if (len > bytes->len - offset)
		len = bytes->len - offset;
	if (verdict == DO_HALF && len > 1)
		len /= 2;
	memcpy(data, bytes->data + offset, len);
	return (ssize_t)len;
}

static ssize_t sim_pread(struct vfs_file *file, void *data, size_t len, uint64_t offset)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, ssize_t,
		      pread_locked(disk, (struct sim_file *)file, data, len, offset));
}

/* Whether this write is the one that the disk lies about. */
static bool goes_astray(const struct sim_disk *disk)
{
	return disk->fault >= SIM_LOSE_WRITE && !disk->hit && !disk->down &&
	       disk->operations >= disk->at;
}

/* A machine that stops leaves whole sectors, of a write as of all else. */
static size_t half_in_sectors(size_t len, uint64_t offset)
{
	uint64_t end = (offset + len / 2) / SECTOR_BYTES * SECTOR_BYTES;

	return end > offset ? (size_t)(end - offset) : 0;
}

static ssize_t pwrite_locked(struct sim_disk *disk, struct sim_file *file, const void *data,
			     size_t len, uint64_t offset)
{
	int error;
	enum verdict verdict = begin(disk, &error);

	if (verdict == FAIL || is_dead(disk, file))
		return error;
	if (goes_astray(disk)) {
		disk->hit = true;
		if (disk->fault == SIM_LOSE_WRITE) {
			set_len(&file->inode->seen, offset + len);
			return (ssize_t)len;
		}
		offset += SECTOR_BYTES * (1 + next_random(disk) % 8);
	}
	if (verdict == DO_HALF && len > 1)
		len = disk->down ? half_in_sectors(len, offset) : len / 2;
	set_len(&file->inode->seen, offset + len);
	if (len)
		memcpy(file->inode->seen.data + offset, data, len);
	return disk->down ? -EIO : (ssize_t)len;
}

static ssize_t sim_pwrite(struct vfs_file *file, const void *data, size_t len, uint64_t offset)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, ssize_t,
		      pwrite_locked(disk, (struct sim_file *)file, data, len, offset));
}

static int fdatasync_locked(struct sim_disk *disk, struct sim_file *file)
{
	int error;
	enum verdict verdict = begin(disk, &error);

	if (disk->down || is_dead(disk, file))
		return -EIO;
	if (verdict == FAIL) {
		file->inode->lost = true;
		return error;
	}
	if (!file->inode->lost)
		copy(&file->inode->synced, &file->inode->seen);
	return 0;
}

static int sim_fdatasync(struct vfs_file *file)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, int, fdatasync_locked(disk, (struct sim_file *)file));
}

static int allocate_locked(struct sim_disk *disk, struct sim_file *file, uint64_t bytes)
{
	int error;
	enum verdict verdict = begin(disk, &error);

	if (verdict == FAIL || disk->down || is_dead(disk, file))
		return error;
	/* Tests are quick with small files; the store asks for room, not for a size. */
	set_len(&file->inode->seen, bytes < 64 * 1024 ? bytes : 64 * 1024);
	return 0;
}

static int sim_allocate(struct vfs_file *file, uint64_t bytes)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, int, allocate_locked(disk, (struct sim_file *)file, bytes));
}

static int size_locked(struct sim_disk *disk, struct sim_file *file, uint64_t *ret)
{
	int error;

	if (begin(disk, &error) == FAIL || disk->down)
		return error;
	*ret = file->inode->seen.len;
	return 0;
}

static int sim_size(struct vfs_file *file, uint64_t *ret)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, int, size_locked(disk, (struct sim_file *)file, ret));
}

static int drop_cache_locked(struct sim_file *file)
{
	if (file->inode->lost) {
		copy(&file->inode->seen, &file->inode->synced);
		file->inode->lost = false;
	}
	return 0;
}

static int sim_drop_cache(struct vfs_file *file)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, int, drop_cache_locked((struct sim_file *)file));
}

static int lock_locked(struct sim_disk *disk, struct sim_file *file)
{
	int error;

	if (begin(disk, &error) == FAIL || disk->down)
		return error;
	if (file->inode->locked)
		return -EAGAIN;
	file->inode->locked = file->locked = true;
	return 0;
}

static int sim_lock(struct vfs_file *file)
{
	struct sim_disk *disk = disk_of(file->vfs);

	return LOCKED(disk, int, lock_locked(disk, (struct sim_file *)file));
}

static int rename_locked(struct sim_disk *disk, const char *from, const char *to)
{
	int error;
	enum verdict verdict = begin(disk, &error);
	struct name *source = find(disk, from);
	struct inode *inode;

	if (verdict == FAIL || disk->down)
		return error;
	if (!source || !source->seen)
		return -ENOENT;
	inode = source->seen;
	source->seen = NULL;
	find_or_add(disk, to)->seen = inode; /* may move the names */
	return 0;
}

static int sim_rename(const struct vfs *vfs, const char *from, const char *to)
{
	struct sim_disk *disk = disk_of(vfs);

	return LOCKED(disk, int, rename_locked(disk, from, to));
}

/* Both names are the same file from now on. */
static int link_locked(struct sim_disk *disk, const char *from, const char *to)
{
	int error;
	enum verdict verdict = begin(disk, &error);
	const struct name *source = find(disk, from);
	const struct name *target = find(disk, to);
	struct inode *inode;

	if (verdict == FAIL || disk->down)
		return error;
	if (!source || !source->seen)
		return -ENOENT;
	if (target && target->seen)
		return -EEXIST;
	inode = source->seen;
	find_or_add(disk, to)->seen = inode; /* may move the names */
	return 0;
}

static int sim_link(const struct vfs *vfs, const char *from, const char *to)
{
	struct sim_disk *disk = disk_of(vfs);

	return LOCKED(disk, int, link_locked(disk, from, to));
}

static int unlink_locked(struct sim_disk *disk, const char *path)
{
	int error;
	enum verdict verdict = begin(disk, &error);
	struct name *name = find(disk, path);

	if (verdict == FAIL || disk->down)
		return error;
	if (!name || !name->seen)
		return -ENOENT;
	name->seen = NULL;
	return 0;
}

static int sim_unlink(const struct vfs *vfs, const char *path)
{
	struct sim_disk *disk = disk_of(vfs);

	return LOCKED(disk, int, unlink_locked(disk, path));
}

static int mkdir_locked(struct sim_disk *disk, const char *path)
{
	int error;
	enum verdict verdict = begin(disk, &error);

	if (verdict == FAIL || disk->down)
		return error;
	if (find(disk, path))
		return -EEXIST;
	find_or_add(disk, path)->directory = true;
	return 0;
}

static int sim_mkdir(const struct vfs *vfs, const char *path)
{
	struct sim_disk *disk = disk_of(vfs);

	return LOCKED(disk, int, mkdir_locked(disk, path));
}

/* The rest of the path when `path` lies directly in `dir`, else NULL. */
static const char *name_in(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	if (strncmp(path, dir, len) != 0 || path[len] != '/' || strchr(path + len + 1, '/'))
		return NULL;
	return path + len + 1;
}

static int sync_dir_locked(struct sim_disk *disk, const char *path)
{
	int error;
	enum verdict verdict = begin(disk, &error);

	if (verdict == FAIL || disk->down)
		return error;
	for (size_t i = 0; i < disk->names_count; i++)
		if (name_in(path, disk->names[i].path))
			disk->names[i].synced = disk->names[i].seen;
	return 0;
}

static int sim_sync_dir(const struct vfs *vfs, const char *path)
{
	struct sim_disk *disk = disk_of(vfs);

	return LOCKED(disk, int, sync_dir_locked(disk, path));
}

static int list_dir_locked(struct sim_disk *disk, const char *path, vfs_name_f *name, void *context)
{
	int error;
	enum verdict verdict = begin(disk, &error);

	if (verdict == FAIL || disk->down)
		return error;
	if (!find(disk, path))
		return -ENOENT;
	for (size_t i = 0; i < disk->names_count; i++) {
		const char *in = name_in(path, disk->names[i].path);

		if (in && (disk->names[i].seen || disk->names[i].directory))
			name(context, in);
	}
	return 0;
}

static int sim_list_dir(const struct vfs *vfs, const char *path, vfs_name_f *name, void *context)
{
	struct sim_disk *disk = disk_of(vfs);

	return LOCKED(disk, int, list_dir_locked(disk, path, name, context));
}

static int sim_space(const struct vfs *vfs, const char *path, uint64_t *ret_free,
		     uint64_t *ret_total)
{
	struct sim_disk *disk = disk_of(vfs);

	(void)path;
	pthread_mutex_lock(&disk->lock);
	*ret_free = disk->free_bytes;
	*ret_total = SIM_DISK_BYTES;
	pthread_mutex_unlock(&disk->lock);
	return 0;
}

void sim_disk_set_free(struct sim_disk *disk, uint64_t bytes)
{
	pthread_mutex_lock(&disk->lock);
	disk->free_bytes = bytes;
	pthread_mutex_unlock(&disk->lock);
}

struct sim_disk *sim_disk_new(uint64_t seed)
{
	struct sim_disk *disk = mem_new(struct sim_disk);

	disk->vfs = (struct vfs){
		.open = sim_open,
		.close = sim_close,
		.pread = sim_pread,
		.pwrite = sim_pwrite,
		.fdatasync = sim_fdatasync,
		.allocate = sim_allocate,
		.size = sim_size,
		.drop_cache = sim_drop_cache,
		.lock = sim_lock,
		.rename = sim_rename,
		.link = sim_link,
		.unlink = sim_unlink,
		.mkdir = sim_mkdir,
		.sync_dir = sim_sync_dir,
		.list_dir = sim_list_dir,
		.space = sim_space,
	};
	pthread_mutex_init(&disk->lock, NULL);
	disk->random = seed ? seed : 1;
	disk->free_bytes = SIM_DISK_BYTES;
	return disk;
}

void sim_disk_free(struct sim_disk *disk)
{
	for (size_t i = 0; i < disk->names_count; i++)
		free(disk->names[i].path);
	for (size_t i = 0; i < disk->inodes_count; i++) {
		strbuf_free(&disk->inodes[i]->seen);
		strbuf_free(&disk->inodes[i]->synced);
		free(disk->inodes[i]);
	}
	free(disk->names);
	free(disk->inodes);
	pthread_mutex_destroy(&disk->lock);
	free(disk);
}

const struct vfs *sim_disk_vfs(struct sim_disk *disk)
{
	return &disk->vfs;
}

void sim_disk_plan(struct sim_disk *disk, enum sim_fault fault, uint64_t at, int error)
{
	pthread_mutex_lock(&disk->lock);
	disk->fault = fault;
	disk->at = at;
	disk->error = error;
	disk->operations = 0;
	disk->hit = false;
	pthread_mutex_unlock(&disk->lock);
}

uint64_t sim_disk_operations(const struct sim_disk *disk)
{
	return disk->operations;
}

bool sim_disk_hit(const struct sim_disk *disk)
{
	return disk->hit;
}

static void scramble(struct sim_disk *disk, char *sector, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sector[i] = (char)next_random(disk);
}

/* Each unsynced sector is the old one, the new one, or (rarely) garbage. */
static void settle_random(struct sim_disk *disk, struct inode *inode)
{
	struct strbuf old = inode->synced;
	struct strbuf *seen = &inode->seen;

	if (seen->len < old.len)
		set_len(seen, old.len);
	for (size_t at = 0; at < seen->len; at += SECTOR_BYTES) {
		size_t len = seen->len - at < SECTOR_BYTES ? seen->len - at : SECTOR_BYTES;
		size_t had = at < old.len ? (old.len - at < len ? old.len - at : len) : 0;
		uint64_t dice = next_random(disk) % 8;

		if (had == len && !memcmp(seen->data + at, old.data + at, len))
			continue; /* synced: never touched */
		if (dice < 3) {
			memset(seen->data + at, 0, len);
			if (had)
				memcpy(seen->data + at, old.data + at, had);
		} else if (dice == 3 && !had) {
			scramble(disk, seen->data + at, len);
		}
	}
}

static void settle(struct sim_disk *disk, struct inode *inode, enum sim_loss loss)
{
	inode->locked = false;
	if (loss == SIM_LOSE_NONE)
		return;
	if (loss == SIM_LOSE_RANDOM && !inode->lost)
		settle_random(disk, inode);
	else
		copy(&inode->seen, &inode->synced);
	copy(&inode->synced, &inode->seen);
	inode->lost = false;
}

void sim_disk_restart(struct sim_disk *disk, enum sim_loss loss)
{
	pthread_mutex_lock(&disk->lock);
	for (size_t i = 0; i < disk->names_count && loss != SIM_LOSE_NONE; i++) {
		struct name *name = &disk->names[i];
		bool lose =
			loss == SIM_LOSE_ALL || (loss == SIM_LOSE_RANDOM && next_random(disk) % 2);

		if (lose)
			name->seen = name->synced;
		else
			name->synced = name->seen;
	}
	for (size_t i = 0; i < disk->inodes_count; i++)
		settle(disk, disk->inodes[i], loss);
	disk->down = false;
	disk->fault = SIM_NO_FAULT;
	disk->boots++;
	pthread_mutex_unlock(&disk->lock);
}

bool sim_disk_flip(struct sim_disk *disk, const char *path, uint64_t offset, uint8_t mask)
{
	struct name *name = find(disk, path);

	if (!name || !name->seen || offset >= name->seen->seen.len)
		return false;
	name->seen->seen.data[offset] ^= (char)mask;
	copy(&name->seen->synced, &name->seen->seen);
	return true;
}

bool sim_disk_has(struct sim_disk *disk, const char *path, uint64_t *ret_bytes)
{
	struct name *name = find(disk, path);

	if (!name || !name->seen)
		return false;
	if (ret_bytes)
		*ret_bytes = name->seen->seen.len;
	return true;
}
