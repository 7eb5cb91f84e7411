/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_hash - a hash of the content of rows, independent of ids: the identity of reports whose
 * sender gave none. Uses hash_stable only, so it is the same after a restart.
 *
 * Hashes of strings, frames, nodes and label sets are kept per table, each computed once from
 * those before it. One thread at a time.
 */
#ifndef FIRN_SERVER_INGEST_CONTENT_HASH_H
#define FIRN_SERVER_INGEST_CONTENT_HASH_H

#include "codec/wire/column.h"
#include "model/tables.h"

struct content_hash {
	struct budget *budget; /* pays; NULL: nobody */
	struct tables_view view;
	COLUMN(uint64_t) strings, frames, nodes, label_sets;
};

void content_hash_free(struct content_hash *hash);
void content_hash_begin(struct content_hash *hash); /* other tables, or the same ones reset */

/* Catches up with what the tables hold now, before rows are hashed. False: that is not paid for. */
bool content_hash_update(struct content_hash *hash, const struct tables *tables);

uint64_t content_hash_row(const struct content_hash *hash, uint64_t seed, const struct row *row,
			  const int64_t *values, uint32_t columns);

#endif
