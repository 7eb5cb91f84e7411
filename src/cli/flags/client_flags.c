/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags/client_flags.h"

#include <stdlib.h>

#include "cli/defaults.h"

void client_flags_complete(struct net_access *access)
{
	const char *token = getenv(CLIENT_TOKEN_VARIABLE);

	if (!access->token_file && token && *token)
		access->token = token;
}

int client_flags_open(const struct client_flags *flags, struct net_client **ret, struct err *err)
{
	struct net_access access = flags->access;

	client_flags_complete(&access);
	return net_client_new(flags->server, &access, ret, err);
}
