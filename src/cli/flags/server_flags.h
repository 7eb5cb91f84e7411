/* SPDX-License-Identifier: Apache-2.0 */
/* server_flags - the options that `firn server` and `firn up` have in common. */
#ifndef FIRN_CLI_FLAGS_SERVER_FLAGS_H
#define FIRN_CLI_FLAGS_SERVER_FLAGS_H

#include "cli/flags/clickhouse_flags.h"
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
	unsigned series_label_values;
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
	struct option_list object_read; /* of `firn server` alone */
	struct option_size object_cache;
	struct s3_options read_s3[OPTION_LIST_MAX];
	struct clickhouse_options clickhouse;
	struct option_size clickhouse_query_memory;
};

/* `type` is the verb's options struct, whose member `server` is a struct server_flags. */
#define SERVER_FLAGS_OPTIONS(type)                                                                 \
	OPTION_AT(STORAGE_PATH, offsetof(type, server.storage_path)),                              \
		OPTION_AT(HTTP_ADDRESS, offsetof(type, server.http_address)),                      \
		OPTION_AT(STORAGE_RETENTION_TIME, offsetof(type, server.retention_ns)),            \
		OPTION_AT(STORAGE_RETENTION_SIZE, offsetof(type, server.retention)),               \
		OPTION_AT(STORAGE_RESERVE_SIZE, offsetof(type, server.reserve)),                   \
		OPTION_AT(OBJECT_URL, offsetof(type, server.object_url)),                          \
		OBJECT_FLAGS_OPTIONS(type, server.object),                                         \
		OPTION_AT(OBJECT_SINGLE_WRITER, offsetof(type, server.object_single_writer)),      \
		CLICKHOUSE_FLAGS_OPTIONS(type, server.clickhouse),                                 \
		OPTION_AT(CLICKHOUSE_QUERY_MEMORY,                                                 \
			  offsetof(type, server.clickhouse_query_memory)),                         \
		OPTION_AT(REQUEST_MEMORY, offsetof(type, server.request_memory)),                  \
		OPTION_AT(SERIES_LABEL_VALUES, offsetof(type, server.series_label_values)),        \
		OPTION_AT(QUERY_MEMORY, offsetof(type, server.query_memory)),                      \
		OPTION_AT(SERVER_DEBUGINFO_PATH, offsetof(type, server.debuginfo_path)),           \
		OPTION_AT(DEBUGINFO_RETENTION_TIME,                                                \
			  offsetof(type, server.debuginfo_retention_ns)),                          \
		OPTION_AT(DEBUGINFO_RETENTION_SIZE, offsetof(type, server.debuginfo_retention)),   \
		DEBUGINFO_FLAGS_OPTIONS(type),                                                     \
		OPTION_AT(CONFIG_FILE, offsetof(type, server.config_file)),                        \
		OPTION_AT(WEB_CONFIG_FILE, offsetof(type, server.web_config_file)),                \
		OPTION_AT(WEB_EXTERNAL_URL, offsetof(type, server.web_external_url)),              \
		OPTION_AT(WEB_CORS_ORIGIN, offsetof(type, server.web_cors_origin)),                \
		OPTION_AT(WEB_EMBED_ORIGIN, offsetof(type, server.web_embed_origin)),              \
		OPTION_AT(TENANTS, offsetof(type, server.tenants)),                                \
		OPTION_AT(TENANT_RETENTION, offsetof(type, server.tenant_retention)),              \
		OPTION_AT(STORAGE_SAMPLE_TIMES, offsetof(type, server.sample_times_ns)),           \
		OPTION_AT(WEB_ALLOWED_HOST, offsetof(type, server.web_allowed_hosts)),             \
		OPTION_AT(WEB_ENABLE_ADMIN_API, offsetof(type, server.web_enable_admin_api)),      \
		OPTION_AT(WEB_ALLOW_UNAUTHENTICATED,                                               \
			  offsetof(type, server.web_allow_unauthenticated))

/* What `ret` points to is in `flags`. ERR_INVALID names the option and what it should look like. */
int server_flags_options(struct server_flags *flags, struct server_options *ret, struct err *err);

#endif
