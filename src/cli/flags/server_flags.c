/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags/server_flags.h"

#include <stdio.h>

#include "config/units.h"

/* A duration or a size: 7d, 20GB. */
#define CLICKHOUSE_QUERY_BYTES_DEFAULT ((uint64_t)4000000000)

static int read_limit(struct slice text, struct store_tenant_limit *into, struct err *err)
{
	if (!units_parse_duration(text, &into->retention_ns, err))
		return 0;
	return units_parse_size(text, &into->bytes, NULL, err) || !into->bytes ? -ERR_INVALID : 0;
}

static int read_tenant_limit(struct server_flags *flags, size_t number, struct err *err)
{
	struct store_tenant_limit *limit = &flags->tenant_limits[number];
	char *name = flags->tenant_names[number];
	struct slice rest,
		tenant = slice_cut(slice_of(flags->tenant_retention.items[number]), '=', &rest);
	int rc = !tenant.len || tenant.len >= SERVER_FLAGS_TENANT_BYTES || !rest.len;

	for (size_t i = 0; i < tenant.len; i++)
		rc |= tenant.data[i] == '"' || tenant.data[i] == '\\';
	*limit = (struct store_tenant_limit){ .tenant = name };
	while (!rc && rest.len)
		rc = read_limit(slice_cut(rest, ',', &rest), limit, err);
	if (rc)
		return err_set(
			err, ERR_INVALID,
			"--tenant-retention \"%s\": write acme=7d, acme=20GB or acme=7d,20GB",
			flags->tenant_retention.items[number]);
	snprintf(name, SERVER_FLAGS_TENANT_BYTES, "%.*s", SLICE_FMT(tenant));
	return 0;
}

int server_flags_options(struct server_flags *flags, struct server_options *ret, struct err *err)
{
	struct server_options options = {
		.storage_path = flags->storage_path,
		.http_address = flags->http_address,
		.retention_ns = flags->retention_ns,
		.retention_bytes = flags->retention.bytes,
		.retention_percent = flags->retention.percent,
		.reserve_bytes = flags->reserve.bytes,
		.reserve_percent = flags->reserve.percent,
		.request_memory_bytes = flags->request_memory.bytes,
		.series_label_values = flags->series_label_values,
		.query_memory_bytes = flags->query_memory.bytes,
		.query_memory_percent = flags->query_memory.percent,
		.config_file = flags->config_file,
		.web_config_file = flags->web_config_file,
		.web_external_url = flags->web_external_url,
		.web_cors_origin = flags->web_cors_origin,
		.web_embed_origin = flags->web_embed_origin,
		.tenants = flags->tenants,
		.web_allowed_hosts = flags->web_allowed_hosts.items,
		.web_allowed_hosts_count = flags->web_allowed_hosts.count,
		.web_allow_unauthenticated = flags->web_allow_unauthenticated,
		.web_enable_admin_api = flags->web_enable_admin_api,
		.debuginfo_path = flags->debuginfo_path,
		.debuginfo_retention_ns = flags->debuginfo_retention_ns,
		.debuginfo_bytes = flags->debuginfo_retention.bytes,
		.debuginfo_percent = flags->debuginfo_retention.percent,
		.tenant_limits = flags->tenant_limits,
		.tenant_limits_count = flags->tenant_retention.count,
		.sample_times_ns = flags->sample_times_ns,
		.object_single_writer = flags->object_single_writer,
	};

	if (!options.storage_path) {
		if (storage_path_default(flags->storage_default, err))
			return -ERR_INVALID;
		options.storage_path = flags->storage_default;
	}
	for (size_t i = 0; i < flags->tenant_retention.count; i++)
		if (read_tenant_limit(flags, i, err))
			return -ERR_INVALID;

	if (flags->object_url) {
		flags->s3 = object_flags_options(&flags->object, flags->object_url);
		options.object = &flags->s3;
	}
	for (size_t i = 0; i < flags->object_read.count; i++)
		flags->read_s3[i] =
			object_flags_options(&flags->object, flags->object_read.items[i]);
	options.object_read = flags->read_s3;
	options.object_read_count = flags->object_read.count;
	options.object_cache_bytes = flags->object_cache.bytes;
	options.object_cache_percent = flags->object_cache.percent;
	if (flags->clickhouse_query_memory.percent > 0)
		return err_set(err, ERR_INVALID,
			       "--clickhouse-query-memory: write a size, such as 4GB: it is of "
			       "ClickHouse's machine, not of this one");
	flags->clickhouse.query_memory_bytes = flags->clickhouse_query_memory.bytes
						       ? flags->clickhouse_query_memory.bytes
						       : CLICKHOUSE_QUERY_BYTES_DEFAULT;
	if (flags->clickhouse.url)
		options.clickhouse = &flags->clickhouse;
	if (debuginfo_flags_apply(&flags->debuginfo, &options, err))
		return -ERR_NOT_FOUND;
	*ret = options;
	return 0;
}
