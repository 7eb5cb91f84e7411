/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/kubernetes_objects.h"

#include <assert.h>
#include <stdlib.h>

#include "codec/wire/json_read.h"
#include "server/scrape/found.h"

/* Overhead of jansson and the heap, besides the texts themselves. */
#define ENTRY_BYTES 112u
#define TEXT_BYTES 72u

/* What stays of an object. An array stands for each of its elements. */
struct wanted {
	const char *name;
	const struct wanted *inside; /* NULL: all of it */
};

static const struct wanted owner[] = {
	{ "controller", NULL }, { "kind", NULL }, { "name", NULL }, { 0 }
};
static const struct wanted metadata[] = {
	{ "name", NULL },	 { "namespace", NULL },	       { "uid", NULL }, { "labels", NULL },
	{ "annotations", NULL }, { "ownerReferences", owner }, { 0 },
};
static const struct wanted port[] = {
	{ "name", NULL },     { "containerPort", NULL }, { "port", NULL },
	{ "protocol", NULL }, { "appProtocol", NULL },	 { 0 },
};
static const struct wanted container[] = {
	{ "name", NULL }, { "image", NULL }, { "ports", port }, { 0 }
};
static const struct wanted container_status[] = { { "name", NULL },
						  { "containerID", NULL },
						  { 0 } };
static const struct wanted condition[] = { { "type", NULL }, { "status", NULL }, { 0 } };
static const struct wanted rules[] = { { "host", NULL }, { "http", NULL }, { 0 } };
static const struct wanted spec[] = {
	/* pods */
	{ "nodeName", NULL },
	{ "containers", container },
	{ "initContainers", container },
	/* nodes */
	{ "providerID", NULL },
	/* services */
	{ "type", NULL },
	{ "clusterIP", NULL },
	{ "externalName", NULL },
	{ "loadBalancerIP", NULL },
	{ "ports", port },
	/* ingresses */
	{ "ingressClassName", NULL },
	{ "tls", NULL },
	{ "rules", rules },
	{ 0 },
};
static const struct wanted status[] = {
	{ "podIP", NULL },
	{ "phase", NULL },
	{ "hostIP", NULL },
	{ "conditions", condition },
	{ "containerStatuses", container_status },
	{ "initContainerStatuses", container_status },
	{ "addresses", NULL },
	{ "daemonEndpoints", NULL },
	{ 0 },
};
static const struct wanted object_wanted[] = {
	{ "metadata", metadata },
	{ "spec", spec },
	{ "status", status },
	/* endpoints and endpointslices */
	{ "subsets", NULL },
	{ "addressType", NULL },
	{ "endpoints", NULL },
	{ "ports", port },
	{ 0 },
};

static const struct wanted *find(const struct wanted *list, const char *name)
{
	while (list->name && strcmp(list->name, name) != 0)
		list++;
	return list->name ? list : NULL;
}

/* No deeper than the tables above are. */
static void prune(json_t *value, const struct wanted *list)
{
	json_t *member;
	const char *name;
	void *next;
	size_t i;

	json_array_foreach(value, i, member)
	{
		prune(member, list);
	}
	json_object_foreach_safe(value, next, name, member)
	{
		const struct wanted *found = find(list, name);

		if (!found)
			json_object_del(value, name);
		else if (found->inside)
			prune(member, found->inside);
	}
}

/* What the heap has of an object: an entry of the table with its key, and a text. */
static size_t entry_bytes(const char *key)
{
	return ENTRY_BYTES + strlen(key);
}

static size_t text_bytes(const json_t *text)
{
	return TEXT_BYTES + json_string_length(text);
}

void kubernetes_objects_init(struct kubernetes_objects *objects, enum kubernetes_resource resource)
{
	*objects = (struct kubernetes_objects){ .resource = resource, .texts = json_object() };
}

void kubernetes_objects_free(struct kubernetes_objects *objects)
{
	json_decref(objects->texts);
	objects->texts = NULL;
	budget_give(&discovery_memory, objects->paid_bytes);
	objects->paid_bytes = 0;
}

/* True if both have the same one, which the known objects pay for. */
static bool is_shared(const struct kubernetes_objects *objects, const char *key, const json_t *text)
{
	return objects->known && json_object_get(objects->known->texts, key) == text;
}

void kubernetes_objects_replace(struct kubernetes_objects *known, struct kubernetes_objects *fresh)
{
	const char *key;
	const json_t *text;

	assert(fresh->known == known);
	json_object_foreach(fresh->texts, key, text)
	{
		if (!is_shared(fresh, key, text))
			continue;
		known->paid_bytes -= text_bytes(text);
		fresh->paid_bytes += text_bytes(text);
	}
	fresh->known = NULL;
	kubernetes_objects_free(known);
	*known = *fresh;
}

static void key_of(const json_t *object, struct strbuf *ret)
{
	const json_t *about = json_object_get(object, "metadata");

	strbuf_addf(ret, "%.*s/%.*s", SLICE_FMT(json_text_at(about, "namespace")),
		    SLICE_FMT(json_text_at(about, "name")));
}

static void forget(struct kubernetes_objects *objects, const char *key)
{
	const json_t *text = json_object_get(objects->texts, key);
	size_t bytes;

	if (!text)
		return;
	bytes = entry_bytes(key) + (is_shared(objects, key, text) ? 0 : text_bytes(text));
	objects->paid_bytes -= bytes;
	budget_give(&discovery_memory, bytes);
	json_object_del(objects->texts, key);
}

/* A new reference: the known one, if it says the same. */
static json_t *text_of(const struct kubernetes_objects *objects, const char *key, json_t *object)
{
	char *dumped = json_dumps(object, JSON_COMPACT);
	json_t *text = objects->known ? json_object_get(objects->known->texts, key) : NULL;

	if (dumped && text && !strcmp(json_string_value(text), dumped))
		json_incref(text);
	else
		text = dumped ? json_string(dumped) : NULL;
	free(dumped);
	return text;
}

static int keep(struct kubernetes_objects *objects, const char *key, json_t *object,
		struct err *err)
{
	size_t bytes;
	json_t *text;

	prune(object, object_wanted);
	text = text_of(objects, key, object);
	forget(objects, key);
	if (!text)
		return err_set(err, ERR_INVALID, "Kubernetes: an object that is no text");
	bytes = entry_bytes(key) + (is_shared(objects, key, text) ? 0 : text_bytes(text));
	if (json_object_size(objects->texts) >= KUBERNETES_OBJECTS_MAX) {
		json_decref(text);
		return err_set(err, ERR_LIMIT, "Kubernetes has more than %u objects",
			       KUBERNETES_OBJECTS_MAX);
	}
	if (!budget_take(&discovery_memory, bytes)) {
		json_decref(text);
		discovery_memory_fail(err);
		return err_wrap(err, "Kubernetes' objects");
	}
	objects->paid_bytes += bytes;
	if (!json_object_set_new(objects->texts, key, text))
		return 0;
	objects->paid_bytes -= bytes;
	budget_give(&discovery_memory, bytes);
	return err_set(err, ERR_INVALID, "Kubernetes: an object's name is no text");
}

int kubernetes_objects_take(struct kubernetes_objects *objects, json_t *object, bool is_there,
			    struct err *err)
{
	struct strbuf key = { 0 };
	int rc = 0;

	key_of(object, &key);
	if (is_there)
		rc = keep(objects, strbuf_text(&key), object, err);
	else
		forget(objects, strbuf_text(&key));
	strbuf_free(&key);
	return rc;
}
