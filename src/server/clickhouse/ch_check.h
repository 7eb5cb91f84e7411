/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_check - whether a ClickHouse is fit to keep profiles: what it is, and what its acknowledgement
 * of an insert is worth. Each finding says what to do about it.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_CHECK_H
#define FIRN_SERVER_CLICKHOUSE_CH_CHECK_H

#include "server/clickhouse/ch_client.h"

/*
 * Appends a line for each check, which begins with "ok" or "warning". *ret_warnings counts the
 * warnings. Fails if ClickHouse does not answer.
 */
MUST_USE int ch_check(struct ch_client *client, struct strbuf *out, uint32_t *ret_warnings,
		      struct err *err);

#endif
