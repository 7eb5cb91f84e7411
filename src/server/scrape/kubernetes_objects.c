/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/kubernetes_objects.h"

#include <stdlib.h>

#include "codec/wire/json_read.h"

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

void kubernetes_objects_init(struct kubernetes_objects *objects, enum kubernetes_resource resource)
{
	*objects = (struct kubernetes_objects){ .resource = resource, .texts = json_object() };
}

void kubernetes_objects_free(struct kubernetes_objects *objects)
{
	json_decref(objects->texts);
	objects->texts = NULL;
	objects->bytes = 0;
}

static void key_of(const json_t *object, struct strbuf *ret)
{
	const json_t *about = json_object_get(object, "metadata");

	strbuf_addf(ret, "%.*s/%.*s", SLICE_FMT(json_text_at(about, "namespace")),
		    SLICE_FMT(json_text_at(about, "name")));
}

static void forget(struct kubernetes_objects *objects, const char *key)
{
	objects->bytes -= json_string_length(json_object_get(objects->texts, key));
	json_object_del(objects->texts, key);
}

static int keep(struct kubernetes_objects *objects, const char *key, json_t *object,
		struct err *err)
{
	char *text;

	prune(object, object_wanted);
	text = json_dumps(object, JSON_COMPACT);
	forget(objects, key);
	if (text && json_object_size(objects->texts) < KUBERNETES_OBJECTS_MAX &&
	    objects->bytes + strlen(text) <= KUBERNETES_OBJECTS_BYTES_MAX &&
	    !json_object_set_new(objects->texts, key, json_string(text)))
		objects->bytes += strlen(text);
	else
		free(text), text = NULL;
	if (!text)
		return err_set(err, ERR_LIMIT,
			       "Kubernetes has more than %u objects, or %zu MiB of them",
			       KUBERNETES_OBJECTS_MAX, KUBERNETES_OBJECTS_BYTES_MAX >> 20);
	free(text);
	return 0;
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
