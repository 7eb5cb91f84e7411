/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url - the address of another server: http://HOST[:PORT][/PATH] or https:, checked and in parts.
 */
#ifndef FIRN_NET_CLIENT_URL_H
#define FIRN_NET_CLIENT_URL_H

#include "net/address.h"

#define URL_BYTES_MAX 8192

struct url {
	bool is_tls;
	struct address address;
	char authority[ADDRESS_HOST_BYTES + 16]; /* as it was written */
	struct slice path; /* with the query; may be empty; borrows from the text */
};

/* ERR_INVALID says what is wrong: another scheme, a user, spaces, no host. */
int url_parse(const char *text, struct url *ret, struct err *err);

#endif
