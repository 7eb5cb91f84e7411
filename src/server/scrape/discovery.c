/* SPDX-License-Identifier: Apache-2.0 */
#include "server/scrape/discovery.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

#define STACK_BYTES ((size_t)1 << 20)

static void (*const bodies[DISCOVERY_KINDS])(struct discovery *) = {
	[DISCOVERY_FILE] = discover_file,     [DISCOVERY_HTTP] = discover_http,
	[DISCOVERY_DOCKER] = discover_docker, [DISCOVERY_DNS] = discover_dns,
	[DISCOVERY_CONSUL] = discover_consul, [DISCOVERY_KUBERNETES] = discover_kubernetes,
};

static void *run(void *argument)
{
	struct discovery *discovery = argument;

	bodies[discovery->config->kind](discovery);
	return NULL;
}

static void publish_static(struct discovery *discovery)
{
	const struct discovery_config *config = discovery->config;
	struct found *found = discovery_new_found(discovery);

	for (size_t i = 0; i < config->targets.count; i++) {
		for (size_t j = 0; j < config->labels.count; j++)
			found_label(found, config->labels.items[j].name,
				    config->labels.items[j].value);
		found_label(found, SLICE_LITERAL("__address__"), config->targets.items[i]);
		found_target(found, 0);
	}
	discovery_publish(discovery, found);
}

static void start_thread(struct discovery *discovery)
{
	pthread_attr_t attributes;
	struct err err;
	int code;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	code = pthread_create(&discovery->thread, &attributes, run, discovery);
	pthread_attr_destroy(&attributes);
	discovery->has_thread = !code;
	if (code) {
		err_set_errno(&err, code, "start a thread for discovery");
		discovery_fail(discovery, &err);
	}
}

static bool has_same_texts(const struct field_texts *a, const struct field_texts *b)
{
	bool is_same = a->count == b->count;

	for (size_t i = 0; is_same && i < a->count; i++)
		is_same = slice_equal(a->items[i], b->items[i]);
	return is_same;
}

bool discovery_is_same(const struct discovery_config *a, const struct discovery_config *b)
{
	bool is_same = a->kind == b->kind && slice_equal(a->url, b->url) &&
		       slice_equal(a->host, b->host) && slice_equal(a->api_server, b->api_server) &&
		       slice_equal(a->kubeconfig_file, b->kubeconfig_file) && a->role == b->role &&
		       a->dns.record == b->dns.record &&
		       slice_equal(a->consul.server, b->consul.server);

	return is_same && has_same_texts(&a->files, &b->files) &&
	       has_same_texts(&a->dns.names, &b->dns.names);
}

struct discovery *discovery_start(const struct discovery_config *config,
				  const struct found_filter *filter, struct discovery *before,
				  void (*changed)(void *context), void *context)
{
	struct discovery *discovery = mem_new(struct discovery);

	discovery->config = config;
	discovery->filter = *filter;
	discovery->changed = changed;
	discovery->context = context;
	lock_init(&discovery->lock, "discovery", LOCK_SCRAPE + 1);
	lock_condition_init(&discovery->wakes);
	discovery->found = before ? discovery_found(before, &discovery->version) : found_new();
	if (config->kind == DISCOVERY_STATIC)
		publish_static(discovery);
	else
		start_thread(discovery);
	return discovery;
}

void discovery_ask_to_stop(struct discovery *discovery)
{
	lock_take(&discovery->lock);
	atomic_store(&discovery->stops, true);
	lock_broadcast(&discovery->wakes);
	lock_give(&discovery->lock);
}

void discovery_stop(struct discovery *discovery)
{
	discovery_ask_to_stop(discovery);
	if (discovery->has_thread)
		pthread_join(discovery->thread, NULL);
	found_free(discovery->found);
	lock_condition_free(&discovery->wakes);
	lock_free(&discovery->lock);
	free(discovery);
}

struct found *discovery_found(struct discovery *discovery, uint64_t *ret_version)
{
	struct found *found;

	lock_take(&discovery->lock);
	found = found_share(discovery->found);
	*ret_version = discovery->version;
	lock_give(&discovery->lock);
	return found;
}

uint64_t discovery_version(struct discovery *discovery)
{
	uint64_t version;

	lock_take(&discovery->lock);
	version = discovery->version;
	lock_give(&discovery->lock);
	return version;
}

bool discovery_failure(struct discovery *discovery, struct err *ret)
{
	lock_take(&discovery->lock);
	*ret = discovery->failure.message[0] ? discovery->failure : discovery->refusal;
	lock_give(&discovery->lock);
	return ret->message[0];
}

struct found *discovery_new_found(struct discovery *discovery)
{
	struct found *found = found_new();

	found->filter = &discovery->filter;
	found->stops = &discovery->stops;
	return found;
}

/* `into` is one of its two. */
static void fail(struct discovery *discovery, const struct err *err, struct err *into)
{
	bool is_news;

	if (atomic_load(&discovery->stops))
		return;
	lock_take(&discovery->lock);
	is_news = strcmp(into->message, err->message) != 0;
	*into = *err;
	lock_give(&discovery->lock);
	if (is_news)
		log_warn("scrape", "discovery failed; its previous targets stay",
			 "what=%s line=%zu error=\"%s\"",
			 discovery_config_names[discovery->config->kind], discovery->config->line,
			 err->message);
}

void discovery_fail(struct discovery *discovery, const struct err *err)
{
	fail(discovery, err, &discovery->failure);
}

/* Whom it asks, for who reads that it finds too much. */
static struct slice place_of(const struct discovery_config *config)
{
	const struct slice places[] = { config->api_server, config->kubeconfig_file, config->url,
					config->host, config->consul.server };
	size_t i = 0;

	while (i < sizeof(places) / sizeof(places[0]) && !places[i].len)
		i++;
	return i < sizeof(places) / sizeof(places[0])
		       ? places[i]
		       : slice_of(discovery_config_names[config->kind]);
}

void discovery_refuse(struct discovery *discovery, const struct err *err)
{
	struct err full;

	if (!err) {
		lock_take(&discovery->lock);
		discovery->refusal = (struct err){ 0 };
		lock_give(&discovery->lock);
		return;
	}
	full = *err;
	err_wrap(&full, "%.*s", SLICE_FMT(place_of(discovery->config)));
	fail(discovery, &full, &discovery->refusal);
}

bool discovery_publish(struct discovery *discovery, struct found *found)
{
	struct found *old;
	struct err err;

	if (atomic_load(&discovery->stops)) {
		found_free(found);
		return false;
	}
	found_seal(found);
	if (found->is_refused) {
		found_free(found);
		discovery_memory_fail(&err);
		err_wrap(&err, "%.*s", SLICE_FMT(place_of(discovery->config)));
		discovery_fail(discovery, &err);
		return false;
	}
	if (found->is_cut)
		log_warn("scrape", "discovery found too many targets; some are skipped",
			 "%s at line %zu", discovery_config_names[discovery->config->kind],
			 discovery->config->line);
	lock_take(&discovery->lock);
	old = discovery->found;
	discovery->found = found;
	discovery->version++;
	discovery->failure = (struct err){ 0 }; /* the same would be news again */
	lock_give(&discovery->lock);
	found_free(old);
	discovery->changed(discovery->context);
	return true;
}

bool discovery_sleep(struct discovery *discovery, int64_t ns)
{
	int64_t until_ns = clock_monotonic_ns() + ns;

	lock_take(&discovery->lock);
	while (!atomic_load(&discovery->stops) &&
	       lock_wait_until(&discovery->wakes, &discovery->lock, until_ns))
		continue;
	lock_give(&discovery->lock);
	return !atomic_load(&discovery->stops);
}

static int get(struct discovery *discovery, const struct http_request *request, int *ret_status,
	       struct err *err)
{
	struct http_request with = *request;

	if (!with.access)
		with.access = &discovery->config->access;
	with.body_bytes_max = DISCOVERY_BODY_BYTES_MAX;
	with.cancelled = &discovery->stops;
	return http_access_get(&with, ret_status, err);
}

/* Room that is not paid for is not touched. */
static int keep(void *context, struct slice bytes, struct err *err)
{
	struct strbuf *body = context;
	size_t paid = body->capacity;

	strbuf_reserve(body, bytes.len);
	if (!budget_take(&discovery_memory, body->capacity - paid)) {
		budget_give(&discovery_memory, paid);
		strbuf_free(body);
		return discovery_memory_fail(err);
	}
	strbuf_add_slice(body, bytes);
	return 0;
}

void discovery_forget_body(struct strbuf *body)
{
	budget_give(&discovery_memory, body->capacity);
	strbuf_free(body);
}

int discovery_get_body(struct discovery *discovery, const struct http_request *request,
		       struct strbuf *ret, struct err *err)
{
	struct http_request with = *request;
	int status;

	with.take = keep;
	with.context = ret;
	discovery_forget_body(ret);
	return get(discovery, &with, &status, err);
}
