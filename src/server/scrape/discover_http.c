/* SPDX-License-Identifier: Apache-2.0 */
/* discover_http - http_sd_configs: a server that lists the targets; asked anew each minute. */
#include "server/scrape/discovery.h"
#include "server/scrape/target_list.h"

void discover_http(struct discovery *discovery)
{
	const struct discovery_config *config = discovery->config;
	const struct http_request request = { .url = config->url.data,
					      .timeout_ns = config->refresh_ns,
					      .headers = "accept: application/json\r\n" };
	struct strbuf body = { 0 };

	do {
		struct found *found = discovery_new_found(discovery);
		struct err err;
		int rc = discovery_get_body(discovery, &request, &body, &err);

		if (!rc)
			rc = target_list_read_json(strbuf_slice(&body), "__meta_url",
						   config->url.data, found, &err);
		if (!rc) {
			discovery_publish(discovery, found);
		} else {
			discovery_fail(discovery, &err);
			found_free(found);
		}
		discovery_forget_body(&body);
	} while (discovery_sleep(discovery, config->refresh_ns));
}
