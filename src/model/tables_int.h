/* SPDX-License-Identifier: Apache-2.0 */
/* tables_int - shared by tables*.c: the hashes of nodes and frames. */
#ifndef FIRN_MODEL_TABLES_INT_H
#define FIRN_MODEL_TABLES_INT_H

#include "base/hash.h"
#include "model/tables.h"

static inline uint64_t tables_hash_node(const struct node *node)
{
	return hash_pair((uint64_t)node->parent << 32 | node->frame, 0);
}

static inline uint64_t tables_hash_frame(const struct frame *frame)
{
	struct frame identity = frame_identity(frame);
	uint64_t words[6];
	uint64_t hash;

	_Static_assert(sizeof(identity) == sizeof(words), "a frame is six words");
	memcpy(words, &identity, sizeof(words));
	hash = hash_pair(words[0], words[1]);
	hash = hash_pair(hash ^ words[2], words[3]);
	return hash_pair(hash ^ words[4], words[5]);
}

#endif
