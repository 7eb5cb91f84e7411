/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_replay - a thread that fills one memtable with what the log says.
 *
 * Looking stacks up is most of a replay's work, and memtables have nothing to do with each other:
 * while one is filled, who reads the log goes on with the next. What becomes of a report is decided
 * there, in the order of the log, and here batches are stored. They wait as they were judged; those
 * beyond a budget as they lie in the log, for that is small, and are decoded once more.
 *
 * One thread gives; between `wait` or `end` and the next `give` the memtable is its own.
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

/* Whatever waits is left out, for a store that will not open. */
void store_replay_cancel(struct store_replay *replay);

/* Waits and frees. False: the memtable became larger than bytes_max, and batches were left out. */
MUST_USE bool store_replay_end(struct store_replay *replay);

#endif
