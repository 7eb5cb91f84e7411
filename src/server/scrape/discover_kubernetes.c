/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_kubernetes - kubernetes_sd_configs: what the API server has, listed once and then
 * watched (remote/kubernetes).
 *
 * A stream is one resource (of one namespace) and has a thread. The discovery's own thread makes
 * targets of all streams, at most each five seconds, and of none before all are listed.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "remote/kubernetes/kubeconfig.h"
#include "remote/kubernetes/kubernetes_account.h"
#include "server/scrape/discovery.h"
#include "server/scrape/kubernetes_targets.h"

#define PAUSE_FAILED_NS (5 * CLOCK_NS_PER_S)
#define LOOK_NS (200 * CLOCK_NS_PER_MS)
#define PUBLISH_NS (5 * CLOCK_NS_PER_S)
#define STACK_BYTES ((size_t)1 << 20)

struct kubernetes;

struct stream {
	struct kubernetes *of;
	pthread_t thread;
	bool has_thread;
	struct strbuf namespace_name; /* empty: all of them */
	enum kubernetes_resource resource;
	struct kubernetes_objects objects; /* this, and what follows, guarded by of->lock */
	bool is_listed, has_failed;
	struct err err;
	/* The stream's own. */
	struct kubernetes_objects fresh; /* a list that is not whole yet */
	bool is_listing;
};

struct kubernetes {
	struct discovery *discovery;
	struct kubeconfig
		kubeconfig; /* what `access` borrows from, if the configuration names one */
	struct http_access_config access;
	struct strbuf server; /* "https://HOST:PORT" */
	struct lock lock;
	uint64_t changes; /* guarded by it */
	struct stream *streams;
	size_t count;
};

static void take_server(struct kubernetes *kubernetes, struct slice server)
{
	while (server.data[server.len - 1] == '/') /* "https://" is before it */
		server.len--;
	strbuf_add_slice(&kubernetes->server, server);
}

static int read_kubeconfig(struct kubernetes *kubernetes, struct slice path, struct err *err)
{
	int rc = kubeconfig_read(path.data, &kubernetes->kubeconfig, err);

	if (rc)
		return err_wrap(err, "read kubeconfig_file");
	kubernetes->access = kubernetes->kubeconfig.access;
	take_server(kubernetes, kubernetes->kubeconfig.server);
	return 0;
}

/* Where the server is, and who we are to it. */
static int find_server(struct kubernetes *kubernetes, struct err *err)
{
	const struct discovery_config *config = kubernetes->discovery->config;

	if (config->kubeconfig_file.len)
		return read_kubeconfig(kubernetes, config->kubeconfig_file, err);
	kubernetes->access = config->access;
	if (config->api_server.len) {
		take_server(kubernetes, config->api_server);
		return 0;
	}
	if (kubernetes_account_find(&kubernetes->server, &kubernetes->access))
		return 0;
	return err_set(err, ERR_INVALID,
		       "\"api_server\" is missing, and this is not a pod of Kubernetes "
		       "(KUBERNETES_SERVICE_HOST is not set)");
}

/* What a stream brings */

static void begin_list(void *context)
{
	struct stream *stream = context;

	kubernetes_objects_init(&stream->fresh, stream->resource);
	stream->fresh.known = &stream->objects; /* which nobody changes but this thread */
	stream->is_listing = true;
}

static int take(void *context, json_t *object, bool is_there, struct err *err)
{
	struct stream *stream = context;
	int rc;

	if (stream->is_listing) {
		rc = kubernetes_objects_take(&stream->fresh, object, is_there, err);
	} else {
		lock_take(&stream->of->lock);
		rc = kubernetes_objects_take(&stream->objects, object, is_there, err);
		stream->of->changes++;
		lock_give(&stream->of->lock);
	}
	return rc;
}

/* All of a whole list takes the place of what was known. */
static void end_list(void *context, bool is_whole)
{
	struct stream *stream = context;

	stream->is_listing = false;
	if (!is_whole) {
		kubernetes_objects_free(&stream->fresh);
		return;
	}
	lock_take(&stream->of->lock);
	kubernetes_objects_replace(&stream->objects, &stream->fresh);
	stream->is_listed = true;
	stream->of->changes++;
	lock_give(&stream->of->lock);
}

static void tell(void *context, const struct err *failure)
{
	struct stream *stream = context;

	lock_take(&stream->of->lock);
	stream->has_failed = failure;
	if (failure)
		stream->err = *failure;
	lock_give(&stream->of->lock);
}

static bool sleep_on(void *context, int64_t ns)
{
	const struct stream *stream = context;

	return discovery_sleep(stream->of->discovery, ns);
}

static void *run(void *argument)
{
	struct stream *stream = argument;
	struct discovery *discovery = stream->of->discovery;
	const struct discovery_config *config = discovery->config;
	struct kubernetes_stream options = {
		.server = strbuf_text(&stream->of->server),
		.access = &stream->of->access,
		.resource = stream->resource,
		.namespace_name = strbuf_slice(&stream->namespace_name),
		.stops = &discovery->stops,
		.sleep = sleep_on,
		.begin_list = begin_list,
		.take = take,
		.end_list = end_list,
		.tell = tell,
		.context = stream,
		.memory = &discovery_memory,
	};

	for (size_t i = 0; i < config->selectors_count; i++) {
		if (!slice_is(config->selectors[i].role,
			      kubernetes_resource_roles[stream->resource]))
			continue;
		options.label_selector = config->selectors[i].label;
		options.field_selector = config->selectors[i].field;
	}
	kubernetes_stream_run(&options);
	return NULL;
}

/* Streams */

static void add_stream(struct kubernetes *kubernetes, enum kubernetes_resource resource,
		       struct slice namespace_name)
{
	struct stream *stream = &kubernetes->streams[kubernetes->count++];

	stream->of = kubernetes;
	stream->resource = resource;
	kubernetes_objects_init(&stream->objects, resource);
	strbuf_add_slice(&stream->namespace_name, namespace_name);
}

static int add_own_namespace(struct kubernetes *kubernetes, enum kubernetes_resource resource,
			     struct err *err)
{
	struct strbuf name = { 0 };
	int rc = kubernetes_account_namespace(&name, err);

	if (!rc)
		add_stream(kubernetes, resource, strbuf_slice(&name));
	strbuf_free(&name);
	return rc;
}

static int plan_streams(struct kubernetes *kubernetes, struct err *err)
{
	const struct discovery_config *config = kubernetes->discovery->config;
	unsigned needs = kubernetes_targets_needs(config->role, config->attach_metadata.node);
	size_t names = config->namespaces.names.count;
	int rc = find_server(kubernetes, err);

	kubernetes->streams = mem_new_array(struct stream, KUBERNETES_RESOURCES * (names + 1));
	for (int i = 0; !rc && i < KUBERNETES_RESOURCES; i++) {
		enum kubernetes_resource resource = (enum kubernetes_resource)i;
		bool is_everywhere = resource == KUBERNETES_NODES ||
				     (!names && !config->namespaces.own_namespace);

		if (!(needs & 1u << i))
			continue;
		if (is_everywhere) {
			add_stream(kubernetes, resource, (struct slice){ "", 0 });
			continue;
		}
		for (size_t j = 0; j < names; j++)
			add_stream(kubernetes, resource, config->namespaces.names.items[j]);
		if (config->namespaces.own_namespace)
			rc = add_own_namespace(kubernetes, resource, err);
	}
	return rc;
}

static void start_streams(struct kubernetes *kubernetes)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (size_t i = 0; i < kubernetes->count; i++) {
		struct stream *stream = &kubernetes->streams[i];
		int code = pthread_create(&stream->thread, &attributes, run, stream);
		struct err err;

		stream->has_thread = !code;
		if (!code)
			continue;
		err_set_errno(&err, code, "start a thread for Kubernetes");
		tell(stream, &err);
	}
	pthread_attr_destroy(&attributes);
}

static void forget_streams(struct kubernetes *kubernetes)
{
	for (size_t i = 0; i < kubernetes->count; i++) {
		struct stream *stream = &kubernetes->streams[i];

		if (stream->has_thread)
			pthread_join(stream->thread, NULL);
		kubernetes_objects_free(&stream->objects);
		strbuf_free(&stream->namespace_name);
	}
	free(kubernetes->streams);
	kubernetes->streams = NULL;
	kubernetes->count = 0;
	strbuf_free(&kubernetes->server);
	kubeconfig_free(&kubernetes->kubeconfig);
}

/* Targets */

/* NULL: not all is known, or nothing is new since *seen. *ret_has_failed: see *ret_err. */
static struct found *make_targets(struct kubernetes *kubernetes, uint64_t *seen,
				  bool *ret_has_failed, struct err *ret_err)
{
	const struct discovery_config *config = kubernetes->discovery->config;
	const struct kubernetes_objects **sets =
		mem_new_array(const struct kubernetes_objects *, kubernetes->count + 1);
	const struct kubernetes_view view = { sets, kubernetes->count,
					      config->attach_metadata.node };
	struct found *found = NULL;
	bool is_whole = true;

	*ret_has_failed = false;
	lock_take(&kubernetes->lock);
	for (size_t i = 0; i < kubernetes->count; i++) {
		const struct stream *stream = &kubernetes->streams[i];

		sets[i] = &stream->objects;
		is_whole &= stream->is_listed;
		if (stream->has_failed) {
			*ret_has_failed = true;
			*ret_err = stream->err;
		}
	}
	if (is_whole && !*ret_has_failed && kubernetes->changes != *seen) {
		*seen = kubernetes->changes;
		found = discovery_new_found(kubernetes->discovery);
		kubernetes_targets_make(&view, config->role, found);
	}
	lock_give(&kubernetes->lock);
	free(sets);
	return found;
}

static void publish_on(struct kubernetes *kubernetes)
{
	struct discovery *discovery = kubernetes->discovery;
	int64_t next_ns = 0;
	uint64_t seen = 0;

	while (discovery_sleep(discovery, LOOK_NS)) {
		struct found *found;
		struct err err;
		bool has_failed;

		if (clock_monotonic_ns() < next_ns)
			continue;
		found = make_targets(kubernetes, &seen, &has_failed, &err);
		if (found) {
			if (!discovery_publish(discovery, found))
				seen = 0; /* there may be room later */
			next_ns = clock_monotonic_ns() + PUBLISH_NS;
		} else if (has_failed) {
			discovery_fail(discovery, &err);
			seen = 0; /* what comes then is told, though it be the same */
		}
	}
}

void discover_kubernetes(struct discovery *discovery)
{
	struct kubernetes kubernetes = { .discovery = discovery };
	struct err err;

	lock_init(&kubernetes.lock, "kubernetes", LOCK_SCRAPE + 2);
	do {
		if (plan_streams(&kubernetes, &err)) {
			discovery_fail(discovery, &err);
		} else {
			start_streams(&kubernetes);
			publish_on(&kubernetes);
		}
		forget_streams(&kubernetes);
	} while (discovery_sleep(discovery, PAUSE_FAILED_NS));
	lock_free(&kubernetes.lock);
}
