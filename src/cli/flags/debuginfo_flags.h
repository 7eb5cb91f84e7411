/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo_flags - the server's options about where symbols and sources come from besides uploads.
 */
#ifndef FIRN_CLI_FLAGS_DEBUGINFO_FLAGS_H
#define FIRN_CLI_FLAGS_DEBUGINFO_FLAGS_H

#include "cli/verb.h"
#include "server/server.h"

struct debuginfo_flags {
	struct option_list urls, source_paths;
	int64_t timeout_ns;
	struct option_size bytes_max;
	char environment[4096]; /* a copy of $DEBUGINFOD_URLS that urls may point into */
	char automatic[4096];	/* likewise, of the distribution's servers */
};

/* `type` is the verb's options struct, whose member `server.debuginfo` is a struct debuginfo_flags.
 */
#define DEBUGINFO_FLAGS_OPTIONS(type)                                                              \
	OPTION_AT(DEBUGINFOD_URL, offsetof(type, server.debuginfo.urls)),                          \
		OPTION_AT(DEBUGINFOD_TIMEOUT, offsetof(type, server.debuginfo.timeout_ns)),        \
		OPTION_AT(DEBUGINFOD_MAX_SIZE, offsetof(type, server.debuginfo.bytes_max)),        \
		OPTION_AT(SOURCE_PATH, offsetof(type, server.debuginfo.source_paths))

/* Fills what of the options is about this. What it points at lives as long as the flags. */
int debuginfo_flags_apply(struct debuginfo_flags *flags, struct server_options *options,
			  struct err *err);

#endif
