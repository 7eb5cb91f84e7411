/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is an answer of Consul, or an error that says so. */
#include <stdlib.h>
#include <string.h>

#include "server/scrape/consul_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *context, struct slice name, struct err *err)
{
	(void)name;
	(void)err;
	*(size_t *)context += 1;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice separator = SLICE_LITERAL(",");
	struct discovery_config config = { .consul = { .tag_separator = separator } };
	struct slice answer = slice_from(data, size);
	struct found *found = found_new();
	struct strbuf datacenter = { 0 };
	struct err err = { 0 };
	size_t services = 0;

	if ((consul_answer_instances(answer, &config, SLICE_LITERAL("s"), SLICE_LITERAL("d"), found,
				     &err) ||
	     consul_answer_services(answer, &config, take, &services, &err) ||
	     consul_answer_datacenter(answer, &datacenter, &err)) &&
	    strncmp(err.message, "Consul's ", strlen("Consul's ")) != 0)
		abort();
	if (services > size)
		abort();
	found_free(found);
	strbuf_free(&datacenter);
	return 0;
}
