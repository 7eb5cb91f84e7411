/* SPDX-License-Identifier: Apache-2.0 */
/* firn server - the server alone; needs no privilege. */
#include <signal.h>
#include <stdio.h>

#include "cli/flags/server_flags.h"
#include "cli/server_process.h"

struct server_verb_options {
	struct verb_common common;
	struct server_flags server;
	const char *user;
};

static const struct option options[] = {
	SERVER_FLAGS_OPTIONS(struct server_verb_options),
	OPTION_AT(OBJECT_READ, offsetof(struct server_verb_options, server.object_read)),
	OPTION_AT(OBJECT_CACHE, offsetof(struct server_verb_options, server.object_cache)),
	OPTION_AT(SERVER_USER, offsetof(struct server_verb_options, user)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "server",
	.operands = "",
	.summary = "receive, store and query profiles; needs no root",
	.details =
		"Receives profiles from agents, SDKs and `firn push`; serves the UI and the API\n"
		"on one port. Runs until SIGINT or SIGTERM. Every acknowledged profile is\n"
		"already on disk.\n"
		"\n"
		"  firn server --storage-path /srv/firn --storage-retention-time 30d",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static int run(int argc, char **argv)
{
	struct server_verb_options values = { 0 };
	struct option_operands operands;
	struct server_options start;
	struct server *server;
	struct err err;
	int code, number;

	code = verb_parse(&verb_server, argc, argv, &values, &operands);
	if (code >= 0)
		return code;
	verb_block_signals();
	verb_raise_file_limit();
	code = server_flags_options(&values.server, &start, &err);
	start.is_stopping = verb_is_stopping;
	if (!code)
		code = server_process_confine(&start, values.user, &err);
	if (!code)
		code = server_start(&start, &server, &err);
	if (code == -ERR_CANCELLED)
		return VERB_OK;
	if (code)
		return verb_error(&verb_server, &err);
	printf("firn is ready at %s://%.*s:%u\n", server_has_tls(server) ? "https" : "http",
	       (int)(strrchr(start.http_address, ':') - start.http_address), start.http_address,
	       server_port(server));
	fflush(stdout);
	do {
		number = verb_wait_signal(-1);
		if (number == SIGHUP)
			server_process_reload(server);
	} while (number != SIGINT && number != SIGTERM);
	server_stop(server);
	return VERB_OK;
}

const struct verb verb_server = { &spec, run, LOG_INFO };
