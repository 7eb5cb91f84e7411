/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts - the names by which a server may be called that asks nobody who they are.
 *
 * A web page may make a name of its own lead to any address, ours too (DNS rebinding); the browser
 * then lets that page read what we answer. The Host header still has the page's name, so requests
 * are taken only under names that nobody else can give us: loopback names, this machine's own, the
 * address that we listen on, and what the operator adds. Addresses cannot be rebound, so where we
 * listen on all addresses, or on those of a name, any address will do.
 *
 * Filled at the start, then read-only: any thread.
 */
#ifndef FIRN_NET_HTTP_HOSTS_H
#define FIRN_NET_HTTP_HOSTS_H

#include "base/err.h"
#include "base/slice.h"

struct hosts {
	bool any;	  /* "*" was added */
	bool any_address; /* numbers are taken as they are */
	char **names;	  /* without ports and brackets */
	size_t names_count, names_capacity;
};

/* Loopback names, this machine's, and the listen address, HOST:PORT. ERR_INVALID when it is none.
 */
int hosts_init(struct hosts *hosts, const char *listen_address, struct err *err);
void hosts_free(struct hosts *hosts); /* accepts a zeroed one */

/* A name or an address, as it is or as it stands in a URL (with a port too); "*": any. Copied. */
int hosts_add(struct hosts *hosts, struct slice name, struct err *err);

/* True if a Host header (or :authority) is one of them, whatever its port. */
bool hosts_permit(const struct hosts *hosts, struct slice host);

#endif
