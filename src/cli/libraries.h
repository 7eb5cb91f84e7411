/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libraries - the linked libraries and the versions at the build. embed_libraries.py makes the
 * table from libraries.txt.
 */
#ifndef FIRN_CLI_LIBRARIES_H
#define FIRN_CLI_LIBRARIES_H

#include "base/strbuf.h"

struct library {
	const char *name;	/* "openssl" */
	const char *version;	/* of the package: "3.0.19-1~deb12u2"; NULL when nobody knows */
	const char *package;	/* "libssl-dev" */
	const char *licence;	/* SPDX expression */
	const char *purl;	/* package URL, which advisories are looked up by */
	const char *downloaded; /* "https://deb.debian.org/debian", "https://registry.npmjs.org" */
};

extern const struct library libraries[];
extern const size_t libraries_count;
extern const char libraries_linkage[]; /* "statically" or "dynamically" */

/* For people: the compiler, then a line for each library. */
void libraries_list(struct strbuf *out);

/* The bill of materials: an SPDX 2.3 document in JSON. */
void libraries_sbom(struct strbuf *out);

#endif
