/* SPDX-License-Identifier: Apache-2.0 */
#include "server/resolve/table/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PENDING_BYTES ((size_t)1 << 20)

int spill_file(const char *directory, struct err *err)
{
	int fd = directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

	if (fd < 0) /* the file system has no such files */
		fd = memfd_create("firn-symbols", MFD_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "make a temporary file");
	return fd;
}

void spill_init(struct spill *spill, int fd)
{
	*spill = (struct spill){ .fd = fd };
}

void spill_free(struct spill *spill)
{
	if (spill->mapped)
		munmap((void *)(uintptr_t)spill->mapped, spill->written);
	strbuf_free(&spill->pending);
	*spill = (struct spill){ .fd = -1 };
}

static void write_out(struct spill *spill)
{
	const char *at = spill->pending.data;
	size_t left = spill->pending.len;

	while (left && !spill->has_failed) {
		ssize_t done = pwrite(spill->fd, at, left, (off_t)spill->written);

		if (done <= 0 && errno != EINTR) {
			spill->has_failed = true;
			break;
		}
		if (done > 0) {
			at += done;
			left -= (size_t)done;
			spill->written += (uint64_t)done;
		}
	}
	strbuf_clear(&spill->pending);
}

void spill_added(struct spill *spill)
{
	if (spill->fd >= 0 && spill->pending.len >= PENDING_BYTES)
		write_out(spill);
}

int spill_finish(struct spill *spill, const uint8_t **ret, struct err *err)
{
	void *mapped;

	*ret = (const uint8_t *)spill->pending.data;
	if (spill->fd < 0)
		return 0;
	if (!spill->has_failed)
		write_out(spill);
	if (spill->has_failed)
		return err_set_errno(err, errno, "write to a temporary file");
	*ret = NULL;
	if (!spill->written)
		return 0;
	mapped = mmap(NULL, spill->written, PROT_READ, MAP_SHARED, spill->fd, 0);
	if (mapped == MAP_FAILED)
		return err_set_errno(err, errno, "map a temporary file");
	spill->mapped = mapped;
	*ret = spill->mapped;
	return 0;
}
