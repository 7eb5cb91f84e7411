/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve - the HTTP and gRPC surface: translates requests to ingest, persist and query, and their
 * results to answers. Nothing is computed here. Handlers run on the listener's workers, in
 * parallel; what they share is thread-safe or behind a lock named in the module.
 *
 * routes.c lists all paths; README.md says which room answers which.
 */
#ifndef FIRN_SERVER_SERVE_SERVE_H
#define FIRN_SERVER_SERVE_SERVE_H

#include <sys/types.h>

#include "net/server.h"
#include "server/debuginfo/debuginfo.h"
#include "server/persist/store.h"
#include "server/query/query.h"
#include "server/resolve/resolver.h"

struct access;		/* server/access/access.h */
struct budget;		/* base/budget.h */
struct index_cache;	/* server/query/index/index_cache.h */
struct answer_cache;	/* answer_cache.h */
struct active_queries;	/* active_queries.h */
struct coalesce;	/* coalesce.h */
struct targets;		/* targets.h */
struct service_senders; /* service_senders.h */
struct admission;	/* admission.h */
struct quota;		/* quota.h */
struct local_source;	/* server/debuginfo/local_source.h */
struct scrape_taken;	/* server/scrape/scrape.h */
struct write_pool;	/* writing.h: buffers of running writes */
struct label_guard;	/* server/ingest/label_guard.h */

struct serve {
	struct store *store;
	struct resolver *resolver;
	struct debuginfo *debuginfo;
	struct local_source *local_source; /* server/debuginfo/local_source.h; NULL: none */
	uid_t local_source_uid;		   /* who is shown files of this host */
	_Atomic unsigned port;		   /* that we listen on, once we do */
	struct budget *memory;		   /* pays for what requests become */
	struct write_pool *writes;
	struct label_guard *guard; /* of what is written; NULL: none */
	struct query_pool queries; /* memory of all queries */
	size_t apart_bytes;	   /* query_limits */
	struct index_cache *indexes;
	struct active_queries *active;
	struct admission *admission;
	struct quota *quota; /* NULL: tenants are not told apart */
	struct coalesce *coalesce;
	struct answer_cache *cache;
	struct targets *targets;
	struct service_senders *service_senders;
	struct scrape *scrape;	  /* server/scrape/scrape.h; NULL: no --config-file */
	const char *embed_origin; /* whose pages may have ours in a frame; "": none but our own */
	int64_t retention_ns;	  /* as configured; 0: for ever */
	uint64_t retention_bytes; /* likewise; 0: no limit */
	const char *storage_path;
	struct access *access; /* NULL: everyone may do everything */
	bool has_users;	       /* nobody may change anything who does not log in */
	bool admin_enabled;    /* or anybody may, administration included */
	bool no_moments;       /* times of samples are not kept */
	bool tenants;	       /* requests say whose they are: tenant.h */
	int64_t started_at_ns;
	_Atomic bool ready;
};

#define SERVE_ROUTES_MAX 128
#define SERVE_BODY_BYTES_MAX ((size_t)128 << 20) /* of a write, decompressed */

/* Fills `routes` (of SERVE_ROUTES_MAX) with contexts pointing at `serve`; returns how many. */
size_t serve_routes(struct serve *serve, struct net_route *routes);

/* Handlers, named by what they answer; context is the struct serve. */
net_handler_f answer_types, answer_labels, answer_label_values, answer_series, answer_query;
net_handler_f answer_diff, answer_lines, answer_instructions, answer_callgraph, answer_heatmap,
	answer_flamechart, answer_services, answer_targets, answer_queries, answer_cancel,
	answer_tenant;
net_handler_f write_otlp, write_raw, write_arrow, unknown_path, pyro_ingest, pyro_push,
	datadog_input, datadog_ignored, datadog_info;
net_handler_f rpc_agents, rpc_report_panic, rpc_targets, answer_parca_targets;
net_handler_f rpc_profile_types, rpc_labels, rpc_values, rpc_query_range, rpc_query, rpc_has_data,
	rpc_series, rpc_share;
net_handler_f pyro_profile_types, pyro_label_names, pyro_label_values, pyro_series,
	pyro_select_series, pyro_stacktraces, pyro_span_profile, pyro_profile, pyro_diff,
	pyro_heatmap, pyro_analyze, pyro_stats, pyro_render, pyro_render_diff, pyro_render_values,
	pyro_ready, pyro_build_info, pyro_feature_flags, pyro_settings, pyro_settings_change;
net_handler_f operations_metrics, operations_healthy, operations_ready, operations_status,
	operations_profile, operations_profile_index;
net_handler_f health_check;
net_handler_f admin_delete, admin_deletes, admin_reload;
net_handler_f asset_get, web_options, answer_openapi;
net_handler_f rpc_debuginfo_should_upload, rpc_debuginfo_begin, rpc_debuginfo_finished,
	answer_debuginfo, answer_consent_get, answer_consent, answer_source;
extern const struct net_stream write_stream, rpc_debuginfo_upload, rpc_reflection, health_watch;

/* A scrape_store_f, with the struct serve: what a target gave goes the way of what is sent. */
int write_scraped(void *context, const struct scrape_taken *taken, struct err *err);

struct write_pool *write_pool_new(struct budget *memory); /* pays for what requests become */
void write_pool_free(struct write_pool *pool);

#endif
