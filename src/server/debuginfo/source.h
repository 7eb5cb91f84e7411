/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source - the text of source files: from the archive that was uploaded for a build id, from the
 * folders of this host that may be read, from debuginfod.
 *
 * Archives are tar, plain or packed with gzip, zstd or xz. An entry is the file asked for when the
 * paths are equal but for a leading "/" or "./"; else when one path ends in the whole other one
 * (builds map their folder away, archives are made within it): the longest such entry.
 *
 * Below a folder of options.source_paths the path itself is looked for, without its leading "/",
 * then what is left of it when its first folders are taken away, down to a folder and a name; and
 * the path as it is, when it lies in the folder. Nothing outside of the folder is ever opened,
 * whatever the path, its ".." or links in the folder say (openat2, RESOLVE_BENEATH).
 */
#ifndef FIRN_SERVER_DEBUGINFO_SOURCE_H
#define FIRN_SERVER_DEBUGINFO_SOURCE_H

#include "base/strbuf.h"
#include "server/debuginfo/debuginfo.h"

#define SOURCE_FILE_BYTES_MAX ((size_t)16 << 20)
#define SOURCE_PATH_BYTES_MAX 4096
#define SOURCE_ARCHIVE_BYTES_MAX ((uint64_t)8 << 30) /* unpacked */

/* Whether the file is a whole archive within the bounds. ERR_INVALID, ERR_LIMIT. */
int source_check(int fd, struct err *err);

/*
 * The text into `out`; *ret_from says from where. Blocks, for debuginfod at most until until_ns
 * (monotonic). ERR_NOT_FOUND tells where it was looked for; ERR_LIMIT when it is too large;
 * ERR_INVALID for what is no path or build id. Any thread.
 */
int source_find(struct debuginfo *debuginfo, struct slice build_id, struct slice path,
		int64_t until_ns, struct strbuf *out, const char **ret_from, struct err *err);

#endif
