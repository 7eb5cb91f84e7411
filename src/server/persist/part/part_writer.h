/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_writer - writes a part in bounded memory, partition by partition, each report once.
 *
 * Memory: one block, the block index, and the caller's dictionary. The file has a temporary name
 * until part_writer_commit has made it durable (docs/formats/part.md). One thread. Errors: of the
 * vfs (ERR_IO, ERR_NO_SPACE); after one, only part_writer_abort is allowed.
 */
#ifndef FIRN_SERVER_PERSIST_PART_PART_WRITER_H
#define FIRN_SERVER_PERSIST_PART_PART_WRITER_H

#include "model/segment.h"
#include "server/persist/disk/throttle.h"
#include "server/persist/part/part.h"
#include "server/persist/part/part_key.h"

struct part_writer;

/*
 * Dictionaries of a partition: one group; series sorted by labels; nodes depth-first (a subtree is
 * an interval of ids); everything used, nothing twice. rows_of_node[node] ranks the stacks; nodes
 * with 0 rows get no rank. Borrowed until part_writer_end_partition.
 */
struct part_dictionary {
	struct part_key key;
	const struct tables_view *view; /* reports and rows are not looked at */
	const uint64_t *rows_of_node;
};

struct part_report {
	uint32_t series;
	uint32_t row_count;
	int64_t start_ns, duration_ns;
	int64_t end_ns;		      /* of roll-ups, else start + duration */
	uint32_t reports_count;	      /* 1 for raw ones */
	const uint32_t *nodes;	      /* any order, repeats allowed */
	const uint32_t *label_sets;   /* NULL: none */
	const int64_t *values;	      /* row by row, `columns` each */
	const struct moment *moments; /* of raw ones; see model/tables.h */
	uint32_t moment_count;
	const struct trace_link *links; /* that those name */
};

/* PART_THOROUGH: a tenth smaller, but dictionaries take ten times as long; for parts that stay. */
enum part_effort { PART_QUICK, PART_THOROUGH };

/* The throttle is borrowed until the end, and may be NULL: ERR_CANCELLED once it is stopped. */
MUST_USE int part_writer_open(const struct vfs *vfs, const char *dir, uint64_t number,
			      enum part_effort effort, struct throttle *throttle,
			      struct part_writer **ret, struct err *err);
MUST_USE int part_writer_begin_partition(struct part_writer *writer,
					 const struct part_dictionary *dictionary, struct err *err);

/* Levels ascend; within one, reports come ordered by (series, start). Raw must come first. */
MUST_USE int part_writer_report(struct part_writer *writer, enum segment_level level,
				const struct part_report *report, struct err *err);
MUST_USE int part_writer_end_partition(struct part_writer *writer, struct err *err);

/* Synced, renamed, directory synced. Frees the writer, whatever it returns. */
MUST_USE int part_writer_commit(struct part_writer *writer, struct part_info *ret, struct err *err);
void part_writer_abort(struct part_writer *writer); /* removes the temporary file; accepts NULL */

#endif
