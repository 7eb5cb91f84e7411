/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_tar - checks archives of source files, and reads one of their files.
 *
 * tar, plain or packed with gzip, zstd or xz. An entry matches if the paths are equal but for a
 * leading "/" or "./"; else if one path ends in the whole other one (builds map their folder away,
 * archives are made within it), the longest such entry. Reads the whole archive for each query. Any
 * thread.
 */
#ifndef FIRN_SERVER_DEBUGINFO_SOURCE_TAR_H
#define FIRN_SERVER_DEBUGINFO_SOURCE_TAR_H

#include "base/err.h"
#include "base/strbuf.h"

#define SOURCE_FILE_BYTES_MAX ((size_t)16 << 20)
#define SOURCE_ARCHIVE_BYTES_MAX ((uint64_t)8 << 30) /* unpacked */
#define SOURCE_TAR_FOUND 1

/* Whether the file is a whole archive within the bounds. ERR_INVALID, ERR_LIMIT. */
int source_tar_check(int fd, struct err *err);

/* Appends the text: SOURCE_TAR_FOUND; 0 when there is no such file; or a negative code. */
int source_tar_find(int fd, struct slice path, struct strbuf *out, struct err *err);

/* A path without a leading "/" or "./". */
struct slice source_tar_path(struct slice path);

#endif
