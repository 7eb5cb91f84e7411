/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_offsets - the metric firn_agent_runtime_offsets: which versions of runtimes were seen,
 * and where the layout of their structures comes from, or why it is not known.
 *
 * Any thread. Bound: 64 kinds of binaries; further ones are not listed.
 */
#ifndef FIRN_AGENT_RUNTIME_RUNTIME_OFFSETS_H
#define FIRN_AGENT_RUNTIME_RUNTIME_OFFSETS_H

#include "agent/runtime/runtime_file.h"

struct runtime_offsets;

struct runtime_offsets *runtime_offsets_new(void);
void runtime_offsets_free(struct runtime_offsets *offsets);

/* `version` has RUNTIME_VERSION_BYTES; `source`, or the problem, is a constant. */
void runtime_offsets_add(struct runtime_offsets *offsets, enum runtime_kind kind,
			 const char *version, const char *source);

/* What a file says. */
void runtime_offsets_add_file(struct runtime_offsets *offsets, const struct runtime_file *file);

#endif
