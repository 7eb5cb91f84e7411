/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines - header fields as text, "name: value\r\n" lines, as handlers and engines exchange them.
 */
#ifndef FIRN_NET_HTTP_LINES_H
#define FIRN_NET_HTTP_LINES_H

#include "net/server.h"

/* Appends a line. False, and nothing added, if a name or value has bytes that would end the line.
 */
bool lines_add(struct strbuf *lines, struct slice name, struct slice value);
bool lines_addf(struct strbuf *lines, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Takes the next well-formed field off the front of *lines; skips malformed ones. */
bool lines_next(struct slice *lines, struct net_header *ret);

bool lines_have(struct slice lines, struct slice name);

/* The first value of `name` (lower case), or empty. */
struct slice lines_find(struct slice lines, const char *name);

#endif
