/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_jvms - libraries of HotSpot that agents of this host have read, kept with the unwind tables
 * on disk (unwind/table_cache.h): the stacks of the first Java process are whole from its first
 * generated code on, which is there a few milliseconds after the library is mapped.
 *
 * A file is known by the kernel's key, which has the time of its last change. What is read back is
 * checked; a damaged or older list is as good as none. Bound: KNOWN_JVMS_MAX, over which the oldest
 * goes. For the drain thread.
 */
#ifndef FIRN_AGENT_COLLECT_KNOWN_JVMS_H
#define FIRN_AGENT_COLLECT_KNOWN_JVMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/bpf/shared.h"
#include "agent/bpf/table.h"

#define KNOWN_JVMS_MAX 256

struct known_jvm {
	struct file_key key;
	struct jvm_file file;
};

struct table_cache;

struct known_jvms {
	struct table_cache *cache; /* NULL = nothing is kept */
	uint64_t count;
	struct known_jvm items[KNOWN_JVMS_MAX]; /* the oldest first */
};

/* Reads what is kept in the folder; "" or NULL: there is none. */
void known_jvms_open(struct known_jvms *known, const char *cache_path);
void known_jvms_close(struct known_jvms *known);

/* Keeps it, unless it is known. */
void known_jvms_add(struct known_jvms *known, const struct file_key *key,
		    const struct jvm_file *file);

/* Reads a list as it lies on disk; false, and an empty list, when it is none. */
bool known_jvms_parse(struct known_jvms *known, const void *data, size_t len);

#endif
