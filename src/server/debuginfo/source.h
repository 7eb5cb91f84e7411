/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source - the text of source files: from the archive (source_tar.h) that was uploaded for a build
 * id, from the folders of this host that may be read, from debuginfod.
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

#define SOURCE_PATH_BYTES_MAX 4096

/*
 * The text into `out`; *ret_from says from where. Blocks, for debuginfod at most until until_ns
 * (monotonic). ERR_NOT_FOUND tells where it was looked for; ERR_LIMIT when it is too large;
 * ERR_INVALID for what is no path or build id. Any thread. `tenant` (NULL: there are none) sees
 * archives that he sent himself, and what debuginfod servers give to everybody; the folders of this
 * host are the tenant ""'s.
 */
int source_find(struct debuginfo *debuginfo, struct slice build_id, struct slice path,
		const struct slice *tenant, int64_t until_ns, struct strbuf *out,
		const char **ret_from, struct err *err);

#endif
