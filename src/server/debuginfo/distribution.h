/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribution - what this host's distribution offers for programs without symbols: its debuginfod
 * servers, and the command that installs the debug information of a file's package.
 *
 * Reads text files that everybody may read; runs nothing. `root` is "" but for tests. Any thread.
 */
#ifndef FIRN_SERVER_DEBUGINFO_DISTRIBUTION_H
#define FIRN_SERVER_DEBUGINFO_DISTRIBUTION_H

#include "base/slice.h"
#include "base/strbuf.h"

/*
 * Appends the addresses of the debuginfod servers, blanks between them: those in
 * /etc/debuginfod (*.urls), as elfutils has them, else by /etc/os-release. Nothing when it
 * is not known.
 */
void distribution_servers(const char *root, struct strbuf *out);

/* What to do about one file; the texts are empty at first, and the caller's to free. */
struct distribution_remedy {
	struct slice path;
	struct strbuf package; /* its name, when it is known */
	struct strbuf command; /* installs the package's debug information, for a shell */
};

/*
 * Fills in the texts; nothing of a file that no package has. Looks through the lists of all
 * packages, once for all files.
 */
void distribution_remedies(const char *root, struct distribution_remedy *remedies, size_t count);

#endif
