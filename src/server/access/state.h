/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the result of one reading of the web configuration: certificates ready to use, users,
 * tokens. Immutable, reference-counted; any thread.
 */
#ifndef FIRN_SERVER_ACCESS_STATE_H
#define FIRN_SERVER_ACCESS_STATE_H

#include <stdatomic.h>

#include "config/web_config.h"
#include "net/tls.h"

#define STATE_FILES_MAX 64 /* that are watched */

/* A file as it was when it was read; a missing one is all zeros. */
struct state_file {
	const char *path;
	int64_t changed_ns;
	uint64_t inode, bytes;
};

struct state {
	_Atomic unsigned references;
	struct web_config config;
	struct tls *tls; /* NULL: plain text */
	struct state_file files[STATE_FILES_MAX];
	size_t files_count;
};

int state_read(const char *path, struct state **ret, struct err *err);
struct state *state_ref(struct state *state);
void state_unref(struct state *state); /* accepts NULL */

/* True if one of its files has changed. */
bool state_is_stale(const struct state *state);

#endif
