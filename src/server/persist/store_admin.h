/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_admin - operations on a store besides appending and reading: deleting, compacting,
 * scrubbing. Thread-safe; a running store does the last two by itself (store_maintain.c).
 */
#ifndef FIRN_SERVER_PERSIST_STORE_ADMIN_H
#define FIRN_SERVER_PERSIST_STORE_ADMIN_H

#include "base/slice.h"
#include "server/persist/store.h"

struct store_delete {
	struct slice selector;	/* model/selector.h; of series, see tombstones.h */
	int64_t from_ns, to_ns; /* from <= start < to */
	const char *by;		/* whom the order came from, for the record */
	bool one_tenant;	/* only series of `tenant` */
	struct slice tenant;
};

/*
 * Deletes the reports that are stored now. Reports that arrive later are kept; a deleted report
 * that a client sends again within STORE_DEDUPE_NS counts as a duplicate. When it returns, queries
 * do not find the reports any more; compaction removes the bytes. ERR_INVALID: the selector is
 * malformed, or selects everything. ret_number names the tombstone.
 */
MUST_USE int store_delete(struct store *store, const struct store_delete *order,
			  uint64_t *ret_number, struct err *err);

/* The deletions on record, newest first; of one tenant, unless NULL. */
struct store_deleted {
	uint64_t number;
	char *selector, *by;
	int64_t from_ns, to_ns, created_ns;
	int64_t done_ns; /* 0: some part holds the bytes still */
};
struct store_deletes {
	struct store_deleted *items;
	size_t count;
};
void store_deletes(struct store *store, const struct slice *tenant, struct store_deletes *ret);
void store_deletes_free(struct store_deletes *deletes);

struct store_compacted {
	uint64_t jobs;
	uint64_t parts_in, parts_out;
	uint64_t bytes_in, bytes_out;
	uint64_t reports_deleted;
	uint64_t parts_damaged; /* found so, and set aside */
};

struct store_compact_options {
	bool all; /* windows that are not over too */
	void (*progress)(void *context, uint64_t rows_done, uint64_t rows_total); /* of a job */
	void *context;
};

/*
 * Compacts until nothing is left to do. `ret` counts what was done, also on failure. Reads and
 * appends go on beside it.
 */
MUST_USE int store_compact(struct store *store, const struct store_compact_options *options,
			   struct store_compacted *ret, struct err *err);

/*
 * Reads and checks the part that was not looked at for the longest time, unless that was less than
 * STORE_SCRUB_NS ago. A part found damaged is set aside. *ret_more: others are due too.
 */
#define STORE_SCRUB_NS (24 * 3600 * CLOCK_NS_PER_S)
MUST_USE int store_scrub(struct store *store, bool *ret_more, struct err *err);

/*
 * Counts the distinct stacks over all parts. Reads all dictionaries: a second for some ten million.
 * Unreadable parts are left out.
 */
MUST_USE int store_count_stacks(struct store *store, uint64_t *ret, struct err *err);

/* One label of series. */
struct store_label {
	char *name;
	uint64_t values;	/* different ones */
	uint64_t series;	/* different sets of labels that have it */
	uint64_t reports, rows; /* of all these */
	char *largest;		/* the value that has most rows, */
	uint64_t largest_rows;
};

struct store_labels {
	struct store_label *items; /* those with most values first */
	size_t count;
	uint64_t series; /* different sets of labels, also those without any */
};

/*
 * Reads the headers of all blocks: a second for some ten million reports. Unreadable parts are left
 * out. Free with store_labels_free.
 */
MUST_USE int store_count_labels(struct store *store, struct store_labels *ret, struct err *err);
void store_labels_free(struct store_labels *labels);

#endif
