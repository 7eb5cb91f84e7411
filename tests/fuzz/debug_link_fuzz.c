/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary from any bytes, whose .gnu_debuglink and .gnu_debugaltlink name other files: none is
 * found, or a descriptor of one comes back.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/resolve/read/debug_files.h"

#define NOWHERE "/nonexistent"
#define BUILD_ID "aabbccddeeff00112233445566778899aabbccdd"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int fd, const struct err *err)
{
	if (fd < 0) {
		assert(err->message[0]);
		return;
	}
	assert(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct err err = { 0 };

	assert(fd >= 0);
	assert(write(fd, data, size) == (ssize_t)size);
	check(debug_files_open_alternate(fd, NOWHERE "/program", NOWHERE, &err), &err);
	err.message[0] = '\0';
	check(debug_files_open_alternate(fd, NULL, NULL, &err), &err);
	err.message[0] = '\0';
	check(debug_files_open_by_link(fd, NOWHERE "/program", SLICE_LITERAL(BUILD_ID), &err),
	      &err);
	close(fd);
	return 0;
}
