/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener - a bound socket, or an error that says who is in the way and what to do about it.
 */
#ifndef FIRN_NET_LISTENER_H
#define FIRN_NET_LISTENER_H

#include "net/address.h"

/* Binds and listens on `text` ("HOST:PORT"). The socket is close-on-exec. */
int listener_open(const char *text, int *ret_fd, struct err *err);

/* The port it was given; 0 when that cannot be learnt. */
unsigned listener_port(int fd);

#endif
