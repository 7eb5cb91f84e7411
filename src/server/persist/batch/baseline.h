/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline - turns amounts since the start of a program into amounts since the last report.
 *
 * Per series the raw values of its newest report are kept, by stack. The next report of the
 * series stores what was added since:
 *   - a value that went down was reset by a restart of the program: all of it is new;
 *   - so is every value of a column whose total went down, as a restart shows best there;
 *   - the first report of a series is only a baseline, as is one after more than 24 h;
 *   - a report that is not newer than the baseline has no place to count from.
 * A report with nothing to count from is kept as a snapshot, of a type of its own, unless its
 * duration says when counting began: it began at zero then (memtable.c).
 *
 * Deterministic, as dedupe.h is, and bounded by BASELINE_BYTES_MAX: the series that were not seen
 * for longest are forgotten, which a metric counts, and their next report is a first one. One
 * thread at a time.
 */
#ifndef FIRN_SERVER_PERSIST_BATCH_BASELINE_H
#define FIRN_SERVER_PERSIST_BATCH_BASELINE_H

#include "base/idmap.h"
#include "base/strbuf.h"
#include "server/persist/disk/byte_reader.h"
#include "model/identity.h"

#define BASELINE_BYTES_MAX ((size_t)256 << 20)

/* Newest raw values of one series, ascending by row. */
struct baseline {
	struct identity series;
	int64_t start_ns;
	int64_t received_ns;
	uint32_t columns; /* cumulative ones */
	uint32_t rows_count;
	struct identity *rows; /* of (stack, sample labels) */
	int64_t *values;       /* rows_count x columns */
	bool elsewhere;	       /* another server took a later report: nothing counts from here */
};

struct baselines {
	struct baseline *items;
	uint32_t count, capacity;
	struct idmap map;
	size_t bytes;
	uint64_t forgotten;
};

enum baseline_outcome { BASELINE_FIRST, BASELINE_DELTA, BASELINE_LATE };

void baselines_fini(struct baselines *baselines);
void baselines_check(const struct baselines *baselines); /* aborts when it contradicts itself */

/*
 * `rows` (distinct, ascending) and `values` are raw; on BASELINE_DELTA the values become deltas and
 * *ret_elapsed_ns the time since the previous report. Otherwise the values must not be stored.
 */
enum baseline_outcome baselines_apply(struct baselines *baselines, struct identity series,
				      int64_t start_ns, int64_t received_ns, uint32_t columns,
				      const struct identity *rows, uint32_t rows_count,
				      int64_t *values, int64_t *ret_elapsed_ns);

/*
 * Another server has taken a report of the series that starts at `at_ns`. Unless ours is as new,
 * the next report only becomes the baseline (BASELINE_LATE), also where it says since when it
 * counts: what was added since then may be counted there.
 */
void baselines_taken_elsewhere(struct baselines *baselines, struct identity series, int64_t at_ns,
			       uint32_t columns);

void baselines_expire(struct baselines *baselines, int64_t now_ns);

void baselines_encode(const struct baselines *baselines, struct strbuf *out);
MUST_USE bool baselines_decode(struct baselines *baselines, struct byte_reader *in);

#endif
