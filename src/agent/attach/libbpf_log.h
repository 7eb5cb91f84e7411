/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbpf_log - what libbpf says, as debug lines of our log.
 *
 * A program that the verifier refuses comes as one message of up to megabytes; its reason stands
 * at the end, so that is what is kept.
 */
#ifndef FIRN_AGENT_ATTACH_LIBBPF_LOG_H
#define FIRN_AGENT_ATTACH_LIBBPF_LOG_H

/* From any thread; again is harmless. */
void libbpf_log_install(void);

#endif
