/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay - the BPF unwinder (agent/bpf/walk.h) as ordinary C, over a process of our own.
 *
 * A recording is what the unwinder may look at in one moment of a stopped thread: its registers and
 * the upper end of its stack. The replay adds the process's executable mappings and the unwind
 * tables of their files, built by the product's own builder, in memory laid out like the BPF maps.
 * Needs no privilege, so the unwinder runs under the sanitizers. One thread at a time.
 */
#ifndef FIRN_TESTS_WALK_REPLAY_H
#define FIRN_TESTS_WALK_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "agent/bpf/shared.h"

#define REPLAY_STACK_BYTES 65536
#define REPLAY_WALKERS 6

struct recording {
	struct user_regs_struct registers;
	uint64_t stack_start; /* address of stack[0] */
	size_t stack_bytes;
	uint8_t stack[REPLAY_STACK_BYTES];
};

struct replay;

/* For a stopped process whose memory we may read. Reads its mappings. */
struct replay *replay_new(pid_t pid);
void replay_free(struct replay *replay); /* accepts NULL */

/* Reads the mappings again; tables of files seen before are kept. */
void replay_read_mappings(struct replay *replay);

/* Whether an address lies in an executable mapping. */
bool replay_knows(const struct replay *replay, uint64_t address);

/* Registers and stack of the stopped thread; false when it has ended. */
bool replay_record(const struct replay *replay, pid_t thread, struct recording *ret);

/*
 * Walks; the frames are in ret->frames, user_count of them. Returns how the stack ended. There are
 * several walkers, each of which keeps for its next walk what the program keeps between samples.
 */
enum stack_end replay_walk(struct replay *replay, unsigned walker,
			   const struct recording *recording, struct sample *ret);

/* "libc.so.6+0x1234", for messages; in a buffer that the next call overwrites. */
const char *replay_name(const struct replay *replay, uint64_t address);

#endif
