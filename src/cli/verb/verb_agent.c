/* SPDX-License-Identifier: Apache-2.0 */
/* firn agent - samples this host and sends reports to a server. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/attach/host_checks.h"
#include "agent/describe/labels_preview.h"
#include "agent/export/debuginfo_upload.h"
#include "agent/export/exporter.h"
#include "agent/files/root_files.h"
#include "agent/identify/cloud_names.h"
#include "agent/identify/pod_names.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/printable.h"
#include "cli/binary_channel.h"
#include "cli/flags/client_flags.h"
#include "cli/defaults.h"
#include "cli/verb.h"
#include "net/http/hosts.h"
#include "net/server.h"

#define SEND_GRACE_NS (2 * CLOCK_NS_PER_S)

struct agent_verb_options {
	struct verb_common common;
	const char *remote_store_address;
	const char *http_address;
	const char *node;
	const char *unwind_cache_path;
	struct option_size unwind_memory;
	unsigned frequency_hz;
	int64_t duration_ns;
	unsigned binary_channel; /* descriptor from `firn up`; 0 = none */
	struct net_access access;
	const char *bearer_token;
	const char *config_path;
	bool dry_run;
	struct option_list container_sockets;
	struct pod_names_options pods;
	struct cloud_names_options cloud;
	struct option_list web_allowed_hosts;
	bool web_allow_unauthenticated;
	bool remote_store_insecure;
	bool thread_labels;
	const char *sample_labels;
	bool no_sample_times;
	bool debuginfo_upload_disable;
};

#define AT(member) offsetof(struct agent_verb_options, member)

static const struct option options[] = {
	OPTION_AT(REMOTE_STORE_ADDRESS, AT(remote_store_address)),
	OPTION_AT(REMOTE_STORE_INSECURE, AT(remote_store_insecure)),
	ACCESS_OPTIONS(REMOTE_STORE_, AT(access)),
	OPTION_AT(REMOTE_STORE_BEARER_TOKEN, AT(bearer_token)),
	OPTION_AT(PROFILING_CPU_SAMPLING_FREQUENCY, AT(frequency_hz)),
	OPTION_AT(PROFILING_DURATION, AT(duration_ns)),
	OPTION_AT(AGENT_HTTP_ADDRESS, AT(http_address)),
	OPTION_AT(AGENT_WEB_ALLOWED_HOST, AT(web_allowed_hosts)),
	OPTION_AT(AGENT_WEB_ALLOW_UNAUTHENTICATED, AT(web_allow_unauthenticated)),
	OPTION_AT(NODE, AT(node)),
	OPTION_AT(CONFIG_PATH, AT(config_path)),
	OPTION_AT(DRY_RUN, AT(dry_run)),
	OPTION_AT(CONTAINER_SOCKET, AT(container_sockets)),
	OPTION_AT(CLOUD, AT(cloud.provider)),
	OPTION_AT(CLOUD_ADDRESS, AT(cloud.address)),
	OPTION_AT(KUBERNETES, AT(pods.place)),
	OPTION_AT(KUBERNETES_NODE, AT(pods.node)),
	OPTION_AT(KUBERNETES_NODE_LABELS, AT(pods.node_labels)),
	OPTION_AT(THREAD_LABELS, AT(thread_labels)),
	OPTION_AT(SAMPLE_LABELS, AT(sample_labels)),
	OPTION_AT(NO_SAMPLE_TIMES, AT(no_sample_times)),
	OPTION_AT(UNWIND_CACHE_PATH, AT(unwind_cache_path)),
	OPTION_AT(UNWIND_MEMORY, AT(unwind_memory)),
	OPTION_AT(DEBUGINFO_UPLOAD_DISABLE, AT(debuginfo_upload_disable)),
	OPTION_AT(BINARY_CHANNEL, AT(binary_channel)),
	VERB_COMMON_OPTIONS,
};

static const struct option_verb spec = {
	.name = "agent",
	.operands = "",
	.summary = "profile this host and send the profiles to a server",
	.details = "Samples every process with eBPF (needs root, or CAP_BPF, CAP_PERFMON,\n"
		   "CAP_SYS_PTRACE) and sends OTLP profiles every 10 seconds. While the server is\n"
		   "unreachable, the agent keeps profiles in memory and retries.\n"
		   "\n"
		   "  sudo firn agent --remote-store-address profiles.example.net:7070",
	.options = options,
	.options_count = VERB_COUNT_OF(options),
};

static void get_metrics(void *context, const struct net_request *request,
			struct net_response *response)
{
	(void)context;
	(void)request;
	response->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_render(&response->body);
}

static void get_healthy(void *context, const struct net_request *request,
			struct net_response *response)
{
	(void)context;
	(void)request;
	response->content_type = "text/plain; charset=utf-8";
	strbuf_add_text(&response->body, "firn agent is healthy.\n");
}

static const struct net_route routes[] = {
	{ "GET", "/metrics", get_metrics, NULL, 0, NULL, NET_ROLE_NONE, false },
	{ "GET", "/-/healthy", get_healthy, NULL, 0, NULL, NET_ROLE_PROBE, false },
	{ "GET", "/-/ready", get_healthy, NULL, 0, NULL, NET_ROLE_PROBE, false },
};

/* Metrics are a convenience: an agent whose port is taken goes on profiling, and says so. */
static struct net_server *serve_metrics(const char *address, const struct hosts *hosts)
{
	struct net_server_options net = { .address = address,
					  .hosts = hosts,
					  .routes = routes,
					  .routes_count = VERB_COUNT_OF(routes),
					  .workers = 1 };
	struct net_server *server = NULL;
	struct err err;

	if (net_server_start(&net, &server, &err))
		log_warn("agent", "no /metrics", "error=\"%s\"", err.message);
	return server;
}

/* Nobody has to log in at the agent: others may reach it if that is meant, by its names alone. */
static int read_listener(const struct agent_verb_options *values, struct hosts *ret,
			 struct err *err)
{
	int rc = hosts_init(ret, values->http_address, err);

	if (rc)
		return err_wrap(err, "--http-address");
	for (size_t i = 0; !rc && i < values->web_allowed_hosts.count; i++)
		rc = hosts_add(ret, slice_of(values->web_allowed_hosts.items[i]), err);
	if (rc)
		return err_wrap(err, "--web-allowed-host");
	if (values->web_allow_unauthenticated || net_address_is_loopback(values->http_address))
		return 0;
	return err_set(err, ERR_DENIED,
		       "listen on \"%s\": everyone who can reach this address could read what this "
		       "host does from the metrics; give --web-allow-unauthenticated if that is "
		       "meant, or listen on 127.0.0.1",
		       values->http_address);
}

static uint64_t unwind_memory(const struct option_size *size)
{
	if (size->percent > 0)
		return (uint64_t)((double)host_checks_memory_bytes() * size->percent / 100);
	return size->bytes;
}

/* A file that is wrong changes nothing. */
static void reload(struct agent *agent, const char *path)
{
	struct agent_config *config;
	struct err err;

	if (agent_config_load(path, &config, &err)) {
		log_warn("agent", "configuration is invalid; the old one stays in force",
			 "error=\"%s\"", err.message);
		return;
	}
	log_info("agent", "configuration read", "path=\"%s\" rules=%zu", path,
		 agent_config_rules(config));
	agent_set_config(agent, config);
}

static int profile(const struct agent_verb_options *values, const struct hosts *hosts,
		   struct root_files *debug_files, struct err *err)
{
	struct exporter_options export = { .address = values->remote_store_address,
					   .access = &values->access,
					   .lost = agent_lost_samples };
	int channel = (int)values->binary_channel;
	struct agent_options start = {
		.command = "firn agent",
		.frequency_hz = values->frequency_hz,
		.window_ns = values->duration_ns,
		.node = values->node,
		.container_sockets =
			values->container_sockets.count ? values->container_sockets.items : NULL,
		.container_sockets_count = values->container_sockets.count,
		.pods = &values->pods,
		.cloud = &values->cloud,
		.thread_labels = values->thread_labels,
		.sample_times = !values->no_sample_times,
		.unwind_cache_path = values->unwind_cache_path,
		.unwind_memory_bytes = unwind_memory(&values->unwind_memory),
		.deliver = exporter_deliver,
		.binary_seen = channel ? binary_channel_lend : NULL,
		.binary_seen_context = &channel,
	};
	struct debuginfo_upload_options upload = { .address = values->remote_store_address,
						   .access = &values->access,
						   .files = debug_files };
	struct debuginfo_upload *uploads = NULL;
	struct net_server *metrics;
	struct exporter *exporter;
	struct agent *agent;
	int rc, number;

	rc = sample_labels_parse(slice_of(values->sample_labels), &start.sample_labels, err);
	if (!rc && values->config_path)
		rc = agent_config_load(values->config_path, &start.config, err);
	if (!rc)
		rc = exporter_new(&export, &exporter, err);
	if (rc) {
		agent_config_free(start.config);
		return rc;
	}
	start.deliver_context = exporter;
	if (debug_files) {
		rc = debuginfo_upload_new(&upload, &uploads, err);
		start.binary_seen = debuginfo_upload_offer;
		start.binary_seen_context = uploads;
	}
	if (!rc)
		rc = agent_start(&start, &agent, err);
	if (rc) {
		debuginfo_upload_free(uploads);
		exporter_free(exporter, 0);
		return rc;
	}
	metrics = serve_metrics(values->http_address, hosts);
	do {
		number = verb_wait_signal(-1);
		if (number == SIGHUP && values->config_path)
			reload(agent, values->config_path);
	} while (number != SIGINT && number != SIGTERM);
	agent_stop(agent);
	debuginfo_upload_free(uploads);
	exporter_free(exporter, SEND_GRACE_NS);
	net_server_stop(metrics, CLOCK_NS_PER_S);
	return 0;
}

static int find_node(const struct agent_verb_options *values, char *host, size_t bytes,
		     const char **ret, struct err *err)
{
	if (!values->node && gethostname(host, bytes - 1))
		return err_set_errno(err, errno, "the host's name");
	*ret = values->node ? values->node : host;
	return 0;
}

/* What would be profiled, and under which labels. */
static int preview(const struct agent_verb_options *values, struct err *err)
{
	struct label_sources sources = { 0 };
	struct agent_config *config = NULL;
	struct strbuf text = { 0 };
	char host[HOST_NAME_MAX + 1] = "";
	int rc = find_node(values, host, sizeof(host), &sources.node, err);

	if (!rc && values->config_path)
		rc = agent_config_load(values->config_path, &config, err);
	sources.config = config;
	if (!rc)
		rc = container_names_new(
			values->container_sockets.count ? values->container_sockets.items : NULL,
			values->container_sockets.count, &sources.containers, err);
	if (!rc)
		rc = pod_names_new(&values->pods, &sources.pods, err);
	if (!rc)
		rc = cloud_names_new(&values->cloud, &sources.cloud, err);
	if (!rc)
		rc = labels_preview(&sources, &text, err);
	printable_write(stdout, strbuf_slice(&text));
	container_names_free(sources.containers);
	pod_names_free(sources.pods);
	cloud_names_free(sources.cloud);
	agent_config_free(config);
	strbuf_free(&text);
	return rc;
}

/* TLS unless it is declined, or nobody is in between and no certificate asks for it. */
static void complete_access(struct agent_verb_options *values)
{
	bool has_certificates = values->access.ca_file || values->access.cert_file;

	values->access.tls =
		!values->remote_store_insecure &&
		(has_certificates || !net_address_is_loopback(values->remote_store_address));
	values->access.token = values->bearer_token;
	if (!values->bearer_token)
		client_flags_complete(&values->access);
}

static int run(int argc, char **argv)
{
	struct agent_verb_options values = {
		.unwind_cache_path = geteuid() ? NULL : DEFAULT_UNWIND_CACHE_PATH,
	};
	struct option_operands operands;
	struct root_files *debug_files = NULL;
	struct hosts hosts = { 0 };
	struct err err;
	int code = verb_parse(&verb_agent, argc, argv, &values, &operands);

	if (code >= 0)
		return code;
	if (values.dry_run)
		return preview(&values, &err) ? verb_error(&verb_agent, &err) : VERB_OK;
	if (!values.remote_store_address) {
		err_set(&err, ERR_INVALID,
			"--remote-store-address is required, for example "
			"--remote-store-address 127.0.0.1:7070");
		return verb_error(&verb_agent, &err);
	}
	complete_access(&values);
	verb_block_signals();
	verb_raise_file_limit();
	prctl(PR_SET_NAME, "firn-agent"); /* what profiles of this host call it */
	if (values.binary_channel) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		prctl(PR_SET_NAME, "firn"); /* started as /proc/self/exe: it would be "exe" */
		/* It may have ended before that. */
		if (getppid() != binary_channel_opener((int)values.binary_channel)) {
			err_set(&err, ERR_UNAVAILABLE,
				"the process that started this agent has ended");
			return verb_error(&verb_agent, &err);
		}
	}
	/* Before privileges go, as the agent's own. */
	if (!values.binary_channel && !values.debuginfo_upload_disable)
		code = root_files_new(&debug_files, &err);
	else
		code = 0;
	if (!code)
		code = agent_confine(&err);
	if (!code)
		code = read_listener(&values, &hosts, &err);
	if (!code)
		code = profile(&values, &hosts, debug_files, &err);
	root_files_unref(debug_files);
	hosts_free(&hosts);
	return code ? verb_error(&verb_agent, &err) : VERB_OK;
}

const struct verb verb_agent = { &spec, run, LOG_INFO };
