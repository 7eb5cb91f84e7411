/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose the store is. The folder is ours alone to write, and so is the LOCK file: an
 * open-file-description lock, so that it goes with the process however it ends. Its content (pid
 * and boot id) only serves the message of the one who comes second.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/persist/store_int.h"

#define CONTENT_BYTES_MAX 256

static void read_boot_id(char *ret, size_t bytes)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	snprintf(ret, bytes, "unknown");
	if (!file)
		return;
	if (fgets(ret, (int)bytes, file))
		ret[strcspn(ret, "\n")] = '\0';
	fclose(file);
}

static bool is_our_group(gid_t group)
{
	gid_t groups[NGROUPS_MAX];
	int count = getgroups(NGROUPS_MAX, groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return group == getegid();
}

/* Anyone who can put files here could redirect what we write, and forge what we read back. */
static int check_folder(const struct store_disk *store, struct err *err)
{
	struct vfs_owner owner;
	bool group_writes, others_write;

	if (!store->vfs->owner || store->vfs->owner(store->vfs, store->path, &owner))
		return 0; /* opening the LOCK says what is wrong */
	group_writes = owner.mode & S_IWGRP && !is_our_group(owner.group);
	others_write = owner.mode & S_IWOTH;
	if (owner.user != geteuid() && owner.user)
		return err_set(err, ERR_DENIED,
			       "store \"%s\" belongs to uid %u, and this process is uid %u: run it "
			       "as that user, or choose another --storage-path",
			       store->path, owner.user, geteuid());
	if (group_writes || others_write)
		return err_set(err, ERR_DENIED,
			       "store \"%s\" can be written by %s (mode %04o): run `chmod %s "
			       "\"%s\"`, or choose another --storage-path",
			       store->path, others_write ? "everyone" : "a group that is not ours",
			       owner.mode, others_write ? "go-w" : "g-w", store->path);
	return 0;
}

static int check_lock_file(const struct store_disk *store, const char *path, struct err *err)
{
	struct vfs_owner owner;

	if (!store->vfs->owner || store->vfs->owner(store->vfs, path, &owner))
		return 0;
	if (owner.user != geteuid())
		return err_set(
			err, ERR_DENIED,
			"\"%s\" belongs to uid %u, and this process is uid %u: run it as that "
			"user",
			path, owner.user, geteuid());
	if (owner.mode & (S_IWGRP | S_IWOTH))
		return err_set(
			err, ERR_DENIED,
			"\"%s\" can be written by others (mode %04o): run `chmod go-w \"%s\"`",
			path, owner.mode, path);
	return 0;
}

static int held_elsewhere(struct store_disk *store, const char *path, struct err *err)
{
	struct strbuf content = { 0 };
	char boot_id[64], holder_boot_id[64] = "";
	int pid = 0;

	read_boot_id(boot_id, sizeof(boot_id));
	if (!vfs_read_whole(store->vfs, path, CONTENT_BYTES_MAX, &content, NULL))
		sscanf(strbuf_text(&content), "pid %d boot %63s", &pid, holder_boot_id);
	strbuf_free(&content);
	if (!pid)
		return err_set(err, ERR_BUSY, "store \"%s\" is in use by another process",
			       store->path);
	if (holder_boot_id[0] && strcmp(boot_id, holder_boot_id) != 0)
		return err_set(err, ERR_BUSY,
			       "store \"%s\" is in use by pid %d of another host or container",
			       store->path, pid);
	return err_set(
		err, ERR_BUSY,
		"store \"%s\" is in use by pid %d; stop it, or choose another --storage-path",
		store->path, pid);
}

static int write_holder(struct store_disk *store, struct err *err)
{
	char content[CONTENT_BYTES_MAX], boot_id[64];

	assert(store->lock_file && !store->options.read_only);
	read_boot_id(boot_id, sizeof(boot_id));
	/* Padded: a longer old content may not show through. */
	snprintf(content, sizeof(content), "pid %d boot %s %80s\n", getpid(), boot_id, "");
	return vfs_write_all(store->lock_file, content, strlen(content), 0, err);
}

int store_take_lock(struct store_disk *store, struct err *err)
{
	struct layout_path path = layout_join(store->path, LAYOUT_LOCK);
	int rc = check_folder(store, err);

	assert(!store->lock_file); /* taken once */
	if (rc)
		return rc;
	rc = vfs_open(store->vfs, path.text, VFS_WRITE | VFS_CREATE, &store->lock_file, err);
	if (rc == -ERR_DENIED || rc == -ERR_READ_ONLY)
		return err_wrap(err, "store \"%s\" cannot be written", store->path), rc;
	if (!rc)
		rc = check_lock_file(store, path.text, err);
	if (rc)
		return rc;
	rc = store->vfs->lock(store->lock_file);
	if (rc == -EAGAIN)
		return held_elsewhere(store, path.text, err);
	if (rc)
		return err_set_errno(err, -rc, "lock \"%s\"", path.text);
	rc = write_holder(store, err);
	return rc == -ERR_NO_SPACE ? 0 : rc; /* the content is only for messages */
}
