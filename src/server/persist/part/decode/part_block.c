/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of partitions out of stripes, which are read, unpacked and decoded into buffers.
 *
 * A block is what a query asks for, a stripe what is stored as a unit: columns of the rows of many
 * blocks. Invariant: a buffer holds at most one stripe, the one that was read last, told apart by
 * the open reader's number (`instance`) and its own; what it holds of it grows from headers to rows
 * to moments. Who reads blocks in their order so unpacks each stripe once, and memory goes with
 * readers, not with what is read. Nothing read is trusted: the decoders check each number against
 * the partition's directory.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/order/bisect.h"
#include "server/persist/part/part_moments.h"
#include "server/persist/part/decode/part_reader_int.h"

/* What a buffer holds: the stripe that was read last, in the hope that the next block is there. */
struct scratch {
	ZSTD_DCtx *decoder;
	uint64_t instance; /* 0: nothing */
	uint32_t stripe;
	bool has_rows, has_moments;
	char *stored, *raw;
	size_t stored_capacity, raw_capacity;
	struct part_stripe_image image;
	struct part_moments moments;
	struct segment_report *reports; /* a copy that may be changed */
	uint32_t reports_capacity;
};

static void free_scratch(void *data)
{
	struct scratch *scratch = data;

	ZSTD_freeDCtx(scratch->decoder);
	part_stripe_image_free(&scratch->image);
	part_moments_free(&scratch->moments);
	free(scratch->stored);
	free(scratch->raw);
	free(scratch->reports);
	free(scratch);
}

static size_t scratch_bytes(const struct scratch *scratch)
{
	const struct part_stripe_image *image = &scratch->image;

	return ZSTD_sizeof_DCtx(scratch->decoder) + scratch->stored_capacity +
	       scratch->raw_capacity + part_heads_bytes(&image->heads) +
	       image->reports_capacity * (sizeof(*image->reports) + sizeof(*image->last_slots)) +
	       image->rows_capacity * sizeof(*image->slots) +
	       image->labels_capacity * sizeof(*image->label_sets) +
	       image->values_capacity * sizeof(*image->values) +
	       scratch->moments.capacity * sizeof(*scratch->moments.items) +
	       scratch->reports_capacity * sizeof(*scratch->reports);
}

static int scratch_of(struct segment_buffer *buffer, struct scratch **ret, struct err *err)
{
	struct scratch *scratch;

	if (buffer->free_decompressor == free_scratch) {
		*ret = buffer->decompressor;
		return 0;
	}
	scratch = mem_new(struct scratch);
	scratch->decoder = ZSTD_createDCtx();
	if (!scratch->decoder) {
		free(scratch);
		return err_set(err, ERR_NO_MEMORY, "no memory to decompress");
	}
	if (buffer->free_decompressor)
		buffer->free_decompressor(buffer->decompressor);
	buffer->decompressor = scratch;
	buffer->free_decompressor = free_scratch;
	*ret = scratch;
	return 0;
}

static char *room(char *memory, size_t *capacity, size_t bytes)
{
	if (*capacity >= bytes)
		return memory;
	free(memory);
	*capacity = bytes;
	return mem_realloc(NULL, bytes, 1);
}

/* `count` chunks that lie one behind the other, as they are stored. */
static int read_stored(struct part_reader *reader, const struct part_chunk *chunks, int count,
		       struct scratch *scratch, struct err *err)
{
	size_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += chunks[i].stored;
	scratch->stored = room(scratch->stored, &scratch->stored_capacity, bytes + 1);
	return part_reader_read(reader, scratch->stored, bytes, chunks->offset, err);
}

static int unpack(const struct part_chunk *chunk, const char *stored, struct scratch *scratch,
		  struct err *err)
{
	scratch->raw =
		room(scratch->raw, &scratch->raw_capacity, (size_t)chunk->raw + PART_STRIPE_SLACK);
	memset(scratch->raw + chunk->raw, 0, PART_STRIPE_SLACK);
	return part_chunk_unpack(chunk, scratch->decoder, stored, scratch->raw, err);
}

static int load_headers(struct part_reader *reader, uint32_t stripe, enum segment_want want,
			struct scratch *scratch, struct err *err)
{
	const struct part_stripe_entry *entry = &reader->directory.stripes[stripe];
	const struct part_chunk *chunks = &reader->directory.chunks[entry->chunk];
	int rc = read_stored(reader, chunks, want >= SEGMENT_ROWS ? 2 : 1, scratch, err);

	scratch->instance = 0;
	if (!rc)
		rc = unpack(&chunks[0], scratch->stored, scratch, err);
	if (!rc)
		rc = part_stripe_decode_headers(slice_from(scratch->raw, chunks[0].raw),
						&entry->shape, &scratch->image, err);
	if (rc)
		return rc;
	scratch->instance = reader->instance;
	scratch->stripe = stripe;
	scratch->has_rows = false;
	scratch->has_moments = false;
	return 0;
}

/* `stored` is NULL when the rows must be read from the file first. */
static int load_rows(struct part_reader *reader, const char *stored, struct part_stripe_range range,
		     struct scratch *scratch, struct err *err)
{
	const struct part_stripe_entry *entry = &reader->directory.stripes[scratch->stripe];
	const struct part_chunk *rows = &reader->directory.chunks[entry->chunk + 1];
	int rc = 0;

	assert(scratch->instance == reader->instance);
	part_stripe_make_reports(&scratch->image);
	if (!stored) {
		rc = read_stored(reader, rows, 1, scratch, err);
		stored = scratch->stored;
	}
	if (!rc)
		rc = unpack(rows, stored, scratch, err);
	if (!rc)
		rc = part_stripe_decode_rows(slice_from(scratch->raw, rows->raw), range,
					     &scratch->image, err);
	scratch->has_rows = !rc;
	return rc;
}

/* Those of a stripe without any: none. */
static int load_moments(struct part_reader *reader, struct scratch *scratch, struct err *err)
{
	const struct part_stripe_entry *entry = &reader->directory.stripes[scratch->stripe];
	const struct part_chunk *chunk = &reader->directory.chunks[entry->chunk + 2];
	int rc;

	assert(scratch->instance == reader->instance && scratch->has_rows);
	if (!entry->has_moments)
		return 0;
	rc = read_stored(reader, chunk, 1, scratch, err);
	if (!rc)
		rc = unpack(chunk, scratch->stored, scratch, err);
	if (!rc)
		rc = part_moments_decode(slice_from(scratch->raw, chunk->raw),
					 scratch->image.reports, entry->shape.reports,
					 &scratch->moments, err);
	scratch->has_moments = !rc;
	return rc;
}

/* Whether the rows that are there are those that are wanted, and maybe others. */
static bool has_rows_of(const struct scratch *scratch, struct part_stripe_range range)
{
	const struct part_stripe_range *has = &scratch->image.range;
	const struct segment_hole *hole = &has->hole;

	return scratch->has_rows && has->from_ns <= range.from_ns && has->to_ns >= range.to_ns &&
	       (hole->from_ns == hole->to_ns ||
		(hole->from_ns == range.hole.from_ns && hole->to_ns == range.hole.to_ns));
}

static int load_stripe(struct part_reader *reader, uint32_t stripe, enum segment_want want,
		       struct part_stripe_range range, struct scratch *scratch, struct err *err)
{
	const struct part_stripe_entry *entry = &reader->directory.stripes[stripe];
	const char *stored = NULL;
	int rc = 0;

	if (scratch->instance != reader->instance || scratch->stripe != stripe) {
		rc = load_headers(reader, stripe, want, scratch, err);
		if (rc)
			return rc;
		stored = scratch->stored + reader->directory.chunks[entry->chunk].stored;
	}
	if (want >= SEGMENT_ROWS && !has_rows_of(scratch, range))
		rc = load_rows(reader, stored, range, scratch, err);
	if (!rc && want >= SEGMENT_MOMENTS && !scratch->has_moments)
		rc = load_moments(reader, scratch, err);
	return rc;
}

/* The runs of a block. */
struct block_runs {
	uint32_t first, count;
};

/* A block is made of whole runs. */
static int find_runs(const struct part_heads *heads, uint32_t first, uint32_t reports,
		     struct block_runs *ret, struct err *err)
{
	size_t low = bisect(0, heads->runs_count, i, heads->runs[i].first < first);
	uint32_t found;

	for (found = 0; reports && low + found < heads->runs_count; found++) {
		const struct segment_run *run = &heads->runs[low + found];

		if (run->first != first || run->count > reports)
			break;
		first += run->count;
		reports -= run->count;
	}
	if (reports)
		return err_set(err, ERR_CORRUPT, "a block has other reports than its stripe");
	*ret = (struct block_runs){ low, found };
	return 0;
}

/* Spans ascend, so of runs that have one after the other the ends say it all. */
static bool run_within(const struct part_heads *heads, const struct segment_run *run,
		       const struct segment_zone *zone)
{
	const int64_t *starts_ns = heads->starts_ns + run->times;
	int64_t low = starts_ns[0], high = starts_ns[run->count - 1];

	for (uint32_t i = 0; run->times >= heads->spans_count && i < run->count; i++) {
		low = starts_ns[i] < low ? starts_ns[i] : low;
		high = starts_ns[i] > high ? starts_ns[i] : high;
	}
	return run->series >= zone->series_min && run->series <= zone->series_max &&
	       low >= zone->start_min_ns && high <= zone->start_max_ns;
}

/* That the block's reports are what the partition and its index say. */
static int check_heads(const struct part_heads *heads, struct block_runs runs,
		       const struct segment_zone *zone, struct err *err)
{
	const struct segment_run *list = &heads->runs[runs.first];
	const uint32_t *row_counts = heads->row_counts + list->first;
	uint64_t rows = 0;

	for (uint32_t i = 0; i < runs.count; i++)
		if (!run_within(heads, &list[i], zone))
			return err_set(err, ERR_CORRUPT, "a report lies outside its block's zone");
	for (uint32_t i = 0; i < zone->reports; i++)
		rows += row_counts[i];
	if (rows != zone->rows)
		return err_set(err, ERR_CORRUPT, "a block has other rows than its zone says");
	return 0;
}

static int check_rows(const struct part_reader_partition *partition,
		      const struct segment_zone *zone, uint32_t first,
		      const struct part_stripe_image *image, struct err *err)
{
	const struct part_dictionary_shape *shape = &partition->entry->shape;
	uint64_t row = image->reports[first].row_first;

	for (uint32_t i = first; i < first + zone->reports; i++)
		if (image->reports[i].row_count && image->last_slots[i] >= shape->stacks)
			return err_set(err, ERR_CORRUPT, "a row names a stack that is not there");
	for (uint64_t i = row; image->heads.has_labels && i < row + zone->rows; i++)
		if (image->label_sets[i] > shape->row_label_sets + shape->series)
			return err_set(err, ERR_CORRUPT,
				       "a row names a label set that is not there");
	return 0;
}

/* Readers drop deleted reports from what they are given; the stripe must stay as it is. */
static const struct segment_report *copy_reports(struct scratch *scratch, uint32_t first,
						 uint32_t count)
{
	if (scratch->reports_capacity < count) {
		scratch->reports_capacity = count;
		scratch->reports = mem_realloc(scratch->reports, count, sizeof(*scratch->reports));
	}
	memcpy(scratch->reports, scratch->image.reports + first, count * sizeof(*scratch->reports));
	return scratch->reports;
}

static void make_block(const struct segment *segment, uint32_t first, uint32_t count,
		       enum segment_want want, struct scratch *scratch, struct segment_block *ret)
{
	const struct part_stripe_image *image = &scratch->image;

	assert(count <= image->heads.shape.reports && first <= image->heads.shape.reports - count);
	*ret = (struct segment_block){
		.reports = segment->deletions_count ? copy_reports(scratch, first, count)
						    : &image->reports[first],
		.reports_count = count,
		.totals = image->heads.totals,
	};
	if (want == SEGMENT_HEADERS)
		return;
	ret->slots = image->slots;
	ret->label_sets = image->heads.has_labels ? image->label_sets : NULL;
	ret->row_stride = 1;
	ret->values = image->has_values ? image->values : NULL;
	ret->value_stride = 1;
	ret->column_stride = image->heads.shape.rows;
	if (want < SEGMENT_MOMENTS || !scratch->has_moments)
		return;
	ret->moments = scratch->moments.items;
	ret->links = scratch->moments.links;
	ret->links_count = scratch->moments.links_count;
}

/* The stripe of a block stands in the buffer afterwards. */
static int load_block(const struct segment *segment, uint32_t block, enum segment_want want,
		      struct segment_buffer *buffer, struct block_runs *ret_runs, struct err *err)
{
	struct part_reader_partition *partition = segment->owner;
	const struct part_block *place = &partition->series.blocks[segment->level][block];
	const struct segment_zone *zone = &partition->series.zones[segment->level][block];
	struct scratch *scratch = NULL;
	struct err cause = { 0 };
	int rc = scratch_of(buffer, &scratch, &cause);

	assert(block < segment->blocks_count);
	if (!rc)
		rc = load_stripe(partition->reader, place->stripe, want,
				 (struct part_stripe_range){ segment->from_ns, segment->to_ns,
							     segment->hole },
				 scratch, &cause);
	if (!rc)
		rc = find_runs(&scratch->image.heads, place->first, zone->reports, ret_runs,
			       &cause);
	if (!rc)
		rc = check_heads(&scratch->image.heads, *ret_runs, zone, &cause);
	if (!rc && want >= SEGMENT_ROWS)
		rc = check_rows(partition, zone, place->first, &scratch->image, &cause);
	return rc ? part_reader_note(partition->reader, rc, &cause, err) : 0;
}

int part_block_read(const struct segment *segment, uint32_t block, enum segment_want want,
		    struct segment_buffer *buffer, struct segment_block *ret, struct err *err)
{
	const struct part_reader_partition *partition = segment->owner;
	struct block_runs runs;
	struct scratch *scratch;
	int rc = load_block(segment, block, want, buffer, &runs, err);

	if (rc)
		return rc;
	scratch = buffer->decompressor;
	part_stripe_make_reports(&scratch->image);
	make_block(segment, partition->series.blocks[segment->level][block].first,
		   partition->series.zones[segment->level][block].reports, want, scratch, ret);
	buffer->decompressor_bytes = scratch_bytes(scratch);
	return 0;
}

int part_block_read_heads(const struct segment *segment, uint32_t block,
			  struct segment_buffer *buffer, struct segment_heads *ret, struct err *err)
{
	const struct part_reader_partition *partition = segment->owner;
	const struct part_heads *heads;
	struct block_runs runs;
	int rc = load_block(segment, block, SEGMENT_HEADERS, buffer, &runs, err);

	if (rc)
		return rc;
	heads = &((const struct scratch *)buffer->decompressor)->image.heads;
	*ret = (struct segment_heads){
		.runs = heads->runs + runs.first,
		.runs_count = runs.count,
		.reports_count = partition->series.zones[segment->level][block].reports,
		.starts_ns = heads->starts_ns,
		.durations_ns = heads->durations_ns,
		.ends_ns = heads->ends_ns,
		.longest_ns = heads->longest_ns,
		.row_counts = heads->row_counts,
		.totals = heads->totals,
		.total_stride = heads->shape.columns,
		.reports_counts = heads->is_rollup ? heads->reports_counts : NULL,
	};
	return 0;
}

int part_block_check_totals(const struct segment_buffer *buffer, struct err *err)
{
	const struct scratch *scratch = buffer->decompressor;

	return part_stripe_check_totals(&scratch->image, err);
}
