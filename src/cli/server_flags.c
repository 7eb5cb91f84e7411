/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/server_flags.h"

#include "base/clock.h"
#include "cli/defaults.h"

void server_flags_init(struct server_flags *flags)
{
	*flags = (struct server_flags){
		.storage_path = DEFAULT_STORAGE_PATH,
		.http_address = DEFAULT_HTTP_ADDRESS,
		.retention_ns = DEFAULT_RETENTION_DAYS * 24 * 3600 * CLOCK_NS_PER_S,
		.retention = { .percent = DEFAULT_RETENTION_PERCENT },
		.reserve = { .percent = DEFAULT_RESERVE_PERCENT },
		.debuginfo_retention_ns =
			DEFAULT_DEBUGINFO_RETENTION_DAYS * 24 * 3600 * CLOCK_NS_PER_S,
		.debuginfo_retention = { .percent = DEFAULT_DEBUGINFO_RETENTION_PERCENT },
	};
}

struct server_options server_flags_options(struct server_flags *flags)
{
	struct server_options options = {
		.storage_path = flags->storage_path,
		.http_address = flags->http_address,
		.retention_ns = flags->retention_ns,
		.retention_bytes = flags->retention.bytes,
		.retention_percent = flags->retention.percent,
		.reserve_bytes = flags->reserve.bytes,
		.reserve_percent = flags->reserve.percent,
		.web_config_file = flags->web_config_file,
		.web_external_url = flags->web_external_url,
		.web_cors_origin = flags->web_cors_origin,
		.tenants = flags->tenants,
		.web_allow_unauthenticated = flags->web_allow_unauthenticated,
		.debuginfo_path = flags->debuginfo_path,
		.debuginfo_retention_ns = flags->debuginfo_retention_ns,
		.debuginfo_bytes = flags->debuginfo_retention.bytes,
		.debuginfo_percent = flags->debuginfo_retention.percent,
	};

	debuginfo_flags_apply(&flags->debuginfo, &options);
	return options;
}
