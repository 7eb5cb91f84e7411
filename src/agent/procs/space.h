/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space - lists of executable mappings, as processes had them at some time.
 *
 * A list never changes: a process whose mappings change gets another one. So a stack that was
 * counted with its list can be looked up later, and an address that was in one library before and
 * in another after is never confused. Equal lists are shared: forked children use their parent's.
 *
 * Lists are sorted by address, without overlaps. Indexes are dense and stay valid until
 * spaces_sweep; lists without references live on until then. Owned by the drain thread. Bounds:
 * SPACE_MAPPINGS_MAX of each list; who adds looks at `bytes`.
 */
#ifndef FIRN_AGENT_PROCS_SPACE_H
#define FIRN_AGENT_PROCS_SPACE_H

#include "agent/procs/binaries.h"

#define SPACE_MAPPINGS_MAX 8192
#define SPACE_NONE UINT32_MAX /* no index */

enum mapping_kind {
	MAPPING_FILE, /* backed by a file */
	MAPPING_VDSO,
	MAPPING_ANONYMOUS, /* generated code, and everything that is no file */
};

struct mapping {
	uint64_t start, end;
	uint64_t offset;       /* of start in the file */
	struct binary *binary; /* of MAPPING_FILE; NULL = there were too many */
	uint64_t kind;	       /* enum mapping_kind; as wide as this so that there is no padding */
};

struct space {
	uint64_t hash;
	uint32_t index;
	uint32_t references;
	uint32_t count;
	bool counted; /* tracker's, while it sums up */
	struct mapping mappings[];
};

struct spaces {
	struct binaries *binaries;
	struct space **items;
	size_t count, capacity;
	struct idmap map;
	size_t bytes;		 /* of all lists */
	struct mapping *pending; /* the list being made */
	size_t pending_count, pending_capacity;
};

void spaces_init(struct spaces *spaces, struct binaries *binaries); /* borrows `binaries` */
void spaces_fini(struct spaces *spaces, int64_t now_ns);

/*
 * Making a list: begin, add its mappings in order of address, end. A mapping that is empty,
 * overlaps the one before, or is one too many is left out (false). `key` is that of MAPPING_FILE.
 */
void spaces_begin(struct spaces *spaces);
bool spaces_add(struct spaces *spaces, uint64_t start, uint64_t end, uint64_t offset,
		enum mapping_kind kind, const struct file_key *key, int64_t now_ns);

/* The binary of what was added last; may be NULL. */
struct binary *spaces_added(const struct spaces *spaces);

/* Adds of an older list what overlaps nothing of the one being made. */
void spaces_keep(struct spaces *spaces, const struct space *older);

/* The list, with a reference taken. */
struct space *spaces_end(struct spaces *spaces, int64_t now_ns);

struct space *space_ref(struct space *space); /* accepts and returns NULL */
void space_unref(struct space *space);	      /* accepts NULL */
size_t space_bytes(const struct space *space);

/*
 * The mapping of an address, or NULL; accepts NULL. Code that a program has copied over its own
 * text (to have it on large pages) belongs to the file that was there: then the address lies
 * outside of the mapping returned, but `address - start + offset` is right all the same.
 */
const struct mapping *space_find(const struct space *space, uint64_t address);

/*
 * The same, sooner where it is the mapping `near` of this list, which may be NULL: neighbours in a
 * stack often lie in the same file.
 */
const struct mapping *space_find_near(const struct space *space, const struct mapping *near,
				      uint64_t address);

/* Code in no file (NULL), or in a file that turned out to be no ELF: the process made it. */
bool mapping_is_generated(const struct mapping *mapping);

/* True if an address in the mapping is code of an ELF file, and not of what lies behind it. */
bool mapping_is_elf(const struct mapping *mapping, uint64_t address);

/* Frees lists without references. Indexes change. */
void spaces_sweep(struct spaces *spaces, int64_t now_ns);

/* Aborts when lists are out of order, not where their index says, or counted wrong. */
void spaces_check(const struct spaces *spaces);

#endif
