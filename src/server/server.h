/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - the whole server as one object: store, resolver, debuginfo, listener, in that order of
 * start and the reverse order of stop. See README.md for the write path and the read path.
 */
#ifndef FIRN_SERVER_SERVER_H
#define FIRN_SERVER_SERVER_H

#include <sys/types.h>

#include "base/err.h"
#include "base/slice.h"

struct server;
struct store_tenant_limit; /* server/persist/store.h */
struct s3_options;	   /* net/s3/s3.h */

struct server_options {
	const char *storage_path;
	const char *http_address;      /* HOST:PORT; port 0 = any free */
	int64_t retention_ns;	       /* 0 = for ever */
	uint64_t retention_bytes;      /* 0 = use the percentage */
	double retention_percent;      /* of the file system that holds the storage; 0 = no limit */
	uint64_t reserve_bytes;	       /* no profiles are taken while less is free on the disk; */
	double reserve_percent;	       /* 0 bytes = this share of the disk, at most 1 GiB */
	uint64_t request_memory_bytes; /* bodies and what is made of them; 0 = default */
	uint32_t series_label_values;  /* new ones per label and hour; 0 = any number */
	uint64_t query_memory_bytes;   /* of all queries together; 0 = use the percentage */
	double query_memory_percent;   /* of the machine's memory; 0 = no limit */
	const char *config_file;       /* who is scraped (config/scrape_config.h); or NULL */
	const char *web_config_file;   /* TLS, users, tokens (config/web_config.h); or NULL */
	const char *web_external_url;  /* http(s)://HOST[:PORT][/PATH]; or NULL */
	const char *web_cors_origin;   /* whose pages may ask: "https://HOST", "*"; or NULL */
	const char *web_embed_origin;  /* whose pages may show ours in a frame; or NULL */
	const char *own_token;	       /* of our own agent: may send, whatever the file says */
	const char *const *web_allowed_hosts; /* further names of a server without users */
	size_t web_allowed_hosts_count;
	bool web_allow_unauthenticated; /* listen on addresses that others can reach */
	bool web_enable_admin_api;	/* delete without a login */
	bool tenants;			/* the header X-Scope-OrgID says whose a request is */
	bool local_files;		/* symbols may come from this host's files (firn up) */
	bool one_host; /* profiles are mostly one host's: less memory instead of more speed */
	const char *debuginfo_path;	/* further debug files by build id, or NULL */
	int64_t debuginfo_retention_ns; /* of uploaded ones, since their last use; 0 = for ever */
	uint64_t debuginfo_bytes;	/* of them all; 0 = use the percentage */
	double debuginfo_percent;	/* of the file system; 0 = no limit */
	const char *const *debuginfod_urls; /* who is asked for missing ones */
	size_t debuginfod_urls_count;
	/* The distribution's, once somebody has consented; only with local_files. */
	bool debuginfod_offer;
	int64_t debuginfod_timeout_ns;	 /* of one file; 0 = default */
	uint64_t debuginfod_bytes_max;	 /* likewise */
	const char *const *source_paths; /* folders whose source files may be shown */
	size_t source_paths_count;
	int source_channel; /* to a reader of local_source.h; 0: none; stays the caller's */
	uid_t source_uid;   /* whose process that is: files are shown to him alone */
	const struct store_tenant_limit *tenant_limits;
	size_t tenant_limits_count;
	bool (*is_stopping)(void); /* looked at while the store is opened: ERR_CANCELLED; or NULL */
	const struct s3_options *object;      /* where parts go besides; or NULL */
	bool object_single_writer;	      /* store_options.bucket_single_writer */
	const struct s3_options *object_read; /* buckets that are read, and nothing is written */
	size_t object_read_count;	      /* 0: profiles are this server's */
	uint64_t object_cache_bytes;	      /* of their parts on the local disk; 0 = use: */
	double object_cache_percent;	      /* of the file system that holds the storage */
	const struct clickhouse_options *clickhouse; /* where profiles are; NULL: storage_path */
	int64_t sample_times_ns; /* how long times of samples are kept; 0 = they are not taken */
};

/*
 * Refuses an address that is not loopback unless somebody must prove who they are there, or
 * web_allow_unauthenticated. Errors name the operand and the remedy.
 */
int server_start(const struct server_options *options, struct server **ret, struct err *err);
unsigned server_port(const struct server *server);
bool server_has_tls(const struct server *server);

/* A file of this host as a source of symbols; the fd stays the caller's. Any thread. */
void server_offer_binary(struct server *server, struct slice build_id, struct slice path, int fd);

/* Reads config_file anew; when it is wrong, all stays as it is. Any thread. */
int server_reload(struct server *server, struct err *err);

/* Finishes running requests (2 s at most) and closes the store. Accepts NULL. */
void server_stop(struct server *server);

#endif
