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

/*
 * Appends the command that installs the debug information of the file's package, for a shell, and
 * the package's name to `package` when it is known. Nothing of a file that no package has.
 */
void distribution_remedy(const char *root, struct slice path, struct strbuf *package,
			 struct strbuf *command);

#endif
