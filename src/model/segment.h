/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment - the unit that a query reads: reports in blocks, in memory or encoded on disk.
 *
 * A segment is a memtable, a recording, or one level of a partition of a part
 * (docs/decisions/0005). Its dictionaries are in `view`: strings, labels, label sets, columns,
 * groups and series from the start; frames and nodes after segment_load_stacks. Its reports and
 * rows are read one block at a time; in a segment over plain tables, a block is a window on them.
 *
 * A row refers to its stack by a *slot*, a dense index for counters. segment_node maps a slot to a
 * node; in plain tables they are equal, in parts slots are ranks (frequent ones first).
 *
 * A segment answers only for reports whose start is in [from_ns, to_ns) and outside of its hole,
 * for which another segment answers. Blocks may hold other reports, too; readers skip them with
 * segment_answers_for. Together, the segments of a snapshot hold each report exactly once: raw, or
 * within one roll-up.
 *
 * segment_read leaves out deleted reports; zones may still count them.
 *
 * Thread-safe once made: many threads may read, each with its own buffer. Errors: ERR_CORRUPT,
 * ERR_IO (the owner sets the segment's part aside; the answer must say what is missing).
 */
#ifndef FIRN_MODEL_SEGMENT_H
#define FIRN_MODEL_SEGMENT_H

#include "base/err.h"
#include "model/tables.h"

enum segment_level {
	SEGMENT_RAW,
	SEGMENT_HOUR_SERIES, /* one report per series and hour */
	SEGMENT_HOUR_ALL,    /* one per hour of the whole partition; delta types only */
	SEGMENT_DAY_SERIES,
	SEGMENT_DAY_ALL,
	SEGMENT_TEN_SERIES, /* of ten minutes: for ranges that begin or end within an hour */
	SEGMENT_TEN_ALL,
	SEGMENT_LEVELS
};

/* Bounds of a block, known without reading it. Inclusive. */
struct segment_zone {
	uint32_t series_min, series_max;
	uint32_t reports;
	uint64_t rows;
	int64_t start_min_ns, start_max_ns;
	uint64_t bytes; /* stored, headers and rows; 0 in memory */
};

/* One report of a block. `row_first` and `value_first` are indexes into the block's arrays. */
struct segment_report {
	uint32_t series; /* 0 in the *_ALL levels, where it stands for the whole partition */
	uint32_t row_count;
	uint64_t row_first;
	uint64_t value_first;
	uint32_t total_first;	/* totals[total_first + column] */
	uint32_t reports_count; /* number of reports that it sums; 1 for raw ones */
	int64_t start_ns;
	int64_t duration_ns;   /* in roll-ups: the sum over their reports */
	int64_t end_ns;	       /* start + duration; in roll-ups: the latest end */
	uint64_t moment_first; /* index into the block's moments; with SEGMENT_MOMENTS */
	uint32_t moment_count; /* 0 if no times were stored, and for roll-ups */
};

/* Consecutive reports of one series. */
struct segment_run {
	uint32_t series, count;
	uint32_t first; /* index into the block's arrays by report */
	uint32_t times; /* index into the arrays of times, which reports may share */
	bool ordered;	/* true: no report starts or ends before its predecessor; false: unknown */
};

/*
 * The headers of a block's reports in columns, without their rows, for readers of very many
 * reports. The arrays may hold reports of other blocks, too.
 */
struct segment_heads {
	const struct segment_run *runs;
	uint32_t runs_count, reports_count;
	const int64_t *starts_ns, *durations_ns, *ends_ns; /* as of segment_report */
	int64_t longest_ns;				   /* no duration is longer */
	/* Indexed by report. */
	const uint32_t *row_counts;
	const int64_t *totals; /* totals[report * total_stride + column], */
	size_t total_stride;
	const uint32_t *total_firsts;	/* or, if not NULL, totals[total_firsts[report] + column] */
	const uint32_t *reports_counts; /* NULL: all are 1 */
};

struct segment_block {
	const struct segment_report *reports;
	uint32_t reports_count;
	const int64_t *totals;
	/* With rows only. Element i of a report's rows: slots[(row_first + i) * row_stride]. */
	const uint32_t *slots;
	const uint32_t *label_sets; /* as slots; NULL: none has sample labels */
	uint32_t row_stride;
	/*
	 * Value of row i in column c:
	 *   values[value_first + i * value_stride + c * column_stride]; NULL: all are 1.
	 * value_stride 0 stands for the number of columns of the report's group.
	 */
	const int64_t *values;
	uint64_t value_stride, column_stride;
	/*
	 * With SEGMENT_MOMENTS: the times of samples (model/tables.h), if they were stored; `row`
	 * counts from the report's first row. NULL if no report of the block has any; else each
	 * report's `moment_count` is the number of its samples with a time.
	 */
	const struct moment *moments;
	const struct trace_link *links;
	uint32_t links_count;
};

/* What to read; each includes the ones before it. */
enum segment_want { SEGMENT_HEADERS, SEGMENT_ROWS, SEGMENT_MOMENTS };

/* Memory into which blocks are decoded; starts zeroed, is reused, and grows to the largest block.
 */
struct segment_buffer {
	void *memory, *heads;
	size_t capacity, heads_capacity;
	void *decompressor;
	void (*free_decompressor)(void *decompressor);
	size_t decompressor_bytes; /* its memory, for those who bound theirs */
};
void segment_buffer_free(struct segment_buffer *buffer);

/* Returns memory of at least `bytes`; the buffer's former contents are lost. For segment_ops. */
void *segment_buffer_room(struct segment_buffer *buffer, size_t bytes);

struct segment;

struct segment_ops { /* for encoded segments */
	int (*load_stacks)(struct segment *segment, struct err *err);
	void (*drop_stacks)(struct segment *segment); /* may be NULL: stacks stay loaded */
	/* Decodes the block's reports into the buffer. */
	int (*read)(const struct segment *segment, uint32_t block, enum segment_want want,
		    struct segment_buffer *buffer, struct segment_block *ret, struct err *err);
	/* NULL: segment_read_heads makes them from the result of `read`. */
	int (*read_heads)(const struct segment *segment, uint32_t block,
			  struct segment_buffer *buffer, struct segment_heads *ret,
			  struct err *err);
};

/* Deleted reports that the segment still holds: readers do not see them. */
struct segment_deletion {
	const uint8_t *series; /* by series: not 0 = the deletion applies to it */
	int64_t from_ns, to_ns;
};

/* A report of plain tables that sums several reports. */
struct segment_sum {
	uint32_t reports_count;
	int64_t end_ns; /* the latest end; the report's duration is the sum of theirs */
};

/* Times from_ns .. to_ns - 1; empty if they are equal. */
struct segment_hole {
	int64_t from_ns, to_ns;
};

struct segment {
	struct tables_view view; /* with reports, rows, values, totals only for plain tables */
	const struct segment_ops *ops; /* NULL: plain tables */
	void *owner;		       /* for the use of ops */
	enum segment_level level;
	int64_t from_ns, to_ns;
	struct segment_hole hole;		  /* in [from_ns, to_ns) */
	const struct segment_deletion *deletions; /* for raw levels, and for plain tables */
	uint32_t deletions_count;
	const struct segment_sum *sums;	  /* by report of plain tables; NULL: no report is a sum */
	const struct segment_zone *zones; /* by block; NULL: plain tables */
	uint32_t blocks_count;
	uint32_t slots_count; /* number of counters that a reader needs */
	size_t stacks_bytes;  /* approximate memory of its loaded stacks; 0 = none of its own */
	const uint32_t *node_of_slot; /* NULL: a slot is a node */
	bool has_sample_labels;	      /* true if some row has sample labels */
	bool has_moments;	      /* true if some report may have times of samples */
	uint64_t id; /* of (part, partition): equal for levels that share dictionaries */
	uint64_t partition_key_hash; /* segments with equal keys likely share stacks, and are merged
					first; 0 = unknown */
	_Atomic bool unreadable; /* set by a reader that failed: the answer continues without it */
};

/* Plain tables as a segment; the view is borrowed. */
void segment_of_tables(struct segment *segment, const struct tables_view *view);

/* Adds frames and nodes to the view. May be called any number of times, from any thread. */
int segment_load_stacks(struct segment *segment, struct err *err);

/*
 * Releases frames and nodes: their memory may be freed, and the view is as it was before they were
 * loaded. One thread at a time per segment.
 */
void segment_drop_stacks(struct segment *segment);

struct segment_zone segment_zone(const struct segment *segment, uint32_t block);

/* The arrays of `ret` are valid until the buffer is used again or the segment is released. */
int segment_read(const struct segment *segment, uint32_t block, enum segment_want want,
		 struct segment_buffer *buffer, struct segment_block *ret, struct err *err);

/* Like segment_read with SEGMENT_HEADERS. */
int segment_read_heads(const struct segment *segment, uint32_t block, struct segment_buffer *buffer,
		       struct segment_heads *ret, struct err *err);

static inline bool segment_in_hole(const struct segment *segment, int64_t start_ns)
{
	return start_ns >= segment->hole.from_ns && start_ns < segment->hole.to_ns;
}

/* True if the segment answers for reports that start then. */
static inline bool segment_answers_for(const struct segment *segment, int64_t start_ns)
{
	return start_ns >= segment->from_ns && start_ns < segment->to_ns &&
	       !segment_in_hole(segment, start_ns);
}

/* segment_hole_has: true if all times from first to last, inclusive, are in the hole;
 * segment_hole_meets: if any is.
 */
static inline bool segment_hole_has(const struct segment *segment, int64_t first_ns,
				    int64_t last_ns)
{
	return segment_in_hole(segment, first_ns) && segment_in_hole(segment, last_ns);
}

static inline bool segment_hole_meets(const struct segment *segment, int64_t first_ns,
				      int64_t last_ns)
{
	return first_ns < segment->hole.to_ns && last_ns >= segment->hole.from_ns &&
	       segment->hole.from_ns < segment->hole.to_ns;
}

static inline uint32_t segment_node(const struct segment *segment, uint32_t slot)
{
	return segment->node_of_slot ? segment->node_of_slot[slot] : slot;
}

#endif
