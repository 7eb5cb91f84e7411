/* SPDX-License-Identifier: Apache-2.0 */
/* discover_docker - docker_sd_configs: the containers that run; Docker is asked anew each minute.
 */
#include <jansson.h>
#include <stdlib.h>

#include "server/scrape/discovery.h"
#include "server/scrape/docker_answer.h"

/* ?filters={"NAME":{"VALUE":true}} */
static void add_filters(const struct discovery_config *config, struct strbuf *url)
{
	json_t *filters = json_object();
	char *text;

	for (size_t i = 0; i < config->filters_count; i++) {
		const struct discovery_filter *filter = &config->filters[i];
		json_t *values = json_object_get(filters, filter->name.data);

		if (!values) {
			values = json_object();
			json_object_set_new(filters, filter->name.data, values);
		}
		for (size_t j = 0; j < filter->values.count; j++)
			json_object_set_new(values, filter->values.items[j].data, json_true());
	}
	text = json_dumps(filters, JSON_COMPACT);
	if (config->filters_count && text) {
		strbuf_add_text(url, "?filters=");
		strbuf_add_for_uri(url, slice_of(text), "");
	}
	free(text);
	json_decref(filters);
}

/* "unix:///run/docker.sock" -> its path, and a URL that names nobody */
static const char *socket_of(const struct discovery_config *config, struct strbuf *url)
{
	struct slice host = config->host, unix_scheme = SLICE_LITERAL("unix://");
	struct slice tcp = SLICE_LITERAL("tcp://");

	if (slice_starts_with(host, unix_scheme)) {
		strbuf_add_text(url, "http://docker");
		return slice_tail(host, unix_scheme.len).data;
	}
	if (slice_starts_with(host, tcp)) {
		strbuf_add_text(url, "http://");
		host = slice_tail(host, tcp.len);
	}
	while (host.len && host.data[host.len - 1] == '/')
		host.len--;
	strbuf_add_slice(url, host);
	return NULL;
}

static int ask(struct discovery *discovery, const char *path, bool with_filters, struct strbuf *ret,
	       struct err *err)
{
	struct strbuf url = { 0 };
	struct http_request request = {
		.socket_path = socket_of(discovery->config, &url),
		.timeout_ns = discovery->config->refresh_ns,
	};
	int rc;

	strbuf_add_text(&url, path);
	if (with_filters)
		add_filters(discovery->config, &url);
	request.url = strbuf_text(&url);
	rc = discovery_get_body(discovery, &request, ret, err);
	strbuf_free(&url);
	return rc;
}

void discover_docker(struct discovery *discovery)
{
	struct strbuf containers = { 0 }, networks = { 0 };

	do {
		struct found *found = discovery_new_found(discovery);
		struct err err;
		int rc = ask(discovery, "/containers/json", true, &containers, &err);

		if (!rc)
			rc = ask(discovery, "/networks", false, &networks, &err);
		if (!rc)
			rc = docker_answer_read(strbuf_slice(&containers), strbuf_slice(&networks),
						discovery->config, found, &err);
		if (!rc) {
			discovery_publish(discovery, found);
		} else {
			discovery_fail(discovery, &err);
			found_free(found);
		}
		discovery_forget_body(&containers);
		discovery_forget_body(&networks);
	} while (discovery_sleep(discovery, discovery->config->refresh_ns));
}
