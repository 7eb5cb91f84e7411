/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener - a bound socket, or an error that names the process that holds the port, and a remedy.
 */
#ifndef FIRN_NET_LISTENER_H
#define FIRN_NET_LISTENER_H

#include "net/address.h"

/* Binds and listens on `text` ("HOST:PORT"). The socket is close-on-exec. */
int listener_open(const char *text, int *ret_fd, struct err *err);

/* The port that it is bound to; 0 if the system does not say. */
unsigned listener_port(int fd);

#endif
