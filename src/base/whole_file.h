/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_file - a regular file's bytes, at most so many, in one call. Blocks. Not for /proc (sizes
 * are not looked at, but a pipe or a device is refused).
 */
#ifndef FIRN_BASE_WHOLE_FILE_H
#define FIRN_BASE_WHOLE_FILE_H

#include "base/err.h"
#include "base/strbuf.h"

/* Appends to `out`. ERR_LIMIT when there is more; errors name the path. */
int whole_file_read(const char *path, size_t max_bytes, struct strbuf *out, struct err *err);

#endif
