/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firefox - profiler.firefox.com's JSON to stacks: the "processed profile format", as the Firefox
 * Profiler saves it and samply writes it (docs-developer/processed-profile-format.md of
 * github.com/firefox-devtools/profiler).
 *
 * Tables are columns, of each thread or (version 56 and newer) in `shared`. All threads add up,
 * with the label `thread_name`; weights in bytes are space/bytes, in milliseconds (`tracing-ms`)
 * wall/nanoseconds, others samples/count. Files whose threads differ in that are refused.
 */
#ifndef FIRN_CODEC_PROFILE_FIREFOX_H
#define FIRN_CODEC_PROFILE_FIREFOX_H

#include "codec/profile/stack_builder.h"

/* True if the text looks like it. */
bool firefox_is(struct slice text);

int firefox_decode(struct slice text, struct stack_builder *into, struct err *err);

#endif
