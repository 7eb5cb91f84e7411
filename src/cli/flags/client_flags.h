/* SPDX-License-Identifier: Apache-2.0 */
/* client_flags - the options by which verbs find a server, trust it and prove themselves. */
#ifndef FIRN_CLI_FLAGS_CLIENT_FLAGS_H
#define FIRN_CLI_FLAGS_CLIENT_FLAGS_H

#include "cli/verb.h"
#include "net/client/client.h"

struct client_flags {
	const char *server; /* URL */
	struct net_access access;
};

/* The options of a `struct net_access` at `offset`; `prefix` comes before their ids. */
#define ACCESS_OPTIONS(prefix, offset)                                                             \
	OPTION_AT(prefix##TLS_CA_FILE, (offset) + offsetof(struct net_access, ca_file)),           \
		OPTION_AT(prefix##TLS_CERT_FILE,                                                   \
			  (offset) + offsetof(struct net_access, cert_file)),                      \
		OPTION_AT(prefix##TLS_KEY_FILE, (offset) + offsetof(struct net_access, key_file)), \
		OPTION_AT(prefix##BEARER_TOKEN_FILE,                                               \
			  (offset) + offsetof(struct net_access, token_file)),                     \
		OPTION_AT(prefix##INSECURE_SKIP_VERIFY,                                            \
			  (offset) + offsetof(struct net_access, trusts_everyone))

/* `type` is the verb's options struct, whose member `client` is a struct client_flags. */
#define CLIENT_FLAGS_OPTIONS(type)                                                                 \
	OPTION_AT(SERVER, offsetof(type, client.server)),                                          \
		ACCESS_OPTIONS(CLIENT_, offsetof(type, client.access))

/* Takes the token from the environment when no option gave one. */
void client_flags_complete(struct net_access *access);

int client_flags_open(const struct client_flags *flags, struct net_client **ret, struct err *err);

#endif
