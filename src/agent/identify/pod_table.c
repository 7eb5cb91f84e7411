/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/pod_table.h"

#include <stdlib.h>

#include "agent/identify/pod_names.h"
#include "agent/identify/workload.h"
#include "base/hash.h"
#include "base/mem.h"
#include "codec/wire/json_read.h"
#include "remote/kubernetes/kubernetes_labels.h"

#define POD KUBERNETES_META "pod_"
#define MIRROR "kubernetes.io/config.mirror" /* the uid that a static pod has on its node */
#define CONTAINERS_MAX 128u		     /* of one pod */
#define OWNERS_MAX 1024u
#define IDS_PER_CONTAINER 2 /* that runs, and that ran before it */

struct pod_container {
	uint64_t ids[IDS_PER_CONTAINER]; /* hashes; 0 = none */
	struct meta_labels labels;
};

struct pod {
	uint64_t uid, mirror_uid; /* hashes; 0 = none */
	struct meta_labels labels;
	struct pod_container *containers;
	size_t count, capacity;
	char *owner; /* path of the one that has to be asked for; NULL = none */
	struct strbuf workload, workload_kind;
	size_t bytes;
	unsigned generation;
	int64_t gone_at_ns; /* 0 = it is there */
};

struct pod_owner {
	char *path;		  /* "/apis/apps/v1/namespaces/NS/replicasets/NAME" */
	struct strbuf kind, name; /* of itself */
	struct strbuf workload, workload_kind;
	bool is_known;
	int64_t again_at_ns;
};

static uint64_t hash_of(struct slice text)
{
	uint64_t hash = text.len ? hash_bytes(text.data, text.len) : 0;

	return text.len && !hash ? 1 : hash;
}

static void set(struct strbuf *to, struct slice text)
{
	strbuf_clear(to);
	strbuf_add_slice(to, text);
}

static void pod_fini(struct pod *pod)
{
	for (size_t i = 0; i < pod->count; i++)
		meta_labels_free(&pod->containers[i].labels);
	free(pod->containers);
	free(pod->owner);
	meta_labels_free(&pod->labels);
	strbuf_free(&pod->workload);
	strbuf_free(&pod->workload_kind);
}

static void owner_fini(struct pod_owner *owner)
{
	free(owner->path);
	strbuf_free(&owner->kind);
	strbuf_free(&owner->name);
	strbuf_free(&owner->workload);
	strbuf_free(&owner->workload_kind);
}

void pod_table_free(struct pod_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		pod_fini(&table->pods[i]);
	for (size_t i = 0; i < table->owners_count; i++)
		owner_fini(&table->owners[i]);
	free(table->pods);
	free(table->owners);
	*table = (struct pod_table){ 0 };
}

/* Owners */

static struct pod_owner *find_owner(const struct pod_table *table, struct slice path)
{
	for (size_t i = 0; i < table->owners_count; i++)
		if (slice_is(path, table->owners[i].path))
			return &table->owners[i];
	return NULL;
}

/* What stands in a URL as it is, of a name that may be anything. */
static bool is_plain(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' &&
		    (c != '.' || !i))
			return false;
	}
	return name.len > 0;
}

static void ask_owner(struct pod_table *table, struct pod *pod, const char *collection,
		      struct slice space, struct slice kind, struct slice name)
{
	struct strbuf path = { 0 };

	if (!is_plain(space) || !is_plain(name))
		return;
	strbuf_addf(&path, "%s/namespaces/%.*s/%s/%.*s",
		    slice_is(kind, "Job") ? "/apis/batch/v1" : "/apis/apps/v1", SLICE_FMT(space),
		    collection, SLICE_FMT(name));
	if (!find_owner(table, strbuf_slice(&path)) && table->owners_count < OWNERS_MAX) {
		struct pod_owner *owner;

		mem_grow(table->owners, table->owners_count, table->owners_capacity);
		owner = &table->owners[table->owners_count++];
		*owner = (struct pod_owner){ .path = mem_strndup(path.data, path.len) };
		set(&owner->kind, kind);
		set(&owner->name, name);
	}
	pod->owner = mem_strndup(path.data, path.len);
	strbuf_free(&path);
}

/* By the controller that the pod names, and what its name tells. */
static void take_owner(struct pod_table *table, struct pod *pod, const json_t *metadata)
{
	const json_t *controller = kubernetes_controller(metadata);
	struct slice kind = json_text_at(controller, "kind");
	struct slice name = json_text_at(controller, "name"), deployment;
	struct slice space = json_text_at(metadata, "namespace");
	struct slice hash = json_text_at(json_object_get(metadata, "labels"), "pod-template-hash");

	if (slice_is(kind, "ReplicaSet")) {
		if (workload_of_replica_set(name, hash, &deployment)) {
			set(&pod->workload, deployment);
			set(&pod->workload_kind, SLICE_LITERAL("Deployment"));
		} else {
			ask_owner(table, pod, "replicasets", space, kind, name);
		}
	} else if (slice_is(kind, "Job")) {
		ask_owner(table, pod, "jobs", space, kind, name);
	} else if (!slice_is(kind, "Node")) { /* which controls its static pods */
		set(&pod->workload, name);
		set(&pod->workload_kind, kind);
	}
}

bool pod_table_next_owner(const struct pod_table *table, int64_t now_ns, struct strbuf *ret_path)
{
	for (size_t i = 0; i < table->owners_count; i++) {
		const struct pod_owner *owner = &table->owners[i];

		if (owner->is_known || owner->again_at_ns > now_ns)
			continue;
		strbuf_add_text(ret_path, owner->path);
		return true;
	}
	return false;
}

void pod_table_answer_owner(struct pod_table *table, struct slice path, const json_t *metadata)
{
	struct pod_owner *owner = find_owner(table, path);
	const json_t *controller = kubernetes_controller(metadata);
	struct slice name = json_text_at(controller, "name");

	if (!owner)
		return;
	owner->is_known = true;
	if (name.len) {
		set(&owner->workload, name);
		set(&owner->workload_kind, json_text_at(controller, "kind"));
	} else if (metadata) { /* nobody owns it */
		set(&owner->workload, strbuf_slice(&owner->name));
		set(&owner->workload_kind, strbuf_slice(&owner->kind));
	} else {
		workload_guess(strbuf_slice(&owner->kind), strbuf_slice(&owner->name),
			       &owner->workload, &owner->workload_kind);
	}
}

void pod_table_postpone_owner(struct pod_table *table, struct slice path, int64_t until_ns)
{
	struct pod_owner *owner = find_owner(table, path);

	if (owner)
		owner->again_at_ns = until_ns;
}

static void sweep_owners(struct pod_table *table)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->owners_count; i++) {
		struct pod_owner *owner = &table->owners[i];
		bool is_used = false;

		for (size_t j = 0; !is_used && j < table->count; j++)
			is_used =
				table->pods[j].owner && !strcmp(table->pods[j].owner, owner->path);
		if (is_used)
			table->owners[kept++] = *owner;
		else
			owner_fini(owner);
	}
	table->owners_count = kept;
}

/* Pods */

static void add_label(void *context, const char *prefix, struct slice key, struct slice value)
{
	if (key.len)
		meta_labels_add_of(context, prefix, key, value);
	else
		meta_labels_add(context, prefix, value);
}

/* "containerd://ID" */
static uint64_t id_of(const json_t *state)
{
	struct slice text = json_text_at(state, "containerID"), id = text;

	for (size_t i = 0; i + 3 <= text.len; i++)
		if (!memcmp(text.data + i, "://", 3))
			id = slice_tail(text, i + 3);
	return hash_of(id);
}

static void add_container(void *context, const json_t *container, const json_t *status,
			  bool is_init)
{
	struct pod *pod = context;
	struct pod_container *made;
	struct kubernetes_label_sink sink = { add_label, NULL };
	const json_t *before = json_object_get(json_object_get(status, "lastState"), "terminated");

	if (pod->count >= CONTAINERS_MAX)
		return;
	mem_grow(pod->containers, pod->count, pod->capacity);
	made = &pod->containers[pod->count++];
	*made = (struct pod_container){ .ids = { id_of(status), id_of(before) } };
	sink.context = &made->labels;
	kubernetes_labels_of_container(container, status, is_init, &sink);
	pod->bytes += made->labels.text.len + sizeof(*made);
}

static void read_pod(struct pod_table *table, const json_t *object, struct pod *ret)
{
	const struct kubernetes_label_sink sink = { add_label, &ret->labels };
	const json_t *metadata = json_object_get(object, "metadata");
	const json_t *annotations = json_object_get(metadata, "annotations");

	*ret = (struct pod){ .uid = hash_of(json_text_at(metadata, "uid")),
			     .mirror_uid = hash_of(json_text_at(annotations, MIRROR)),
			     .generation = table->generation };
	kubernetes_labels_of_pod(object, &sink);
	ret->bytes =
		sizeof(*ret) + ret->labels.text.len + ret->labels.count * sizeof(struct meta_label);
	kubernetes_each_container(object, add_container, ret);
	take_owner(table, ret, metadata);
}

static struct pod *find_pod(const struct pod_table *table, uint64_t uid)
{
	for (size_t i = 0; uid && i < table->count; i++)
		if (table->pods[i].uid == uid || table->pods[i].mirror_uid == uid)
			return &table->pods[i];
	return NULL;
}

static void put(struct pod_table *table, struct pod *place, struct pod *pod)
{
	size_t before = place ? place->bytes : 0;

	if (table->bytes - before + pod->bytes > POD_NAMES_BYTES_MAX ||
	    (!place && table->count >= POD_NAMES_MAX)) {
		table->left_out++;
		pod_fini(pod);
		return;
	}
	if (!place) {
		mem_grow(table->pods, table->count, table->capacity);
		place = &table->pods[table->count++];
	} else {
		pod_fini(place);
	}
	table->bytes += pod->bytes - before;
	*place = *pod;
}

void pod_table_begin_list(struct pod_table *table)
{
	table->generation++;
}

void pod_table_take(struct pod_table *table, const json_t *object, bool is_there, struct slice node,
		    int64_t now_ns)
{
	struct slice uid = json_text_at(json_object_get(object, "metadata"), "uid");
	struct pod *place = find_pod(table, hash_of(uid)), pod;

	if (!is_there) {
		if (place && !place->gone_at_ns)
			place->gone_at_ns = now_ns;
		return;
	}
	if (!uid.len ||
	    !slice_equal(json_text_at(json_object_get(object, "spec"), "nodeName"), node))
		return;
	read_pod(table, object, &pod);
	put(table, place, &pod);
}

void pod_table_end_list(struct pod_table *table, bool is_whole, int64_t now_ns)
{
	for (size_t i = 0; is_whole && i < table->count; i++) {
		struct pod *pod = &table->pods[i];

		if (pod->generation != table->generation && !pod->gone_at_ns)
			pod->gone_at_ns = now_ns;
	}
}

void pod_table_sweep(struct pod_table *table, int64_t before_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++) {
		struct pod *pod = &table->pods[i];

		if (pod->gone_at_ns && pod->gone_at_ns < before_ns) {
			table->bytes -= pod->bytes;
			pod_fini(pod);
		} else {
			table->pods[kept++] = *pod;
		}
	}
	table->count = kept;
	sweep_owners(table);
}

size_t pod_table_there(const struct pod_table *table)
{
	size_t there = 0;

	for (size_t i = 0; i < table->count; i++)
		there += !table->pods[i].gone_at_ns;
	return there;
}

static const struct pod_container *find_container(const struct pod *pod, uint64_t id)
{
	for (size_t i = 0; id && i < pod->count; i++)
		for (int j = 0; j < IDS_PER_CONTAINER; j++)
			if (pod->containers[i].ids[j] == id)
				return &pod->containers[i];
	return NULL;
}

/* By its uid, else by its container. */
static const struct pod *look_up(const struct pod_table *table, uint64_t uid, uint64_t id,
				 const struct pod_container **ret)
{
	const struct pod *pod = find_pod(table, uid);

	*ret = pod ? find_container(pod, id) : NULL;
	for (size_t i = 0; !pod && i < table->count; i++) {
		*ret = find_container(&table->pods[i], id);
		if (*ret)
			pod = &table->pods[i];
	}
	return pod;
}

/* Its owner, as far as it is known: from the pod itself, or from the owner that was looked up. */
static const struct strbuf *workload_of(const struct pod_table *table, const struct pod *pod,
					const struct strbuf **ret_kind)
{
	const struct pod_owner *owner = pod->owner ? find_owner(table, slice_of(pod->owner)) : NULL;

	*ret_kind = owner ? &owner->workload_kind : &pod->workload_kind;
	return owner ? &owner->workload : &pod->workload;
}

void pod_table_find(const struct pod_table *table, const struct cgroup *cgroup,
		    struct meta_labels *ret)
{
	uint64_t uid = hash_of(slice_of(cgroup->pod_uid)), id = hash_of(cgroup->container);
	const struct pod_container *container;
	const struct pod *pod = look_up(table, uid, id, &container);
	const struct strbuf *workload, *kind;

	if (!pod)
		return;
	if (container) {
		meta_labels_copy(ret, &container->labels);
		/* As it stands in the path, without "containerd://". */
		meta_labels_add(ret, POD "container_id", cgroup->container);
	}
	workload = workload_of(table, pod, &kind);
	meta_labels_add(ret, POD "workload", strbuf_slice(workload));
	meta_labels_add(ret, POD "workload_kind", strbuf_slice(kind));
	meta_labels_copy(ret, &pod->labels);
}

bool pod_table_knows_all(const struct pod_table *table, struct slice pod_uid, struct slice id)
{
	const struct pod_container *container;
	const struct pod *pod = look_up(table, hash_of(pod_uid), hash_of(id), &container);
	const struct pod_owner *owner =
		pod && pod->owner ? find_owner(table, slice_of(pod->owner)) : NULL;

	return container && (!owner || owner->is_known || owner->again_at_ns);
}
