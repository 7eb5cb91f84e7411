/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor - open files that processes lend each other over local sockets (SCM_RIGHTS).
 */
#ifndef FIRN_BASE_DESCRIPTOR_H
#define FIRN_BASE_DESCRIPTOR_H

#include <sys/socket.h>

/*
 * The one descriptor of a received message, or -1 when it has none or more. The caller closes it.
 * The message comes from recvmsg, with room for one descriptor in its control part.
 */
int descriptor_of(struct msghdr *message);

#endif
