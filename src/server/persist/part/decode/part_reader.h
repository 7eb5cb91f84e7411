/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_reader - an open part: its directory in memory, partitions as segments, blocks from disk.
 *
 * Opening reads and checks the footer and the directory; each section and block is checked (CRC,
 * then every id and bound) whenever it is read. part_reader_verify reads all, the file's hash
 * included. A partition owns its decoded dictionaries, which all its segments share; they can be
 * freed while no segment uses them (part_cache).
 *
 * Thread-safe: a lock per partition while its dictionaries are decoded; blocks are read without.
 */
#ifndef FIRN_SERVER_PERSIST_PART_DECODE_PART_READER_H
#define FIRN_SERVER_PERSIST_PART_DECODE_PART_READER_H

#include "server/persist/part/part_writer.h"

struct part_reader;

/* For all readers of a cache together. Above it, unused stacks are freed at once.
 */
struct part_budget {
	_Atomic size_t used_bytes;
	size_t limit_bytes;
};

/* From the directory: enough to leave a partition out without reading it. */
struct part_partition {
	struct part_key key;
	struct slice service_label; /* that says the service of all series; "" when they differ */
	struct slice group_name, period_type, period_unit;
	const struct column_name {
		struct slice sample_type, sample_unit;
		enum column_kind kind;
	} * columns;
	uint32_t columns_count;
	int64_t period;
	int64_t start_min_ns, start_max_ns;
	uint64_t rows, reports;
	uint32_t series, stacks, nodes;
	const struct slice *sample_label_names; /* that rows carry */
	uint32_t sample_label_names_count;
	uint32_t levels; /* bit 1 << enum segment_level: there are blocks of it */
	/* Stored bytes, its share of what it has in common with others. */
	uint64_t bytes_series, bytes_stacks, bytes_symbols;
};

/* ERR_CORRUPT also when it is not the file that `info` describes. */
MUST_USE int part_reader_open(const struct vfs *vfs, const char *dir, const struct part_info *info,
			      struct part_reader **ret, struct err *err);
void part_reader_close(struct part_reader *reader); /* accepts NULL */

/* Once, before anything is read. */
void part_reader_set_budget(struct part_reader *reader, struct part_budget *budget);

uint32_t part_reader_partitions(const struct part_reader *reader);
const struct part_partition *part_reader_partition(const struct part_reader *reader,
						   uint32_t partition);

/*
 * The first partition from `from` on for which part_key_may_match may be true (part_find.h);
 * part_reader_partitions: none.
 */
uint32_t part_reader_next(const struct part_reader *reader, uint32_t from,
			  const struct selector *selector);

/*
 * One level of a partition as a segment for [from, to): series and labels are ready, stacks after
 * segment_load_stacks. Uses the partition's dictionaries until part_reader_drop_segment.
 */
MUST_USE int part_reader_segment(struct part_reader *reader, uint32_t partition,
				 enum segment_level level, int64_t from_ns, int64_t to_ns,
				 struct segment *ret, struct err *err);
void part_reader_drop_segment(struct segment *segment);

/* Memory that it uses now. */
size_t part_reader_bytes(const struct part_reader *reader);

/* Frees the dictionaries of partitions that no segment uses, and stacks that none has loaded. */
void part_reader_trim(struct part_reader *reader);

/* True if something read from it was found damaged, and what. */
bool part_reader_is_damaged(struct part_reader *reader, struct err *ret);

/* Reads and checks every byte. */
MUST_USE int part_reader_verify(struct part_reader *reader, struct err *err);

#endif
