/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/kubernetes_objects.h"

#include <stdlib.h>

#include "base/budget.h"
#include "codec/wire/json_read.h"
#include "server/scrape/discovery.h"

#define GONE 410 /* what a watch begins with is not known any more */

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
	strbuf_free(&objects->version);
	objects->texts = NULL;
	objects->bytes = 0;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void key_of(const json_t *object, struct strbuf *ret)
{
	const json_t *about = json_object_get(object, "metadata");

	strbuf_addf(ret, "%s/%s", text_of(about, "namespace"), text_of(about, "name"));
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

static void note_version(struct kubernetes_objects *objects, const json_t *about)
{
	const char *version = text_of(about, "resourceVersion");

	if (!version[0])
		return;
	strbuf_clear(&objects->version);
	strbuf_add_text(&objects->version, version);
}

static int add(struct kubernetes_objects *objects, json_t *object, struct err *err)
{
	struct strbuf key = { 0 };
	int rc;

	key_of(object, &key);
	rc = keep(objects, strbuf_text(&key), object, err);
	strbuf_free(&key);
	return rc;
}

int kubernetes_objects_add_page(struct kubernetes_objects *objects, struct slice page,
				struct strbuf *ret_next, struct err *err)
{
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX };
	struct json_read read;
	int rc = json_read(page, 0, "Kubernetes' list", &budget, &read, err);
	json_t *items = json_object_get(read.root, "items"), *object;
	const json_t *about = json_object_get(read.root, "metadata");
	size_t i;

	strbuf_clear(ret_next);
	/* Go writes an empty list as null. */
	if (!rc && !json_is_array(items) && !json_is_null(items))
		rc = err_set(err, ERR_INVALID, "Kubernetes' list: there are no \"items\"");
	json_array_foreach(items, i, object)
	{
		if (rc)
			break;
		rc = add(objects, object, err);
	}
	note_version(objects, about);
	strbuf_add_text(ret_next, text_of(about, "continue"));
	json_read_free(&read);
	return rc;
}

static int refuse(const json_t *object, struct err *err)
{
	bool is_gone = json_integer_value(json_object_get(object, "code")) == GONE;

	return err_set(err, is_gone ? ERR_NOT_FOUND : ERR_BUSY,
		       "Kubernetes ended the watch: %.200s", text_of(object, "message"));
}

int kubernetes_objects_add_event(struct kubernetes_objects *objects, struct slice line,
				 struct err *err)
{
	struct budget budget = { .max_bytes = DISCOVERY_MEMORY_BYTES_MAX };
	struct strbuf key = { 0 };
	struct json_read read;
	int rc = json_read(line, 0, "Kubernetes' watch", &budget, &read, err);
	const char *type = text_of(read.root, "type");
	json_t *object = json_object_get(read.root, "object");

	if (!rc && !strcmp(type, "ERROR"))
		rc = refuse(object, err);
	else if (!rc && !json_is_object(object))
		rc = err_set(err, ERR_INVALID, "Kubernetes' watch: there is no \"object\"");
	if (!rc) {
		key_of(object, &key);
		note_version(objects, json_object_get(object, "metadata"));
		if (!strcmp(type, "ADDED") || !strcmp(type, "MODIFIED"))
			rc = keep(objects, strbuf_text(&key), object, err);
		else if (!strcmp(type, "DELETED"))
			forget(objects, strbuf_text(&key)); /* others are bookmarks */
	}
	strbuf_free(&key);
	json_read_free(&read);
	return rc;
}
