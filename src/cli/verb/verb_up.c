/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firn up - server and agent of this host as one command.
 *
 * The server runs in this process; the agent is a child (this very binary as `firn agent`), so
 * that a fault of one does not take the other down. The agent is started again when it ends
 * unexpectedly, with a growing pause; it ends with us.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/log.h"
#include "cli/binary_channel.h"
#include "cli/client_flags.h"
#include "cli/server_flags.h"

#define OWN_TOKEN_BYTES 32u
#define RESTART_PAUSE_FIRST_NS CLOCK_NS_PER_S
#define RESTART_PAUSE_MAX_NS (60 * CLOCK_NS_PER_S)
#define AGENT_GRACE_NS (8 * CLOCK_NS_PER_S)
#define STABLE_NS (60 * CLOCK_NS_PER_S) /* an agent that ran this long was fine */

struct up_verb_options {
	struct verb_common common;
	struct server_flags server;
	const char *node;
	const char *unwind_cache_path;
	struct option_size unwind_memory;
	unsigned frequency_hz;
};

static const struct option options[] = {
	SERVER_FLAGS_OPTIONS(struct up_verb_options),
	{ 0, "profiling-cpu-sampling-frequency", OPTION_COUNT,
	  offsetof(struct up_verb_options, frequency_hz), "HZ",
	  "samples per second and CPU (default 19)", 1, AGENT_FREQUENCY_MAX_HZ },
	{ 0, "node", OPTION_TEXT, offsetof(struct up_verb_options, node), "NAME",
	  "label `node` (default: the host's name)", 0, 0 },
	{ 0, "unwind-cache-path", OPTION_TEXT, offsetof(struct up_verb_options, unwind_cache_path),
	  "DIR", "keeps unwind tables of binaries (default /var/cache/firn/unwind as root)", 0, 0 },
	{ 0, "unwind-memory", OPTION_SIZE, offsetof(struct up_verb_options, unwind_memory), "B",
	  "for unwind tables, where needed: 64MB, 2% of the memory (default 1%, at least 40MB)", 0,
	  0 },
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "up",
	.operands = "",
	.summary = "profile this host and serve the UI: start here",
	.details =
		"Starts a server and an agent that profiles every process of this host, and "
		"prints\n"
		"the address of the UI. Ctrl-C stops both. Without privilege only the server runs, "
		"and\n"
		"what is missing is said.\n\n"
		"  sudo firn up\n"
		"  sudo firn up --profiling-cpu-sampling-frequency 99 --storage-path /var/lib/firn",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

struct up {
	const struct up_verb_options *values;
	struct server *server;
	pid_t agent;		  /* 0 = not running */
	int64_t agent_started_ns; /* monotonic */
	int64_t pause_ns;	  /* before the next start */
	int channel;		  /* our end, while the agent runs */
	pthread_t lending;	  /* takes what the agent lends; ends with it */
};

static void lend(void *context, struct slice build_id, struct slice path, int fd)
{
	server_offer_binary(context, build_id, path, fd);
}

static void *lending_thread(void *argument)
{
	struct up *up = argument;

	while (binary_channel_take(up->channel, lend, up->server))
		continue;
	return NULL;
}

/* Where an agent on this host finds a server that listens on `address`. */
static void local_address(const struct up *up, char *ret, size_t ret_bytes)
{
	const char *address = up->values->server.http_address;
	const char *colon = strrchr(address, ':');
	int host_len = (int)(colon - address);

	if (!strncmp(address, "0.0.0.0:", 8) || !strncmp(address, "[::]:", 5) || !host_len)
		snprintf(ret, ret_bytes, "127.0.0.1:%u", server_port(up->server));
	else
		snprintf(ret, ret_bytes, "%.*s:%u", host_len, address, server_port(up->server));
}

static pid_t spawn_agent(const struct up *up, int channel)
{
	const struct up_verb_options *values = up->values;
	char address[300], url[320], frequency[16], descriptor[16], memory[32];
	const char *argv[24] = { "firn",
				 "agent",
				 "--remote-store-address",
				 url,
				 "--binary-channel",
				 descriptor,
				 "--remote-store-insecure-skip-verify" };
	size_t count = 7;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid;
	int rc;

	local_address(up, address, sizeof(address));
	snprintf(url, sizeof(url), "%s://%s", server_has_tls(up->server) ? "https" : "http",
		 address); /* it is ourselves: no certificate need be looked at */
	snprintf(descriptor, sizeof(descriptor), "%d", channel);
	snprintf(frequency, sizeof(frequency), "%u", values->frequency_hz);
	if (values->frequency_hz) {
		argv[count++] = "--profiling-cpu-sampling-frequency";
		argv[count++] = frequency;
	}
	if (values->node) {
		argv[count++] = "--node";
		argv[count++] = values->node;
	}
	if (values->unwind_cache_path) {
		argv[count++] = "--unwind-cache-path";
		argv[count++] = values->unwind_cache_path;
	}
	if (values->unwind_memory.percent > 0)
		snprintf(memory, sizeof(memory), "%g%%", values->unwind_memory.percent);
	else
		snprintf(memory, sizeof(memory), "%llu",
			 (unsigned long long)values->unwind_memory.bytes);
	if (values->unwind_memory.percent > 0 || values->unwind_memory.bytes) {
		argv[count++] = "--unwind-memory";
		argv[count++] = memory;
	}
	if (!values->server.sample_times_ns)
		argv[count++] = "--no-sample-times";
	if (values->common.log_level) {
		argv[count++] = "--log-level";
		argv[count++] = values->common.log_level;
	}
	if (values->common.log_format) {
		argv[count++] = "--log-format";
		argv[count++] = values->common.log_format;
	}
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	rc = posix_spawn(&pid, "/proc/self/exe", NULL, &attributes, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attributes);
	if (rc) {
		errno = rc;
		return -1;
	}
	return pid;
}

static void start_agent(struct up *up)
{
	struct err err;
	int ends[2];

	if (binary_channel_open(ends, &err)) {
		log_error("up", "agent not started", "error=\"%s\"", err.message);
		return;
	}
	up->channel = ends[0];
	up->agent_started_ns = clock_monotonic_ns();
	up->agent = spawn_agent(up, ends[1]);
	close(ends[1]);
	if (up->agent < 0 || pthread_create(&up->lending, NULL, lending_thread, up)) {
		log_error("up", "agent not started", "error=\"%s\"", strerrordesc_np(errno));
		if (up->agent > 0)
			kill(up->agent, SIGKILL);
		close(ends[0]);
		up->agent = 0;
	}
}

/* After the agent's end: its channel is closed, so the lending thread ends. */
static void agent_ended(struct up *up, int status)
{
	int64_t ran_ns = clock_monotonic_ns() - up->agent_started_ns;

	pthread_join(up->lending, NULL);
	close(up->channel);
	up->agent = 0;
	if (ran_ns > STABLE_NS || !up->pause_ns)
		up->pause_ns = RESTART_PAUSE_FIRST_NS;
	else if (up->pause_ns < RESTART_PAUSE_MAX_NS)
		up->pause_ns *= 2;
	if (WIFSIGNALED(status))
		log_error("up", "the agent was killed", "signal=%d restart_in_s=%lld",
			  WTERMSIG(status), (long long)(up->pause_ns / CLOCK_NS_PER_S));
	else
		log_error("up", "the agent ended", "exit_code=%d restart_in_s=%lld",
			  WEXITSTATUS(status), (long long)(up->pause_ns / CLOCK_NS_PER_S));
}

/* Until SIGINT or SIGTERM; starts the agent again when it ends. */
static void watch(struct up *up, bool privileged)
{
	for (;;) {
		bool restart = privileged && !up->agent;
		int number = verb_wait_signal(restart ? up->pause_ns : -1);
		int status;

		if (number == SIGINT || number == SIGTERM)
			return;
		if (up->agent && waitpid(up->agent, &status, WNOHANG) == up->agent)
			agent_ended(up, status);
		else if (restart && !number)
			start_agent(up);
	}
}

static void stop_agent(struct up *up)
{
	int64_t until_ns = clock_monotonic_ns() + AGENT_GRACE_NS;
	int status;

	if (!up->agent)
		return;
	kill(up->agent, SIGTERM);
	while (waitpid(up->agent, &status, WNOHANG) == 0) {
		if (clock_monotonic_ns() > until_ns)
			kill(up->agent, SIGKILL);
		verb_wait_signal(100 * CLOCK_NS_PER_MS);
	}
	pthread_join(up->lending, NULL);
	close(up->channel);
	up->agent = 0;
}

static void announce(const struct up *up, bool privileged)
{
	char address[300];

	local_address(up, address, sizeof(address));
	printf("firn is ready at %s://%s%s\n", server_has_tls(up->server) ? "https" : "http",
	       address, privileged ? "  (first profiles in a few seconds; Ctrl-C stops)" : "");
	fflush(stdout);
}

static bool may_profile(void)
{
	struct strbuf missing = { 0 };
	bool privileged;

	agent_missing_privileges(&missing);
	privileged = missing.len == 0;
	if (!privileged)
		fprintf(stderr,
			"firn up: this host cannot be profiled yet:\n%s"
			"The server runs without an agent; it takes profiles from elsewhere.\n",
			strbuf_text(&missing));
	strbuf_free(&missing);
	return privileged;
}

/* The child finds it in its environment, where others cannot see it. */
static const char *make_own_token(void)
{
	static char token[2 * OWN_TOKEN_BYTES + 1];
	uint8_t bytes[OWN_TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort(); /* never happens for so few bytes once the system is up */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	setenv(CLIENT_TOKEN_VARIABLE, token, 1);
	return token;
}

static int run(int argc, char **argv)
{
	struct up_verb_options values = { 0 };
	struct up up = { .values = &values, .pause_ns = RESTART_PAUSE_FIRST_NS };
	struct option_operands operands;
	struct server_options start;
	struct err err;
	bool privileged;
	int code;

	server_flags_init(&values.server);
	code = verb_parse(&verb_up, argc, argv, &values, &operands);
	if (code >= 0)
		return code;
	verb_block_signals();
	verb_raise_file_limit();
	if (server_flags_options(&values.server, &start, &err))
		return verb_error(&verb_up, &err);
	start.local_files = true;
	start.own_token = make_own_token();
	if (server_start(&start, &up.server, &err))
		return verb_error(&verb_up, &err);
	privileged = may_profile();
	if (privileged)
		start_agent(&up);
	announce(&up, privileged);
	watch(&up, privileged);
	stop_agent(&up);
	server_stop(up.server);
	return VERB_OK;
}

const struct verb verb_up = { &spec, run, LOG_INFO };
