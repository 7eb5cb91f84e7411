/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/kubernetes/kubernetes_stream.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "net/client/fetch.h"
#include "remote/access/http_access.h"

#define PAGE_OBJECTS "500"
#define PAGES_MAX 1000u			    /* of one list */
#define LIST_BYTES_MAX ((uint64_t)64 << 20) /* of a page */
#define WATCH_BYTES_MAX ((uint64_t)1 << 30)
#define WATCH_SECONDS "120"
#define WATCH_NS (150 * CLOCK_NS_PER_S)
#define LIST_NS (30 * CLOCK_NS_PER_S) /* for a page; between lists where nothing is watched */
#define PAUSE_NS (1 * CLOCK_NS_PER_S) /* between watches */
#define PAUSE_MAX_NS (30 * CLOCK_NS_PER_S)
#define HTTP_DENIED 401
#define HTTP_FORBIDDEN 403
#define HTTP_NOT_FOUND 404
#define HTTP_NOT_ALLOWED 405
#define HTTP_GONE 410

const char *const kubernetes_resource_roles[KUBERNETES_RESOURCES] = {
	[KUBERNETES_PODS] = "pod",
	[KUBERNETES_NODES] = "node",
	[KUBERNETES_SERVICES] = "service",
	[KUBERNETES_ENDPOINTS] = "endpoints",
	[KUBERNETES_SLICES] = "endpointslice",
	[KUBERNETES_INGRESSES] = "ingress",
};

static const struct {
	const char *group, *name;
} resources[KUBERNETES_RESOURCES] = {
	[KUBERNETES_PODS] = { "api/v1", "pods" },
	[KUBERNETES_NODES] = { "api/v1", "nodes" },
	[KUBERNETES_SERVICES] = { "api/v1", "services" },
	[KUBERNETES_ENDPOINTS] = { "api/v1", "endpoints" },
	[KUBERNETES_SLICES] = { "apis/discovery.k8s.io/v1", "endpointslices" },
	[KUBERNETES_INGRESSES] = { "apis/networking.k8s.io/v1", "ingresses" },
};

struct following {
	const struct kubernetes_stream *stream;
	struct strbuf version; /* of the list or of the last event: where a watch goes on */
	struct strbuf line;    /* of a watch, as far as it has come */
	struct kubernetes_list list;
	bool is_watching;  /* the server has begun to answer */
	bool has_come;	   /* and an event has come */
	unsigned failures; /* since the last that was well */
};

/* Requests */

static void add_url(const struct kubernetes_stream *stream, const char *parameters,
		    struct strbuf *url)
{
	strbuf_addf(url, "%s/%s/", stream->server, resources[stream->resource].group);
	if (stream->namespace_name.len)
		strbuf_addf(url, "namespaces/%.*s/", SLICE_FMT(stream->namespace_name));
	strbuf_addf(url, "%s?%s", resources[stream->resource].name, parameters);
	fetch_add_parameter(url, "labelSelector", stream->label_selector);
	fetch_add_parameter(url, "fieldSelector", stream->field_selector);
}

static struct http_request request_of(const struct kubernetes_stream *stream)
{
	return (struct http_request){
		.headers = "accept: application/json\r\n",
		.access = stream->access,
		.body_bytes_max = LIST_BYTES_MAX,
		.cancelled = stream->stops,
	};
}

/* Lists */

static int take_list(void *context, struct slice bytes, struct err *err)
{
	struct following *following = context;

	return kubernetes_list_add(&following->list, bytes, err);
}

static int list_page(struct following *following, struct strbuf *next, struct err *err)
{
	const struct kubernetes_stream *stream = following->stream;
	const struct kubernetes_sink sink = { stream->take, stream->context, stream->memory };
	struct http_request request = request_of(stream);
	struct strbuf url = { 0 };
	int status, rc;

	add_url(stream, stream->may_be_old ? "resourceVersion=0" : "limit=" PAGE_OBJECTS, &url);
	fetch_add_parameter(&url, "continue", strbuf_slice(next));
	request.url = strbuf_text(&url);
	request.timeout_ns = LIST_NS;
	request.take = take_list;
	request.context = following;
	kubernetes_list_begin(&following->list, &sink);
	rc = http_access_get(&request, &status, err);
	if (!rc)
		rc = kubernetes_list_end(&following->list, &following->version, next, err);
	kubernetes_list_free(&following->list);
	strbuf_free(&url);
	return rc;
}

/* All of it takes the place of what was known. */
static int list(struct following *following, struct err *err)
{
	const struct kubernetes_stream *stream = following->stream;
	struct strbuf next = { 0 };
	unsigned pages = 0;
	int rc;

	stream->begin_list(stream->context);
	do {
		if (++pages > PAGES_MAX)
			rc = err_set(err, ERR_LIMIT, "Kubernetes' list has more than %u pages",
				     PAGES_MAX);
		else
			rc = list_page(following, &next, err);
	} while (!rc && next.len);
	strbuf_free(&next);
	stream->end_list(stream->context, !rc);
	return rc;
}

/* Watches */

static int begin_watch(void *context, uint64_t bytes, struct err *err)
{
	struct following *following = context;

	(void)bytes;
	(void)err;
	following->is_watching = true;
	following->stream->tell(following->stream->context, NULL);
	return 0;
}

static int take_line(struct following *following, struct err *err)
{
	const struct kubernetes_sink sink = { following->stream->take, following->stream->context,
					      following->stream->memory };
	int rc = kubernetes_event_read(strbuf_slice(&following->line), &sink, &following->version,
				       err);

	following->has_come = following->has_come || !rc;
	strbuf_clear(&following->line);
	return rc;
}

static int take_piece(void *context, struct slice bytes, struct err *err)
{
	struct following *following = context;
	int rc = 0;

	while (!rc && bytes.len) {
		size_t end = slice_find_byte(bytes, '\n');
		size_t piece = end == SIZE_MAX ? bytes.len : end;

		if (following->line.len + piece > KUBERNETES_OBJECT_BYTES_MAX)
			return err_set(err, ERR_LIMIT, "Kubernetes' watch: more than %zu MiB",
				       KUBERNETES_OBJECT_BYTES_MAX >> 20);
		strbuf_add(&following->line, bytes.data, piece);
		bytes = slice_tail(bytes, end == SIZE_MAX ? piece : piece + 1);
		if (end != SIZE_MAX && following->line.len)
			rc = take_line(following, err);
	}
	return rc;
}

/* 0 when it has ended as watches do, also by a cut; ERR_NOT_FOUND: to be listed anew. */
static int watch(struct following *following, int *ret_status, struct err *err)
{
	struct http_request request = request_of(following->stream);
	struct strbuf url = { 0 };
	int rc;

	add_url(following->stream,
		"watch=true&allowWatchBookmarks=true&timeoutSeconds=" WATCH_SECONDS, &url);
	fetch_add_parameter(&url, "resourceVersion", strbuf_slice(&following->version));
	request.url = strbuf_text(&url);
	request.timeout_ns = WATCH_NS;
	request.body_bytes_max = WATCH_BYTES_MAX;
	request.begin = begin_watch;
	request.take = take_piece;
	request.context = following;
	following->is_watching = following->has_come = false;
	strbuf_clear(&following->line);
	rc = http_access_get(&request, ret_status, err);
	strbuf_free(&url);
	if (*ret_status == HTTP_GONE)
		return err_set(err, ERR_NOT_FOUND, "the watch is too old");
	return following->is_watching && (rc == -ERR_UNAVAILABLE || rc == -ERR_DEADLINE) ? 0 : rc;
}

static bool may_not_watch(int status)
{
	return status == HTTP_FORBIDDEN || status == HTTP_NOT_ALLOWED;
}

/* Between half of it and all of it. */
static int64_t by_chance(int64_t ns)
{
	int64_t now_ns = clock_monotonic_ns();

	return ns / 2 + (int64_t)(hash_bytes(&now_ns, sizeof(now_ns)) % (uint64_t)(ns / 2));
}

static int64_t pause_ns(const struct following *following)
{
	int64_t ns = PAUSE_NS;

	for (unsigned i = 1; i < following->failures && ns < PAUSE_MAX_NS; i++)
		ns *= 2;
	return by_chance(ns < PAUSE_MAX_NS ? ns : PAUSE_MAX_NS);
}

static bool rest(const struct following *following, int64_t ns)
{
	return following->stream->sleep(following->stream->context, ns);
}

/* Until the list is wanted anew. */
static void watch_on(struct following *following)
{
	const struct kubernetes_stream *stream = following->stream;
	struct err err;

	while (!atomic_load(stream->stops)) {
		int64_t began_ns = clock_monotonic_ns();
		int status, rc = watch(following, &status, &err);
		bool is_over = rc == -ERR_NOT_FOUND || rc == -ERR_INVALID || rc == -ERR_LIMIT;

		if (atomic_load(stream->stops))
			return;
		if (may_not_watch(status)) {
			rest(following, LIST_NS);
			return;
		}
		/* One that ends at once, again and again, is no good either. */
		if (following->has_come || (!rc && clock_monotonic_ns() - began_ns > LIST_NS))
			following->failures = 0;
		following->failures++;
		if (rc && !is_over)
			stream->tell(stream->context, &err);
		rest(following, pause_ns(following));
		if (is_over)
			return;
	}
}

void kubernetes_stream_run(const struct kubernetes_stream *stream)
{
	struct following following = { .stream = stream };
	struct err err;

	while (!atomic_load(stream->stops)) {
		int rc = list(&following, &err);

		if (!rc) {
			stream->tell(stream->context, NULL);
			watch_on(&following);
		} else if (!atomic_load(stream->stops)) {
			following.failures++;
			stream->tell(stream->context, &err);
			rest(&following, pause_ns(&following));
		}
	}
	strbuf_free(&following.version);
	strbuf_free(&following.line);
}

/* One object */

static int keep(void *context, struct slice bytes, struct err *err)
{
	(void)err;
	strbuf_add_slice(context, bytes);
	return 0;
}

int kubernetes_ask(const struct kubernetes_lookup *lookup, const struct kubernetes_sink *sink,
		   struct err *err)
{
	struct strbuf url = { 0 }, body = { 0 };
	struct http_request request = {
		/* Metadata alone, from servers that can. */
		.headers = "accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
			   "application/json\r\n",
		.access = lookup->access,
		.body_bytes_max = KUBERNETES_OBJECT_BYTES_MAX,
		.cancelled = lookup->stops,
		.timeout_ns = lookup->timeout_ns,
		.take = keep,
		.context = &body,
	};
	int status, rc;

	strbuf_addf(&url, "%s%s", lookup->server, lookup->path);
	request.url = strbuf_text(&url);
	rc = http_access_get(&request, &status, err);
	if (!rc)
		rc = kubernetes_object_read(strbuf_slice(&body), sink, err);
	else if (status == HTTP_NOT_FOUND)
		rc = err_set(err, ERR_NOT_FOUND, "%s: there is none", lookup->path);
	else if (status == HTTP_DENIED || status == HTTP_FORBIDDEN)
		rc = err_set(err, ERR_DENIED, "%s: status %d", lookup->path, status);
	strbuf_free(&url);
	strbuf_free(&body);
	return rc;
}
