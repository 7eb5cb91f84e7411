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

static int take(void *context, json_t *object, bool is_there, struct err *err)
{
	return kubernetes_objects_take(context, object, is_there, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubernetes_objects objects[KUBERNETES_RESOURCES];
	const struct kubernetes_objects *sets[KUBERNETES_RESOURCES];
	const struct kubernetes_view view = { sets, KUBERNETES_RESOURCES, true };
	struct strbuf next = { 0 }, version = { 0 };

	for (int i = 0; i < KUBERNETES_RESOURCES; i++) {
		struct err err = { 0 };

		const struct kubernetes_sink sink = { take, &objects[i], NULL };
		struct kubernetes_list list;

		kubernetes_objects_init(&objects[i], (enum kubernetes_resource)i);
		sets[i] = &objects[i];
		kubernetes_list_begin(&list, &sink);
		if ((kubernetes_list_add(&list, slice_from(data, size / 2), &err) ||
		     kubernetes_list_add(&list, slice_from(data + size / 2, size - size / 2),
					 &err) ||
		     kubernetes_list_end(&list, &version, &next, &err)) &&
		    strncmp(err.message, SAYS, strlen(SAYS)) != 0)
			abort();
		kubernetes_list_free(&list);
		if (kubernetes_event_read(slice_from(data, size), &sink, &version, &err) &&
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
	strbuf_free(&version);
	return 0;
}
