/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_user - the user whose process is at the other end of a loopback connection, from
 * /proc/net/tcp and tcp6 (Documentation/networking/proc_net_tcp.rst in the kernel).
 */
#ifndef FIRN_NET_PEER_USER_H
#define FIRN_NET_PEER_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/slice.h"

/*
 * The user of the socket at `peer` ("127.0.0.1:54321", "[::1]:54321") that is connected to our
 * port. False for a peer that is not on loopback, has ended or closed its side. Reads a table of
 * all connections of the host, so call it rarely. Any thread.
 */
bool peer_user_find(struct slice peer, unsigned own_port, uid_t *ret);

#endif
