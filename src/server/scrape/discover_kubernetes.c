/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover_kubernetes - kubernetes_sd_configs: what the API server has, listed once and then
 * watched.
 *
 * A stream is one resource (of one namespace) and has a thread: it lists, page by page, and from
 * the list's version on watches. A watch that ends, or is cut, goes on from the version of the last
 * whole event; when the server does not know that version any more (410), it is listed anew. Who
 * may list and not watch has the list each half a minute. The discovery's own thread makes targets
 * of all streams, at most each five seconds, and of none before all are listed.
 *
 * Inside a cluster the address, the token and the authority are those that Kubernetes gives each
 * pod, unless a kubeconfig says them. Each request reads the token anew, and a watch lasts for two
 * minutes: so a token may change, and a connection that is dead without a word costs that long.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/whole_file.h"
#include "server/scrape/discovery.h"
#include "server/scrape/kubeconfig.h"
#include "server/scrape/kubernetes_targets.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define NAMESPACE_BYTES_MAX 256u
#define PAGE_OBJECTS "500"
#define PAGES_MAX 1000u /* of one list */
#define EVENT_BYTES_MAX ((size_t)16 << 20)
#define WATCH_SECONDS "120"
#define WATCH_NS (150 * CLOCK_NS_PER_S)
#define LIST_NS (30 * CLOCK_NS_PER_S) /* for a page; between lists where nothing is watched */
#define PAUSE_NS (1 * CLOCK_NS_PER_S) /* between watches */
#define PAUSE_FAILED_NS (5 * CLOCK_NS_PER_S)
#define LOOK_NS (200 * CLOCK_NS_PER_MS)
#define PUBLISH_NS (5 * CLOCK_NS_PER_S)
#define STACK_BYTES ((size_t)1 << 20)
#define HTTP_FORBIDDEN 403
#define HTTP_NOT_ALLOWED 405
#define HTTP_GONE 410

struct kubernetes;

struct stream {
	struct kubernetes *of;
	pthread_t thread;
	bool has_thread;
	struct strbuf namespace_name;	   /* empty: all of them */
	struct kubernetes_objects objects; /* this, and what follows, guarded by of->lock */
	bool is_listed, has_failed;
	struct err err;
	/* The stream's own. */
	struct strbuf line; /* of a watch, as far as it has come */
	bool is_watching;   /* the server has begun to answer */
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

static const struct {
	const char *group, *name, *role;
} resources[KUBERNETES_RESOURCES] = {
	[KUBERNETES_PODS] = { "api/v1", "pods", "pod" },
	[KUBERNETES_NODES] = { "api/v1", "nodes", "node" },
	[KUBERNETES_SERVICES] = { "api/v1", "services", "service" },
	[KUBERNETES_ENDPOINTS] = { "api/v1", "endpoints", "endpoints" },
	[KUBERNETES_SLICES] = { "apis/discovery.k8s.io/v1", "endpointslices", "endpointslice" },
	[KUBERNETES_INGRESSES] = { "apis/networking.k8s.io/v1", "ingresses", "ingress" },
};

/* Requests */

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
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	if (config->kubeconfig_file.len)
		return read_kubeconfig(kubernetes, config->kubeconfig_file, err);
	kubernetes->access = config->access;
	if (config->api_server.len) {
		take_server(kubernetes, config->api_server);
		return 0;
	}
	if (!host || !port)
		return err_set(err, ERR_INVALID,
			       "\"api_server\" is missing, and this is not a pod of Kubernetes "
			       "(KUBERNETES_SERVICE_HOST is not set)");
	strbuf_addf(&kubernetes->server, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s",
		    host, port);
	kubernetes->access.tls.ca_file = slice_of(ACCOUNT "ca.crt");
	kubernetes->access.bearer_token_file = slice_of(ACCOUNT "token");
	return 0;
}

static void add_parameter(struct strbuf *url, const char *name, struct slice value)
{
	if (!value.len)
		return;
	strbuf_addf(url, "&%s=", name);
	for (size_t i = 0; i < value.len; i++)
		strbuf_addf(url, "%%%02X", (unsigned char)value.data[i]);
}

static void add_url(const struct stream *stream, const char *parameters, struct strbuf *url)
{
	const struct discovery_config *config = stream->of->discovery->config;
	enum kubernetes_resource resource = stream->objects.resource;

	strbuf_addf(url, "%s/%s/", strbuf_text(&stream->of->server), resources[resource].group);
	if (stream->namespace_name.len)
		strbuf_addf(url, "namespaces/%s/", strbuf_text(&stream->namespace_name));
	strbuf_addf(url, "%s?%s", resources[resource].name, parameters);
	for (size_t i = 0; i < config->selectors_count; i++) {
		if (!slice_is(config->selectors[i].role, resources[resource].role))
			continue;
		add_parameter(url, "labelSelector", config->selectors[i].label);
		add_parameter(url, "fieldSelector", config->selectors[i].field);
	}
}

/* Lists */

static int list_page(struct stream *stream, struct kubernetes_objects *into, struct strbuf *next,
		     struct err *err)
{
	struct strbuf url = { 0 }, body = { 0 };
	struct discovery_request request = { .headers = "accept: application/json\r\n",
					     .access = &stream->of->access,
					     .timeout_ns = LIST_NS };
	int rc;

	add_url(stream, "limit=" PAGE_OBJECTS, &url);
	add_parameter(&url, "continue", (struct slice){ strbuf_text(next), next->len });
	request.url = strbuf_text(&url);
	rc = discovery_get_body(stream->of->discovery, &request, &body, err);
	if (!rc)
		rc = kubernetes_objects_add_page(into, strbuf_slice(&body), next, err);
	strbuf_free(&url);
	strbuf_free(&body);
	return rc;
}

static void note_good(struct stream *stream)
{
	lock_take(&stream->of->lock);
	stream->has_failed = false;
	lock_give(&stream->of->lock);
}

static void note_failure(struct stream *stream, const struct err *err)
{
	lock_take(&stream->of->lock);
	stream->has_failed = true;
	stream->err = *err;
	lock_give(&stream->of->lock);
}

/* All of it takes the place of what was known. */
static int list(struct stream *stream, struct err *err)
{
	struct kubernetes_objects fresh, old;
	struct strbuf next = { 0 };
	unsigned pages = 0;
	int rc;

	kubernetes_objects_init(&fresh, stream->objects.resource);
	do {
		if (++pages > PAGES_MAX)
			rc = err_set(err, ERR_LIMIT, "Kubernetes' list has more than %u pages",
				     PAGES_MAX);
		else
			rc = list_page(stream, &fresh, &next, err);
	} while (!rc && next.len);
	strbuf_free(&next);
	if (rc) {
		kubernetes_objects_free(&fresh);
		return rc;
	}
	lock_take(&stream->of->lock);
	old = stream->objects;
	stream->objects = fresh;
	stream->is_listed = true;
	stream->has_failed = false;
	stream->of->changes++;
	lock_give(&stream->of->lock);
	kubernetes_objects_free(&old);
	return 0;
}

/* Watches */

static int begin_watch(void *context, uint64_t bytes, struct err *err)
{
	struct stream *stream = context;

	(void)bytes;
	(void)err;
	stream->is_watching = true;
	note_good(stream);
	return 0;
}

static int take_line(struct stream *stream, struct err *err)
{
	int rc;

	lock_take(&stream->of->lock);
	rc = kubernetes_objects_add_event(&stream->objects, strbuf_slice(&stream->line), err);
	stream->of->changes++;
	lock_give(&stream->of->lock);
	strbuf_clear(&stream->line);
	return rc;
}

static int take_piece(void *context, struct slice bytes, struct err *err)
{
	struct stream *stream = context;
	int rc = 0;

	while (!rc && bytes.len) {
		size_t end = slice_find_byte(bytes, '\n');
		size_t piece = end == SIZE_MAX ? bytes.len : end;

		if (stream->line.len + piece > EVENT_BYTES_MAX)
			return err_set(err, ERR_LIMIT, "an event of more than %zu MiB",
				       EVENT_BYTES_MAX >> 20);
		strbuf_add(&stream->line, bytes.data, piece);
		bytes = slice_tail(bytes, end == SIZE_MAX ? piece : piece + 1);
		if (end != SIZE_MAX && stream->line.len)
			rc = take_line(stream, err);
	}
	return rc;
}

/* 0 when it has ended as watches do, also by a cut; ERR_NOT_FOUND: to be listed anew. */
static int watch(struct stream *stream, int *ret_status, struct err *err)
{
	struct strbuf url = { 0 };
	struct discovery_request request = { .headers = "accept: application/json\r\n",
					     .access = &stream->of->access,
					     .timeout_ns = WATCH_NS,
					     .begin = begin_watch,
					     .take = take_piece,
					     .context = stream };
	int rc;

	add_url(stream, "watch=true&allowWatchBookmarks=true&timeoutSeconds=" WATCH_SECONDS, &url);
	/* Only this thread changes the version. */
	add_parameter(&url, "resourceVersion",
		      (struct slice){ strbuf_text(&stream->objects.version),
				      stream->objects.version.len });
	request.url = strbuf_text(&url);
	stream->is_watching = false;
	strbuf_clear(&stream->line);
	rc = discovery_get(stream->of->discovery, &request, ret_status, err);
	strbuf_free(&url);
	if (*ret_status == HTTP_GONE)
		return err_set(err, ERR_NOT_FOUND, "the watch is too old");
	return stream->is_watching && (rc == -ERR_UNAVAILABLE || rc == -ERR_DEADLINE) ? 0 : rc;
}

static bool may_not_watch(int status)
{
	return status == HTTP_FORBIDDEN || status == HTTP_NOT_ALLOWED;
}

/* Until the list is wanted anew. */
static void watch_on(struct stream *stream)
{
	struct discovery *discovery = stream->of->discovery;
	int64_t pause_ns = 0;
	struct err err;

	while (discovery_sleep(discovery, pause_ns)) {
		int status, rc = watch(stream, &status, &err);

		if (atomic_load(&discovery->stops))
			return;
		if (may_not_watch(status)) {
			discovery_sleep(discovery, LIST_NS);
			return;
		}
		pause_ns = rc ? PAUSE_FAILED_NS : PAUSE_NS;
		if (rc == -ERR_NOT_FOUND || rc == -ERR_INVALID || rc == -ERR_LIMIT) {
			discovery_sleep(discovery, PAUSE_NS);
			return;
		}
		if (rc)
			note_failure(stream, &err);
	}
}

static void *run(void *argument)
{
	struct stream *stream = argument;
	struct err err;

	do {
		int rc = list(stream, &err);

		if (rc)
			note_failure(stream, &err);
		else
			watch_on(stream);
	} while (discovery_sleep(stream->of->discovery, stream->has_failed ? PAUSE_FAILED_NS : 0));
	return NULL;
}

/* Streams */

static void add_stream(struct kubernetes *kubernetes, enum kubernetes_resource resource,
		       struct slice namespace_name)
{
	struct stream *stream = &kubernetes->streams[kubernetes->count++];

	stream->of = kubernetes;
	kubernetes_objects_init(&stream->objects, resource);
	strbuf_add_slice(&stream->namespace_name, namespace_name);
}

static int add_own_namespace(struct kubernetes *kubernetes, enum kubernetes_resource resource,
			     struct err *err)
{
	struct strbuf name = { 0 };
	int rc = whole_file_read(ACCOUNT "namespace", NAMESPACE_BYTES_MAX, &name, err);

	if (!rc)
		add_stream(kubernetes, resource,
			   slice_trim((struct slice){ strbuf_text(&name), name.len }));
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
		note_failure(stream, &err);
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
		strbuf_free(&stream->line);
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
		found = found_new();
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
			discovery_publish(discovery, found);
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
