/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/near_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/slice.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define MINOR_BITS 20 /* of a device within the kernel */

/* Not in linux/magic.h. */
#define XFS_MAGIC 0x58465342
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e
#define EROFS_MAGIC 0xe0f5e1e2
#define JFS_MAGIC 0x3153464a
#define EXFAT_MAGIC 0x2011bab0

/* What lies on this host's disks and in its memory. All else is far, unless proved otherwise. */
static const uint32_t near_types[] = {
	EXT4_SUPER_MAGIC,  XFS_MAGIC,	 BTRFS_SUPER_MAGIC, TMPFS_MAGIC,       RAMFS_MAGIC,
	F2FS_SUPER_MAGIC,  ZFS_MAGIC,	 BCACHEFS_MAGIC,    EROFS_MAGIC,       SQUASHFS_MAGIC,
	ISOFS_SUPER_MAGIC, JFS_MAGIC,	 EXFAT_MAGIC,	    MSDOS_SUPER_MAGIC, REISERFS_SUPER_MAGIC,
	HUGETLBFS_MAGIC,   CRAMFS_MAGIC, UDF_SUPER_MAGIC,
};

/* Without a disk of their own, by the names that /proc/self/mountinfo has. */
static const char *const near_names[] = { "btrfs", "tmpfs", "ramfs", "zfs", "bcachefs" };

static bool is_near_name(struct slice name)
{
	for (size_t i = 0; i < sizeof(near_names) / sizeof(*near_names); i++)
		if (slice_is(name, near_names[i]))
			return true;
	return false;
}

/* "ID PARENT MAJOR:MINOR ROOT PATH OPTIONS ... - TYPE SOURCE OPTIONS" */
static bool line_is_near(const char *line, const char *device)
{
	const char *type = strstr(line, " - ");
	struct slice rest, word;

	slice_cut(slice_of(line), ' ', &rest);
	slice_cut(rest, ' ', &rest);
	word = slice_cut(rest, ' ', &rest);
	if (!type || !slice_is(word, device))
		return false;
	return is_near_name(slice_cut(slice_of(type + 3), ' ', &rest));
}

/* What lies below an overlay: a disk has a number of its own, other things are looked up. */
static bool is_near_device(uint64_t device)
{
	FILE *mounts;
	char text[32], *line = NULL;
	size_t room = 0;
	bool found = false;

	if (device >> MINOR_BITS)
		return true;
	snprintf(text, sizeof(text), "0:%" PRIu64, device);
	mounts = fopen("/proc/self/mountinfo", "re");
	while (mounts && !found && getline(&line, &room, mounts) > 0)
		found = line_is_near(line, text);
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

bool near_file_is(int fd, uint64_t device)
{
	struct statfs statfs;

	if (fstatfs(fd, &statfs))
		return false;
	if ((uint32_t)statfs.f_type == OVERLAYFS_SUPER_MAGIC)
		return is_near_device(device);
	for (size_t i = 0; i < sizeof(near_types) / sizeof(*near_types); i++)
		if ((uint32_t)statfs.f_type == near_types[i])
			return true;
	return false;
}

static bool copy_all(int fd, int copy, uint64_t bytes_max, void (*progress)(void *context),
		     void *context)
{
	uint64_t total = 0;
	ssize_t got;

	while ((got = sendfile(copy, fd, NULL, PIECE_BYTES)) > 0) {
		total += (uint64_t)got;
		if (total > bytes_max) {
			errno = EFBIG;
			return false;
		}
		progress(context);
	}
	return !got;
}

int near_file_copy(int fd, uint64_t bytes_max, void (*progress)(void *context), void *context)
{
	struct stat stat;
	int copy;

	if (fstat(fd, &stat))
		return -1;
	if (stat.st_size < 0 || (uint64_t)stat.st_size > bytes_max) {
		errno = EFBIG;
		return -1;
	}
	copy = memfd_create("firn-far-file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy >= 0 &&
	    (!copy_all(fd, copy, bytes_max, progress, context) ||
	     fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))) {
		int error_number = errno;

		close(copy);
		errno = error_number;
		return -1;
	}
	return copy;
}
