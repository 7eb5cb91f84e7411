/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folded - Brendan Gregg's collapsed stacks, as stackcollapse-*.pl, inferno and py-spy write them:
 *
 *     root;child;leaf 12
 *
 * The value is what follows the last blank and may be a fraction, which is rounded. Suffixes of
 * flamegraph.pl go: _[k] (kernel; the frame lies in [kernel] then), _[i], _[j], _[w]. Empty lines
 * and lines that begin with '#' are skipped.
 */
#ifndef FIRN_CODEC_PROFILE_FOLDED_H
#define FIRN_CODEC_PROFILE_FOLDED_H

#include "codec/profile/stack_builder.h"

/* Sample type samples/count. Errors say which line. `into` is initialised, and freed, by callers.
 */
int folded_decode(struct slice text, struct stack_builder *into, struct err *err);

#endif
