/* SPDX-License-Identifier: Apache-2.0 */
/* server_flags - the options that `firn server` and `firn up` have in common. */
#ifndef FIRN_CLI_FLAGS_SERVER_FLAGS_H
#define FIRN_CLI_FLAGS_SERVER_FLAGS_H

#include "cli/flags/debuginfo_flags.h"
#include "cli/flags/object_flags.h"
#include "cli/storage_path.h"
#include "cli/verb.h"
#include "server/persist/store.h"
#include "server/server.h"

#define SERVER_FLAGS_TENANT_BYTES 151

struct server_flags {
	const char *storage_path; /* NULL: the default */
	char storage_default[STORAGE_PATH_BYTES];
	const char *http_address;
	const char *debuginfo_path;
	int64_t retention_ns;
	struct option_size retention;
	struct option_size reserve;
	struct option_size request_memory, query_memory;
	int64_t debuginfo_retention_ns;
	struct option_size debuginfo_retention;
	struct debuginfo_flags debuginfo;
	const char *config_file;
	const char *web_config_file;
	const char *web_external_url;
	const char *web_cors_origin;
	const char *web_embed_origin;
	struct option_list web_allowed_hosts;
	bool web_allow_unauthenticated;
	bool web_enable_admin_api;
	bool tenants;
	struct option_list tenant_retention;
	struct store_tenant_limit tenant_limits[OPTION_LIST_MAX];
	char tenant_names[OPTION_LIST_MAX][SERVER_FLAGS_TENANT_BYTES];
	int64_t sample_times_ns;
	const char *object_url;
	bool object_single_writer;
	struct object_flags object;
	struct s3_options s3;
};

/* `type` is the verb's options struct, whose member `server` is a struct server_flags. */
#define SERVER_FLAGS_OPTIONS(type)                                                                 \
	{ 0,	       "storage-path",                                                             \
	  OPTION_TEXT, offsetof(type, server.storage_path),                                        \
	  "DIR",       "profiles; default /var/lib/firn as root, else ~/.local/share/firn",        \
	  0,	       0 },                                                                        \
		{ 0,	       "http-address",                                                     \
		  OPTION_TEXT, offsetof(type, server.http_address),                                \
		  "HOST:PORT", "where to listen (default 127.0.0.1:7070)",                         \
		  0,	       0 },                                                                \
		{ 0,                                                                               \
		  "storage-retention-time",                                                        \
		  OPTION_DURATION,                                                                 \
		  offsetof(type, server.retention_ns),                                             \
		  "D",                                                                             \
		  "drop profiles older than this (default 15d, 0 = never)",                        \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,	       "storage-retention-size",                                           \
		  OPTION_SIZE, offsetof(type, server.retention),                                   \
		  "B",	       "drop the oldest above this: 50GB, 80% of the disk (default 80%)",  \
		  0,	       0 },                                                                \
		{ 0,                                                                               \
		  "storage-reserve-size",                                                          \
		  OPTION_SIZE,                                                                     \
		  offsetof(type, server.reserve),                                                  \
		  "B",                                                                             \
		  "take no profiles while less is free on the disk (default 5%, at most 1GiB)",    \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,                                                                               \
		  "object-url",                                                                    \
		  OPTION_TEXT,                                                                     \
		  offsetof(type, server.object_url),                                               \
		  "URL",                                                                           \
		  "keep profiles in object storage, too: s3://BUCKET[/PREFIX] (docs/scaling.md)",  \
		  0,                                                                               \
		  0 },                                                                             \
		OBJECT_FLAGS_OPTIONS(type, server.object),                                         \
		{ 0,                                                                               \
		  "object-single-writer",                                                          \
		  OPTION_FLAG,                                                                     \
		  offsetof(type, server.object_single_writer),                                     \
		  NULL,                                                                            \
		  "the bucket cannot tell a second server; you see to it that there is none",      \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,	       "request-memory",                                                   \
		  OPTION_SIZE, offsetof(type, server.request_memory),                              \
		  "B",	       "of requests and of what they become, together (default 192MiB)",   \
		  0,	       0 },                                                                \
		{ 0,                                                                               \
		  "query-memory",                                                                  \
		  OPTION_SIZE,                                                                     \
		  offsetof(type, server.query_memory),                                             \
		  "B",                                                                             \
		  "of all queries together: 1GiB, 20% of what there is (default 10%)",          \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,	       "debuginfo-path",                                                   \
		  OPTION_TEXT, offsetof(type, server.debuginfo_path),                              \
		  "DIR",       "debug files by build id: DIR/ab/cdef....debug",                    \
		  0,	       0 },                                                                \
		{ 0,                                                                               \
		  "debuginfo-retention-time",                                                      \
		  OPTION_DURATION,                                                                 \
		  offsetof(type, server.debuginfo_retention_ns),                                   \
		  "D",                                                                             \
		  "drop uploaded debuginfo not used for this long (default 30d, 0 = never)",       \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,                                                                               \
		  "debuginfo-retention-size",                                                      \
		  OPTION_SIZE,                                                                     \
		  offsetof(type, server.debuginfo_retention),                                      \
		  "B",                                                                             \
		  "and the longest unused above this: 20GB, 10% of the disk (default 10%)",        \
		  0,                                                                               \
		  0 },                                                                             \
		DEBUGINFO_FLAGS_OPTIONS(type),                                                     \
		{ 0,	       "config-file",                                                      \
		  OPTION_TEXT, offsetof(type, server.config_file),                                 \
		  "FILE",      "whom to ask for profiles (scraping): docs/scraping.md",            \
		  0,	       0 },                                                                \
		{ 0,	       "web-config-file",                                                  \
		  OPTION_TEXT, offsetof(type, server.web_config_file),                             \
		  "FILE",      "TLS, users and tokens: docs/web-config.md",                        \
		  0,	       0 },                                                                \
		{ 0,	       "web-external-url",                                                 \
		  OPTION_TEXT, offsetof(type, server.web_external_url),                            \
		  "URL",       "where a proxy in front has this server: its path is a prefix",     \
		  0,	       0 },                                                                \
		{ 0,	       "web-cors-origin",                                                  \
		  OPTION_TEXT, offsetof(type, server.web_cors_origin),                             \
		  "ORIGIN",    "pages of this origin may ask (https://HOST; * = any)",             \
		  0,	       0 },                                                                \
		{ 0,	       "web-embed-origin",                                                 \
		  OPTION_TEXT, offsetof(type, server.web_embed_origin),                            \
		  "ORIGIN",    "pages of this origin may show ours in a frame",                    \
		  0,	       0 },                                                                \
		{ 0,	       "tenants",                                                          \
		  OPTION_FLAG, offsetof(type, server.tenants),                                     \
		  NULL,	       "keep apart what different X-Scope-OrgID headers write and ask",    \
		  0,	       0 },                                                                \
		{ 0,                                                                               \
		  "tenant-retention",                                                              \
		  OPTION_LIST,                                                                     \
		  offsetof(type, server.tenant_retention),                                         \
		  "NAME=D,B",                                                                      \
		  "limits of a tenant: acme=7d, acme=20GB or acme=7d,20GB (repeatable)",           \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,                                                                               \
		  "storage-sample-times",                                                          \
		  OPTION_DURATION,                                                                 \
		  offsetof(type, server.sample_times_ns),                                          \
		  "D",                                                                             \
		  "how long times and trace ids of samples are kept (default 1d, 0 = not at all)", \
		  0,                                                                               \
		  0 },                                                                             \
		{ 0,	       "web-allowed-host",                                                 \
		  OPTION_LIST, offsetof(type, server.web_allowed_hosts),                           \
		  "NAME",      "a further name of a server without users; * = any (repeatable)",   \
		  0,	       0 },                                                                \
		{ 0,	       "web-enable-admin-api",                                             \
		  OPTION_FLAG, offsetof(type, server.web_enable_admin_api),                        \
		  NULL,	       "let anyone who may ask delete profiles, too",                      \
		  0,	       0 },                                                                \
	{                                                                                          \
		0, "web-allow-unauthenticated", OPTION_FLAG,                                       \
			offsetof(type, server.web_allow_unauthenticated), NULL,                    \
			"let anyone who reaches --http-address read and write", 0, 0               \
	}

void server_flags_init(struct server_flags *flags);
/* What `ret` points to is in `flags`. ERR_INVALID names the option and what it should look like. */
int server_flags_options(struct server_flags *flags, struct server_options *ret, struct err *err);

#endif
