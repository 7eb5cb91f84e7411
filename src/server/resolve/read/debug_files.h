/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_files - finds and opens files with symbols. Never blocks; opens only regular files with the
 * wanted identity.
 */
#ifndef FIRN_SERVER_RESOLVE_READ_DEBUG_FILES_H
#define FIRN_SERVER_RESOLVE_READ_DEBUG_FILES_H

#include "base/err.h"
#include "codec/elf/elf.h"

/* Lower-case hex of at least two bytes, so that it can be part of a path. */
bool debug_files_id_valid(struct slice build_id);

/* Opens a regular file for reading: a descriptor, or a negative code. */
int debug_files_open(const char *path, struct err *err);

/* Opens an ELF file with this build id at `path`. */
int debug_files_open_binary(struct slice path, struct slice build_id, struct err *err);

/*
 * Opens the separate debug file of a build id: `<directory>/<xx>/<rest>.debug`, with
 * `directory` (may be NULL) first and then the system's. ERR_NOT_FOUND when there is none.
 */
int debug_files_open_by_id(const char *directory, struct slice build_id, struct err *err);

/*
 * Opens `<directory>/<xx>/<rest>.<suffix>`, which was checked when it was uploaded, so its content
 * need not have the build id. `directory` may be NULL.
 */
int debug_files_open_upload(const char *directory, struct slice build_id, const char *suffix,
			    struct err *err);

/*
 * Opens the file that the .gnu_debuglink section of the binary `fd` names, in the places where
 * debuggers look: beside the binary, in .debug/ there, and below /usr/lib/debug. Its checksum
 * must be the one in the link; a build id, when it has one, that of the binary.
 */
int debug_files_open_by_link(int fd, const char *binary_path, struct slice build_id,
			     struct err *err);

/*
 * Opens the file that the .gnu_debugaltlink section of `fd` names (dwz moves there what several
 * debug files share): by its build id as above, or at the path in the link. `binary_path`, where
 * `fd` lies, is what relative paths start from; NULL when it lies nowhere on this host.
 */
int debug_files_open_alternate(int fd, const char *binary_path, const char *directory,
			       struct err *err);

#endif
