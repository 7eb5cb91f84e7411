/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_objects - what is known of one resource of Kubernetes (its pods, its nodes, ...), from
 * lists and from the events of a watch, as its API sends both in JSON.
 *
 * An object is kept as a short text of what targets are made of: of a pod's several kB that is
 * about one. Owned by whoever has the struct; one thread at a time. Bounded: an object, their
 * number, the bytes of all.
 */
#ifndef FIRN_SERVER_SCRAPE_KUBERNETES_OBJECTS_H
#define FIRN_SERVER_SCRAPE_KUBERNETES_OBJECTS_H

#include "base/err.h"
#include "base/strbuf.h"

#define KUBERNETES_OBJECTS_MAX 200000u
#define KUBERNETES_OBJECTS_BYTES_MAX ((size_t)256 << 20)

struct json_t;

enum kubernetes_resource {
	KUBERNETES_PODS,
	KUBERNETES_NODES,
	KUBERNETES_SERVICES,
	KUBERNETES_ENDPOINTS,
	KUBERNETES_SLICES,
	KUBERNETES_INGRESSES,
	KUBERNETES_RESOURCES,
};

struct kubernetes_objects {
	enum kubernetes_resource resource;
	struct json_t *texts; /* "NAMESPACE/NAME" ("/NAME" of nodes) -> JSON */
	size_t bytes;
	struct strbuf version; /* of the list or of the last event: where a watch goes on */
};

void kubernetes_objects_init(struct kubernetes_objects *objects, enum kubernetes_resource resource);
void kubernetes_objects_free(struct kubernetes_objects *objects);

/*
 * Adds a page of a list. *ret_next is what the request for the next page has to say, or empty.
 * ERR_INVALID and ERR_LIMIT say what is wrong; then some may have been added.
 */
int kubernetes_objects_add_page(struct kubernetes_objects *objects, struct slice page,
				struct strbuf *ret_next, struct err *err);

/*
 * One line of a watch. ERR_NOT_FOUND: what the watch began with is over, and a list is needed
 * (410). ERR_BUSY: the server ended it with another error. ERR_INVALID, ERR_LIMIT as above.
 */
int kubernetes_objects_add_event(struct kubernetes_objects *objects, struct slice line,
				 struct err *err);

#endif
