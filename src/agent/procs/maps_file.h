/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mappings - the executable address ranges of one process image, sorted, without overlaps.
 *
 * A newer reading of /proc/PID/maps wins where it overlaps an older one; ranges that have gone
 * are kept, because samples from before may still fall into them. Bounds: MAPPINGS_MAX ranges.
 * Not thread-safe. Reads whole lines from a file descriptor, so tests can give any file.
 */
#ifndef FIRN_AGENT_PROCS_MAPPINGS_H
#define FIRN_AGENT_PROCS_MAPPINGS_H

#include "agent/procs/binaries.h"
#include "base/err.h"
#include "base/strbuf.h"

#define MAPPINGS_MAX 8192
#define MAPPINGS_READ_BYTES_MAX ((size_t)32 << 20)

enum mapping_kind {
	MAPPING_FILE, /* backed by a file */
	MAPPING_VDSO,
	MAPPING_ANONYMOUS, /* generated code, and everything that is no file */
};

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* of start in the file */
	uint64_t inode;
	enum mapping_kind kind;
	bool opened;	       /* opening the binary was tried */
	struct binary *binary; /* a reference; NULL = not opened, or not possible */
	char *path;	       /* of MAPPING_FILE, as the process sees it */
};

struct mappings {
	struct mapping *items;
	size_t count, capacity;
};

void mappings_free(struct mappings *mappings, int64_t now_ns);

/* Into empty mappings; binaries get a reference more. */
void mappings_copy(struct mappings *into, const struct mappings *from);

/* Reads a maps file and merges its executable ranges. 1 when it had lines at all, else 0. */
int mappings_read(struct mappings *mappings, int fd, int64_t now_ns, struct err *err);

struct mapping *mappings_find(const struct mappings *mappings, uint64_t address); /* or NULL */

size_t mappings_bytes(const struct mappings *mappings);

#endif
