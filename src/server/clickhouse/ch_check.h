/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_check - whether a ClickHouse is fit to keep profiles: what it is, and what its acknowledgement
 * of an insert is worth. Each finding says what to do about it.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_CHECK_H
#define FIRN_SERVER_CLICKHOUSE_CH_CHECK_H

#include "server/clickhouse/ch_client.h"

/*
 * Appends a line for each thing that was looked at, "ok" or "warning" in front. *ret_warnings is
 * how many are to be seen to. Fails when ClickHouse cannot be asked.
 */
MUST_USE int ch_check(struct ch_client *client, struct strbuf *out, uint32_t *ret_warnings,
		      struct err *err);

#endif
