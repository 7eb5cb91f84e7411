/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_stream - the objects of one resource, of one namespace or of all: listed once, and
 * then watched.
 *
 * From the list's version on it watches. A watch that ends, or is cut, goes on from the version of
 * the last whole event; bookmarks move that on. When the server does not know the version any more
 * (410), all is listed anew. Who may list and not watch has the list each half a minute. What fails
 * is tried again after a second, then after 2, 4 ... 30, less a part by chance, so that all hosts
 * of a cluster do not come back at once.
 *
 * Each request reads the token anew, and a watch lasts two minutes: so a token may change, and a
 * connection that is dead without a word costs that long.
 */
#ifndef FIRN_REMOTE_KUBERNETES_KUBERNETES_STREAM_H
#define FIRN_REMOTE_KUBERNETES_KUBERNETES_STREAM_H

#include "base/clock.h"
#include "config/http_access_config.h"
#include "remote/kubernetes/kubernetes_answer.h"

enum kubernetes_resource {
	KUBERNETES_PODS,
	KUBERNETES_NODES,
	KUBERNETES_SERVICES,
	KUBERNETES_ENDPOINTS,
	KUBERNETES_SLICES,
	KUBERNETES_INGRESSES,
	KUBERNETES_RESOURCES,
};

/* "pod", "endpointslice", ...: the role of Prometheus' discovery. */
extern const char *const kubernetes_resource_roles[KUBERNETES_RESOURCES];

/* All on the thread that runs it. Texts live as long as it runs. */
struct kubernetes_stream {
	const char *server; /* "https://HOST:PORT" */
	const struct http_access_config *access;
	enum kubernetes_resource resource;
	struct slice namespace_name; /* empty: all */
	struct slice label_selector, field_selector;
	/*
	 * The list is what the server has in memory, in one piece, which costs it little, instead
	 * of what is newest in the cluster's store, page by page.
	 */
	bool may_be_old;
	const _Atomic bool *stops;
	bool (*sleep)(void *context, int64_t ns); /* false: it is to stop */
	void (*begin_list)(void *context);
	/* Of a list, or of the watch after it. */
	int (*take)(void *context, json_t *object, bool is_there, struct err *err);
	void (*end_list)(void *context, bool is_whole);
	void (*tell)(void *context, const struct err *failure); /* NULL: it is well (again) */
	void *context;
	struct budget *memory; /* as in kubernetes_sink */
};

/* Until `stops`. */
void kubernetes_stream_run(const struct kubernetes_stream *stream);

/*
 * One object: handed to `sink`. `path` is that of the URL, escaped. ERR_NOT_FOUND: there is none;
 * ERR_DENIED: we may not ask.
 */
struct kubernetes_lookup {
	const char *server, *path;
	const struct http_access_config *access;
	const _Atomic bool *stops;
	int64_t timeout_ns;
};
int kubernetes_ask(const struct kubernetes_lookup *lookup, const struct kubernetes_sink *sink,
		   struct err *err);

#endif
