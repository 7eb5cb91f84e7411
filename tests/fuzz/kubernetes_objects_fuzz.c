/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is a list of Kubernetes or an event, or an error that says so; what is kept of it makes
 * targets of each role.
 */
#include <stdlib.h>
#include <string.h>

#include "server/scrape/kubernetes_targets.h"

#define SAYS "Kubernetes"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubernetes_objects objects[KUBERNETES_RESOURCES];
	const struct kubernetes_objects *sets[KUBERNETES_RESOURCES];
	const struct kubernetes_view view = { sets, KUBERNETES_RESOURCES, true };
	struct strbuf next = { 0 };

	for (int i = 0; i < KUBERNETES_RESOURCES; i++) {
		struct err err = { 0 };

		kubernetes_objects_init(&objects[i], (enum kubernetes_resource)i);
		sets[i] = &objects[i];
		if (kubernetes_objects_add_page(&objects[i], slice_from(data, size), &next, &err) &&
		    strncmp(err.message, SAYS, strlen(SAYS)) != 0)
			abort();
		if (kubernetes_objects_add_event(&objects[i], slice_from(data, size), &err) &&
		    strncmp(err.message, SAYS, strlen(SAYS)) != 0)
			abort();
	}
	for (int role = 0; role < DISCOVERY_ROLES; role++) {
		struct found *found = found_new();

		kubernetes_targets_make(&view, (enum discovery_role)role, found);
		for (size_t i = 0; i < found->count; i++) {
			const struct found_target *target = &found->targets[i];

			if (!slice_is(target->labels[target->count - 1].name, "__address__"))
				abort();
		}
		found_free(found);
	}
	for (int i = 0; i < KUBERNETES_RESOURCES; i++)
		kubernetes_objects_free(&objects[i]);
	strbuf_free(&next);
	return 0;
}
