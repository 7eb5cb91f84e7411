/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbpf_log - writes libbpf's messages to our log at level debug.
 *
 * If the verifier refuses a program, the message has megabytes, and ends with the reason: only the
 * end is kept.
 */
#ifndef FIRN_AGENT_ATTACH_LIBBPF_LOG_H
#define FIRN_AGENT_ATTACH_LIBBPF_LOG_H

/* From any thread; again is harmless. */
void libbpf_log_install(void);

#endif
