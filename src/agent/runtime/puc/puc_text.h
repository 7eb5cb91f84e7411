/* SPDX-License-Identifier: Apache-2.0 */
/* puc_text - reads a string of PUC-Rio's Lua: up to its first NUL, at most PUC_TEXT_MAX bytes. */
#ifndef FIRN_AGENT_RUNTIME_PUC_PUC_TEXT_H
#define FIRN_AGENT_RUNTIME_PUC_PUC_TEXT_H

#include "agent/runtime/memory_reader.h"

#define PUC_TEXT_MAX 512u

/* Made valid UTF-8; NULL = it is none. */
char *puc_text_read(const struct memory_reader *memory, uint64_t address);

#endif
