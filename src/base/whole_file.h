/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_file - all of a file's bytes in one call, in and out. Blocks. Reading is for regular files:
 * a pipe or a device is refused.
 */
#ifndef FIRN_BASE_WHOLE_FILE_H
#define FIRN_BASE_WHOLE_FILE_H

#include "base/err.h"
#include "base/strbuf.h"

/* Appends to `out`. ERR_LIMIT when there is more; errors name the path. */
MUST_USE int whole_file_read(const char *path, size_t max_bytes, struct strbuf *out,
			     struct err *err);

/* Writes all of them to any descriptor, however many calls that takes. 0 or -errno. */
MUST_USE int whole_file_write(int fd, struct slice bytes);

#endif
