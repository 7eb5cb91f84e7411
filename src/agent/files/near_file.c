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
bool near_file_is_device(uint64_t device)
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

static bool is_near_type(uint32_t type)
{
	for (size_t i = 0; i < sizeof(near_types) / sizeof(*near_types); i++)
		if (type == near_types[i])
			return true;
	return false;
}

bool near_file_is(int fd, uint64_t device)
{
	struct statfs found;

	if (fstatfs(fd, &found))
		return false;
	if ((uint32_t)found.f_type == OVERLAYFS_SUPER_MAGIC)
		return near_file_is_device(device);
	return is_near_type((uint32_t)found.f_type);
}

/* Cuts the folder that takes what is written out of an overlay's line; NULL when it is not plain.
 */
static char *upper_of_line(char *line)
{
	char *upper = strstr(line, ",upperdir="), *end;

	if (!upper || !strstr(line, " - overlay "))
		return NULL;
	upper += strlen(",upperdir=");
	end = upper + strcspn(upper, ", \n");
	*end = '\0';
	return *upper == '/' && !strchr(upper, '\\') ? upper : NULL;
}

static bool is_upper_near(uint32_t pid, uint64_t mount)
{
	struct statfs found;
	char path[40], *line = NULL, *upper = NULL;
	size_t room = 0;
	FILE *mounts;
	bool near;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mountinfo", pid);
	mounts = fopen(path, "re");
	while (mounts && !upper && getline(&line, &room, mounts) > 0)
		if (strtoull(line, NULL, 10) == mount)
			upper = upper_of_line(line);
	near = upper && !statfs(upper, &found);
	free(line);
	if (mounts)
		fclose(mounts);
	return near && is_near_type((uint32_t)found.f_type);
}

bool near_file_is_written(int fd, uint32_t pid)
{
	struct statfs found;
	struct statx statx_of;

	if (fstatfs(fd, &found))
		return false;
	if ((uint32_t)found.f_type != OVERLAYFS_SUPER_MAGIC)
		return is_near_type((uint32_t)found.f_type);
	return !statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &statx_of) &&
	       statx_of.stx_mask & STATX_MNT_ID && is_upper_near(pid, statx_of.stx_mnt_id);
}

/* Whether the line is of the mount that is seen at "/"; then *ret_near tells of it. */
static bool line_is_root(const char *line, bool *ret_near)
{
	const char *type = strstr(line, " - ");
	struct slice rest = slice_of(line), word, device = rest, name;
	bool is_disk;

	for (int i = 0; i < 3; i++)
		device = slice_cut(rest, ' ', &rest);
	slice_cut(rest, ' ', &rest);
	word = slice_cut(rest, ' ', &rest);
	if (!type || !slice_is(word, "/"))
		return false;
	name = slice_cut(slice_of(type + 3), ' ', &rest);
	is_disk = !slice_starts_with(device, SLICE_LITERAL("0:")) &&
		  !slice_starts_with(name, SLICE_LITERAL("fuse"));
	/* An overlay's folder that is written to has to be of this host. */
	*ret_near = is_disk || is_near_name(name) || slice_is(name, "rootfs") ||
		    slice_is(name, "overlay");
	return true;
}

bool near_file_root_may_wait(uint32_t pid)
{
	char path[40], *line = NULL;
	bool is_near = false;
	size_t room = 0;
	FILE *mounts;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mountinfo", pid);
	mounts = fopen(path, "re");
	if (!mounts)
		return false;
	while (getline(&line, &room, mounts) > 0)
		(void)line_is_root(line, &is_near); /* the last one hides those before */
	free(line);
	fclose(mounts);
	return !is_near;
}

/* Without `is_part` a file that is over `bytes_max` is an error, else it is cut there. */
static bool copy_all(int fd, int copy, uint64_t bytes_max, bool is_part,
		     void (*progress)(void *context), void *context)
{
	uint64_t total = 0;
	ssize_t got;

	while ((got = sendfile(copy, fd, NULL,
			       is_part && bytes_max - total < PIECE_BYTES ? bytes_max - total
									  : PIECE_BYTES)) > 0) {
		total += (uint64_t)got;
		if (total > bytes_max) {
			errno = EFBIG;
			return false;
		}
		progress(context);
	}
	return !got;
}

/* Takes `copy` over; -1 on an error, whose number stays in errno. */
static int seal(int copy, bool is_whole)
{
	int error_number;

	if (is_whole &&
	    !fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL))
		return copy;
	error_number = errno;
	close(copy);
	errno = error_number;
	return -1;
}

static int new_copy(void)
{
	return memfd_create("firn-far-file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
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
	copy = new_copy();
	return copy < 0 ? -1 : seal(copy, copy_all(fd, copy, bytes_max, false, progress, context));
}

int near_file_copy_part(int fd, uint64_t from, uint64_t bytes, void (*progress)(void *context),
			void *context)
{
	int copy = new_copy();
	bool is_whole;

	if (copy < 0)
		return -1;
	is_whole = !ftruncate(copy, (off_t)from) && lseek(copy, (off_t)from, SEEK_SET) >= 0 &&
		   lseek(fd, (off_t)from, SEEK_SET) >= 0 &&
		   copy_all(fd, copy, bytes, true, progress, context);
	return seal(copy, is_whole);
}
