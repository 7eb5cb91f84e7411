/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - the database inside the server: acknowledged means durable, then visible at once.
 *
 *   store_append -> WAL (group commit, fdatasync) -> memtable -> part file -> compaction, retention
 *   store_snapshot -> segments (memtables and parts) that overlap a time range
 *
 * One process owns a directory (lock file). All functions are thread-safe unless said. All I/O
 * goes through the vfs given at open. An error of write or sync poisons the store: appends fail
 * with ERR_READ_ONLY from then on, reads go on, and only a new store_open recovers.
 */
#ifndef FIRN_SERVER_PERSIST_STORE_H
#define FIRN_SERVER_PERSIST_STORE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/segment.h"
#include "model/selector.h"
#include "server/persist/batch/append.h"

struct store;
struct vfs;    /* persist/disk/vfs.h */
struct bucket; /* base/storage/bucket.h */

/* Limits of one tenant, besides those of the whole store. */
struct store_tenant_limit {
	const char *tenant;
	int64_t retention_ns; /* 0 = that of the store */
	uint64_t bytes;	      /* of its share of parts; 0 = no limit */
};

struct store_options {
	const char *path;      /* created if missing (one level) */
	const struct vfs *vfs; /* NULL = the operating system's */
	clock_f *clock;	       /* NULL = clock_real_ns */
	void *clock_context;
	int64_t retention_ns;				/* 0 = keep for ever */
	uint64_t retention_bytes;			/* 0 = no limit */
	const struct store_tenant_limit *tenant_limits; /* copied */
	size_t tenant_limits_count;
	int64_t moments_ns;	/* times of samples leave with compaction then; 0 = with the rest */
	uint64_t reserve_bytes; /* appends stop while less is free on the disk; 0 = never */
	uint64_t seal_bytes;	/* memtable size that makes it a part; 0 = default */
	int64_t seal_age_ns;	/* likewise its age; 0 = default */
	uint64_t segment_bytes; /* of a file of the log; 0 = default */
	size_t compact_bytes;	/* memory that compacting may take; 0 = default */
	uint64_t cache_bytes;	/* decoded parts kept in memory; 0 = default */
	struct bucket *bucket;	/* where parts go besides; or NULL. Stays the caller's, and must
				   outlive the store, which cancels it when it closes */
	const char *bucket_url; /* its name, for messages and the file BUCKET */
	bool bucket_single_writer; /* the caller sees to it that no one else writes there */
	bool (*is_stopping)(void); /* looked at while the log is replayed; NULL = never */
	bool read_only; /* for verify and stat: changes nothing on disk, takes no exclusive lock */
	bool no_background; /* tests: nothing happens but in calls (store_tick does the work) */
};

/*
 * Errors say which file and what to do: held by pid N, not a firn store, newer format, ...
 * ERR_CANCELLED once is_stopping says so; the next open begins anew.
 */
MUST_USE int store_open(const struct store_options *options, struct store **ret, struct err *err);

/*
 * The storage directory of a server whose profiles are elsewhere, for the other files that it keeps
 * there: made if missing, and locked against other servers until it is closed.
 */
struct store_folder;
MUST_USE int store_folder_open(const char *path, struct store_folder **ret, struct err *err);
void store_folder_close(struct store_folder *folder); /* accepts NULL */

/*
 * Calls that wait for another system end by this time (monotonic), with ERR_CANCELLED. Any thread.
 */
void store_end_by(struct store *store, int64_t at_ns);

/* Flushes nothing (the WAL has it all); waits for running appends. Accepts NULL. */
void store_close(struct store *store);

/*
 * Makes the batch durable and visible; returns after fdatasync. Columns of COLUMN_CUMULATIVE
 * become COLUMN_DELTA here, against the series' previous report (resets detected; the first
 * report of a series is only a baseline). May be called from many threads: they share syncs.
 * ERR_NO_MEMORY when more is in flight than allowed, ERR_NO_SPACE, ERR_READ_ONLY from a fault on:
 * the client should retry later. ERR_INVALID when the batch can never be taken.
 */
MUST_USE int store_append(struct store *store, const struct tables_view *batch,
			  struct append_result *ret, struct err *err);

/*
 * 0, or why appends are refused at the moment: a fault, or no room on the disk. Of a store that
 * only reads: 0 once it has read everything that it follows. Cheap.
 */
MUST_USE int store_takes_appends(struct store *store, struct err *err);

/* How much of the reports will be read: the rest may be missing or undefined. */
enum store_reads {
	STORE_ROWS,   /* all of it */
	STORE_TOTALS, /* totals; rows only where their labels decide what counts */
	STORE_LISTS,  /* that a series has reports, the newest start, and labels of rows */
};

/* The use that is made of a snapshot, which leaves out parts that cannot matter for it. */
struct store_query {
	int64_t from_ns, to_ns;		 /* a report is in when from <= start < to */
	const struct selector *selector; /* NULL: everything */
	const struct slice *names;	 /* label names that group the answer */
	size_t names_count;
	bool sums_only;	 /* sums per stack over the whole range: roll-ups may answer */
	int64_t step_ns; /* or sums per step (0 = none): roll-ups where steps are whole ones */
	bool by_series;	 /* the answer tells series apart, named or not */
	enum store_reads reads;
	bool one_tenant; /* only what is `tenant`'s: nothing else is in the snapshot's blocks */
	struct slice tenant;
	/* For stores that another system keeps: how long the answer is waited for (query.h). */
	int64_t deadline_at_ns;
	const _Atomic bool *cancelled, *stopped;
};

/*
 * A consistent set of segments; together they hold each report of the range exactly once, and may
 * hold others (model/segment.h). Pinned until released: parts dropped meanwhile stay readable.
 */
struct store_snapshot {
	struct segment *segments;
	size_t count;
	size_t parts_unreadable; /* quarantined: answers must say so */
	/*
	 * Equal versions: the same segments, all of parts, which never change. 0: equal to none,
	 * because memtables, deletions or unreadable parts are involved.
	 */
	uint64_t version;
	void *pins;
};

/* The query's texts and selector need not outlive the call. */
MUST_USE int store_snapshot(struct store *store, const struct store_query *query,
			    struct store_snapshot *ret, struct err *err);
void store_snapshot_release(struct store *store, struct store_snapshot *snapshot);

/* Numbers for `firn store stat` and /metrics. */
struct store_stat {
	uint64_t rows, reports, series,
		stacks; /* series: distinct over all segments (a while ago, where counting takes
			   long); stacks: the sum of all segments' */
	uint64_t parts, parts_quarantined, memtables;
	uint64_t bytes_total, bytes_wal, bytes_samples, bytes_stacks, bytes_symbols; /* on disk */
	uint64_t bytes_rollups, bytes_moments; /* likewise; sums by time, times of samples */
	int64_t oldest_ns, newest_ns;	       /* report starts; 0 when empty */
	bool poisoned;
	bool has_stacks_distinct; /* store_stat leaves it to its caller (store_count_stacks) */
	uint64_t stacks_distinct;
};
MUST_USE int store_stat(struct store *store, struct store_stat *ret, struct err *err);

/* How far the bucket is behind the store; or, where the store follows it, behind its writer. */
struct store_bucket_stat {
	bool on;	      /* the store has one */
	bool follows;	      /* it only reads there (store_follow.h) */
	bool fenced;	      /* another process writes there: this store takes nothing any more */
	int64_t behind_ns;    /* age of the oldest acknowledged report that it lacks; 0 = none.
				 `follows`: age of the time until which all is there */
	int64_t looked_at_ns; /* `follows`: when it was last seen to be of the newest state */
	int64_t saved_at_ns;  /* when it was last brought up to date; 0 = never */
	uint64_t manifest;    /* number of the newest there; 0 = none */
	uint64_t parts;	      /* of the store's, those in it */
	char store[33];	      /* the store's name in the bucket */
	char error[ERR_MESSAGE_BYTES]; /* why the last attempt failed; "" = it did not */
};
void store_bucket_stat(struct store *store, struct store_bucket_stat *ret);

/* The state of a store whose profiles are in another system. */
struct store_remote_stat {
	const char *kind;	       /* "ClickHouse"; NULL: they are on this server's disk */
	char error[ERR_MESSAGE_BYTES]; /* why it does not answer; "" = it does */
};
void store_remote_stat(struct store *store, struct store_remote_stat *ret);

/* Reads and checks every byte below path; appends one line per problem to `report`. 0 = clean. */
MUST_USE int store_verify(const char *path, const struct vfs *vfs, struct strbuf *report,
			  struct err *err);

/* Turns the memtable into a part now, and applies retention. For tests, shutdown and admin. */
MUST_USE int store_seal(struct store *store, struct err *err);
MUST_USE int store_tick(struct store *store, struct err *err);

#endif
