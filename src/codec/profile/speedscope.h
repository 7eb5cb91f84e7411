/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope - speedscope's JSON (https://www.speedscope.app/file-format-schema.json) to stacks:
 * `shared.frames` and `profiles` of type "sampled" or "evented". Profiles of one unit add up; those
 * of another unit than the first one's are refused. Times become nanoseconds.
 */
#ifndef FIRN_CODEC_PROFILE_SPEEDSCOPE_H
#define FIRN_CODEC_PROFILE_SPEEDSCOPE_H

#include "codec/profile/stack_builder.h"

/* True if the text looks like it. */
bool speedscope_is(struct slice text);

int speedscope_decode(struct slice text, struct stack_builder *into, struct err *err);

#endif
