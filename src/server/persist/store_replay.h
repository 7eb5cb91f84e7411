/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_replay - a thread that fills one memtable from the log.
 *
 * Looking up stacks is most of a replay's work, and memtables are independent: while this thread
 * fills one, the reader of the log continues with the next. The reader judges reports in the order
 * of the log; this thread stores batches. Batches wait decoded up to a budget; beyond it they wait
 * as payloads, which are small, and are decoded once more.
 *
 * One thread calls these; between `wait` or `end` and the next `give` it owns the memtable.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_REPLAY_H
#define FIRN_SERVER_PERSIST_STORE_REPLAY_H

#include "server/persist/batch/memtable.h"

struct store_replay;

struct store_replay *store_replay_new(struct memtable *memtable, size_t bytes_max);

/* Keeps the bytes that payloads lie in, as long as it needs them. */
void store_replay_keep(struct store_replay *replay, struct strbuf *bytes);

/* Takes the batch, which is what the payload says, and the verdict's memory. */
void store_replay_give(struct store_replay *replay, struct slice payload,
		       struct tables_image *batch, const struct memtable_verdict *verdict);

/* Until all that was given is stored. */
void store_replay_wait(struct store_replay *replay);

/* Drops all waiting batches, for a store that fails to open. */
void store_replay_cancel(struct store_replay *replay);

/* Waits and frees. False: the memtable became larger than bytes_max, and batches were left out. */
MUST_USE bool store_replay_end(struct store_replay *replay);

#endif
