/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binaries - the executable files that samples fall into, each known once by what it is on disk
 * (device, inode, change of contents), however many processes map it.
 *
 * A new binary's file stays open ("pinned") until it has been announced (binaries_take_news), so
 * that its symbols can be read although the process or the path has gone. Files that are no ELF
 * are remembered too, so that they are looked at once.
 *
 * Owned by the drain thread. Bounds: BINARIES_MAX; over it the oldest unused ones go.
 */
#ifndef FIRN_AGENT_PROCS_BINARIES_H
#define FIRN_AGENT_PROCS_BINARIES_H

#include "base/clock.h"
#include "base/idmap.h"
#include "codec/elf.h"

#define BINARIES_MAX 4096

struct binary_identity {
	uint64_t device, inode, bytes;
	int64_t changed_ns; /* mtime */
};

struct binary {
	struct binary_identity identity;
	struct elf_info *elf; /* NULL = no ELF file */
	char *path;	      /* as the first process to map it sees it */
	uint32_t references;  /* mappings */
	int64_t used_at_ns;   /* monotonic, when a reference was last taken or dropped */
};

/* A binary seen for the first time. The receiver owns all of it. */
struct binary_news {
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	char *path;
	int fd;
};

struct binaries {
	struct binary **items;
	size_t count, capacity;
	struct idmap map;
	struct binary_news *news;
	size_t news_count, news_capacity;
	bool announce; /* keep files for binaries_take_news */
};

void binaries_init(struct binaries *binaries, bool announce);
void binaries_fini(struct binaries *binaries);

/*
 * The binary of an open file, with a reference taken. Closes `fd` or keeps it. NULL when the
 * file cannot be one (not regular, over BINARIES_MAX); `path` is copied.
 */
struct binary *binaries_get(struct binaries *binaries, int fd, const char *path, int64_t now_ns);
struct binary *binary_ref(struct binary *binary); /* accepts and returns NULL */
void binary_unref(struct binary *binary, int64_t now_ns);

/* Forgets binaries without references: those unused for 5 minutes, all when there are too many. */
void binaries_sweep(struct binaries *binaries, int64_t now_ns);

/* Gives the news away (array and elements); the count may be 0. */
struct binary_news *binaries_take_news(struct binaries *binaries, size_t *ret_count);
void binary_news_free(struct binary_news *news, size_t count);

#endif
