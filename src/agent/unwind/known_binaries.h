/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_binaries - the binaries that the loader has heard of, by file key, each with a stable id
 * below UNWIND_BINARIES_MAX.
 *
 * The loader's lock protects it. Callers that want a table add binaries, and only the worker
 * removes them; so the worker may use one that it found without holding the lock.
 */
#ifndef FIRN_AGENT_UNWIND_KNOWN_BINARIES_H
#define FIRN_AGENT_UNWIND_KNOWN_BINARIES_H

#include "agent/unwind/loader.h"
#include "base/idmap.h"

struct known_binary {
	struct file_key key;
	enum unwind_state state;
	bool is_hurried;			     /* while it waits: stacks do, too */
	int fd;					     /* ...; -1 = none */
	char *path, *build_id, *cache_name, *reason; /* NULL = not known */
	uint32_t sources;			     /* bits of enum table_source */
	uint64_t rows, bytes;			     /* 0 while it is not loaded */
	uint64_t build_ns;
	bool cached;
	uint32_t loads;
	uint32_t failures;	    /* in a row */
	enum table_missing missing; /* UNWIND_FAILED: as the map says it */
	bool is_told;		    /* in the log, that there is no table */
	bool is_in_map;		    /* there is an entry, with segments or without */
	int64_t retry_at_ns;	    /* INT64_MAX = never: the file is what it is */
	int64_t settled_at_ns;	    /* when the last job for it ended */
	int64_t used_at_ns;	    /* as last read from the map */
};

struct known_binaries {
	struct known_binary *items[UNWIND_BINARIES_MAX]; /* by id; NULL = free */
	uint32_t count;
	uint32_t free_hint; /* no free id is below */
	struct idmap map;
};

void known_binaries_free(struct known_binaries *known); /* and closes their files */

/* NULL when there is none; the id only when there is one. */
struct known_binary *known_find(const struct known_binaries *known, const struct file_key *key,
				uint32_t *ret_id);

uint32_t known_add(struct known_binaries *known, const struct file_key *key); /* there is room */

/* The ids of those that may be forgotten, least recently used first; room for all. */
uint32_t known_list_forgettable(const struct known_binaries *known, uint32_t *ret_ids);
void known_forget(struct known_binaries *known, const uint32_t *ids, uint32_t count);

/* Aborts when the count, the hint or the state of a binary is not what they promise. */
void known_check(const struct known_binaries *known);

/* True if there is nothing to do for it now: see unwind_loader_is_known. */
bool known_is_settled(const struct known_binary *binary, int64_t now_ns);
bool known_is_vdso(const struct known_binary *binary);
/* Without room, while its table is on disk: the loader tries again by itself. */
bool known_is_homeless(const struct known_binary *binary);
int64_t known_last_use_ns(const struct known_binary *binary);

void known_set_text(char **text, const char *by); /* a copy; "" and NULL are the same */
void known_describe(const struct known_binary *binary, struct unwind_binary *ret);

#endif
