/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8_versions - offsets in V8's objects by version, for programs that do not export V8's tables.
 *
 * Each version here was compared with the memory of a program that has it; the ones between two
 * that are alike count as alike. The kinds of objects are not in it: each function tells them
 * (v8_types).
 */
#ifndef FIRN_AGENT_RUNTIME_V8_V8_VERSIONS_H
#define FIRN_AGENT_RUNTIME_V8_V8_VERSIONS_H

#include <stdbool.h>

#include "agent/bpf/shared.h"
#include "agent/runtime/v8/v8_layout.h"

/* False when the version is not known; then nothing is set. */
bool v8_versions_find(uint32_t major, uint32_t minor, bool is_compressed, struct v8_layout *ret,
		      struct script_v8_layout *ret_script);

#endif
