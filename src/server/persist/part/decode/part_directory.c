/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/decode/part_directory.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"

#define VERSION_OF_TENS 4 /* the first one with sums of ten minutes */
#define LEVELS_BEFORE_TENS SEGMENT_TEN_SERIES

static int corrupt(const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "directory: %s", what);
}

static void *array(struct part_directory *directory, size_t count, size_t element_bytes)
{
	directory->memory += count * element_bytes;
	return mem_calloc(count ? count : 1, element_bytes);
}

/* A count of things that have at least one byte each. */
static bool read_count(struct byte_reader *in, uint32_t *ret)
{
	*ret = byte_reader_varint32(in);
	return !in->failed && *ret <= byte_reader_left(in);
}

static int read_texts(struct byte_reader *in, struct part_directory *directory, struct err *err)
{
	struct byte_reader lengths;
	uint32_t count;

	if (!read_count(in, &count))
		return corrupt("more texts than bytes", err);
	directory->texts = array(directory, (size_t)count + 1, sizeof(struct slice));
	directory->texts_count = count + 1;
	directory->texts[0] = SLICE_LITERAL("");
	lengths = *in;
	for (uint32_t i = 0; i < count; i++)
		byte_reader_varint(in);
	for (uint32_t i = 1; i <= count; i++)
		directory->texts[i] = byte_reader_bytes(in, byte_reader_varint(&lengths));
	return in->failed ? corrupt("texts end early", err) : 0;
}

static bool read_text(struct byte_reader *in, const struct part_directory *directory,
		      struct slice *ret)
{
	uint64_t number = byte_reader_varint(in);

	if (in->failed || number >= directory->texts_count)
		return false;
	*ret = directory->texts[number];
	return true;
}

/* Chunks. */

static int read_chunks(struct byte_reader *in, uint64_t end, struct part_directory *directory,
		       struct err *err)
{
	uint64_t offset = PART_HEADER_BYTES;
	struct part_chunk *chunks;

	if (!read_count(in, &directory->chunks_count))
		return corrupt("more chunks than bytes", err);
	chunks = array(directory, directory->chunks_count, sizeof(*chunks));
	directory->chunks = chunks;
	for (uint32_t i = 0; i < directory->chunks_count; i++) {
		chunks[i].offset = offset;
		chunks[i].stored = byte_reader_varint32(in);
		offset += chunks[i].stored;
	}
	for (uint32_t i = 0; i < directory->chunks_count; i++) {
		uint64_t raw = (uint64_t)chunks[i].stored + byte_reader_varint32(in);

		chunks[i].raw = (uint32_t)raw;
		if (raw > UINT32_MAX || !part_chunk_is_plausible(&chunks[i]))
			return corrupt("a chunk has impossible sizes", err);
	}
	for (uint32_t i = 0; i < directory->chunks_count; i++)
		chunks[i].crc = byte_reader_u32(in);
	if (in->failed || offset != end)
		return corrupt("chunks do not fill the file", err);
	return 0;
}

/* The numbers of the chunks that hold sections of a kind. */
struct section_chunks {
	uint32_t *numbers, count;
	uint32_t at;	 /* the one in use + 1; 0 = none yet */
	uint64_t offset; /* in it */
};

static int read_section_chunks(struct byte_reader *in, const struct part_directory *directory,
			       struct section_chunks *ret, struct err *err)
{
	uint64_t next = 0;

	if (!read_count(in, &ret->count))
		return corrupt("more chunks of sections than bytes", err);
	ret->numbers = mem_new_array(uint32_t, ret->count);
	for (uint32_t i = 0; i < ret->count; i++) {
		uint64_t number = next + byte_reader_varint32(in);

		if (in->failed || number >= directory->chunks_count)
			return corrupt("a section lies in no chunk", err);
		ret->numbers[i] = (uint32_t)number;
		next = number + 1;
	}
	return 0;
}

static int read_stripes(struct byte_reader *in, struct part_directory *directory, struct err *err)
{
	uint64_t next = 0;

	if (!read_count(in, &directory->stripes_count))
		return corrupt("more stripes than bytes", err);
	directory->stripes =
		array(directory, directory->stripes_count, sizeof(*directory->stripes));
	for (uint32_t i = 0; i < directory->stripes_count; i++) {
		struct part_stripe_entry *stripe = &directory->stripes[i];
		uint64_t chunk = next + (uint64_t)byte_reader_zigzag(in);

		stripe->shape.reports = byte_reader_varint32(in);
		stripe->shape.rows = byte_reader_varint(in);
		stripe->shape.columns = byte_reader_varint32(in);
		stripe->has_moments = stripe->shape.columns & 1;
		stripe->shape.columns >>= 1;
		next = chunk + 2 + stripe->has_moments;
		if (in->failed || chunk >= UINT32_MAX || next > directory->chunks_count)
			return corrupt("a stripe lies in no chunk", err);
		stripe->chunk = (uint32_t)chunk;
		directory->has_moments |= stripe->has_moments;
	}
	return 0;
}

/* Types. */

static int read_type(struct byte_reader *in, struct part_directory *directory,
		     struct part_partition *type, struct err *err)
{
	struct column_name *columns;

	if (!read_text(in, directory, &type->group_name) ||
	    !read_text(in, directory, &type->period_type) ||
	    !read_text(in, directory, &type->period_unit))
		return corrupt("a type names no text", err);
	type->period = byte_reader_zigzag(in);
	type->columns_count = byte_reader_varint32(in);
	if (in->failed || !type->columns_count ||
	    type->columns_count > TABLES_COLUMNS_PER_GROUP_MAX)
		return corrupt("a type has too many columns", err);
	columns = array(directory, type->columns_count, sizeof(*columns));
	type->columns = columns;
	for (uint32_t i = 0; i < type->columns_count; i++) {
		uint32_t kind;

		if (!read_text(in, directory, &columns[i].sample_type) ||
		    !read_text(in, directory, &columns[i].sample_unit))
			return corrupt("a column names no text", err);
		kind = byte_reader_varint32(in);
		if (in->failed || kind > COLUMN_GAUGE)
			return corrupt("a column has an unknown kind", err);
		columns[i].kind = (enum column_kind)kind;
	}
	return 0;
}

static int read_types(struct byte_reader *in, struct part_directory *directory, struct err *err)
{
	int rc = 0;

	if (!read_count(in, &directory->types_count))
		return corrupt("more types than bytes", err);
	directory->types = array(directory, directory->types_count, sizeof(*directory->types));
	for (uint32_t i = 0; i < directory->types_count && !rc; i++)
		rc = read_type(in, directory, &directory->types[i], err);
	return rc;
}

/* Partitions. */

static int read_place(struct byte_reader *in, const struct part_directory *directory,
		      struct section_chunks *chunks, struct part_place *ret, struct err *err)
{
	uint64_t word = byte_reader_varint(in), bytes = word >> 1;
	const struct part_chunk *chunk;

	*ret = (struct part_place){ UINT32_MAX, 0, 0 };
	if (word & 1) {
		chunks->at++;
		chunks->offset = 0;
	}
	if (!bytes)
		return in->failed || word ? corrupt("a section of nothing", err) : 0;
	if (!chunks->at || chunks->at > chunks->count)
		return corrupt("a section lies behind the last chunk", err);
	chunk = &directory->chunks[chunks->numbers[chunks->at - 1]];
	if (bytes > chunk->raw || chunks->offset > chunk->raw - bytes)
		return corrupt("a section is larger than its chunk", err);
	*ret = (struct part_place){ chunks->numbers[chunks->at - 1], (uint32_t)chunks->offset,
				    (uint32_t)bytes };
	chunks->offset += bytes;
	return 0;
}

static uint64_t stored_share(const struct part_directory *directory, const struct part_place *place)
{
	const struct part_chunk *chunk;

	if (place->chunk == UINT32_MAX)
		return 0;
	chunk = &directory->chunks[place->chunk];
	assert(chunk->raw && place->bytes <= chunk->raw);
	return (uint64_t)place->bytes * chunk->stored / chunk->raw;
}

static int read_row_label_names(struct byte_reader *in, struct part_directory *directory,
				struct part_partition *info, struct err *err)
{
	struct slice *names;

	if (!read_count(in, &info->sample_label_names_count))
		return corrupt("more labels of rows than bytes", err);
	names = array(directory, info->sample_label_names_count, sizeof(*names));
	info->sample_label_names = names;
	for (uint32_t i = 0; i < info->sample_label_names_count; i++)
		if (!read_text(in, directory, &names[i]))
			return corrupt("a label of rows names no text", err);
	return 0;
}

static int read_head(struct byte_reader *in, const struct part_directory *directory,
		     struct part_entry *entry, struct err *err)
{
	struct part_dictionary_shape *shape = &entry->shape;
	struct part_partition *info = &entry->info;
	struct part_key key;
	struct slice label;
	uint32_t type, span_ok;

	if (!read_text(in, directory, &key.tenant) || !read_text(in, directory, &key.service) ||
	    !read_text(in, directory, &label))
		return corrupt("a partition names no text", err);
	type = byte_reader_varint32(in);
	if (in->failed || type >= directory->types_count)
		return corrupt("a partition has no type", err);
	*info = directory->types[type];
	info->key = key;
	info->service_label = label;
	shape->type = info;
	info->series = shape->series = byte_reader_varint32(in);
	shape->row_label_sets = byte_reader_varint32(in);
	shape->label_strings = byte_reader_varint32(in);
	shape->strings = byte_reader_varint32(in);
	shape->frames = byte_reader_varint32(in);
	info->nodes = shape->nodes = byte_reader_varint32(in);
	info->stacks = shape->stacks = byte_reader_varint32(in);
	info->reports = byte_reader_varint(in);
	info->rows = byte_reader_varint(in);
	info->start_min_ns = byte_reader_zigzag(in);
	info->start_max_ns = (int64_t)((uint64_t)info->start_min_ns + byte_reader_varint(in));
	shape->start_min_ns = info->start_min_ns;
	shape->start_max_ns = info->start_max_ns;
	span_ok = info->start_max_ns >= info->start_min_ns;
	if (in->failed || !span_ok || !shape->label_strings ||
	    shape->strings < shape->label_strings || shape->strings > TABLES_IDS_MAX ||
	    shape->series > TABLES_IDS_MAX || shape->row_label_sets > TABLES_IDS_MAX)
		return corrupt("a partition has impossible sizes", err);
	return 0;
}

static int read_partition(struct byte_reader *in, struct part_directory *directory,
			  struct section_chunks *chunks, struct part_entry *entry, struct err *err)
{
	struct part_partition *info = &entry->info;
	int rc = read_head(in, directory, entry, err);

	if (!rc)
		rc = read_row_label_names(in, directory, info, err);
	for (int i = 0; i < directory->levels && !rc; i++) {
		entry->shape.blocks[i] = byte_reader_varint32(in);
		info->levels |= entry->shape.blocks[i] ? 1u << i : 0;
	}
	for (int i = 0; i < PART_SECTIONS && !rc; i++)
		rc = read_place(in, directory, &chunks[i], &entry->sections[i], err);
	if (rc)
		return rc;
	info->bytes_series = stored_share(directory, &entry->sections[PART_SECTION_INDEX]) +
			     stored_share(directory, &entry->sections[PART_SECTION_SERIES]);
	info->bytes_symbols = stored_share(directory, &entry->sections[PART_SECTION_STRINGS]) +
			      stored_share(directory, &entry->sections[PART_SECTION_FRAMES]);
	info->bytes_stacks = stored_share(directory, &entry->sections[PART_SECTION_NODES]);
	return in->failed ? corrupt("partitions end early", err) : 0;
}

static int read_partitions(struct byte_reader *in, struct section_chunks *chunks,
			   struct part_directory *directory, struct err *err)
{
	int rc = 0;

	if (!read_count(in, &directory->partitions_count))
		return corrupt("more partitions than bytes", err);
	directory->partitions =
		array(directory, directory->partitions_count, sizeof(*directory->partitions));
	for (uint32_t i = 0; i < directory->partitions_count && !rc; i++)
		rc = read_partition(in, directory, chunks, &directory->partitions[i], err);
	return rc;
}

static int read_all(struct byte_reader *in, uint64_t end, struct part_directory *directory,
		    struct section_chunks *chunks, struct err *err)
{
	int rc = read_texts(in, directory, err);

	if (!rc)
		rc = read_chunks(in, end, directory, err);
	for (int i = 0; i < PART_SECTIONS && !rc; i++)
		rc = read_section_chunks(in, directory, &chunks[i], err);
	if (!rc)
		rc = read_stripes(in, directory, err);
	if (!rc)
		rc = read_types(in, directory, err);
	if (!rc)
		rc = read_partitions(in, chunks, directory, err);
	if (!rc && byte_reader_left(in))
		rc = corrupt("bytes behind the partitions", err);
	return rc;
}

int part_directory_decode(struct slice bytes, uint64_t end, uint32_t version,
			  struct part_directory *ret, struct err *err)
{
	struct section_chunks chunks[PART_SECTIONS] = { 0 };
	struct part_directory directory = {
		.memory = bytes.len,
		.levels = version < VERSION_OF_TENS ? LEVELS_BEFORE_TENS : SEGMENT_LEVELS,
	};
	struct byte_reader in;
	int rc;

	directory.bytes = mem_strndup(bytes.len ? bytes.data : "", bytes.len);
	in = byte_reader_of(slice_from(directory.bytes, bytes.len));
	rc = read_all(&in, end, &directory, chunks, err);
	for (int i = 0; i < PART_SECTIONS; i++)
		free(chunks[i].numbers);
	if (rc)
		part_directory_free(&directory);
	else
		*ret = directory;
	return rc;
}

void part_directory_free(struct part_directory *directory)
{
	for (uint32_t i = 0; directory->types && i < directory->types_count; i++)
		free((void *)(uintptr_t)directory->types[i].columns);
	for (uint32_t i = 0; directory->partitions && i < directory->partitions_count; i++)
		free((void *)(uintptr_t)directory->partitions[i].info.sample_label_names);
	free(directory->bytes);
	free(directory->texts);
	free(directory->chunks);
	free(directory->stripes);
	free(directory->types);
	free(directory->partitions);
	*directory = (struct part_directory){ 0 };
}
