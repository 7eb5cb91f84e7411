/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firn doctor - what this host allows and what to do about it; how well a running agent does.
 *
 * The checks are those of agent/attach/host_checks.h, and a trial: where nothing is missing, the
 * host is really sampled for a moment.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/attach/host_checks.h"
#include "base/log.h"
#include "cli/agent_report.h"
#include "cli/defaults.h"
#include "cli/output_file.h"
#include "cli/firn_processes.h"
#include "cli/verb.h"
#include "codec/wire/json.h"
#include "net/client/client.h"

#define METRICS_BYTES_MAX ((size_t)8 << 20)
#define AGENT_TIMEOUT_NS (5 * CLOCK_NS_PER_S)
#define TRIAL_HZ 99
#define TRIAL_WINDOW_NS (300 * CLOCK_NS_PER_MS)
#define TRIAL_NS (2 * CLOCK_NS_PER_S) /* at most */

struct doctor_verb_options {
	struct verb_common common;
	const char *agent;
	unsigned top;
	bool json;
};

#define AT(member) offsetof(struct doctor_verb_options, member)

static const struct option options[] = {
	OPTION_AT(DOCTOR_AGENT, AT(agent)),
	OPTION_AT(DOCTOR_TOP, AT(top)),
	OPTION_AT(JSON, AT(json)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "doctor",
	.operands = "",
	.summary = "check what this host allows, and how well its agent works",
	.details =
		"Checks each kernel feature that profiling uses and reports\n"
		"\n"
		"  ok        it works\n"
		"  warning   profiles are less complete than they could be\n"
		"  missing   firn cannot profile the whole host, or cannot unwind whole stacks\n"
		"\n"
		"with what was found, its effect on profiles, and the remedy (\"->\"). If nothing\n"
		"is missing, it samples the host briefly as a trial. It asks a running agent\n"
		"how many stacks are whole, why and in which binaries others were truncated,\n"
		"what was lost, and how long its BPF program takes.\n"
		"\n"
		"  sudo firn doctor\n"
		"  firn doctor --json --agent http://10.0.0.7:7071\n"
		"\n"
		"Changes nothing. Exits 0 when the whole host can be profiled with unwind\n"
		"tables, 1 when something needed is missing.",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static bool anything_missing(const struct host_checks *checks)
{
	for (size_t i = 0; i < checks->count; i++)
		if (checks->items[i].state == HOST_CHECK_MISSING)
			return true;
	return false;
}

static void count_samples(void *context, const struct tables_view *batch)
{
	atomic_ullong *samples = context;

	for (uint64_t i = 0; i < batch->totals_count; i++)
		atomic_fetch_add(samples, (unsigned long long)batch->totals[i]);
}

/* Keeps a CPU busy, so that there is something to sample on a host that sleeps. */
static void wait_for_sample(atomic_ullong *samples)
{
	int64_t until_ns = clock_monotonic_ns() + TRIAL_NS;

	while (!atomic_load(samples) && clock_monotonic_ns() < until_ns)
		continue;
}

static void try_sampling(struct host_checks *checks)
{
	struct host_check *check = &checks->items[checks->count++];
	atomic_ullong samples = 0;
	struct agent_options start = { .frequency_hz = TRIAL_HZ,
				       .window_ns = TRIAL_WINDOW_NS,
				       .deliver = count_samples,
				       .deliver_context = &samples };
	struct agent *agent;
	struct err err;

	*check = (struct host_check){ .name = "trial", .needed = true };
	if (agent_start(&start, &agent, &err)) {
		check->state = HOST_CHECK_MISSING;
		check->meaning = "Sampling this host fails.";
		snprintf(check->found, sizeof(check->found), "%.200s", err.message);
		snprintf(check->remedy, sizeof(check->remedy),
			 "see `firn record -a -d 1s --log-level debug` and report it");
		return;
	}
	wait_for_sample(&samples);
	agent_stop(agent);
	snprintf(check->found, sizeof(check->found), "%llu samples at %d Hz",
		 (unsigned long long)samples, TRIAL_HZ);
	if (samples) {
		check->meaning = "Sampling this host works.";
		return;
	}
	check->state = HOST_CHECK_MISSING;
	check->meaning = "The sampling clock does not tick.";
	snprintf(check->remedy, sizeof(check->remedy),
		 "see whether `perf record -a -e cpu-clock sleep 1` has samples");
}

static void check_text(const struct host_check *check, struct strbuf *out)
{
	strbuf_addf(out, "%-8s %-18s %s (%s)\n", host_check_state_name(check->state), check->name,
		    check->meaning, check->found);
	if (check->remedy[0])
		strbuf_addf(out, "%-27s -> %s\n", "", check->remedy);
}

static void check_json(const struct host_check *check, struct json *json)
{
	json_open_object(json);
	json_put_key(json, "name");
	json_put_text(json, check->name);
	json_put_key(json, "state");
	json_put_text(json, host_check_state_name(check->state));
	json_put_key(json, "found");
	json_put_text(json, check->found);
	json_put_key(json, "meaning");
	json_put_text(json, check->meaning);
	json_put_key(json, "remedy");
	json_put_text(json, check->remedy);
	json_close_object(json);
}

/* The agent's metrics. Fails when there is no agent at the address. */
static int ask_agent(const char *address, struct strbuf *ret, struct err *err)
{
	struct net_call call = { .method = "GET",
				 .path = "/metrics",
				 .timeout_ns = AGENT_TIMEOUT_NS,
				 .body_bytes_max = METRICS_BYTES_MAX };
	struct net_reply reply = { 0 };
	struct net_client *client;
	int rc = net_client_new(address, NULL, &client, err);

	if (rc)
		return rc;
	rc = net_client_call(client, &call, &reply, err);
	net_client_free(client);
	if (!rc &&
	    (reply.status != 200 || !strstr(strbuf_text(&reply.body), "firn_agent_samples_total")))
		rc = err_set(err, ERR_NOT_FOUND, "\"%s\" is not a firn agent", address);
	if (rc)
		strbuf_free(&reply.body);
	else
		*ret = reply.body;
	return rc;
}

static void print_text(const struct host_checks *checks, const struct firn_processes *processes,
		       const char *address, const struct agent_report *report, unsigned top,
		       struct strbuf *out)
{
	for (size_t i = 0; i < checks->count; i++)
		check_text(&checks->items[i], out);
	strbuf_add_text(out, anything_missing(checks)
				     ? "\nSomething needed is missing: see above.\n"
				     : "\nThe whole host can be profiled, with unwind tables.\n");
	firn_processes_text(processes, out);
	if (report) {
		strbuf_addf(out, "\nThe agent at %s since its start:\n", address);
		agent_report_text(report, top, out);
	} else {
		strbuf_addf(out, "No agent is running at %s.\n", address);
	}
}

static void print_json(const struct host_checks *checks, const struct firn_processes *processes,
		       const char *address, const struct agent_report *report, unsigned top,
		       struct strbuf *out)
{
	struct json json;

	json_begin(&json, out);
	json_open_object(&json);
	json_put_key(&json, "works");
	json_put_bool(&json, !anything_missing(checks));
	json_put_key(&json, "checks");
	json_open_array(&json);
	for (size_t i = 0; i < checks->count; i++)
		check_json(&checks->items[i], &json);
	json_close_array(&json);
	json_put_key(&json, "processes");
	firn_processes_json(processes, &json);
	json_put_key(&json, "agent");
	if (report) {
		json_open_object(&json);
		json_put_key(&json, "address");
		json_put_text(&json, address);
		agent_report_json(report, top, &json);
		json_close_object(&json);
	} else {
		json_put_null(&json);
	}
	json_close_object(&json);
	strbuf_add_byte(out, '\n');
}

static int run(int argc, char **argv)
{
	struct doctor_verb_options values = { 0 };
	const char *address = DEFAULT_AGENT_HTTP_ADDRESS;
	struct strbuf metrics = { 0 }, out = { 0 };
	struct option_operands operands;
	struct agent_report report = { 0 };
	struct host_checks checks;
	struct firn_processes processes;
	struct err err;
	bool running;
	int code = verb_parse(&verb_doctor, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (values.agent)
		address = values.agent;
	running = !ask_agent(address, &metrics, &err);
	if (!running && values.agent)
		return verb_error(&verb_doctor, &err);
	agent_report_read(&report, strbuf_slice(&metrics));
	firn_processes_find(&processes);
	host_checks_run(&checks);
	if (!anything_missing(&checks))
		try_sampling(&checks);
	(values.json ? print_json : print_text)(&checks, &processes, address,
						running ? &report : NULL, values.top, &out);
	code = anything_missing(&checks) ? VERB_NEGATIVE : VERB_OK;
	if (output_file_print("-", strbuf_slice(&out), &err))
		code = verb_error(&verb_doctor, &err);
	agent_report_free(&report);
	strbuf_free(&metrics);
	strbuf_free(&out);
	return code;
}

const struct verb verb_doctor = { &spec, run, LOG_WARN };
