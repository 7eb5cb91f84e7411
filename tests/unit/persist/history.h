/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history - a naive model of a store: every report as text, in a list.
 *
 * Reports are random (by the seed) in series, time, stacks, sample labels and values; three groups:
 * on_cpu (delta), alloc (delta, two columns), heap (gauge, two columns). Checks compare what the
 * store answers with the list: all reports one by one, or sums with whatever levels the store
 * chooses. They fail the test with the first difference.
 */
#ifndef FIRN_TESTS_PERSIST_HISTORY_H
#define FIRN_TESTS_PERSIST_HISTORY_H

#include "server/persist/store_admin.h"

#define HISTORY_COLUMNS_MAX 2
#define HISTORY_ROWS_MAX 7

struct history_row {
	char stack[64], label[16];
	int64_t values[HISTORY_COLUMNS_MAX];
};

enum history_fate {
	HISTORY_STORED,	 /* acknowledged: must be there */
	HISTORY_UNKNOWN, /* the append failed: may be there */
	HISTORY_DELETED, /* acknowledged deletion: must not be there */
	HISTORY_DOOMED	 /* a deletion failed: may be there */
};

struct history_report {
	uint32_t group, comm, region;
	int64_t start_ns, duration_ns;
	uint32_t rows_count;
	struct history_row rows[HISTORY_ROWS_MAX];
	enum history_fate fate;
};

struct history {
	uint64_t random;
	uint32_t depth_max; /* of stacks, whose frames are of four functions */
	struct history_report *reports;
	size_t count, capacity;
	uint64_t rollups_seen; /* segments of other levels than raw that checks have met */
	uint64_t raw_seen;
	int64_t forgotten_before_ns; /* retention may have taken what starts before */
	/*
	 * With a disk that lies, reports may be missing, and come back after a deletion whose
	 * record was lost, as long as somebody is told; what comes out must be what went in.
	 */
	bool disk_lies;
	uint64_t missing, told; /* by the last history_check: reports; parts and blocks */
};

void history_init(struct history *history, uint64_t seed);
void history_free(struct history *history);
uint32_t history_dice(struct history *history, uint32_t sides);

/* Appends `count` reports that start in [from, to) as one batch. Returns what store_append does. */
int history_append(struct history *history, struct store *store, uint32_t count, int64_t from_ns,
		   int64_t to_ns, struct err *err);

/* One of several kinds of deletion, of [from, to). */
#define HISTORY_DELETES 5
int history_delete(struct history *history, struct store *store, uint32_t kind, int64_t from_ns,
		   int64_t to_ns, struct err *err);

/* Every report, as it was. */
void history_check(struct history *history, struct store *store);

/* Sums per stack of the reports that start in [from, to), by series or by group. */
void history_check_sums(struct history *history, struct store *store, int64_t from_ns,
			int64_t to_ns, bool by_series);

#endif
