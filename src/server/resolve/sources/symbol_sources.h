/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol_sources - the files that the symbols of one binary are read from.
 *
 * Starts with the binary, if there is one, then finds what belongs to it: the separate debug file
 * by build id or debuglink, the alternate file of dwz, the package of split units. Owns the
 * descriptors and names. One thread.
 */
#ifndef FIRN_SERVER_RESOLVE_SOURCES_SYMBOL_SOURCES_H
#define FIRN_SERVER_RESOLVE_SOURCES_SYMBOL_SOURCES_H

#include <stdatomic.h>

#include "server/resolve/read/symbol_reader.h"

struct symbol_sources { /* zero-initialised is empty and valid */
	struct symbol_input inputs[SYMBOL_INPUTS_MAX];
	size_t count;
	char *directory; /* of the binary, when it is local */
	/* Where alternate files may lie too, by build id; borrowed, may be NULL. */
	const char *uploads_path;
	bool has_binary; /* it is the first input */
	bool is_local;	 /* ... and lies on this host, beside its debug files */
};

void symbol_sources_close(struct symbol_sources *sources);

/* Takes over the descriptor of the binary, in an empty struct; `path` is where it lies here. */
void symbol_sources_set_binary(struct symbol_sources *sources, int fd, struct slice path);

/* Takes over the descriptor of another file of the same build id; `name` is for messages. */
void symbol_sources_add(struct symbol_sources *sources, int fd, struct slice name);

/*
 * Adds the debug files of a build id. `directory` (may be NULL) is looked into before the
 * system's; places that the binary names are looked at when it is local.
 */
void symbol_sources_find(struct symbol_sources *sources, const char *directory,
			 struct slice build_id);

/*
 * As symbol_worker_build; a debug file that cannot be read does not spoil the binary's symbols.
 */
int symbol_sources_build(const struct symbol_sources *sources, const struct symbol_limits *limits,
			 const char *scratch_directory, const _Atomic bool *cancelled, int out_fd,
			 struct err *err);

/* The same for a table that is not kept; of these addresses alone (NULL: of all). */
int symbol_sources_table(const struct symbol_sources *sources, const struct symbol_asked *asked,
			 struct symbol_table **ret, struct err *err);

#endif
