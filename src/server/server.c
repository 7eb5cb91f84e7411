/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include <libgen.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/address.h"
#include "net/http/hosts.h"
#include "net/s3/s3.h"
#include "server/access/access.h"
#include "server/clickhouse/ch_store.h"
#include "server/debuginfo/distribution.h"
#include "server/debuginfo/local_source.h"
#include "server/give_back.h"
#include "server/ingest/label_guard.h"
#include "server/persist/store_follow.h"
#include "server/query/index/indexed.h"
#include "server/scrape/scrape.h"
#include "server/serve/origin.h"
#include "server/serve/admission/answer_cache.h"
#include "server/serve/admission/active_queries.h"
#include "server/serve/serve.h"
#include "server/serve/admission/coalesce.h"
#include "server/serve/api/service_senders.h"
#include "server/serve/api/targets.h"
#include "server/serve/admission/admission.h"
#include "server/serve/admission/quota.h"
#include "server/serve/web.h"

#define STOP_GRACE_NS (2 * CLOCK_NS_PER_S)
#define REQUEST_MEMORY_BYTES_DEFAULT ((size_t)192 << 20)

/*
 * What may be kept in memory to be faster the next time, and be in memory at once; 0: the module's
 * own default. See docs/memory.md.
 */
struct sizes {
	size_t spare_bytes; /* arena_keep_spares: about what the largest pictures need */
	size_t answer_bytes, index_bytes, part_bytes, compact_bytes, apart_bytes;
	uint32_t queries; /* at once */
};
static const struct sizes sizes_of_many = { .spare_bytes = (size_t)24 << 20,
					    .answer_bytes = ANSWER_CACHE_BYTES_DEFAULT,
					    .index_bytes = INDEX_CACHE_BYTES_DEFAULT };
static const struct sizes sizes_of_one_host = { .spare_bytes = (size_t)8 << 20,
						.answer_bytes = (size_t)4 << 20,
						.index_bytes = (size_t)12 << 20,
						.part_bytes = (size_t)12 << 20,
						.compact_bytes = (size_t)40 << 20,
						.apart_bytes = (size_t)12 << 20,
						.queries = 2 };

static const struct sizes *sizes_of(const struct server_options *options)
{
	return options->one_host ? &sizes_of_one_host : &sizes_of_many;
}

struct server {
	struct serve serve;
	struct access *access; /* NULL: everyone may do everything */
	struct net_server *net;
	struct net_route routes[SERVE_ROUTES_MAX];
	struct web web;
	struct hosts hosts;
	struct budget memory; /* of requests, and of what is made of their bodies */
	struct strbuf storage_path;
	struct bucket *bucket; /* NULL: there is none */
	struct strbuf bucket_url;
	/* The same buckets, or those that are read, on connections of their own: debug information.
	 */
	struct bucket *shared[STORE_FOLLOW_SOURCES_MAX];
	size_t shared_count;
	struct store_follow_source followed[STORE_FOLLOW_SOURCES_MAX]; /* buckets that are read */
	size_t followed_count;
	struct store_folder *folder; /* NULL: the store has it */
	struct give_back *give_back;
	struct store_tenant_limit *limits; /* of the command line and the web configuration */
	size_t limits_count, limits_capacity;
};

/* Checks access: an address that others can reach needs users, or permission to go without. */
static int open_access(struct server *server, const struct server_options *options, struct err *err)
{
	struct address address;
	int rc = address_parse(slice_of(options->http_address), &address, err);

	if (rc)
		return err_wrap(err, "--http-address");
	if (options->web_config_file)
		rc = access_open(options->web_config_file, options->own_token, &server->access,
				 err);
	if (rc || options->web_allow_unauthenticated ||
	    net_address_is_loopback(options->http_address) ||
	    (server->access && !access_is_open(server->access)))
		return rc;
	return err_set(err, ERR_DENIED,
		       "listen on \"%s\": everyone who can reach this address could read and write "
		       "profiles; name users or tokens in --web-config-file, give "
		       "--web-allow-unauthenticated if you want that, or listen on 127.0.0.1",
		       options->http_address);
}

/* A folder that is still to be made will be where the one above it is. */
static bool find_disk(const char *path, struct statvfs *ret)
{
	char *copy = mem_strndup(path, strlen(path));
	bool is_found = !statvfs(path, ret) || !statvfs(dirname(copy), ret);

	free(copy);
	return is_found;
}

/* A byte limit: as given, or what a share of the file system comes to; 0 = none. */
static uint64_t limit_of(const char *path, uint64_t bytes, double percent)
{
	struct statvfs fs;

	if (bytes || percent <= 0)
		return bytes;
	if (!find_disk(path, &fs))
		return 0;
	return (uint64_t)((double)fs.f_blocks * (double)fs.f_frsize * percent / 100);
}

#define RESERVE_BYTES_MAX ((uint64_t)1 << 30) /* of the share: far over what is written at once */

static uint64_t reserve_of(const struct server_options *options)
{
	uint64_t share = limit_of(options->storage_path, 0, options->reserve_percent);

	if (options->reserve_bytes)
		return options->reserve_bytes;
	return share < RESERVE_BYTES_MAX ? share : RESERVE_BYTES_MAX;
}

static size_t query_memory(const struct server_options *options)
{
	double machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

	if (options->query_memory_bytes)
		return options->query_memory_bytes;
	return options->query_memory_percent > 0
		       ? (size_t)(machine * options->query_memory_percent / 100)
		       : SIZE_MAX;
}

static void debuginfo_added(void *context, struct slice build_id)
{
	resolver_file_added(context, build_id);
}

static bool debuginfo_take_used(void *context, struct slice build_id)
{
	return resolver_take_used(context, build_id);
}

struct wanting {
	debuginfo_want_f *want;
	void *context;
};

static void want_missing(void *context, const struct resolver_missing *missing)
{
	const struct wanting *wanting = context;

	wanting->want(wanting->context, missing->build_id, missing->cost_ns);
}

static void debuginfo_each_wanted(void *context, debuginfo_want_f *want, void *want_context)
{
	struct wanting wanting = { want, want_context };

	resolver_each_missing(context, want_missing, &wanting);
	resolver_each_poor(context, want, want_context);
}

/* Consent decides for this host, so nobody may give it from elsewhere without a login. */
static bool may_offer(const struct server *server, const struct server_options *options)
{
	return options->debuginfod_offer && options->local_files &&
	       (server->serve.has_users || net_address_is_loopback(options->http_address));
}

static int open_shared(struct server *server, const struct server_options *options, struct err *err)
{
	size_t count = options->object ? 1 : options->object_read_count;
	const struct s3_options *buckets = options->object ? options->object : options->object_read;
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		rc = s3_open(&buckets[i], &server->shared[i], err);
		server->shared_count += !rc;
	}
	return rc;
}

/* The folder of uploads lies in the store's, whose lock keeps other servers away from it too. */
static int open_debuginfo(struct server *server, const struct server_options *options,
			  const char *path, struct err *err)
{
	struct strbuf offered = { 0 };
	int rc;
	struct debuginfo_options debuginfo = {
		.path = path,
		.retention_ns = options->debuginfo_retention_ns,
		.bytes_max = limit_of(options->storage_path, options->debuginfo_bytes,
				      options->debuginfo_percent),
		.added = debuginfo_added,
		.take_used = debuginfo_take_used,
		.each_wanted = debuginfo_each_wanted,
		.context = server->serve.resolver,
		.debuginfod_urls = options->debuginfod_urls,
		.debuginfod_urls_count = options->debuginfod_urls_count,
		.debuginfod_timeout_ns = options->debuginfod_timeout_ns,
		.debuginfod_bytes_max = options->debuginfod_bytes_max,
		.buckets = server->shared,
		.buckets_count = server->shared_count,
		.buckets_read_only = !options->object,
		.source_paths = options->source_paths,
		.source_paths_count = options->source_paths_count,
		.public_files_only = !server->serve.has_users,
	};

	if (may_offer(server, options)) {
		distribution_servers("", &offered);
		debuginfo.debuginfod_offered = strbuf_text(&offered);
	}
	rc = debuginfo_open(&debuginfo, &server->serve.debuginfo, err);
	strbuf_free(&offered);
	return rc;
}

static struct store_tenant_limit *find_limit(struct server *server, struct slice tenant)
{
	for (size_t i = 0; i < server->limits_count; i++)
		if (slice_is(tenant, server->limits[i].tenant))
			return &server->limits[i];
	return NULL;
}

static void add_limit(void *context, struct slice tenant, const struct tenant_limits *limits)
{
	struct server *server = context;

	if (limits->retention_ns == TENANT_LIMITS_NONE || find_limit(server, tenant))
		return;
	mem_grow(server->limits, server->limits_count, server->limits_capacity);
	server->limits[server->limits_count++] = (struct store_tenant_limit){
		.tenant = mem_strndup(tenant.data, tenant.len),
		.retention_ns = (int64_t)limits->retention_ns,
	};
}

/* What the command line says of a tenant goes before the web configuration. */
static int gather_limits(struct server *server, const struct server_options *options,
			 struct err *err)
{
	if (server->access && !options->tenants && access_has_tenants(server->access))
		return err_set(
			err, ERR_INVALID,
			"--web-config-file: it names tenants, which need --tenants; add that "
			"option, or remove user_tenants, tenants and tenant_limits");
	for (size_t i = 0; i < options->tenant_limits_count; i++) {
		const struct store_tenant_limit *limit = &options->tenant_limits[i];

		mem_grow(server->limits, server->limits_count, server->limits_capacity);
		server->limits[server->limits_count] = *limit;
		server->limits[server->limits_count++].tenant =
			mem_strndup(limit->tenant, strlen(limit->tenant));
	}
	if (server->access)
		access_each_tenant(server->access, add_limit, server);
	return 0;
}

static void free_limits(struct server *server)
{
	for (size_t i = 0; i < server->limits_count; i++)
		free((char *)(uintptr_t)server->limits[i].tenant);
	free(server->limits);
}

/* Profiles in files of this server. */
static int open_disk(struct server *server, const struct server_options *options, struct err *err)
{
	struct store_options store = { .path = options->storage_path,
				       .retention_ns = options->retention_ns,
				       .retention_bytes = limit_of(options->storage_path,
								   options->retention_bytes,
								   options->retention_percent),
				       .tenant_limits = server->limits,
				       .tenant_limits_count = server->limits_count,
				       .moments_ns = options->sample_times_ns,
				       .cache_bytes = sizes_of(options)->part_bytes,
				       .compact_bytes = sizes_of(options)->compact_bytes,
				       .is_stopping = options->is_stopping,
				       .reserve_bytes = reserve_of(options) };
	int rc = 0;

	if (options->object) {
		rc = s3_open(options->object, &server->bucket, err);
		strbuf_add_text(&server->bucket_url, options->object->url);
		store.bucket = server->bucket;
		store.bucket_url = strbuf_text(&server->bucket_url);
		store.bucket_single_writer = options->object_single_writer;
	}
	if (!rc)
		rc = store_open(&store, &server->serve.store, err);
	server->serve.retention_ns = store.retention_ns;
	server->serve.retention_bytes = store.retention_bytes;
	return rc;
}

/* Profiles in ClickHouse. How much room they take there is not this server's affair. */
static int open_clickhouse(struct server *server, const struct server_options *options,
			   struct err *err)
{
	size_t memory = query_memory(options);
	struct ch_store_options store = { .clickhouse = *options->clickhouse,
					  .retention_ns = options->retention_ns,
					  .tenant_limits = server->limits,
					  .tenant_limits_count = server->limits_count,
					  .snapshot_bytes = memory == SIZE_MAX ? 0 : memory / 2 };
	int rc = store_folder_open(options->storage_path, &server->folder, err);

	if (!rc)
		rc = ch_store_open(&store, &server->serve.store, err);
	server->serve.retention_ns = options->retention_ns;
	return rc;
}

/* What makes no sense for a server that only reads. */
static int check_reading(const struct server_options *options, struct err *err)
{
	const char *other = options->object	   ? "--object-url"
			    : options->clickhouse  ? "--clickhouse-url"
			    : options->config_file ? "--config-file"
						   : NULL;

	if (!other)
		return 0;
	return err_set(err, ERR_INVALID,
		       "--object-read: such a server only shows what others have stored, and %s is "
		       "for servers that take profiles: choose one of the two",
		       other);
}

/* Profiles that other servers keep in buckets. */
static int open_followed(struct server *server, const struct server_options *options,
			 struct err *err)
{
	struct store_follow_options store = {
		.sources = server->followed,
		.cache_dir = options->storage_path,
		.cache_bytes = limit_of(options->storage_path, options->object_cache_bytes,
					options->object_cache_percent)
	};
	int rc = check_reading(options, err);

	for (size_t i = 0; !rc && i < options->object_read_count; i++) {
		struct store_follow_source *source = &server->followed[server->followed_count];

		source->url = options->object_read[i].url;
		rc = s3_open(&options->object_read[i], &source->bucket, err);
		server->followed_count += !rc;
	}
	store.sources_count = server->followed_count;
	if (!rc)
		rc = store_folder_open(options->storage_path, &server->folder, err);
	return rc ? rc : store_follow_open(&store, &server->serve.store, err);
}

static int open_store(struct server *server, const struct server_options *options, struct err *err)
{
	if (options->object_read_count)
		return open_followed(server, options, err);
	return options->clickhouse ? open_clickhouse(server, options, err)
				   : open_disk(server, options, err);
}

static int open_parts(struct server *server, const struct server_options *options, struct err *err)
{
	struct strbuf uploads_path = { 0 }, tables_path = { 0 }, senders_path = { 0 };
	struct resolver_options resolver = { .debuginfo_path = options->debuginfo_path,
					     .local_files = options->local_files,
					     .public_files_only = !server->serve.has_users,
					     .build_ahead = options->local_files };
	int rc = open_store(server, options, err);

	if (rc)
		return rc;
	strbuf_add_text(&server->storage_path, options->storage_path);
	server->serve.storage_path = strbuf_text(&server->storage_path);
	strbuf_addf(&uploads_path, "%s/debuginfo", options->storage_path);
	resolver.uploads_path = strbuf_text(&uploads_path);
	strbuf_addf(&tables_path, "%s/symbols", options->storage_path);
	resolver.tables_path = strbuf_text(&tables_path);
	strbuf_addf(&senders_path, "%s/" SERVICE_SENDERS_FILE, options->storage_path);
	server->serve.service_senders = service_senders_new(strbuf_text(&senders_path));
	strbuf_free(&senders_path);
	rc = resolver_new(&resolver, &server->serve.resolver, err);
	if (!rc)
		rc = open_shared(server, options, err);
	if (!rc)
		rc = open_debuginfo(server, options, strbuf_text(&uploads_path), err);
	strbuf_free(&uploads_path);
	strbuf_free(&tables_path);
	return rc;
}

/* By which names it may be called. With users, browsers keep their passwords from other names. */
static int read_hosts(struct server *server, const struct server_options *options, struct err *err)
{
	int rc = hosts_init(&server->hosts, options->http_address, err);

	if (!rc && server->web.host[0])
		rc = hosts_add(&server->hosts, slice_of(server->web.host), err);
	for (size_t i = 0; !rc && i < options->web_allowed_hosts_count; i++) {
		rc = hosts_add(&server->hosts, slice_of(options->web_allowed_hosts[i]), err);
		if (rc)
			err_wrap(err, "--web-allowed-host");
	}
	return rc;
}

/* What changes something is no page's business but our own. */
static int authorize(void *context, const struct net_request *request, enum net_role role,
		     bool at_once)
{
	const struct server *server = context;

	if ((role == NET_ROLE_INGEST || role == NET_ROLE_ADMIN) && origin_check(request, NULL))
		return 403;
	return server->access ? access_authorize(server->access, request, role, at_once) : 200;
}

/* A path that is taken off the front of requests may not be the beginning of what they ask for. */
static int check_prefix(const struct server *server, size_t routes_count, struct err *err)
{
	struct slice prefix = slice_of(server->web.prefix);

	for (size_t i = 0; prefix.len && i < routes_count; i++) {
		struct slice path = slice_of(server->routes[i].path);

		if (slice_starts_with(path, prefix) &&
		    (path.len == prefix.len || path.data[prefix.len] == '/'))
			return err_set(err, ERR_INVALID,
				       "--web-external-url: the path \"%s\" is the server's own "
				       "(%s); choose another, such as \"/firn\"",
				       server->web.prefix, server->routes[i].path);
	}
	return 0;
}

static int listen_on(struct server *server, const struct server_options *options, struct err *err)
{
	struct net_server_options net = {
		.address = options->http_address,
		.routes = server->routes,
		.routes_count = serve_routes(&server->serve, server->routes),
		.authorize = authorize,
		.authorize_context = server,
		.memory = &server->memory,
	};

	if (check_prefix(server, net.routes_count, err))
		return -ERR_INVALID;
	web_add_headers(&server->web,
			server->access ? access_headers(server->access) : (struct slice){ 0 });
	if (!server->serve.has_users)
		net.hosts = &server->hosts;
	net.headers = strbuf_slice(&server->web.headers);
	net.path_prefix = slice_of(server->web.prefix);
	if (server_has_tls(server)) {
		net.tls = access_tls;
		net.tls_context = server->access;
	}
	return net_server_start(&net, &server->net, err);
}

static int start_scraping(struct server *server, const struct server_options *options,
			  struct err *err)
{
	const struct scrape_options scraping = { .config_file = options->config_file,
						 .store = write_scraped,
						 .store_context = &server->serve,
						 .memory = &server->memory };

	return scrape_start(&scraping, &server->serve.scrape, err);
}

int server_reload(struct server *server, struct err *err)
{
	return server->serve.scrape ? scrape_reload(server->serve.scrape, err) : 0;
}

static void limits_of_tenant(void *context, struct slice tenant, struct tenant_limits *ret)
{
	const struct server *server = context;

	access_tenant_limits(server->access, tenant, ret);
}

_Static_assert(ADMISSION_RUNNING_MAX + ADMISSION_WAITING_DEFAULT < NET_SERVER_ASKERS,
	       "queries that wait leave no worker for pages, metrics and cancelling");

int server_start(const struct server_options *options, struct server **ret, struct err *err)
{
	struct server *server = mem_new(struct server);
	const struct sizes *sizes = sizes_of(options);
	int rc;

	mem_bound_heaps();
	arena_keep_spares(sizes->spare_bytes);
	rc = open_access(server, options, err);
	if (!rc)
		rc = gather_limits(server, options, err);
	server->memory.max_bytes =
		(int64_t)(options->request_memory_bytes ? options->request_memory_bytes
							: REQUEST_MEMORY_BYTES_DEFAULT);
	server->serve.started_at_ns = clock_real_ns();
	server->serve.tenants = options->tenants;
	server->serve.no_moments = !options->sample_times_ns;
	server->serve.queries.limit_bytes = query_memory(options);
	server->serve.apart_bytes = sizes->apart_bytes;
	server->serve.memory = &server->memory;
	server->serve.writes = write_pool_new(&server->memory);
	if (options->series_label_values)
		server->serve.guard = label_guard_new(options->series_label_values);
	server->serve.active = active_queries_new();
	server->serve.admission = admission_new(sizes->queries, ADMISSION_WAITING_DEFAULT);
	if (options->tenants)
		server->serve.quota = quota_new(limits_of_tenant, server);
	server->serve.coalesce = coalesce_new(server->serve.admission);
	server->serve.cache = answer_cache_new(sizes->answer_bytes);
	server->serve.targets = targets_new();
	server->serve.indexes = index_cache_new(sizes->index_bytes);
	server->serve.access = server->access;
	server->serve.has_users = server->access && !access_is_open(server->access);
	if (!rc)
		rc = web_read(options->web_external_url, options->web_cors_origin,
			      options->web_embed_origin, &server->web, err);
	server->serve.admin_enabled = options->web_enable_admin_api;
	server->serve.embed_origin = server->web.embed;
	if (!rc)
		rc = read_hosts(server, options, err);
	if (!rc)
		rc = open_parts(server, options, err);
	if (options->source_channel)
		server->serve.local_source = local_source_new(options->source_channel);
	server->serve.local_source_uid = options->source_uid;
	if (!rc && options->config_file)
		rc = start_scraping(server, options, err);
	if (!rc)
		rc = give_back_start(server->serve.resolver, server->serve.cache,
				     &server->give_back, err);
	if (!rc)
		rc = listen_on(server, options, err);
	if (rc) {
		server_stop(server);
		return rc;
	}
	atomic_store(&server->serve.port, net_server_port(server->net));
	atomic_store(&server->serve.ready, true);
	log_info("server", "ready", "port=%u storage=%s", server_port(server),
		 options->storage_path);
	*ret = server;
	return 0;
}

bool server_has_tls(const struct server *server)
{
	return server->access && access_has_tls(server->access);
}

unsigned server_port(const struct server *server)
{
	return net_server_port(server->net);
}

void server_offer_binary(struct server *server, struct slice build_id, struct slice path, int fd)
{
	resolver_offer(server->serve.resolver, build_id, path, fd);
}

void server_stop(struct server *server)
{
	if (!server)
		return;
	atomic_store(&server->serve.ready, false);
	if (server->serve.store)
		store_end_by(server->serve.store, clock_monotonic_ns() + STOP_GRACE_NS);
	debuginfo_end_waits(server->serve.debuginfo);
	net_server_stop(server->net, STOP_GRACE_NS);
	scrape_stop(server->serve.scrape);
	debuginfo_close(server->serve.debuginfo);
	local_source_free(server->serve.local_source);
	give_back_stop(server->give_back);
	resolver_free(server->serve.resolver);
	store_close(server->serve.store);
	service_senders_free(server->serve.service_senders);
	store_folder_close(server->folder);
	if (server->bucket)
		server->bucket->close(server->bucket);
	for (size_t i = 0; i < server->shared_count; i++)
		server->shared[i]->close(server->shared[i]);
	for (size_t i = 0; i < server->followed_count; i++)
		server->followed[i].bucket->close(server->followed[i].bucket);
	strbuf_free(&server->bucket_url);
	strbuf_free(&server->storage_path);
	write_pool_free(server->serve.writes);
	label_guard_free(server->serve.guard);
	active_queries_free(server->serve.active);
	coalesce_free(server->serve.coalesce);
	answer_cache_free(server->serve.cache);
	admission_free(server->serve.admission);
	quota_free(server->serve.quota);
	free_limits(server);
	targets_free(server->serve.targets);
	index_cache_free(server->serve.indexes);
	access_close(server->access);
	hosts_free(&server->hosts);
	web_free(&server->web);
	free(server);
}
