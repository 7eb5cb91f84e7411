/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over a process that no list of mappings and no unwind table is known of: all of its code
 * is generated. Who includes it has walk_read and walk_read_registers already, and defines walk_ask
 * afterwards.
 */
#ifndef FIRN_TESTS_WALK_WITHOUT_FILES_H
#define FIRN_TESTS_WALK_WITHOUT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "agent/bpf/space.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static inline const struct space_head *walk_space(__u32 tgid)
{
	(void)tgid;
	return NULL;
}

static inline const struct space_part *walk_space_part(const struct space_part_key *key)
{
	(void)key;
	return NULL;
}

static inline const struct binary_tables *walk_tables(const struct file_key *file, __u64 now_ns)
{
	(void)file;
	(void)now_ns;
	return NULL;
}

static inline const __u8 *walk_chunk(const struct table_segment *segment, __u64 into)
{
	(void)segment;
	(void)into;
	return NULL;
}

static inline const struct code_line *walk_code_line(const struct code_line_key *key)
{
	(void)key;
	return NULL;
}

static inline void walk_copy(void *to, __u32 bytes, const void *from)
{
	memcpy(to, from, bytes);
}

struct walk;
static bool walk_ask(struct walk *walk);

#include "agent/bpf/beam.h"
#include "agent/bpf/jvm.h"
#include "agent/bpf/lua.h"
#include "agent/bpf/v8.h"

#endif
