/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_consul - consul_sd_configs: the instances of all services, or of those that are named,
 * have the tags or pass the filter, which Consul itself applies. It is asked anew each 30 seconds.
 */
#include "net/client/fetch.h"
#include "server/scrape/consul_answer.h"
#include "server/scrape/discovery.h"

#define TIMEOUT_NS (30 * CLOCK_NS_PER_S)
#define PAUSE_FAILED_NS (5 * CLOCK_NS_PER_S)

struct asking {
	struct discovery *discovery;
	struct strbuf datacenter, body;
	struct found *found;
};

/* `path` ends in '?'; what the configuration asks of all requests comes after it. */
static int ask(struct asking *asking, struct slice path, struct err *err)
{
	const struct discovery_config *config = asking->discovery->config;
	struct strbuf url = { 0 }, headers = { 0 };
	struct http_request request = { .timeout_ns = TIMEOUT_NS };
	int rc;

	strbuf_addf(&url, "%.*s://%.*s%s%.*s/v1/%.*s", SLICE_FMT(config->consul.scheme),
		    SLICE_FMT(config->consul.server), config->consul.path_prefix.len ? "/" : "",
		    SLICE_FMT(config->consul.path_prefix), SLICE_FMT(path));
	if (config->consul.allow_stale)
		strbuf_add_text(&url, "&stale=");
	fetch_add_parameter(&url, "dc", config->consul.datacenter);
	fetch_add_parameter(&url, "ns", config->consul.namespace_name);
	fetch_add_parameter(&url, "partition", config->consul.partition);
	for (size_t i = 0; i < config->consul.node_meta.count; i++) {
		struct strbuf pair = { 0 };

		strbuf_addf(&pair, "%.*s:%.*s", SLICE_FMT(config->consul.node_meta.items[i].name),
			    SLICE_FMT(config->consul.node_meta.items[i].value));
		fetch_add_parameter(&url, "node-meta", strbuf_slice(&pair));
		strbuf_free(&pair);
	}
	if (config->consul.token.len)
		strbuf_addf(&headers, "x-consul-token: %.*s\r\n", SLICE_FMT(config->consul.token));
	request.url = strbuf_text(&url);
	request.headers = strbuf_text(&headers);
	rc = discovery_get_body(asking->discovery, &request, &asking->body, err);
	strbuf_free(&url);
	strbuf_wipe(&headers);
	return rc;
}

static int find_datacenter(struct asking *asking, struct err *err)
{
	const struct discovery_config *config = asking->discovery->config;
	int rc;

	if (asking->datacenter.len)
		return 0;
	if (config->consul.datacenter.len) {
		strbuf_add_slice(&asking->datacenter, config->consul.datacenter);
		return 0;
	}
	rc = ask(asking, SLICE_LITERAL("agent/self?"), err);
	return rc ? rc
		  : consul_answer_datacenter(strbuf_slice(&asking->body), &asking->datacenter, err);
}

static int add_instances(void *context, struct slice service, struct err *err)
{
	struct asking *asking = context;
	const struct discovery_config *config = asking->discovery->config;
	struct strbuf path = { 0 };
	int rc;

	strbuf_add_text(&path, "health/service/");
	fetch_add_path(&path, service);
	strbuf_add_byte(&path, '?');
	for (size_t i = 0; i < config->consul.tags.count; i++)
		fetch_add_parameter(&path, "tag", config->consul.tags.items[i]);
	fetch_add_parameter(&path, "filter", config->consul.health_filter);
	rc = ask(asking, strbuf_slice(&path), err);
	if (!rc)
		rc = consul_answer_instances(strbuf_slice(&asking->body), config, service,
					     strbuf_slice(&asking->datacenter), asking->found, err);
	strbuf_free(&path);
	return rc;
}

/* Services that are named, without tags and filter, need no catalogue. */
static int add_services(struct asking *asking, struct err *err)
{
	const struct discovery_config *config = asking->discovery->config;
	struct strbuf path = { 0 }, catalogue = { 0 };
	int rc = 0;

	if (config->consul.services.count && !config->consul.tags.count &&
	    !config->consul.filter.len) {
		for (size_t i = 0; !rc && i < config->consul.services.count; i++)
			rc = add_instances(asking, config->consul.services.items[i], err);
		return rc;
	}
	strbuf_add_text(&path, "catalog/services?");
	fetch_add_parameter(&path, "filter", config->consul.filter);
	rc = ask(asking, strbuf_slice(&path), err);
	strbuf_free(&path);
	catalogue = asking->body;
	asking->body = (struct strbuf){ 0 };
	if (!rc)
		rc = consul_answer_services(strbuf_slice(&catalogue), config, add_instances, asking,
					    err);
	discovery_forget_body(&catalogue);
	return rc;
}

void discover_consul(struct discovery *discovery)
{
	struct asking asking = { .discovery = discovery };
	struct err err;
	int rc;

	do {
		asking.found = discovery_new_found(discovery);
		rc = find_datacenter(&asking, &err);
		if (!rc)
			rc = add_services(&asking, &err);
		if (!rc) {
			discovery_publish(discovery, asking.found);
		} else {
			discovery_fail(discovery, &err);
			found_free(asking.found);
		}
		discovery_forget_body(&asking.body);
	} while (discovery_sleep(discovery, rc ? PAUSE_FAILED_NS : discovery->config->refresh_ns));
	strbuf_free(&asking.datacenter);
}
