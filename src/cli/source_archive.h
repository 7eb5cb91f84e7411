/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_archive - the source files of a folder as one tar archive, to be uploaded. Names are the
 * absolute paths, as compilers write them into debug information. Hidden folders, links and files
 * that are no text (a NUL in their first bytes) are left out.
 */
#ifndef FIRN_CLI_SOURCE_ARCHIVE_H
#define FIRN_CLI_SOURCE_ARCHIVE_H

#include <stddef.h>

#include "base/err.h"

/*
 * Opens one archive of all the folders, packed with zstd, in a temporary file without a name; or,
 * when there is a single path and it is a file, that file. A descriptor, or a negative code;
 * *ret_files is how many files were packed.
 */
int source_archive_open(const char *const *paths, size_t count, size_t *ret_files, struct err *err);

#endif
