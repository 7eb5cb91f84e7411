/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firn up - server and agent of this host as one command.
 *
 * Both are children of this process, which only watches: the server without any privilege
 * (server_process.h), the agent (this very binary as `firn agent`) with those that it needs, so
 * that a fault of one does not take the other down. The agent is started again when it ends
 * unexpectedly, with a growing pause; both end with us, and we with the server.
 */
#include <errno.h>
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
#include "base/printable.h"
#include "base/privilege.h"
#include "cli/defaults.h"
#include "cli/binary_channel.h"
#include "cli/flags/client_flags.h"
#include "cli/flags/server_flags.h"
#include "cli/server_process.h"
#include "cli/source_process.h"
#include "net/server.h"

#define OWN_TOKEN_BYTES 32u
#define RESTART_PAUSE_FIRST_NS CLOCK_NS_PER_S
#define RESTART_PAUSE_MAX_NS (60 * CLOCK_NS_PER_S)
#define AGENT_GRACE_NS (3 * CLOCK_NS_PER_S)
#define STABLE_NS (60 * CLOCK_NS_PER_S) /* an agent that ran this long was fine */

struct up_verb_options {
	struct verb_common common;
	struct server_flags server;
	const char *node;
	const char *agent_config_path;
	const char *sample_labels;
	const char *unwind_cache_path;
	struct option_size unwind_memory;
	const char *user;
	unsigned frequency_hz;
	int64_t duration_ns;
	bool no_local_sources;
};

static const struct option options[] = {
	SERVER_FLAGS_OPTIONS(struct up_verb_options),
	OPTION_AT(PROFILING_CPU_SAMPLING_FREQUENCY, offsetof(struct up_verb_options, frequency_hz)),
	OPTION_AT(PROFILING_DURATION, offsetof(struct up_verb_options, duration_ns)),
	OPTION_AT(NODE, offsetof(struct up_verb_options, node)),
	OPTION_AT(AGENT_CONFIG_PATH, offsetof(struct up_verb_options, agent_config_path)),
	OPTION_AT(SAMPLE_LABELS, offsetof(struct up_verb_options, sample_labels)),
	OPTION_AT(NO_LOCAL_SOURCES, offsetof(struct up_verb_options, no_local_sources)),
	OPTION_AT(UP_USER, offsetof(struct up_verb_options, user)),
	OPTION_AT(UNWIND_CACHE_PATH, offsetof(struct up_verb_options, unwind_cache_path)),
	OPTION_AT(UNWIND_MEMORY, offsetof(struct up_verb_options, unwind_memory)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "up",
	.operands = "",
	.summary = "profile this host and serve the UI: start here",
	.details =
		"Starts a server and an agent that profiles every process of this host, and\n"
		"prints the address of the UI. Ctrl-C stops both. Without the privilege to\n"
		"profile, only the server starts, and the output says what is missing.\n"
		"\n"
		"  sudo firn up\n"
		"  sudo firn up --profiling-cpu-sampling-frequency 99 --storage-retention-time 30d",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

struct up {
	const struct up_verb_options *values;
	struct server_process server;
	struct source_process sources;
	pid_t agent;		  /* 0 = not running */
	int64_t agent_started_ns; /* monotonic */
	int64_t pause_ns;	  /* before the next start */
	int channel;		  /* the agents' end: they lend binaries to the server */
};

/* Where an agent on this host finds a server that listens on `address`. */
static void local_address(const struct up *up, char *ret, size_t ret_bytes)
{
	const char *address = up->values->server.http_address;
	const char *colon = strrchr(address, ':');
	int host_len = (int)(colon - address);

	if (!strncmp(address, "0.0.0.0:", 8) || !strncmp(address, "[::]:", 5) || !host_len)
		snprintf(ret, ret_bytes, "127.0.0.1:%u", up->server.port);
	else
		snprintf(ret, ret_bytes, "%.*s:%u", host_len, address, up->server.port);
}

static pid_t spawn_agent(const struct up *up)
{
	const struct up_verb_options *values = up->values;
	char address[300], url[320], frequency[16], duration[32], descriptor[16], memory[32];
	const char *argv[28] = { "firn",
				 "agent",
				 "--remote-store-address",
				 url,
				 "--binary-channel",
				 descriptor,
				 "--remote-store-insecure-skip-verify",
				 "--sample-labels",
				 values->sample_labels,
				 "--profiling-duration",
				 duration };
	size_t count = 11;
	posix_spawnattr_t attributes;
	sigset_t blocked;
	pid_t pid;
	int rc;

	local_address(up, address, sizeof(address));
	snprintf(url, sizeof(url), "%s://%s", up->server.has_tls ? "https" : "http",
		 address); /* it is ourselves: no certificate need be looked at */
	snprintf(descriptor, sizeof(descriptor), "%d", up->channel);
	snprintf(duration, sizeof(duration), "%lldms",
		 (long long)(values->duration_ns / CLOCK_NS_PER_MS));
	snprintf(frequency, sizeof(frequency), "%u", values->frequency_hz);
	if (values->frequency_hz) {
		argv[count++] = "--profiling-cpu-sampling-frequency";
		argv[count++] = frequency;
	}
	if (values->node) {
		argv[count++] = "--node";
		argv[count++] = values->node;
	}
	if (values->agent_config_path) {
		argv[count++] = "--config-path";
		argv[count++] = values->agent_config_path;
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
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGHUP); /* it waits for whoever looks after it */
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &blocked);
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
	up->agent_started_ns = clock_monotonic_ns();
	up->agent = spawn_agent(up);
	if (up->agent < 0) {
		log_error("up", "agent not started", "error=\"%s\"", strerrordesc_np(errno));
		up->agent = 0;
	}
}

static void agent_ended(struct up *up, int status)
{
	int64_t ran_ns = clock_monotonic_ns() - up->agent_started_ns;

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

static bool server_has_ended(struct up *up)
{
	int status;

	if (waitpid(up->server.pid, &status, WNOHANG) != up->server.pid)
		return false;
	up->server.pid = 0;
	if (WIFSIGNALED(status))
		log_error("up", "the server was killed", "signal=%d", WTERMSIG(status));
	else
		log_error("up", "the server ended", "exit_code=%d", WEXITSTATUS(status));
	return true;
}

/*
 * Until SIGINT or SIGTERM; starts the agent again when it ends. False when the server has ended by
 * itself.
 */
static bool watch(struct up *up, bool privileged)
{
	for (;;) {
		bool restart = privileged && !up->agent;
		int number = verb_wait_signal(restart ? up->pause_ns : -1);
		int status;

		if (number == SIGINT || number == SIGTERM)
			return true;
		if (server_has_ended(up))
			return false;
		if (number == SIGHUP)
			kill(up->server.pid, SIGHUP);
		if (number == SIGHUP && up->agent)
			kill(up->agent, SIGHUP);
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
	up->agent = 0;
}

static void announce(const struct up *up, bool privileged)
{
	char address[300];

	local_address(up, address, sizeof(address));
	printf("firn is ready at %s://%s%s\n", up->server.has_tls ? "https" : "http", address,
	       privileged ? "  (first profiles in a few seconds; Ctrl-C stops)" : "");
	fflush(stdout);
}

static bool may_profile(void)
{
	struct strbuf missing = { 0 };
	bool privileged;

	agent_missing_privileges(&missing);
	privileged = missing.len == 0;
	if (!privileged)
		printable_print(
			stderr,
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

/*
 * Whoever asks is on this host, and known by the kernel (net/peer_user.h). Pages of another origin
 * would read what the user may.
 */
static int start_sources(struct up *up, struct server_options *start, struct err *err)
{
	int code;

	if (up->values->no_local_sources || start->web_cors_origin ||
	    !net_address_is_loopback(start->http_address))
		return 0;
	code = source_process_start(&up->sources, err);
	start->source_channel = up->sources.channel;
	start->source_uid = up->sources.uid;
	return code;
}

static int run(int argc, char **argv)
{
	struct up_verb_options values = { 0 };
	struct up up = { .values = &values, .pause_ns = RESTART_PAUSE_FIRST_NS };
	struct option_operands operands;
	struct server_options start;
	struct err err;
	bool privileged, asked;
	int ends[2], code;

	code = verb_parse(&verb_up, argc, argv, &values, &operands);
	if (code >= 0)
		return code;
	verb_block_signals();
	verb_raise_file_limit();
	if (server_flags_options(&values.server, &start, &err))
		return verb_error(&verb_up, &err);
	start.local_files = true;
	start.one_host = true;
	start.own_token = make_own_token();
	start.is_stopping = verb_is_stopping;
	code = binary_channel_open(ends, &err);
	if (!code)
		code = start_sources(&up, &start, &err);
	if (!code)
		code = server_process_start(&start, values.user, ends[0], &up.server, &err);
	source_process_leave(&up.sources);
	if (code)
		source_process_stop(&up.sources);
	if (code == -ERR_CANCELLED)
		return VERB_OK;
	if (code)
		return verb_error(&verb_up, &err);
	up.channel = ends[1];
	privileged = may_profile();
	if (privilege_enter(PRIVILEGE_UP, NULL, &err)) {
		server_process_stop(&up.server);
		source_process_stop(&up.sources);
		return verb_error(&verb_up, &err);
	}
	if (privileged)
		start_agent(&up);
	announce(&up, privileged);
	asked = watch(&up, privileged);
	stop_agent(&up);
	server_process_stop(&up.server);
	source_process_stop(&up.sources);
	return asked ? VERB_OK : VERB_ERROR;
}

const struct verb verb_up = { &spec, run, LOG_INFO };
