/* SPDX-License-Identifier: Apache-2.0 */
/* jsc_text - reads strings of JavaScriptCore (WTF::StringImpl) out of a process, as UTF-8. */
#ifndef FIRN_AGENT_RUNTIME_JSC_JSC_TEXT_H
#define FIRN_AGENT_RUNTIME_JSC_JSC_TEXT_H

#include "agent/runtime/memory_reader.h"

#define JSC_TEXT_MAX 1024u /* characters; longer strings are cut */

/* "" where there is no string; NULL when it has gone, or is none. The caller frees it. */
char *jsc_text_read(const struct memory_reader *memory, uint64_t address);

#endif
