/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubernetes_stream - lists the objects of one resource, in one namespace or in all, and then
 * watches them.
 *
 * The watch begins at the list's version. A watch that ends or breaks off is resumed from the
 * version of the last complete event or bookmark. If the server no longer knows that version (410),
 * the objects are listed again. An account that may list but not watch gets a new list every half
 * minute. Failures are retried after 1, 2, 4 ... 30 s, minus a random part, so that the hosts of a
 * cluster do not come back at the same moment.
 *
 * Each request reads the token again, and a watch lasts two minutes: so tokens may change, and a
 * silently dead connection is noticed after at most two minutes.
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

/* All callbacks run on the thread that runs it. Texts must live as long as it runs. */
struct kubernetes_stream {
	const char *server; /* "https://HOST:PORT" */
	const struct http_access_config *access;
	enum kubernetes_resource resource;
	struct slice namespace_name; /* empty: all */
	struct slice label_selector, field_selector;
	/*
	 * True: the list comes in one piece from the server's cache, which is cheap for it. False:
	 * page by page from the cluster's store, with the newest data.
	 */
	bool may_be_old;
	const _Atomic bool *stops;
	bool (*sleep)(void *context, int64_t ns); /* false: stop */
	void (*begin_list)(void *context);
	/* An object of the list, or of the watch after it. */
	int (*take)(void *context, json_t *object, bool is_there, struct err *err);
	void (*end_list)(void *context, bool is_whole);
	void (*tell)(void *context, const struct err *failure); /* NULL: it works (again) */
	void *context;
	struct budget *memory; /* as in kubernetes_sink */
};

/* Runs until `stops` is set. */
void kubernetes_stream_run(const struct kubernetes_stream *stream);

/*
 * Gets one object and passes it to `sink`. `path` is the URL's, escaped. ERR_NOT_FOUND: there is no
 * such object; ERR_DENIED: the account may not get it.
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
