/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binary_channel - how the agent of `firn up` lends open binaries to the server beside it, so that
 * symbols are found even when a file was deleted or is inside a container. One SOCK_SEQPACKET
 * message per binary: "BUILD_ID\nPATH" with the file descriptor (SCM_RIGHTS).
 */
#ifndef FIRN_CLI_BINARY_CHANNEL_H
#define FIRN_CLI_BINARY_CHANNEL_H

#include <sys/types.h>

#include "agent/agent.h"
#include "base/err.h"
#include "base/slice.h"

/* ret[0] is the server's end, ret[1] the agent's (inherited across exec). */
int binary_channel_open(int ret[2], struct err *err);

/* The process that opened it; 0 when this is no such channel. */
pid_t binary_channel_opener(int fd);

/* The agent's side; never blocks: false when the channel is full. `channel` is the fd. */
bool binary_channel_lend(void *channel, const struct agent_binary *binary);

typedef void binary_channel_taken_f(void *context, struct slice build_id, struct slice path,
				    int fd);

/* Takes one message, waiting for it; false when the agent's end is closed. */
bool binary_channel_take(int fd, binary_channel_taken_f *taken, void *context);

#endif
