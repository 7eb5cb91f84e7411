/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_kubernetes - kubernetes_sd_configs: what the API server lists, page by page. It is asked
 * anew each half a minute, soon after a failure; a list that changes between its pages is another
 * failure. Inside a cluster the address, the token and the authority are those that Kubernetes
 * gives each pod.
 */
#include <stdlib.h>

#include "base/whole_file.h"
#include "server/scrape/discovery.h"
#include "server/scrape/kubernetes_answer.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define NAMESPACE_BYTES_MAX 256u
#define PAGE_OBJECTS "500"
#define PAGES_MAX 1000u /* of one list */
#define PAUSE_NS (30 * CLOCK_NS_PER_S)
#define PAUSE_FAILED_NS (5 * CLOCK_NS_PER_S)
#define TIMEOUT_NS (30 * CLOCK_NS_PER_S)

struct listing {
	struct discovery *discovery;
	struct http_access_config access;
	struct strbuf server; /* "https://HOST:PORT" */
	struct strbuf body, next;
	struct found *found;
};

static const char *const resources[DISCOVERY_ROLES] = {
	[DISCOVERY_ROLE_POD] = "pods",
	[DISCOVERY_ROLE_NODE] = "nodes",
	[DISCOVERY_ROLE_SERVICE] = "services",
};

/* Where the server is, and who we are to it. */
static int find_server(struct listing *listing, struct err *err)
{
	const struct discovery_config *config = listing->discovery->config;
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	strbuf_clear(&listing->server);
	listing->access = config->access;
	if (config->api_server.len) {
		struct slice server = config->api_server;

		while (server.data[server.len - 1] == '/') /* "https://" is before it */
			server.len--;
		strbuf_add_slice(&listing->server, server);
		return 0;
	}
	if (!host || !port)
		return err_set(err, ERR_INVALID,
			       "\"api_server\" is missing, and this is not a pod of Kubernetes "
			       "(KUBERNETES_SERVICE_HOST is not set)");
	strbuf_addf(&listing->server, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
		    port);
	listing->access.tls.ca_file = slice_of(ACCOUNT "ca.crt");
	listing->access.bearer_token_file = slice_of(ACCOUNT "token");
	return 0;
}

static void add_parameter(struct strbuf *url, const char *name, struct slice value)
{
	if (!value.len)
		return;
	strbuf_addf(url, "&%s=", name);
	for (size_t i = 0; i < value.len; i++)
		strbuf_addf(url, "%%%02X", (unsigned char)value.data[i]);
}

static int ask_page(struct listing *listing, struct slice namespace_name, struct err *err)
{
	const struct discovery_config *config = listing->discovery->config;
	struct strbuf url = { 0 };
	struct discovery_request request = { .headers = "accept: application/json\r\n",
					     .access = &listing->access,
					     .timeout_ns = TIMEOUT_NS };
	int rc;

	strbuf_addf(&url, "%s/api/v1/", strbuf_text(&listing->server));
	if (namespace_name.len)
		strbuf_addf(&url, "namespaces/%.*s/", SLICE_FMT(namespace_name));
	strbuf_addf(&url, "%s?limit=" PAGE_OBJECTS, resources[config->role]);
	for (size_t i = 0; i < config->selectors_count; i++) {
		add_parameter(&url, "labelSelector", config->selectors[i].label);
		add_parameter(&url, "fieldSelector", config->selectors[i].field);
	}
	add_parameter(&url, "continue",
		      (struct slice){ strbuf_text(&listing->next), listing->next.len });
	request.url = strbuf_text(&url);
	rc = discovery_get_body(listing->discovery, &request, &listing->body, err);
	strbuf_free(&url);
	return rc ? rc
		  : kubernetes_answer_read(strbuf_slice(&listing->body), config->role,
					   listing->found, &listing->next, err);
}

/* All of a namespace; of all of them when the name is empty. */
static int list(struct listing *listing, struct slice namespace_name, struct err *err)
{
	unsigned pages = 0;
	int rc;

	strbuf_clear(&listing->next);
	do {
		if (++pages > PAGES_MAX)
			return err_set(err, ERR_LIMIT, "Kubernetes' list has more than %u pages",
				       PAGES_MAX);
		rc = ask_page(listing, namespace_name, err);
	} while (!rc && listing->next.len && !listing->found->is_cut);
	return rc;
}

static int list_own(struct listing *listing, struct err *err)
{
	struct strbuf name = { 0 };
	int rc = whole_file_read(ACCOUNT "namespace", NAMESPACE_BYTES_MAX, &name, err);

	if (!rc)
		rc = list(listing, slice_trim((struct slice){ strbuf_text(&name), name.len }), err);
	strbuf_free(&name);
	return rc;
}

static int list_all(struct listing *listing, struct err *err)
{
	const struct discovery_config *config = listing->discovery->config;
	struct slice everywhere = { "", 0 };
	bool is_somewhere = config->namespaces.names.count || config->namespaces.own_namespace;
	int rc = find_server(listing, err);

	if (!rc && (!is_somewhere || config->role == DISCOVERY_ROLE_NODE))
		return list(listing, everywhere, err);
	for (size_t i = 0; !rc && i < config->namespaces.names.count; i++)
		rc = list(listing, config->namespaces.names.items[i], err);
	if (!rc && config->namespaces.own_namespace)
		rc = list_own(listing, err);
	return rc;
}

void discover_kubernetes(struct discovery *discovery)
{
	struct listing listing = { .discovery = discovery };
	struct err err;
	int rc;

	do {
		listing.found = found_new();
		rc = list_all(&listing, &err);
		if (!rc) {
			discovery_publish(discovery, listing.found);
		} else {
			discovery_fail(discovery, &err);
			found_free(listing.found);
		}
	} while (discovery_sleep(discovery, rc ? PAUSE_FAILED_NS : PAUSE_NS));
	strbuf_free(&listing.server);
	strbuf_free(&listing.body);
	strbuf_free(&listing.next);
}
