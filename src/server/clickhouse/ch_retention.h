/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_retention - drops what is older than it is kept, where ClickHouse does not do so itself.
 *
 * Whole partitions of (day, keep) go, reports first, what they refer to a day later. Any server may
 * do it at any time: what is gone already is no error.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_RETENTION_H
#define FIRN_SERVER_CLICKHOUSE_CH_RETENTION_H

#include "server/clickhouse/ch_cluster.h"

MUST_USE int ch_retention_apply(struct ch_client *client, const struct ch_cluster *cluster,
				struct err *err);

#endif
