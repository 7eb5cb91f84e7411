/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lender_wire - the messages between the lender and its processes: one per packet of a
 * SOCK_SEQPACKET socket. Both sides are one program, so they are plain structs, followed by texts.
 */
#ifndef FIRN_AGENT_FILES_LENDER_WIRE_H
#define FIRN_AGENT_FILES_LENDER_WIRE_H

#include "agent/files/lender.h"

#define LENDER_PATH_BYTES_MAX 16384u /* escaped paths of /proc/PID/maps are up to 4 x 4096 */

/* To a worker; the path follows, with its NUL. */
struct lender_call {
	struct lender_request request; /* the path's pointer means nothing */
	uint32_t number;
	uint32_t path_bytes;
};

enum lender_word {
	LENDER_HELLO,	 /* the first one; `number` is the worker's process id */
	LENDER_PROGRESS, /* it is at it */
	LENDER_DONE,	 /* with the descriptor, but for a key */
	LENDER_FAILED,
	LENDER_FAR, /* ask a worker for far files */
};

/* From a worker; the path follows, with its NUL. */
struct lender_reply {
	uint32_t word; /* enum lender_word */
	uint32_t number;
	int64_t cpu_ns;
	struct file_key key;
	uint32_t is_elf;
	uint32_t is_too_large; /* of LENDER_FAILED */
	uint32_t is_copy;      /* which is to have the mode of the file */
	uint32_t mode;
	uint32_t owner;	      /* of LENDER_IN_ROOT */
	uint64_t copied_from; /* of a copy of a part */
	uint32_t path_bytes;
	struct elf_info elf;
};

/* To the starter of workers. */
struct lender_order {
	uint32_t worker; /* named by who orders */
	uint32_t is_far;
	uint32_t is_end; /* kill it; else start it, with the socket that comes along */
};

#endif
