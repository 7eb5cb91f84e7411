/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdso - the identity of the code that the kernel maps into every process. It is the same for all
 * 64-bit processes of a host, so our own is read. Thread-safe.
 */
#ifndef FIRN_AGENT_DESCRIBE_VDSO_H
#define FIRN_AGENT_DESCRIBE_VDSO_H

const char *vdso_build_id(void); /* lower-case hex, "" when there is none */

#endif
