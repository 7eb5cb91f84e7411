/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a list of Kubernetes for each role, or an error that says so. */
#include <stdlib.h>
#include <string.h>

#include "server/scrape/kubernetes_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf next = { 0 };

	for (int role = 0; role < DISCOVERY_ROLES; role++) {
		struct found *found = found_new();
		struct err err = { 0 };

		if (kubernetes_answer_read(slice_from(data, size), (enum discovery_role)role, found,
					   &next, &err) &&
		    strncmp(err.message, "Kubernetes' list: ", strlen("Kubernetes' list: ")) != 0)
			abort();
		for (size_t i = 0; i < found->count; i++) {
			const struct found_target *target = &found->targets[i];

			if (!target->count ||
			    !slice_is(target->labels[target->count - 1].name, "__address__"))
				abort();
		}
		found_free(found);
	}
	strbuf_free(&next);
	return 0;
}
