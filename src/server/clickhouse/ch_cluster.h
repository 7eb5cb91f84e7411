/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_cluster - tables in the shards of a cluster, each shard with its replicas.
 *
 * On one server, or in a database that replicates by itself, a table is just `firn_x`. In a cluster
 * `firn_x` is a Distributed table over `firn_x_local` of each shard; most statements need not know.
 * Those that change tables, or read system tables of all servers, do.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_CLUSTER_H
#define FIRN_SERVER_CLICKHOUSE_CH_CLUSTER_H

#include "server/clickhouse/ch_client.h"

#define CH_CLUSTER_NAME_MAX 64u

struct ch_cluster {
	char name[CH_CLUSTER_NAME_MAX + 1]; /* "": none */
};

/* Letters, digits and -_. alone: no name needs quoting in a statement. */
MUST_USE int ch_cluster_named(const char *name, struct ch_cluster *ret, struct err *err);

/* The one that the database's tables are in. */
MUST_USE int ch_cluster_find(struct ch_client *client, struct ch_cluster *ret, struct err *err);

/* For ALTER TABLE: the table of every shard. */
void ch_cluster_add_table(const struct ch_cluster *cluster, const char *table, struct strbuf *sql);

/* For FROM: a table of the database `system`, of one replica of each shard. */
void ch_cluster_add_system(const struct ch_cluster *cluster, const char *table, struct strbuf *sql);

#endif
