/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader - the thread that puts unwind tables where the BPF unwinder reads them.
 *
 *   file seen -> table from the cache, or built (table_build) -> checked (table_file)
 *             -> room in the chunks -> copied there -> entry in the map `tables`
 *
 * The maps and the layout are those of bpf/table.h. A binary without unwind information gets an
 * entry too, with no segments. The vdso is loaded at the start and stays.
 *
 * When the chunks are full, the least recently used tables are evicted, if none was used during the
 * last `keep_ns`. So a set of binaries larger than the budget does not thrash: a late table waits,
 * and is counted. If the unwinder has looked for it again half a second later, tables unused for a
 * tenth of `keep_ns` are evicted, too.
 *
 * Any thread may call. Nothing here waits for the disk or for a build, but start and free.
 *
 * Bounds: chunks of `arena_bytes` in all; UNWIND_BINARIES_MAX binaries known, of which
 * UNWIND_QUEUE_MAX wait, UNWIND_PINNED_MAX of them with their file open; 20 % of one CPU after a
 * burst of 3 s.
 */
#ifndef FIRN_AGENT_UNWIND_LOADER_H
#define FIRN_AGENT_UNWIND_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/bpf/table.h"
#include "base/err.h"
#include "codec/elf/elf.h"

#define UNWIND_ARENA_DEFAULT_BYTES (40ull << 20)
#define UNWIND_BINARIES_MAX TABLES_MAX
#define UNWIND_QUEUE_MAX 1024
#define UNWIND_PINNED_MAX 256
#define UNWIND_PATH_BYTES 256

struct unwind_loader;

struct unwind_loader_options {
	/* The maps `chunks` and `tables`, borrowed; -1 = there are none, and nothing is loaded. */
	int chunks_fd, tables_fd;
	int first_chunk_fd; /* in `chunks` already, borrowed; -1 = `chunks` is empty */
	/* See bpf/shared.h; counted up when a table is taken away. NULL = nothing is kept. */
	uint32_t *space_versions;
	const char *cache_path; /* folder of table files (table_cache.h); NULL or "" = none */
	uint64_t cache_bytes;	/* 0 = the cache's default */
	uint64_t arena_bytes;	/* 0 = default; at least one chunk */
	int64_t keep_ns;	/* unused for less: stays. 0 = 10 s */
};

int unwind_loader_start(const struct unwind_loader_options *options, struct unwind_loader **ret,
			struct err *err);

/* Stops, also in the middle of a build. The maps keep what is in them. Accepts NULL. */
void unwind_loader_free(struct unwind_loader *loader);

/*
 * True if unwind_loader_want would do nothing for this file: its table is loaded or waiting, it has
 * no unwind information, or it failed and it is too early to try again. Cheap (a hash look-up under
 * a lock): call it before opening a file.
 */
bool unwind_loader_is_known(struct unwind_loader *loader, const struct file_key *key);

/*
 * Stacks wait for its table. True if it is in the queue, where it now comes before those that
 * nobody waits for, or being built. Every eighth is the one that has waited for longest.
 */
bool unwind_loader_hurry(struct unwind_loader *loader, const struct file_key *key);

/*
 * Asks for the table of a file. `fd` is open for reading and becomes the loader's in any case;
 * -1 where it could not be opened: then the cache helps, when the table was loaded before.
 * `build_id` (elf_info.build_id; may be NULL) and `path` are for people; both are copied. False =
 * refused for now, and counted: the queue or the table of binaries is full, or the file is not
 * open and not known. It may be asked for again.
 */
bool unwind_loader_want(struct unwind_loader *loader, const struct file_key *key, int fd,
			const char *build_id, const char *path);

/*
 * Notes that an unknown file could not be opened, so that stacks through it say so instead of "not
 * loaded yet". It may be wanted again at any time.
 */
void unwind_loader_cannot_open(struct unwind_loader *loader, const struct file_key *key,
			       const char *path);

/*
 * For a walk outside of the kernel: the entry of a file, false where there is none, and a chunk
 * that tables lie in, borrowed, -1 where there is none. What is read there may be taken away
 * meanwhile: see collect/second_walk.h.
 */
bool unwind_loader_find(struct unwind_loader *loader, const struct file_key *key,
			struct binary_tables *ret);
int unwind_loader_chunk_fd(struct unwind_loader *loader, uint32_t index);

enum unwind_state {
	UNWIND_WAITING, /* in the queue, or being built */
	UNWIND_LOADED,
	UNWIND_EMPTY,	/* no unwind information in the file */
	UNWIND_EVICTED, /* was loaded; is again when it is wanted */
	UNWIND_FAILED,	/* `reason` says why; tried again, unless the file is at fault */
	UNWIND_STATES
};

/* "loaded", "evicted", ... */
const char *unwind_state_name(enum unwind_state state);

/* One binary, for people. */
struct unwind_binary {
	struct file_key key;
	char path[UNWIND_PATH_BYTES];		/* the end of it when it is longer */
	char build_id[ELF_BUILD_ID_TEXT_BYTES]; /* "" = not known */
	enum unwind_state state;
	bool cached;	    /* the last load came from the cache */
	char sources[64];   /* what the table is made of: ".eh_frame .gopclntab" */
	uint64_t rows;	    /* of the table, as long as it is loaded */
	uint64_t bytes;	    /* that it takes in the chunks */
	uint64_t build_ns;  /* CPU time of the last build by this agent; 0 = none */
	uint32_t loads;	    /* more than 1: it came back after having been evicted */
	int64_t used_at_ns; /* CLOCK_MONOTONIC, of the unwinder; 0 = not since it was loaded */
	char reason[256];   /* UNWIND_FAILED */
};

/* Fills up to `max` and returns how many, in no order. */
size_t unwind_loader_describe(struct unwind_loader *loader, struct unwind_binary *ret, size_t max);

/* Nothing waits and nothing is under way; false on timeout. For tests and `firn record`. */
bool unwind_loader_wait_idle(struct unwind_loader *loader, int64_t timeout_ns);

void unwind_loader_metrics_register(void); /* once per process */

#endif
