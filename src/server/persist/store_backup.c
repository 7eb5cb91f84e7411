/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/store_backup.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/manifest/manifest.h"

#define TRIES_MAX 20
#define COPY_BYTES ((size_t)1 << 20)

struct backup {
	const struct vfs *vfs;
	const char *from, *to;
	struct manifest manifest; /* of `from` */
	struct layout_list list;  /* likewise, listed after the manifest was read */
	struct store_backup result;
};

static int copy_bytes(struct vfs_file *in, struct vfs_file *out, uint64_t *ret_bytes,
		      struct err *err)
{
	char *chunk = mem_realloc(NULL, COPY_BYTES, 1);
	uint64_t offset = 0;
	int rc = 0;

	while (!rc) {
		ssize_t done = in->vfs->pread(in, chunk, COPY_BYTES, offset);

		if (done == -EINTR)
			continue;
		if (!done)
			break;
		if (done < 0)
			rc = err_set_errno(err, (int)-done, "read \"%s\"", in->path);
		else
			rc = vfs_write_all(out, chunk, (size_t)done, offset, err);
		offset += done > 0 ? (uint64_t)done : 0;
	}
	free(chunk);
	*ret_bytes = offset;
	return rc;
}

/* ERR_NOT_FOUND when `from` went meanwhile. */
static int copy_file(struct backup *backup, const char *from, const char *to, struct err *err)
{
	struct vfs_file *in, *out;
	uint64_t bytes = 0;
	int rc = vfs_open(backup->vfs, from, VFS_READ, &in, err);
	int close_rc;

	if (rc)
		return rc;
	rc = vfs_open(backup->vfs, to, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE, &out, err);
	if (rc) {
		vfs_close(in);
		return rc == -ERR_NOT_FOUND ? err_set(err, ERR_IO, "create \"%s\"", to) : rc;
	}
	rc = copy_bytes(in, out, &bytes, err);
	if (!rc)
		rc = vfs_sync(out, err);
	vfs_close(in);
	close_rc = backup->vfs->close(out);
	if (!rc && close_rc)
		rc = err_set_errno(err, -close_rc, "close \"%s\"", to);
	backup->result.bytes_copied += bytes;
	return rc;
}

static int copy_named(struct backup *backup, struct layout_name name, struct err *err)
{
	struct layout_path from = layout_path_of(backup->from, name);
	struct layout_path to = layout_path_of(backup->to, name);

	return copy_file(backup, from.text, to.text, err);
}

static bool cannot_link(int rc)
{
	return rc == -EXDEV || rc == -EPERM || rc == -EOPNOTSUPP || rc == -EMLINK || rc == -EACCES;
}

static int take_part(struct backup *backup, const struct part_info *info, struct err *err)
{
	struct layout_name name = { LAYOUT_PART, info->number, 0 };
	struct layout_path from = layout_path_of(backup->from, name);
	struct layout_path to = layout_path_of(backup->to, name);
	int rc = backup->vfs->link(backup->vfs, from.text, to.text);

	backup->result.parts++;
	if (!rc) {
		backup->result.linked++;
		backup->result.bytes_linked += info->bytes;
		return 0;
	}
	if (rc == -EEXIST)
		return 0; /* of an earlier try */
	if (cannot_link(rc))
		return copy_named(backup, name, err);
	return err_set_errno(err, -rc, "link \"%s\" to \"%s\"", to.text, from.text);
}

static int take_parts(struct backup *backup, struct err *err)
{
	const struct manifest_state *state = &backup->manifest.state;
	int rc = 0;

	for (size_t i = 0; !rc && i < state->parts_count; i++)
		if (!state->parts[i].damaged)
			rc = take_part(backup, &state->parts[i], err);
	return rc;
}

/*
 * The newest segment first: whatever it says about the durability of those before it, they are
 * copied later and have it.
 */
static int take_log(struct backup *backup, struct err *err)
{
	const struct manifest_state *state = &backup->manifest.state;
	int rc = 0;

	for (size_t i = backup->list.count; !rc && i--;) {
		struct layout_name name = backup->list.entries[i].name;

		if (name.kind == LAYOUT_WAL && name.number >= state->log_generation)
			rc = copy_named(backup, name, err);
	}
	return rc;
}

static int write_manifest(struct backup *backup, struct err *err)
{
	struct manifest copy = {
		.vfs = backup->vfs,
		.dir = backup->to,
		.state = backup->manifest.state, /* lent */
		.number = backup->manifest.number,
	};
	struct manifest_edit nothing = { 0 };
	int rc = manifest_commit(&copy, &nothing, err);

	copy.state = (struct manifest_state){ 0 };
	manifest_fini(&copy);
	return rc;
}

/* One try: ERR_NOT_FOUND when something was dropped between reading the manifest and here. */
static int take_all(struct backup *backup, struct err *err)
{
	uint64_t generation = backup->manifest.state.state_generation;
	int rc = take_parts(backup, err);

	if (!rc && generation)
		rc = copy_named(backup, (struct layout_name){ LAYOUT_STATE, generation, 0 }, err);
	if (!rc)
		rc = take_log(backup, err);
	if (!rc)
		rc = vfs_sync_dir(backup->vfs, backup->to, err);
	return rc ? rc : write_manifest(backup, err);
}

/* Files of a try that the store outran. */
static void remove_copies(struct backup *backup)
{
	struct layout_list list;

	if (layout_list(backup->vfs, backup->to, &list, NULL))
		return;
	for (size_t i = 0; i < list.count; i++) {
		struct layout_path path = layout_join(backup->to, list.entries[i].text);

		backup->vfs->unlink(backup->vfs, path.text); /* what stays is no part of a store */
	}
	free(list.entries);
}

/* The log of a generation goes once its part is there: it must have been there to be listed. */
static int check_log(const struct backup *backup, struct err *err)
{
	struct manifest now = { 0 };
	int rc = manifest_load(&now, backup->vfs, backup->from, false, err);

	if (!rc && now.state.log_generation != backup->manifest.state.log_generation)
		rc = err_set(err, ERR_NOT_FOUND, "the log grows faster than it is copied");
	manifest_fini(&now);
	return rc;
}

static int try_once(struct backup *backup, struct err *err)
{
	int rc = manifest_load(&backup->manifest, backup->vfs, backup->from, false, err);

	assert(!backup->list.entries && !backup->result.bytes_copied);
	if (rc == -ERR_NOT_FOUND)
		return err_set(err, ERR_INVALID, "no firn store in \"%s\"", backup->from);
	if (!rc)
		rc = layout_list(backup->vfs, backup->from, &backup->list, err);
	if (!rc)
		rc = check_log(backup, err);
	if (!rc)
		rc = take_all(backup, err);
	if (rc)
		remove_copies(backup);
	manifest_fini(&backup->manifest);
	free(backup->list.entries);
	backup->list = (struct layout_list){ 0 };
	return rc;
}

static void note_name(void *context, const char *name)
{
	(void)name;
	++*(size_t *)context;
}

static int make_target(const struct vfs *vfs, const char *to, struct err *err)
{
	char *copy = mem_strndup(to, strlen(to));
	size_t entries = 0;
	int rc = vfs->mkdir(vfs, to);

	if (rc == -EEXIST) {
		rc = vfs->list_dir(vfs, to, note_name, &entries);
		if (rc)
			rc = err_set_errno(err, -rc, "list directory \"%s\"", to);
		else if (entries)
			rc = err_set(err, ERR_EXISTS,
				     "\"%s\" is not empty; name a directory that does not exist",
				     to);
	} else if (rc) {
		rc = err_set_errno(err, -rc, "make directory \"%s\"", to);
	} else {
		rc = vfs_sync_dir(vfs, dirname(copy), err);
	}
	free(copy);
	return rc;
}

int store_backup(const char *from, const char *to, const struct vfs *vfs, struct store_backup *ret,
		 struct err *err)
{
	struct backup backup = { .vfs = vfs ? vfs : &vfs_posix, .from = from, .to = to };
	struct err cause = { 0 };
	int rc = layout_check_dir(from, &cause);

	if (!rc)
		rc = layout_check_dir(to, &cause);
	if (!rc)
		rc = make_target(backup.vfs, to, &cause);
	for (int tries = 0; !rc && tries < TRIES_MAX; tries++) {
		backup.result = (struct store_backup){ 0 };
		rc = try_once(&backup, &cause);
		if (!rc) {
			*ret = backup.result;
			return 0;
		}
		if (rc == -ERR_NOT_FOUND)
			rc = 0; /* the server has gone on: again */
	}
	if (err)
		*err = cause;
	return rc ? rc : -(int)cause.code;
}
