/* SPDX-License-Identifier: Apache-2.0 */
/* Any two texts, with a 0 between them, are answers of Docker, or an error that says so. */
#include <stdlib.h>
#include <string.h>

#include "server/scrape/docker_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice networks, containers = slice_cut(slice_from(data, size), '\0', &networks);
	struct discovery_config config = { .kind = DISCOVERY_DOCKER,
					   .port = 80,
					   .host_networking_host = SLICE_LITERAL("localhost"),
					   .match_first_network = size % 2 };
	struct found *found = found_new();
	struct err err = { 0 };

	if (docker_answer_read(containers, networks, &config, found, &err) &&
	    strncmp(err.message, "Docker's ", strlen("Docker's ")) != 0)
		abort();
	for (size_t i = 0; i < found->count; i++) {
		const struct found_target *target = &found->targets[i];

		if (!target->count ||
		    !slice_is(target->labels[target->count - 1].name, "__address__"))
			abort();
	}
	found_free(found);
	return 0;
}
