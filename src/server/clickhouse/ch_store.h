/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_store - a store (persist/store.h) whose profiles are in ClickHouse. Any number of servers
 * share one database; none keeps profiles of its own.
 *
 * Exactly once: a report is its series, start and batch id. They are in the sorting key of a
 * ReplacingMergeTree that is read with FINAL, so a report that a client sends again counts once,
 * whichever server receives it, and however late. An append returns when ClickHouse has
 * acknowledged it. Nothing is spooled: while ClickHouse refuses, so does the store, and clients try
 * again.
 *
 * Cumulative columns become deltas against the last report of the series that *this* server saw. If
 * another server has taken a later one, there is nothing to subtract from: the report counts as a
 * first one.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_STORE_H
#define FIRN_SERVER_CLICKHOUSE_CH_STORE_H

#include "server/clickhouse/ch_client.h"
#include "server/persist/store.h"

struct ch_store_options {
	struct clickhouse_options clickhouse;
	int64_t retention_ns;				/* 0 = keep for ever */
	const struct store_tenant_limit *tenant_limits; /* copied; only times count */
	size_t tenant_limits_count;
	uint64_t snapshot_bytes; /* of memory that all snapshots may take; 0 = default */
	uint64_t dict_bytes;	 /* of memory for the numbering of stacks; 0 = default */
};

/* ERR_NOT_FOUND, ERR_UNSUPPORTED: the schema is not there, or newer; says what to run. */
MUST_USE int ch_store_open(const struct ch_store_options *options, struct store **ret,
			   struct err *err);

#endif
