/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_store_int - what the files of ch_store share.
 *
 * `lock` guards the queue of appends, `flushing`, and the status. The thread that flushes owns the
 * dictionary and the ledger, without the lock.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_STORE_INT_H
#define FIRN_SERVER_CLICKHOUSE_CH_STORE_INT_H

#include "base/budget.h"
#include "base/lock.h"
#include "base/metrics.h"
#include "server/clickhouse/ch_cluster.h"
#include "server/clickhouse/ch_dict.h"
#include "server/clickhouse/ch_store.h"
#include "server/persist/batch/ledger.h"
#include "server/persist/store_engine.h"

#define CH_READ_NS (60 * CLOCK_NS_PER_S)
#define CH_INSERT_NS (30 * CLOCK_NS_PER_S)
#define CH_IDS_MAX 8000u /* numbers in a statement: ClickHouse parses 256 KiB by default */
#define CH_DAY_NS (86400 * CLOCK_NS_PER_S)

struct ch_pending;
struct ch_lexicons; /* ch_lexicon.h */

struct ch_tenant {
	char *name;
	int64_t retention_ns;
};

struct ch_store {
	struct store base;
	struct ch_client *client;
	struct ch_cluster cluster; /* that has the tables */
	int64_t retention_ns;
	struct ch_tenant *tenants;
	size_t tenants_count;
	uint64_t dict_bytes;
	struct budget memory; /* of all snapshots together */
	struct ch_lexicons *lexicons;

	struct lock lock;
	struct lock_condition changed;
	struct ch_pending *queue, **queue_end;
	bool flushing;
	size_t in_flight_bytes;
	struct err error;    /* of the last statement */
	int64_t spoke_at_ns; /* monotonic: when ClickHouse answered last, or was asked in vain */
	struct store_stat stat;
	int64_t stat_at_ns; /* monotonic; 0 = never taken */

	struct ch_dict *dict; /* NULL: the next flush begins one */
	struct ledger ledger;
	int64_t expired_at_ns; /* when the ledger was last rid of what is old */
	int64_t dropped_at_ns; /* and ClickHouse, where firn does that (ch_retention.h) */
};

extern struct metric ch_flushes, ch_flush_errors, ch_flush_seconds, ch_rows_inserted, ch_reads,
	ch_read_errors, ch_read_bytes, ch_up, ch_unreadable, ch_summed_snapshots, ch_raw_snapshots;

static inline struct ch_store *ch_store_of(struct store *store)
{
	return (struct ch_store *)store;
}

/* Records the result of a statement for the status, and returns `rc`. */
int ch_store_note(struct ch_store *store, int rc, const struct err *err);

/* ch_read, counted and remembered. */
MUST_USE int ch_store_read(struct ch_store *store, const struct strbuf *sql, uint64_t bytes_max,
			   struct strbuf *ret, struct err *err);

/* The numbers of a row, each of 64 bits. */
MUST_USE int ch_store_numbers(struct ch_store *store, const struct strbuf *sql, uint64_t *ret,
			      size_t count, struct err *err);

/* The same for a query: within its deadline, and until nobody waits for it. */
MUST_USE int ch_store_ask(struct ch_store *store, const struct store_query *query,
			  const struct strbuf *sql, struct strbuf *ret, struct err *err);

/* The most bytes that an answer may have: the memory left for snapshots. */
uint64_t ch_store_bytes_left(const struct ch_store *store);

int64_t ch_store_retention_ns(const struct ch_store *store, struct slice tenant); /* 0: for ever */

/* ch_series.c */

/* A series that ClickHouse has reports of, in the catalogue's tables. */
struct ch_series {
	uint64_t id;
	uint32_t series;  /* of the catalogue's tables */
	uint32_t service; /* string id there */
	bool labelled;	  /* rows of it carry labels, which a selector may mean too */
};

struct ch_catalogue {
	struct tables tables;
	struct ch_series *items;
	uint32_t count, capacity;
	struct idmap map; /* by id */
};

/* Which series are wanted: the tenant and the days. */
struct ch_wanted {
	bool one_tenant;
	struct slice tenant;
	int64_t from_ns, to_ns;
	const struct selector *selector; /* NULL: all */
	bool exactly; /* as an order to delete means it (tombstones.h); else whatever may match */
};

/* The catalogue is valid, and to be freed, also after a failure. */
MUST_USE int ch_catalogue_read(struct ch_store *store, const struct store_query *query,
			       const struct ch_wanted *wanted, struct ch_catalogue *ret,
			       struct err *err);
void ch_catalogue_init(struct ch_catalogue *catalogue);
int ch_catalogue_take(struct ch_catalogue *catalogue, const struct ch_wanted *wanted,
		      struct slice rows, struct err *err);
void ch_catalogue_free(struct ch_catalogue *catalogue);
const struct ch_series *ch_catalogue_find(const struct ch_catalogue *catalogue, uint64_t id);

/* The beginning of every WHERE: whose it is, and the time of reports. */
void ch_add_where(struct strbuf *sql, const struct ch_wanted *wanted);

/* ch_append.c */
int ch_append(struct store *store, const struct tables_view *batch, struct append_result *ret,
	      struct err *err);

/* ch_snapshot.c */
int ch_snapshot(struct store *store, const struct store_query *query, struct store_snapshot *ret,
		struct err *err);
void ch_snapshot_release(struct store *store, struct store_snapshot *snapshot);

/* ch_delete.c */
int ch_delete_reports(struct store *store, const struct store_delete *order, uint64_t *ret_number,
		      struct err *err);
void ch_deletes(struct store *store, const struct slice *tenant, struct store_deletes *ret);

#endif
