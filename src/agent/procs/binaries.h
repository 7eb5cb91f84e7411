/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binaries - the files that processes map executable, each once by the kernel's key (bpf/table.h:
 * inode, device, change of contents), however many processes map it.
 *
 * A binary is known by its key alone at first: the process may have ended before anyone could open
 * the file. The next process that maps the file fills it in (binaries_fill), for all references.
 * The file stays open ("pinned") for a while, so that its symbols can be read when process or path
 * are gone: until it is announced (binaries_take_news), which happens if frames lie in it, and at
 * most PIN_KEEP. Files that are not ELF are remembered too, so that they are inspected once.
 *
 * Owned by the drain thread. Bounds: BINARIES_MAX; over it the oldest unused ones go.
 * BINARIES_PINNED_MAX files open; over it they are opened again when they are needed.
 */
#ifndef FIRN_AGENT_PROCS_BINARIES_H
#define FIRN_AGENT_PROCS_BINARIES_H

#include "agent/bpf/table.h"
#include "agent/runtime/runtime_file.h"
#include "base/clock.h"
#include "base/idmap.h"
#include "codec/elf/elf.h"
#include "codec/elf/elf_origin.h"

#define BINARIES_MAX 8192
#define BINARIES_PINNED_MAX 256

struct binary {
	struct file_key key;
	bool opened;		      /* its contents were looked at */
	bool asked;		      /* its file is being opened */
	bool is_sampled;	      /* a process that maps it was */
	bool has_frames;	      /* a sample fell into it */
	bool announced;		      /* or will not be */
	int fd;			      /* pinned, else -1 */
	uint32_t pid;		      /* of the process through which it was opened last */
	struct elf_info *elf;	      /* NULL = no ELF file, or not opened */
	struct elf_origin origin;     /* as far as it says */
	struct runtime_file *runtime; /* NULL = no language runtime that we know */
	uint16_t musl_keys_at;	      /* what c_library_read says of it */
	char *path;		      /* as the first process to map it sees it; NULL = not known */
	uint32_t references;	      /* mappings */
	int64_t used_at_ns;	      /* monotonic, when a reference was last taken or dropped */
	int64_t try_again_at_ns, try_interval_ns; /* of opening */
	int64_t pinned_at_ns;
};

/* A binary that a frame lies in for the first time. The receiver owns all of it. */
struct binary_news {
	struct file_key key; /* zero: no process maps it */
	char build_id[ELF_BUILD_ID_TEXT_BYTES];
	char *path;
	int fd;
	uint32_t pid; /* of a process that had it mapped */
};

/*
 * Who wants the files for unwind tables (unwind/loader.h). NULL members: no one. `is_known`: there
 * is nothing to do for this file. `want`: `fd` becomes the receiver's, -1 where the file could not
 * be opened again; the texts are valid during the call. `cannot_open`: this was tried some times.
 * `only_sampled`: not of files that only processes without a sample map.
 */
struct binaries_tables {
	bool (*is_known)(void *context, const struct file_key *key);
	void (*want)(void *context, const struct file_key *key, int fd, const char *build_id,
		     const char *path);
	void (*cannot_open)(void *context, const struct file_key *key, const char *path);
	void *context;
	bool only_sampled;
};

struct binaries {
	struct binary **items;
	size_t count, capacity;
	struct idmap map;
	size_t pinned;
	uint64_t runtimes; /* binaries found to be language runtimes or musl, ever */
	struct binary_news *news;
	size_t news_count, news_capacity;
	bool announce; /* keep files for binaries_take_news */
	struct binaries_tables tables;
};

/* `tables` may be NULL. */
void binaries_init(struct binaries *binaries, bool announce, const struct binaries_tables *tables);
void binaries_fini(struct binaries *binaries);

/* NULL when it is not known. */
struct binary *binaries_find(const struct binaries *binaries, const struct file_key *key);

/* The binary of this key, with a reference taken, made when new. NULL when over BINARIES_MAX. */
struct binary *binaries_get(struct binaries *binaries, const struct file_key *key, int64_t now_ns);
struct binary *binary_ref(struct binary *binary); /* accepts and returns NULL */
void binary_unref(struct binary *binary, int64_t now_ns);

/* True if the file is needed: never looked at, or for its unwind table, or to be announced. */
bool binaries_needs_file(const struct binaries *binaries, const struct binary *binary);

/* It was tried, in vain, and is not being tried. */
bool binary_cannot_be_opened(const struct binary *binary);

/*
 * Takes the open file of process `pid` and what its headers say (NULL: it is no ELF file), and
 * hands it to who waits for it.
 * -1: it could not be opened; there will be no new try before some time has passed.
 */
void binaries_fill(struct binaries *binaries, struct binary *binary, uint32_t pid, int fd,
		   struct elf_info *elf, const char *path, int64_t now_ns);

/* Notes a path for a binary that has none yet. */
void binary_name(struct binary *binary, const char *path);

/* A frame lies in it: it is announced as soon as its file is there. */
void binaries_add_frame(struct binaries *binaries, struct binary *binary);

/*
 * Forgets binaries without references: those unused for 5 minutes, all when there are too many.
 * Closes files that have been open for long enough.
 */
void binaries_sweep(struct binaries *binaries, int64_t now_ns);

/* Aborts when the count of pinned files is not that of the files that are open. */
void binaries_check(const struct binaries *binaries);

/* Announces a file that no process maps: the kernel's. The descriptor stays the caller's. */
void binaries_add_news(struct binaries *binaries, const char *build_id, const char *path, int fd);

/* Gives the news away (array and elements); the count may be 0. */
struct binary_news *binaries_take_news(struct binaries *binaries, size_t *ret_count);
void binary_news_free(struct binary_news *news); /* what it owns */

/*
 * Takes back what there was no room for: it is among the next news, or, when too many files are
 * open, as soon as a frame lies in the binary again.
 */
void binaries_give_back(struct binaries *binaries, struct binary_news *news, size_t count);

#endif
