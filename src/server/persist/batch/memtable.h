/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memtable - the newest reports, in memory: what the log of one generation means.
 *
 * Applying a batch is deterministic: the batch, the times of its receipt and the ledger say what
 * is stored, so replaying the log gives the same tables. Writers hold the store's lock; readers
 * take a view under it and read on without (model/tables.h). Counted references keep a memtable
 * alive while a snapshot looks at it.
 */
#ifndef FIRN_SERVER_PERSIST_BATCH_MEMTABLE_H
#define FIRN_SERVER_PERSIST_BATCH_MEMTABLE_H

#include "model/stack_index.h"
#include "server/persist/batch/ledger.h"
#include "server/persist/batch/append.h"
#include "server/persist/log/tables_codec.h"
#include "server/persist/log/wal.h"

#define MEMTABLE_ROW_NAMES 64u

struct memtable {
	struct tables tables;
	struct stack_index index; /* of them, until its generation ends */
	uint64_t generation;
	uint32_t references; /* guarded by the store's lock */
	int64_t created_ns;  /* receipt of its first batch; 0 = none yet */
	int64_t newest_receipt_ns;
	int64_t min_start_ns, max_start_ns; /* of its reports */
	/* Names of labels that rows carry, as texts of the tables; with one more, any name may be.
	 */
	uint32_t row_names[MEMTABLE_ROW_NAMES];
	uint32_t row_names_count;
	/* Set when its generation ends: */
	bool ended;
	struct wal_position end; /* last record of its log */
	struct strbuf state;	 /* the captured ledger */
	/* Damaged segments of its log, to be kept when the others go. */
	struct layout_name *damaged;
	size_t damaged_count, damaged_capacity;
};

/* Which reports are accepted; logged with the batch, so that a replay decides alike. */
struct memtable_window {
	int64_t received_ns;
	int64_t from_ns, to_ns; /* of report starts, both inclusive */
};

struct memtable *memtable_new(uint64_t generation);
void memtable_free(struct memtable *memtable);
size_t memtable_bytes(const struct memtable *memtable);
bool memtable_rows_may_carry(const struct memtable *memtable, struct slice name);
void memtable_check(const struct memtable *memtable); /* aborts when it contradicts itself */
void memtable_end(struct memtable *memtable); /* its generation has: nothing is added any more */

/*
 * Applies a checked batch (tables_check). The tables never overflow: the store ends a generation
 * long before (STORE_SEAL_BYTES_MAX, STORE_BATCH_BYTES_MAX).
 */
void memtable_apply(struct memtable *memtable, struct ledger *ledger,
		    const struct tables_view *batch, const struct memtable_window *window,
		    struct append_result *ret);

enum memtable_outcome { MEMTABLE_REFUSED, MEMTABLE_AS_IS, MEMTABLE_CONVERTED };

/* The decision on each report of a batch. */
struct memtable_verdict {
	struct memtable_window window;
	enum memtable_outcome *outcomes; /* freed by who asked */
	bool needs_ledger;		 /* when it is stored, too */
};

/*
 * The two halves of memtable_apply, for replays: judging happens in the order of the log and
 * updates the ledger; storing happens in the order of one memtable, and needs the ledger (else
 * NULL) only if the verdict says so. Both add to *result.
 */
struct memtable_verdict memtable_judge(struct memtable *memtable, struct ledger *ledger,
				       const struct tables_view *batch,
				       const struct memtable_window *window,
				       struct append_result *result);
void memtable_store(struct memtable *memtable, struct ledger *ledger,
		    const struct tables_view *batch, const struct memtable_verdict *verdict,
		    struct append_result *result);

/* A batch with its window, as the log keeps it (docs/formats/wal.md). */
void memtable_encode_batch(const struct tables_view *batch, const struct memtable_window *window,
			   struct strbuf *out);
MUST_USE int memtable_decode_batch(struct slice payload, struct memtable_window *ret_window,
				   struct tables_image *ret, struct err *err);

#endif
