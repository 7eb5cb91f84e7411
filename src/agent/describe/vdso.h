/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdso - build id and functions of the code that the kernel maps into every process. It is in no
 * file, but the same for all 64-bit processes of a host, so this reads our own. Thread-safe.
 */
#ifndef FIRN_AGENT_DESCRIBE_VDSO_H
#define FIRN_AGENT_DESCRIBE_VDSO_H

#include "base/slice.h"

const char *vdso_build_id(void); /* lower-case hex, "" when there is none */

/* The function at an offset into it; empty when it is not known. */
struct slice vdso_function(uint64_t offset);

#endif
