/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/part_scrub.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"
#include "server/persist/part/part_format.h"

#define CHUNK_BYTES ((size_t)1 << 20)

static int mismatch(const struct vfs_file *file, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "part \"%s\": not the bytes that were written",
		       file->path);
}

/* The trailer holds the hash of all before it. */
static int check_trailer(struct vfs_file *file, const struct part_info *info, struct err *err)
{
	unsigned char trailer[PART_TRAILER_BYTES];
	struct byte_reader in;
	ssize_t done =
		file->vfs->pread(file, trailer, sizeof(trailer), info->bytes - PART_TRAILER_BYTES);
	uint32_t crc;

	if (done < 0)
		return err_set_errno(err, (int)-done, "read \"%s\"", file->path);
	if ((size_t)done != sizeof(trailer))
		return mismatch(file, err);
	in = byte_reader_of(slice_from((const char *)trailer + PART_TRAILER_BYTES - 12, 12));
	crc = byte_reader_u32(&in);
	if (crc != hash_crc32c(0, trailer, PART_TRAILER_BYTES - 12) ||
	    memcmp(trailer + PART_TRAILER_BYTES - 8, PART_MAGIC_END, 8))
		return mismatch(file, err);
	return 0;
}

static int hash_file(struct vfs_file *file, uint64_t bytes, XXH3_state_t *state, char *chunk,
		     struct throttle *throttle, struct err *err)
{
	uint64_t offset = 0;

	while (offset < bytes) {
		size_t want = bytes - offset < CHUNK_BYTES ? (size_t)(bytes - offset) : CHUNK_BYTES;
		ssize_t done = file->vfs->pread(file, chunk, want, offset);
		int rc;

		if (done == -EINTR)
			continue;
		if (done < 0)
			return err_set_errno(err, (int)-done, "read \"%s\" at offset %llu",
					     file->path, (unsigned long long)offset);
		if (!done)
			return mismatch(file, err);
		XXH3_128bits_update(state, chunk, (size_t)done);
		offset += (uint64_t)done;
		rc = throttle_pause(throttle, (uint64_t)done, err);
		if (rc)
			return rc;
	}
	return 0;
}

static int check_file(struct vfs_file *file, const struct part_info *info,
		      struct throttle *throttle, struct err *err)
{
	char *chunk = mem_realloc(NULL, CHUNK_BYTES, 1);
	XXH3_state_t *state = XXH3_createState();
	XXH128_hash_t hash;
	int rc;

	assert(state);
	XXH3_128bits_reset(state);
	file->vfs->drop_cache(file); /* a hint: what the disk has is what counts */
	rc = hash_file(file, info->bytes - PART_TRAILER_BYTES, state, chunk, throttle, err);
	hash = XXH3_128bits_digest(state);
	if (!rc && (hash.low64 != info->hash.low || hash.high64 != info->hash.high))
		rc = mismatch(file, err);
	XXH3_freeState(state);
	free(chunk);
	return rc ? rc : check_trailer(file, info, err);
}

int part_scrub(const struct vfs *vfs, const char *dir, const struct part_info *info,
	       struct throttle *throttle, struct err *err)
{
	struct layout_path path = layout_path(dir, LAYOUT_PART, info->number);
	struct vfs_file *file;
	uint64_t bytes = 0;
	int rc = vfs_open(vfs, path.text, VFS_READ, &file, err);

	if (rc)
		return rc;
	rc = vfs->size(file, &bytes);
	if (rc)
		rc = err_set_errno(err, -rc, "read the size of \"%s\"", path.text);
	else if (bytes != info->bytes || bytes < PART_TRAILER_BYTES)
		rc = mismatch(file, err);
	else
		rc = check_file(file, info, throttle, err);
	vfs_close(file);
	return rc;
}
