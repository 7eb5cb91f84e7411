/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger - what must be remembered beyond a memtable: the dedupe window and the baselines.
 *
 * It is a function of the log alone. When a generation ends, its state is written to
 * `state-<generation>.firn`, which the manifest edit that adds the part names, too; recovery loads
 * it and replays the log after it. The file, little-endian:
 *
 *   0   8  magic "FIRNSTA\0"
 *   8   4  version, 1
 *   12  4  CRC32C of the rest of the file
 *   16  8  generation
 *   24  8  raw bytes
 *   32     zstd: the dedupe entries, then the baselines
 *
 * One thread at a time.
 */
#ifndef FIRN_SERVER_PERSIST_BATCH_LEDGER_H
#define FIRN_SERVER_PERSIST_BATCH_LEDGER_H

#include "base/err.h"
#include "server/persist/batch/baseline.h"
#include "server/persist/batch/dedupe.h"

#define LEDGER_FILE_BYTES_MAX ((uint64_t)2 << 30)
#define LEDGER_RAW_BYTES_MAX ((uint64_t)2 << 30)

struct ledger {
	struct dedupe dedupe;
	struct baselines baselines;
};

void ledger_fini(struct ledger *ledger);
void ledger_check(const struct ledger *ledger); /* aborts when it contradicts itself */

/* Expires what is old and appends the rest, raw: quick, for the moment when a generation ends. */
void ledger_capture(struct ledger *ledger, int64_t now_ns, struct strbuf *out);

/* The state file of captured bytes. */
void ledger_encode_file(uint64_t generation, struct slice captured, struct strbuf *out);

/* ERR_CORRUPT says what is wrong; ret is then untouched. */
MUST_USE int ledger_decode_file(struct slice bytes, uint64_t generation, struct ledger *ret,
				struct err *err);

#endif
