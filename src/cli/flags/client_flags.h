/* SPDX-License-Identifier: Apache-2.0 */
/* client_flags - the options by which verbs find a server, trust it and prove themselves. */
#ifndef FIRN_CLI_FLAGS_CLIENT_FLAGS_H
#define FIRN_CLI_FLAGS_CLIENT_FLAGS_H

#include "cli/verb.h"
#include "net/client/client.h"

#define CLIENT_TOKEN_VARIABLE "FIRN_BEARER_TOKEN" /* when no option says how to prove oneself */

struct client_flags {
	const char *server; /* URL; NULL: DEFAULT_SERVER_URL */
	struct net_access access;
};

/* The options of a `struct net_access` at `offset`; `prefix` comes before their names. */
#define ACCESS_OPTIONS(offset, prefix)                                                             \
	{ 0,	       prefix "tls-ca-file",                                                       \
	  OPTION_TEXT, (offset) + offsetof(struct net_access, ca_file),                            \
	  "FILE",      "trust the authorities in this PEM file, not the system's",                 \
	  0,	       0 },                                                                        \
		{ 0,	       prefix "tls-cert-file",                                             \
		  OPTION_TEXT, (offset) + offsetof(struct net_access, cert_file),                  \
		  "FILE",      "show this certificate (PEM) to the server",                        \
		  0,	       0 },                                                                \
		{ 0,	       prefix "tls-key-file",                                              \
		  OPTION_TEXT, (offset) + offsetof(struct net_access, key_file),                   \
		  "FILE",      "its key",                                                          \
		  0,	       0 },                                                                \
		{ 0,	       prefix "bearer-token-file",                                         \
		  OPTION_TEXT, (offset) + offsetof(struct net_access, token_file),                 \
		  "FILE",      "send its token (default: $" CLIENT_TOKEN_VARIABLE ")",             \
		  0,	       0 },                                                                \
	{                                                                                          \
		0, prefix "insecure-skip-verify", OPTION_FLAG,                                     \
			(offset) + offsetof(struct net_access, trusts_everyone), NULL,             \
			"do not look at the server's certificate", 0, 0                            \
	}

/* `type` is the verb's options struct, whose member `client` is a struct client_flags. */
#define CLIENT_FLAGS_OPTIONS(type)                                                                 \
	{ 0,	       "server",                                                                   \
	  OPTION_TEXT, offsetof(type, client.server),                                              \
	  "URL",       "http[s]://[USER:PASSWORD@]HOST:PORT (default 127.0.0.1:7070)",             \
	  0,	       0 },                                                                        \
		ACCESS_OPTIONS(offsetof(type, client.access), "")

/* Takes the token from the environment when no option gave one. */
void client_flags_complete(struct net_access *access);

int client_flags_open(const struct client_flags *flags, struct net_client **ret, struct err *err);

#endif
