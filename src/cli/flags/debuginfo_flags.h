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
};

/* `type` is the verb's options struct, whose member `server.debuginfo` is a struct debuginfo_flags.
 */
#define DEBUGINFO_FLAGS_OPTIONS(type)                                                              \
	{ 0,                                                                                       \
	  "debuginfod-url",                                                                        \
	  OPTION_LIST,                                                                             \
	  offsetof(type, server.debuginfo.urls),                                                   \
	  "URL",                                                                                   \
	  "ask this server for missing symbols and sources; repeatable; \"\" = none "              \
	  "(default: those in $DEBUGINFOD_URLS)",                                                  \
	  0,                                                                                       \
	  0 },                                                                                     \
		{ 0,                                                                               \
		  "debuginfod-timeout",                                                            \
		  OPTION_DURATION,                                                                 \
		  offsetof(type, server.debuginfo.timeout_ns),                                     \
		  "D",                                                                             \
		  "give up one file after this long (default 5m)",                                 \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,	       "debuginfod-max-size",                                              \
		  OPTION_SIZE, offsetof(type, server.debuginfo.bytes_max),                         \
		  "B",	       "fetch no file larger than this (default 2GiB)",                    \
		  0,	       0 },                                                                \
	{                                                                                          \
		0, "source-path", OPTION_LIST, offsetof(type, server.debuginfo.source_paths),      \
			"DIR", "source files below this folder may be shown; repeatable", 0, 0     \
	}

/* Fills what of the options is about this. What it points at lives as long as the flags. */
void debuginfo_flags_apply(struct debuginfo_flags *flags, struct server_options *options);

#endif
