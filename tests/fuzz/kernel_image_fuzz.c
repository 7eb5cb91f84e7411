/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notes of a kernel and the file that may be its image, both from any bytes: a 16-bit length
 * of the notes, the notes, the image. It is taken only if the build ids are the same.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/describe/kernel_image.h"

#define RELEASE "6.1.0"
#define NOTES "/notes"
#define IMAGE "/boot/vmlinux-" RELEASE

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[64];

static void remove_root(void)
{
	char path[128];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s%s", root, i ? IMAGE : NOTES);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/boot", root);
	rmdir(path);
	rmdir(root);
}

static void make_root(void)
{
	char path[128];

	snprintf(root, sizeof(root), "/tmp/kernel_image_fuzz-XXXXXX");
	if (!mkdtemp(root))
		abort();
	snprintf(path, sizeof(path), "%s/boot", root);
	if (mkdir(path, 0700))
		abort();
	atexit(remove_root);
}

static void put(const char *name, struct slice bytes)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes.data, bytes.len) != (ssize_t)bytes.len)
		abort();
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_image image;
	struct slice bytes = slice_from(data, size);
	char notes[128];
	size_t len;

	if (size < 2)
		return 0;
	if (!root[0])
		make_root();
	bytes = slice_tail(bytes, 2);
	len = data[0] | (size_t)data[1] << 8;
	len = len < bytes.len ? len : bytes.len;
	put(NOTES, slice_from(bytes.data, len));
	put(IMAGE, slice_tail(bytes, len));
	snprintf(notes, sizeof(notes), "%s" NOTES, root);
	kernel_image_find(&image, root, notes, RELEASE);
	assert(strlen(image.build_id) < sizeof(image.build_id));
	assert(image.fd < 0 ? !image.path : image.path && image.build_id[0]);
	kernel_image_free(&image);
	return 0;
}
