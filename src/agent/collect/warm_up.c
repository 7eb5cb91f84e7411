/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/collect/warm_up.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/procs/maps_file.h"
#include "agent/procs/opener.h"
#include "base/clock.h"

#define KERNEL_MINOR_BITS 20 /* of dev_t inside the kernel, MINORBITS */

/* Takes over fd. */
static void want(struct unwind_loader *loader, const struct file_key *key, int fd, const char *path)
{
	struct elf_info elf;
	struct err err;

	if (elf_read_info(fd, path, &elf, &err))
		close(fd);
	else
		unwind_loader_want(loader, key, fd, elf.build_id, path);
}

static void warm_up_range(struct unwind_loader *loader, uint32_t pid,
			  const struct maps_range *range)
{
	struct opener_place place = {
		.pids = { pid }, .pids_count = 1, .start = range->start, .end = range->end
	};
	struct file_key key = opener_key(&place, range);
	struct strbuf path = { 0 };
	int fd = -1;

	if (!unwind_loader_is_known(loader, &key))
		fd = opener_open(&place, &key, &path);
	if (fd >= 0)
		want(loader, &key, fd, range->path);
	strbuf_free(&path);
}

void warm_up_process(struct unwind_loader *loader, uint32_t pid)
{
	struct maps_file maps = { 0 };
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (maps_file_read(&maps, fd, NULL) > 0)
		for (size_t i = 0; i < maps.count; i++)
			if (maps.ranges[i].kind == MAPPING_FILE)
				warm_up_range(loader, pid, &maps.ranges[i]);
	maps_file_free(&maps);
	close(fd);
}

void warm_up_program(struct unwind_loader *loader, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct file_key key;
	struct stat stat;

	if (fd < 0)
		return;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode)) {
		close(fd);
		return;
	}
	key = (struct file_key){
		.inode = stat.st_ino,
		.device = (uint64_t)major(stat.st_dev) << KERNEL_MINOR_BITS | minor(stat.st_dev),
		.changed_ns = stat.st_mtim.tv_sec * CLOCK_NS_PER_S + stat.st_mtim.tv_nsec,
	};
	if (unwind_loader_is_known(loader, &key))
		close(fd);
	else
		want(loader, &key, fd, path);
}
