/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_tree - Pyroscope's binary forms of stacks: nodes in pre-order, each a name (length, bytes),
 * the value of what ends there and how many children follow; numbers are varints.
 *
 * In a tree a name is a frame. In a trie it is a piece of the text "root;child;leaf", and ';' may
 * fall anywhere in it. The root of both is empty.
 */
#ifndef FIRN_CODEC_PROFILE_NAME_TREE_H
#define FIRN_CODEC_PROFILE_NAME_TREE_H

#include "codec/profile/stack_builder.h"

/*
 * Sample type samples/count. Errors say at which byte. The text of all stacks of a trie is at most
 * text_bytes_max (ERR_LIMIT): few bytes can stand for very much of it.
 */
MUST_USE int name_tree_decode(struct slice bytes, struct stack_builder *into, struct err *err);
MUST_USE int name_trie_decode(struct slice bytes, size_t text_bytes_max, struct stack_builder *into,
			      struct err *err);

#endif
