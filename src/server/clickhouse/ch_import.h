/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ch_import - copies every report of a store on disk to another store, as if a client sent it: how
 * profiles move into ClickHouse. Deleted reports and times of samples are not copied.
 *
 * A report's batch id is a hash of its content, so copying again, after a failure or from a store
 * that was compacted meanwhile, stores nothing twice.
 */
#ifndef FIRN_SERVER_CLICKHOUSE_CH_IMPORT_H
#define FIRN_SERVER_CLICKHOUSE_CH_IMPORT_H

#include "server/persist/store.h"

struct ch_import_result {
	uint64_t reports, rows; /* that the other store has acknowledged */
	uint64_t refused;	/* older than what it keeps */
};

/* Blocks; one thread. ERR_CORRUPT: a part cannot be read; all others are copied. */
MUST_USE int ch_import(struct store *from, struct store *to, struct ch_import_result *ret,
		       struct err *err);

#endif
