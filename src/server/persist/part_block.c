/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of partitions out of stripes, which are read, unpacked and decoded into buffers. */
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/part_moments.h"
#include "server/persist/part_reader_int.h"

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
static int load_rows(struct part_reader *reader, const char *stored, struct scratch *scratch,
		     struct err *err)
{
	const struct part_stripe_entry *entry = &reader->directory.stripes[scratch->stripe];
	const struct part_chunk *rows = &reader->directory.chunks[entry->chunk + 1];
	int rc = 0;

	if (!stored) {
		rc = read_stored(reader, rows, 1, scratch, err);
		stored = scratch->stored;
	}
	if (!rc)
		rc = unpack(rows, stored, scratch, err);
	if (!rc)
		rc = part_stripe_decode_rows(slice_from(scratch->raw, rows->raw), &scratch->image,
					     err);
	scratch->has_rows = !rc;
	return rc;
}

/* Those of a stripe without any: none. */
static int load_moments(struct part_reader *reader, struct scratch *scratch, struct err *err)
{
	const struct part_stripe_entry *entry = &reader->directory.stripes[scratch->stripe];
	const struct part_chunk *chunk = &reader->directory.chunks[entry->chunk + 2];
	int rc;

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

static int load_stripe(struct part_reader *reader, uint32_t stripe, enum segment_want want,
		       struct scratch *scratch, struct err *err)
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
	if (want >= SEGMENT_ROWS && !scratch->has_rows)
		rc = load_rows(reader, stored, scratch, err);
	if (!rc && want >= SEGMENT_MOMENTS && !scratch->has_moments)
		rc = load_moments(reader, scratch, err);
	return rc;
}

/* That the block's reports are what the partition and its index say. */
static int check_block(const struct part_reader_partition *partition,
		       const struct segment_zone *zone, uint32_t first, enum segment_want want,
		       const struct part_stripe_image *image, struct err *err)
{
	const struct part_dictionary_shape *shape = &partition->entry->shape;
	const struct segment_report *reports = &image->reports[first];
	uint64_t rows = 0;

	for (uint32_t i = 0; i < zone->reports; i++) {
		if (reports[i].series < zone->series_min || reports[i].series > zone->series_max ||
		    reports[i].start_ns < zone->start_min_ns ||
		    reports[i].start_ns > zone->start_max_ns)
			return err_set(err, ERR_CORRUPT, "a report lies outside its block's zone");
		if (want >= SEGMENT_ROWS && reports[i].row_count &&
		    image->last_slots[first + i] >= shape->stacks)
			return err_set(err, ERR_CORRUPT, "a row names a stack that is not there");
		rows += reports[i].row_count;
	}
	if (rows != zone->rows)
		return err_set(err, ERR_CORRUPT, "a block has other rows than its zone says");
	if (want < SEGMENT_ROWS || !image->has_labels)
		return 0;
	for (uint64_t i = reports[0].row_first; i < reports[0].row_first + rows; i++)
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

	*ret = (struct segment_block){
		.reports = segment->deletions_count ? copy_reports(scratch, first, count)
						    : &image->reports[first],
		.reports_count = count,
		.totals = image->totals,
	};
	if (want == SEGMENT_HEADERS)
		return;
	ret->slots = image->slots;
	ret->label_sets = image->has_labels ? image->label_sets : NULL;
	ret->row_stride = 1;
	ret->values = image->has_values ? image->values : NULL;
	ret->value_stride = 1;
	ret->column_stride = image->shape.rows;
	if (want < SEGMENT_MOMENTS || !scratch->has_moments)
		return;
	ret->moments = scratch->moments.items;
	ret->links = scratch->moments.links;
	ret->links_count = scratch->moments.links_count;
}

int part_block_read(const struct segment *segment, uint32_t block, enum segment_want want,
		    struct segment_buffer *buffer, struct segment_block *ret, struct err *err)
{
	struct part_reader_partition *partition = segment->owner;
	const struct part_block *place = &partition->series.blocks[segment->level][block];
	const struct segment_zone *zone = &partition->series.zones[segment->level][block];
	struct scratch *scratch = NULL;
	struct err cause = { 0 };
	int rc = scratch_of(buffer, &scratch, &cause);

	if (!rc)
		rc = load_stripe(partition->reader, place->stripe, want, scratch, &cause);
	if (!rc)
		rc = check_block(partition, zone, place->first, want, &scratch->image, &cause);
	if (rc)
		return part_reader_note(partition->reader, rc, &cause, err);
	make_block(segment, place->first, zone->reports, want, scratch, ret);
	return 0;
}

int part_block_check_totals(const struct segment_buffer *buffer, struct err *err)
{
	const struct scratch *scratch = buffer->decompressor;

	return part_stripe_check_totals(&scratch->image, err);
}
