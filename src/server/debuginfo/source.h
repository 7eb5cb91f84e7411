/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source - the text of source files: from the archive (source_tar.h) that was uploaded for a build
 * id; from the folders of options.source_paths; from its place on this host, if the client's user
 * may read it there (local_source.h); from debuginfod.
 *
 * Below a folder of options.source_paths, the path is tried without its leading "/", then without
 * its first folders, down to one folder and the name; and the path itself, if it lies in the
 * folder. Nothing outside of the folder is ever opened, whatever the path, its ".." or links in the
 * folder say (openat2, RESOLVE_BENEATH).
 */
#ifndef FIRN_SERVER_DEBUGINFO_SOURCE_H
#define FIRN_SERVER_DEBUGINFO_SOURCE_H

#include "base/strbuf.h"
#include "server/debuginfo/debuginfo.h"

#define SOURCE_PATH_BYTES_MAX 4096

struct local_source;

/*
 * `tenant` (NULL: there are none) sees archives that he sent himself, and what debuginfod servers
 * give to everybody; the files of this host are the tenant ""'s.
 */
struct source_wanted {
	struct slice build_id, path;
	const struct slice *tenant;
	struct local_source *local; /* reads this host's files for the client's user; NULL: not for
				       this client */
	int64_t until_ns;	    /* monotonic; for local and debuginfod */
};

/*
 * The text into `out`; *ret_from says from where. Blocks. ERR_NOT_FOUND lists the places tried;
 * ERR_LIMIT: it is too large; ERR_INVALID: no path or build id. Any thread.
 */
int source_find(struct debuginfo *debuginfo, const struct source_wanted *wanted, struct strbuf *out,
		const char **ret_from, struct err *err);

#endif
