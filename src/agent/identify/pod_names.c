/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/identify/pod_names.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/identify/pod_table.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "net/client/fetch.h"
#include "remote/kubernetes/kubeconfig.h"
#include "remote/kubernetes/kubernetes_account.h"
#include "remote/kubernetes/kubernetes_labels.h"
#include "remote/kubernetes/kubernetes_stream.h"

#define KEEP_NS (600 * CLOCK_NS_PER_S)
#define NODE_AGAIN_NS (300 * CLOCK_NS_PER_S)
#define OWNER_AGAIN_NS (300 * CLOCK_NS_PER_S)
#define RETRY_NS (5 * CLOCK_NS_PER_S)
#define RETRY_MAX_NS (120 * CLOCK_NS_PER_S)
#define ASK_NS (5 * CLOCK_NS_PER_S)
#define END_NS (2 * CLOCK_NS_PER_S) /* that a thread may take to end */
#define STACK_BYTES ((size_t)512 << 10)
#define WAITS_MAX 256u
#define NICE 5

/* A container that was seen and that the server had not told of. */
struct wait {
	char pod_uid[CGROUP_POD_UID_BYTES];
	struct slice id; /* owned */
	int64_t since_ns;
};

struct pod_names {
	/* Set once. */
	char *node;
	bool node_labels;
	struct kubeconfig kubeconfig; /* what `access` borrows from, outside of a cluster */
	struct http_access_config access;
	struct strbuf server, selector, node_path;
	int64_t started_at_ns;

	struct lock lock; /* guards what follows */
	struct lock_condition changed;
	_Atomic bool stops;
	unsigned owners_of_it; /* the drain, and the threads that run */
	struct pod_table table;
	struct meta_labels node_meta;
	bool is_listed, has_failed;
	struct wait waits[WAITS_MAX]; /* a ring: the oldest is overwritten */
	size_t next_wait;
	/* The asking thread's own. */
	int64_t node_again_ns, down_until_ns, down_ns;
};

#define LOOKUPS "firn_agent_kubernetes_lookups_total"
#define LOOKUPS_HELP "Lookups of single objects (owners of pods, the node), by result."
static METRIC_COUNTER(lookups_found, LOOKUPS, "{result=\"found\"}", LOOKUPS_HELP);
static METRIC_COUNTER(lookups_none, LOOKUPS, "{result=\"none\"}", LOOKUPS_HELP);
static METRIC_COUNTER(lookups_failed, LOOKUPS, "{result=\"failed\"}", LOOKUPS_HELP);
static METRIC_COUNTER(events, "firn_agent_kubernetes_objects_total", "",
		      "Pods that Kubernetes' API server told, listed or changed.");
static METRIC_COUNTER(failures, "firn_agent_kubernetes_failures_total", "",
		      "Lists and watches of pods that failed.");
static METRIC_COUNTER(left_out, "firn_agent_kubernetes_pods_left_out_total", "",
		      "Pods that there was no room for.");
static METRIC_GAUGE(pods_known, "firn_agent_kubernetes_pods", "", "Pods of this node.");

void pod_names_metrics_register(void)
{
	static struct metric *const own[] = { &lookups_found, &lookups_none, &lookups_failed,
					      &events,	      &failures,     &left_out,
					      &pods_known };

	metrics_register(own, sizeof(own) / sizeof(own[0]));
}

/* Called by the last thread that leaves. */
static void destroy(struct pod_names *names)
{
	for (size_t i = 0; i < WAITS_MAX; i++)
		free((char *)(uintptr_t)names->waits[i].id.data);
	pod_table_free(&names->table);
	meta_labels_free(&names->node_meta);
	kubeconfig_free(&names->kubeconfig);
	strbuf_free(&names->server);
	strbuf_free(&names->selector);
	strbuf_free(&names->node_path);
	free(names->node);
	lock_condition_free(&names->changed);
	lock_free(&names->lock);
	free(names);
}

static void leave(struct pod_names *names)
{
	bool is_last;

	lock_take(&names->lock);
	is_last = !--names->owners_of_it;
	lock_broadcast(&names->changed);
	lock_give(&names->lock);
	if (is_last)
		destroy(names);
}

/* ---- the thread that watches ---- */

static bool sleep_on(void *context, int64_t ns)
{
	struct pod_names *names = context;
	int64_t until_ns = clock_monotonic_ns() + ns;

	lock_take(&names->lock);
	while (!atomic_load(&names->stops) &&
	       lock_wait_until(&names->changed, &names->lock, until_ns))
		continue;
	lock_give(&names->lock);
	return !atomic_load(&names->stops);
}

static void begin_list(void *context)
{
	struct pod_names *names = context;

	lock_take(&names->lock);
	pod_table_begin_list(&names->table);
	lock_give(&names->lock);
}

static int take(void *context, json_t *object, bool is_there, struct err *err)
{
	struct pod_names *names = context;
	uint64_t before;

	(void)err;
	lock_take(&names->lock);
	before = names->table.left_out;
	pod_table_take(&names->table, object, is_there, slice_of(names->node),
		       clock_monotonic_ns());
	metric_add(&events, 1);
	metric_add(&left_out, names->table.left_out - before);
	lock_broadcast(&names->changed);
	lock_give(&names->lock);
	return 0;
}

static void end_list(void *context, bool is_whole)
{
	struct pod_names *names = context;
	bool is_first;
	size_t there;

	lock_take(&names->lock);
	pod_table_end_list(&names->table, is_whole, clock_monotonic_ns());
	is_first = is_whole && !names->is_listed;
	names->is_listed = names->is_listed || is_whole;
	there = pod_table_there(&names->table);
	lock_broadcast(&names->changed);
	lock_give(&names->lock);
	if (is_first && !there)
		log_warn("agent",
			 "Kubernetes has no pods of this node; is this its name? (NODE_NAME)",
			 "node=\"%s\"", names->node);
	else if (is_first)
		log_info("agent", "pods are named by Kubernetes", "node=\"%s\" pods=%zu",
			 names->node, there);
}

static void tell(void *context, const struct err *failure)
{
	struct pod_names *names = context;
	bool is_news;

	lock_take(&names->lock);
	is_news = names->has_failed != (failure != NULL);
	names->has_failed = failure;
	lock_give(&names->lock);
	if (failure)
		metric_add(&failures, 1);
	if (is_news && failure)
		log_warn("agent", "Kubernetes' API server does not answer",
			 "server=\"%s\" error=\"%s\"", strbuf_text(&names->server),
			 failure->message);
	else if (is_news)
		log_info("agent", "Kubernetes' API server answers", "server=\"%s\"",
			 strbuf_text(&names->server));
}

static void *run_watch(void *data)
{
	struct pod_names *names = data;
	const struct kubernetes_stream stream = {
		.server = strbuf_text(&names->server),
		.access = &names->access,
		.resource = KUBERNETES_PODS,
		.field_selector = strbuf_slice(&names->selector),
		.may_be_old = true,
		.stops = &names->stops,
		.sleep = sleep_on,
		.begin_list = begin_list,
		.take = take,
		.end_list = end_list,
		.tell = tell,
		.context = names,
	};

	setpriority(PRIO_PROCESS, 0, NICE);
	kubernetes_stream_run(&stream);
	leave(names);
	return NULL;
}

/* ---- the thread that asks ---- */

static void add_label(void *context, const char *prefix, struct slice key, struct slice value)
{
	if (key.len)
		meta_labels_add_of(context, prefix, key, value);
	else
		meta_labels_add(context, prefix, value);
}

static int take_node(void *context, json_t *object, bool is_there, struct err *err)
{
	struct pod_names *names = context;
	const json_t *metadata = json_object_get(object, "metadata");
	struct meta_labels found = { 0 };
	const struct kubernetes_label_sink sink = { add_label, &found };

	(void)is_there;
	(void)err;
	meta_labels_add(&found, KUBERNETES_META "node_name", slice_of(names->node));
	kubernetes_labels_of_metadata("node", metadata, &sink);
	lock_take(&names->lock);
	meta_labels_free(&names->node_meta);
	names->node_meta = found;
	lock_give(&names->lock);
	return 0;
}

struct owner_asked {
	struct pod_names *names;
	struct slice path;
};

static int take_owner(void *context, json_t *object, bool is_there, struct err *err)
{
	const struct owner_asked *asked = context;

	(void)is_there;
	(void)err;
	lock_take(&asked->names->lock);
	pod_table_answer_owner(&asked->names->table, asked->path,
			       json_object_get(object, "metadata"));
	lock_give(&asked->names->lock);
	return 0;
}

/* A server that fails is left alone for a while. */
static void note_lookup(struct pod_names *names, int code, int64_t now_ns)
{
	bool has_answered = !code || code == -ERR_NOT_FOUND || code == -ERR_DENIED;

	metric_add(code ? has_answered ? &lookups_none : &lookups_failed : &lookups_found, 1);
	if (has_answered) {
		names->down_ns = 0;
		return;
	}
	names->down_ns = names->down_ns ? 2 * names->down_ns : RETRY_NS;
	if (names->down_ns > RETRY_MAX_NS)
		names->down_ns = RETRY_MAX_NS;
	names->down_until_ns = now_ns + names->down_ns;
}

static int ask(struct pod_names *names, const char *path, const struct kubernetes_sink *sink)
{
	const struct kubernetes_lookup lookup = { strbuf_text(&names->server), path, &names->access,
						  &names->stops, ASK_NS };
	struct err err;
	int code = kubernetes_ask(&lookup, sink, &err);

	note_lookup(names, code, clock_monotonic_ns());
	return code;
}

static void ask_owner(struct pod_names *names, struct slice path)
{
	struct owner_asked asked = { names, path };
	const struct kubernetes_sink sink = { take_owner, &asked, NULL };
	int code = ask(names, path.data, &sink);

	lock_take(&names->lock);
	if (code == -ERR_NOT_FOUND || code == -ERR_DENIED)
		pod_table_answer_owner(&names->table, path, NULL);
	else if (code)
		pod_table_postpone_owner(&names->table, path,
					 clock_monotonic_ns() + OWNER_AGAIN_NS);
	lock_broadcast(&names->changed);
	lock_give(&names->lock);
}

static void ask_node(struct pod_names *names)
{
	const struct kubernetes_sink sink = { take_node, names, NULL };

	if (!ask(names, strbuf_text(&names->node_path), &sink))
		names->node_again_ns = clock_monotonic_ns() + NODE_AGAIN_NS;
}

/* One look-up, if there is one to do. */
static bool ask_next(struct pod_names *names, int64_t now_ns)
{
	struct strbuf path = { 0 };
	bool is_wanted;

	if (now_ns < names->down_until_ns)
		return false;
	if (names->node_labels && now_ns >= names->node_again_ns) {
		names->node_again_ns = now_ns + RETRY_NS;
		ask_node(names);
		return true;
	}
	lock_take(&names->lock);
	is_wanted = pod_table_next_owner(&names->table, now_ns, &path);
	lock_give(&names->lock);
	if (is_wanted)
		ask_owner(names, strbuf_slice(&path));
	strbuf_free(&path);
	return is_wanted;
}

static void *run_asking(void *data)
{
	struct pod_names *names = data;

	setpriority(PRIO_PROCESS, 0, NICE);
	while (!atomic_load(&names->stops)) {
		if (ask_next(names, clock_monotonic_ns()))
			continue;
		lock_take(&names->lock);
		if (!atomic_load(&names->stops))
			lock_wait_until(&names->changed, &names->lock,
					clock_monotonic_ns() + RETRY_NS);
		lock_give(&names->lock);
	}
	leave(names);
	return NULL;
}

/* ---- for the drain ---- */

/* Where it is looked up, in the ring. */
static struct wait *find_wait(struct pod_names *names, struct slice id)
{
	for (size_t i = 0; i < WAITS_MAX; i++)
		if (names->waits[i].id.len && slice_equal(names->waits[i].id, id))
			return &names->waits[i];
	return NULL;
}

void pod_names_want(struct pod_names *names, const struct cgroup *cgroup, int64_t now_ns)
{
	struct wait *wait;

	if (!names || !cgroup->pod_uid[0] || !cgroup->container.len)
		return;
	lock_take(&names->lock);
	if (!pod_table_knows_all(&names->table, slice_of(cgroup->pod_uid), cgroup->container) &&
	    !find_wait(names, cgroup->container)) {
		wait = &names->waits[names->next_wait++ % WAITS_MAX];
		free((char *)(uintptr_t)wait->id.data);
		wait->id.data = mem_strndup(cgroup->container.data, cgroup->container.len);
		wait->id.len = cgroup->container.len;
		memcpy(wait->pod_uid, cgroup->pod_uid, sizeof(wait->pod_uid));
		wait->since_ns = now_ns;
	}
	lock_give(&names->lock);
}

void pod_names_find(struct pod_names *names, const struct cgroup *cgroup, struct meta_labels *ret)
{
	if (!names)
		return;
	lock_take(&names->lock);
	if (cgroup->container.len)
		pod_table_find(&names->table, cgroup, ret);
	meta_labels_copy(ret, &names->node_meta);
	lock_give(&names->lock);
}

static bool is_pending(const struct pod_names *names, int64_t now_ns)
{
	bool is_well = names->is_listed && !names->has_failed;

	if (!is_well && now_ns >= names->started_at_ns + POD_NAMES_WAIT_NS)
		return false;
	for (size_t i = 0; i < WAITS_MAX; i++) {
		const struct wait *wait = &names->waits[i];

		if (wait->id.len && now_ns < wait->since_ns + POD_NAMES_WAIT_NS &&
		    !pod_table_knows_all(&names->table, slice_of(wait->pod_uid), wait->id))
			return true;
	}
	return false;
}

bool pod_names_is_pending(struct pod_names *names, int64_t now_ns)
{
	bool pending;

	if (!names)
		return false;
	lock_take(&names->lock);
	pending = is_pending(names, now_ns);
	lock_give(&names->lock);
	return pending;
}

void pod_names_settle(struct pod_names *names, int64_t timeout_ns)
{
	int64_t until_ns = clock_monotonic_ns() + timeout_ns;
	bool in_time = true;

	if (!names)
		return;
	lock_take(&names->lock);
	while (in_time && is_pending(names, clock_monotonic_ns()))
		in_time = lock_wait_until(&names->changed, &names->lock, until_ns);
	lock_give(&names->lock);
}

void pod_names_sweep(struct pod_names *names, int64_t now_ns)
{
	if (!names)
		return;
	lock_take(&names->lock);
	pod_table_sweep(&names->table, now_ns - KEEP_NS);
	metric_set(&pods_known, (int64_t)pod_table_there(&names->table));
	lock_give(&names->lock);
}

/* ---- beginning and end ---- */

static char *node_name(const char *node)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (!node || !node[0])
		node = getenv("NODE_NAME");
	if (!node || !node[0]) {
		gethostname(host, sizeof(host) - 1);
		node = host;
	}
	return mem_strndup(node, strlen(node));
}

/* 1: there is a server; 0: none is meant, or this is no pod. */
static int find_server(struct pod_names *names, const char *place, struct err *err)
{
	struct slice server;
	int rc;

	if (place && !strcmp(place, "off"))
		return 0;
	if (!place || !strcmp(place, "auto"))
		return kubernetes_account_is_there() &&
		       kubernetes_account_find(&names->server, &names->access);
	rc = kubeconfig_read(place, &names->kubeconfig, err);
	if (rc)
		return err_wrap(err, "read kubeconfig");
	names->access = names->kubeconfig.access;
	server = names->kubeconfig.server;
	while (server.data[server.len - 1] == '/') /* "https://" is before it */
		server.len--;
	strbuf_add_slice(&names->server, server);
	return 1;
}

/* Detached: who hangs is left behind. */
static void start_thread(struct pod_names *names, void *(*body)(void *), const char *name)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int code;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	lock_take(&names->lock);
	code = pthread_create(&thread, &attributes, body, names);
	if (!code) {
		names->owners_of_it++; /* it cannot leave before */
		pthread_setname_np(thread, name);
	}
	lock_give(&names->lock);
	pthread_attr_destroy(&attributes);
	if (code)
		log_warn("agent", "Kubernetes is not asked", "error=\"no thread (%d)\"", code);
}

int pod_names_new(const struct pod_names_options *options, struct pod_names **ret, struct err *err)
{
	struct pod_names *names = mem_new(struct pod_names);
	int code;

	names->access = (struct http_access_config)HTTP_ACCESS_CONFIG_DEFAULT;
	names->owners_of_it = 1;
	lock_init(&names->lock, "pod_names", LOCK_AGENT + 12);
	lock_condition_init(&names->changed);
	code = find_server(names, options->place, err);
	if (code <= 0) {
		destroy(names);
		*ret = NULL;
		return code;
	}
	names->node = node_name(options->node);
	names->node_labels = options->node_labels;
	names->started_at_ns = clock_monotonic_ns();
	strbuf_addf(&names->selector, "spec.nodeName=%s", names->node);
	strbuf_add_text(&names->node_path, "/api/v1/nodes/");
	fetch_add_path(&names->node_path, slice_of(names->node));
	start_thread(names, run_watch, "firn-pods");
	start_thread(names, run_asking, "firn-owners");
	*ret = names;
	return 0;
}

void pod_names_free(struct pod_names *names)
{
	int64_t until_ns = clock_monotonic_ns() + END_NS;
	bool in_time = true;

	if (!names)
		return;
	lock_take(&names->lock);
	atomic_store(&names->stops, true);
	lock_broadcast(&names->changed);
	while (in_time && names->owners_of_it > 1)
		in_time = lock_wait_until(&names->changed, &names->lock, until_ns);
	lock_give(&names->lock);
	leave(names);
}
