/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts - the host names under which a server without logins accepts requests.
 *
 * A web page may let a host name of its own resolve to any address, including ours (DNS rebinding);
 * the browser then lets that page read our answers. The Host header still has the page's name, so
 * the server accepts only names that nobody else can point at it: loopback names, this machine's
 * own name, the address that it listens on, and the names that the operator adds. Addresses cannot
 * be rebound, so a server that listens on all addresses, or on those of a name, accepts any
 * address.
 *
 * Filled at the start, then read-only: any thread.
 */
#ifndef FIRN_NET_HTTP_HOSTS_H
#define FIRN_NET_HTTP_HOSTS_H

#include "base/err.h"
#include "base/slice.h"

struct hosts {
	bool any;	  /* "*" was added */
	bool any_address; /* any IP address is accepted */
	char **names;	  /* without ports and brackets */
	size_t names_count, names_capacity;
};

/* Adds loopback names, this machine's name, and the listen address, HOST:PORT. ERR_INVALID if the
 * address is malformed.
 */
int hosts_init(struct hosts *hosts, const char *listen_address, struct err *err);
void hosts_free(struct hosts *hosts); /* accepts a zeroed one */

/* Adds a name or an address, plain or as in a URL (also with a port); "*": any. Copied. */
int hosts_add(struct hosts *hosts, struct slice name, struct err *err);

/* True if a Host header (or :authority) is one of them, with any port. */
bool hosts_permit(const struct hosts *hosts, struct slice host);

#endif
