/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_objects - the objects of one resource of Kubernetes (pods, nodes, ...).
 *
 * An object is kept as a short text with the fields that targets need: about 1 kB of a pod's
 * several. They count against discovery_memory (found.h). A new list shares the texts of unchanged
 * objects with the old one.
 *
 * Owned by whoever has the struct; one thread at a time changes it. Bounded: their number, and
 * discovery_memory.
 */
#ifndef FIRN_SERVER_SCRAPE_KUBERNETES_OBJECTS_H
#define FIRN_SERVER_SCRAPE_KUBERNETES_OBJECTS_H

#include "remote/kubernetes/kubernetes_stream.h"

#define KUBERNETES_OBJECTS_MAX 200000u

struct kubernetes_objects {
	enum kubernetes_resource resource;
	struct json_t *texts;			/* "NAMESPACE/NAME" ("/NAME" of nodes) -> JSON */
	const struct kubernetes_objects *known; /* whose texts are shared; NULL: none */
	size_t paid_bytes;			/* of discovery_memory */
};

void kubernetes_objects_init(struct kubernetes_objects *objects, enum kubernetes_resource resource);
void kubernetes_objects_free(struct kubernetes_objects *objects);

/* `fresh`, which was begun beside `known`, takes its place. */
void kubernetes_objects_replace(struct kubernetes_objects *known, struct kubernetes_objects *fresh);

/*
 * An object is there (again), or is there no more; what is not needed of it is taken out. ERR_LIMIT
 * says of what there is too much.
 */
int kubernetes_objects_take(struct kubernetes_objects *objects, json_t *object, bool is_there,
			    struct err *err);

#endif
