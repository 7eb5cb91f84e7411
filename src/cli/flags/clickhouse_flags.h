/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_flags - the options that say which ClickHouse. */
#ifndef FIRN_CLI_FLAGS_CLICKHOUSE_FLAGS_H
#define FIRN_CLI_FLAGS_CLICKHOUSE_FLAGS_H

#include "cli/flags/option_table.h"
#include "server/clickhouse/ch_client.h"

/* `type` is the verb's options struct, whose member `member` is a struct clickhouse_options. */
#define CLICKHOUSE_FLAGS_OPTIONS(type, member)                                                     \
	OPTION_AT(CLICKHOUSE_URL, offsetof(type, member.url)),                                     \
		OPTION_AT(CLICKHOUSE_DATABASE, offsetof(type, member.database)),                   \
		OPTION_AT(CLICKHOUSE_USER, offsetof(type, member.user)),                           \
		OPTION_AT(CLICKHOUSE_PASSWORD_FILE, offsetof(type, member.password_file)),         \
		OPTION_AT(CLICKHOUSE_CA_FILE, offsetof(type, member.ca_file))

#endif
