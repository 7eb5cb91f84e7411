/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes go out in large writes as chunks become full; what is kept until the end is the directory:
 * some bytes per chunk and some dozens per partition.
 */
#include "server/persist/part/part_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/part/part_dictionary_encode.h"
#include "server/persist/part/part_directory_encode.h"
#include "server/persist/part/part_stripe_encode.h"

#define OUT_BYTES ((size_t)1 << 20)
#define SHARED_CHUNK_BYTES ((size_t)64 << 10) /* a chunk of sections is full with so many */
#define SECTIONS_ZSTD_LEVEL 19		      /* better entropy coding more than longer matches */
#define QUICK_ZSTD_LEVEL 1 /* of all, in parts that are compacted soon: 3 gains 1 % at most */

/* A run of reports of the partition in one stripe. */
struct block {
	enum segment_level level;
	uint32_t stripe;
	uint32_t first; /* report of the stripe */
	struct segment_zone zone;
};

struct part_writer {
	const struct vfs *vfs;
	const char *dir;
	uint64_t number;
	struct layout_path path;
	char temporary[LAYOUT_PATH_BYTES_MAX];
	struct vfs_file *file;
	struct strbuf out;
	uint64_t offset; /* of `out` in the file */
	XXH3_state_t *hash;
	ZSTD_CCtx *encoder;
	struct throttle *throttle;

	struct part_written written;
	struct part_stripe open_stripes[SEGMENT_LEVELS];
	int sections_level, rows_level;
	struct part_chunk_builder headers, rows, moments;
	struct part_chunk_builder sections[PART_SECTIONS];
	struct part_info info;

	/* The partition that is being written. */
	const struct part_dictionary *dictionary;
	struct part_numbers numbers;
	struct block *blocks;
	uint32_t blocks_count, blocks_capacity;
	bool *row_label_sets_used; /* by id of the view */
	enum segment_level level;
	uint32_t last_series;
	int64_t last_start_ns;
};

/* Between the calls of a partition; once per partition. */
static void check(const struct part_writer *writer)
{
	const struct part_written *written = &writer->written;

	assert(writer->file && writer->number == writer->info.number);
	assert(!writer->dictionary == !writer->row_label_sets_used);
	assert(writer->blocks_count <= writer->blocks_capacity);
	assert(written->partitions_count <= written->partitions_capacity);
	assert(written->chunks_count <= written->chunks_capacity);
	assert(written->stripes_count <= written->stripes_capacity);
	for (int i = 0; i < SEGMENT_LEVELS; i++)
		assert(!writer->open_stripes[i].open ||
		       writer->open_stripes[i].number < written->stripes_count);
}

/* What the manifest is going to say of the part. */
static void check_info(const struct part_info *info, uint64_t file_bytes)
{
	assert(info->bytes == file_bytes);
	assert(info->bytes_samples + info->bytes_rollups + info->bytes_moments +
		       info->bytes_stacks + info->bytes_symbols <
	       info->bytes);
	assert(!info->reports || info->min_start_ns <= info->max_start_ns);
	assert(info->reports || !info->rows);
}

/* The file. */

static int flush(struct part_writer *writer, struct err *err)
{
	int rc =
		vfs_write_all(writer->file, writer->out.data, writer->out.len, writer->offset, err);

	XXH3_128bits_update(writer->hash, writer->out.data, writer->out.len);
	writer->offset += writer->out.len;
	strbuf_clear(&writer->out);
	return rc;
}

static int put(struct part_writer *writer, struct slice bytes, struct err *err)
{
	strbuf_add_slice(&writer->out, bytes);
	return writer->out.len < OUT_BYTES ? 0 : flush(writer, err);
}

static void free_partition(struct part_written_partition *partition)
{
	free(partition->row_label_names);
}

static void free_writer(struct part_writer *writer)
{
	vfs_close(writer->file);
	strbuf_free(&writer->out);
	XXH3_freeState(writer->hash);
	ZSTD_freeCCtx(writer->encoder);
	free(writer->written.chunks);
	free(writer->written.stripes);
	for (int i = 0; i < SEGMENT_LEVELS; i++)
		part_stripe_free(&writer->open_stripes[i]);
	part_chunk_builder_free(&writer->headers);
	part_chunk_builder_free(&writer->rows);
	part_chunk_builder_free(&writer->moments);
	for (int i = 0; i < PART_SECTIONS; i++) {
		part_chunk_builder_free(&writer->sections[i]);
		free(writer->written.section_chunks[i].numbers);
	}
	tables_free(&writer->written.texts);
	tables_free(&writer->written.types);
	for (uint32_t i = 0; i < writer->written.partitions_count; i++)
		free_partition(&writer->written.partitions[i]);
	free(writer->written.partitions);
	part_numbers_free(&writer->numbers);
	free(writer->blocks);
	free(writer->row_label_sets_used);
	free(writer);
}

static void put_header(struct part_writer *writer)
{
	strbuf_add(&writer->out, PART_MAGIC, 8);
	strbuf_add_u32(&writer->out, PART_VERSION);
	strbuf_add_u32(&writer->out, 0);
	strbuf_add_u64(&writer->out, writer->number);
}

int part_writer_open(const struct vfs *vfs, const char *dir, uint64_t number,
		     enum part_effort effort, struct throttle *throttle, struct part_writer **ret,
		     struct err *err)
{
	struct part_writer *writer = mem_new(struct part_writer);
	int rc;

	assert(number);
	writer->vfs = vfs;
	writer->dir = dir;
	writer->number = number;
	writer->throttle = throttle;
	writer->sections_level = effort == PART_THOROUGH ? SECTIONS_ZSTD_LEVEL : QUICK_ZSTD_LEVEL;
	writer->rows_level = effort == PART_THOROUGH ? PART_CHUNK_ROWS : QUICK_ZSTD_LEVEL;
	writer->path = layout_path(dir, LAYOUT_PART, number);
	writer->hash = XXH3_createState();
	writer->encoder = ZSTD_createCCtx();
	tables_init(&writer->written.texts);
	tables_init(&writer->written.types);
	writer->info = (struct part_info){ .number = number,
					   .min_start_ns = INT64_MAX,
					   .max_start_ns = INT64_MIN };
	if (!writer->hash || !writer->encoder || XXH3_128bits_reset(writer->hash) != XXH_OK)
		rc = err_set(err, ERR_NO_MEMORY, "write a part: no memory");
	else if (snprintf(writer->temporary, sizeof(writer->temporary), "%s.tmp",
			  writer->path.text) >= (int)sizeof(writer->temporary))
		rc = err_set(err, ERR_INVALID, "path \"%s\" is too long", writer->path.text);
	else
		rc = vfs_open(vfs, writer->temporary, VFS_WRITE | VFS_CREATE | VFS_TRUNCATE,
			      &writer->file, err);
	if (rc) {
		free_writer(writer);
		return rc;
	}
	put_header(writer);
	*ret = writer;
	return 0;
}

void part_writer_abort(struct part_writer *writer)
{
	if (!writer)
		return;
	writer->vfs->unlink(writer->vfs, writer->temporary); /* else the next open does */
	free_writer(writer);
}

/* Chunks. */

static int put_chunk(struct part_writer *writer, struct part_chunk_builder *builder, int level,
		     uint64_t *ret_stored, struct err *err)
{
	struct part_chunk chunk;
	struct slice stored;
	int rc = part_chunk_pack(builder, writer->encoder, level, writer->throttle, &chunk, &stored,
				 err);

	if (rc)
		return rc;
	chunk.offset = writer->offset + writer->out.len;
	mem_grow(writer->written.chunks, writer->written.chunks_count,
		 writer->written.chunks_capacity);
	writer->written.chunks[writer->written.chunks_count++] = chunk;
	*ret_stored += chunk.stored;
	return put(writer, stored, err);
}

static int put_section_chunk(struct part_writer *writer, enum part_section section, struct err *err)
{
	struct part_section_chunks *chunks = &writer->written.section_chunks[section];
	uint64_t *bytes = section == PART_SECTION_NODES	  ? &writer->info.bytes_stacks
			  : section == PART_SECTION_INDEX ? &writer->info.bytes_samples
							  : &writer->info.bytes_symbols;

	assert(writer->sections[section].raw.len);
	mem_grow(chunks->numbers, chunks->count, chunks->capacity);
	chunks->numbers[chunks->count++] = writer->written.chunks_count;
	return put_chunk(writer, &writer->sections[section], writer->sections_level, bytes, err);
}

static int put_stripe(struct part_writer *writer, enum segment_level level, struct err *err)
{
	struct part_stripe *stripe = &writer->open_stripes[level];
	uint64_t *bytes =
		level == SEGMENT_RAW ? &writer->info.bytes_samples : &writer->info.bytes_rollups;
	int rc;

	assert(stripe->open && stripe->number < writer->written.stripes_count);
	assert(stripe->reports_count && stripe->columns);
	writer->written.stripes[stripe->number] =
		(struct part_written_stripe){ writer->written.chunks_count, stripe->reports_count,
					      stripe->columns, stripe->moments.count > 0,
					      stripe->rows_count };
	part_stripe_encode(stripe, &writer->headers, &writer->rows, &writer->moments);
	rc = put_chunk(writer, &writer->headers, writer->sections_level, bytes, err);
	if (!rc)
		rc = put_chunk(writer, &writer->rows, writer->rows_level, bytes, err);
	if (!rc && writer->moments.raw.len)
		rc = put_chunk(writer, &writer->moments, writer->sections_level,
			       &writer->info.bytes_moments, err);
	return rc;
}

/* Partitions. */

static uint32_t text_of(struct part_writer *writer, struct slice text)
{
	return tables_string(&writer->written.texts, text);
}

static uint32_t type_of(struct part_writer *writer, const struct tables_view *view)
{
	const struct group *group = &view->groups[0];
	struct strbuf type = { 0 };
	uint32_t number;

	strbuf_add_varint(&type, text_of(writer, tables_text(view, group->name)));
	strbuf_add_varint(&type, text_of(writer, tables_text(view, group->period_type)));
	strbuf_add_varint(&type, text_of(writer, tables_text(view, group->period_unit)));
	strbuf_add_zigzag(&type, group->period);
	strbuf_add_varint(&type, group->column_count);
	for (uint32_t i = 0; i < group->column_count; i++) {
		const struct column *column = &view->columns[group->column_first + i];

		strbuf_add_varint(&type, text_of(writer, tables_text(view, column->sample_type)));
		strbuf_add_varint(&type, text_of(writer, tables_text(view, column->sample_unit)));
		strbuf_add_varint(&type, column->kind);
	}
	number = tables_string(&writer->written.types, strbuf_slice(&type)) -
		 1; /* 0 is the empty text */
	strbuf_free(&type);
	return number;
}

/* The label that says the service of all series, or "". */
static struct slice service_label(const struct tables_view *view)
{
	struct slice label = SLICE_LITERAL("");

	for (uint32_t i = 0; i < view->series_count; i++) {
		struct slice other;

		part_key_of(view, view->series[i].label_set, &other);
		if (i && !slice_equal(label, other))
			return SLICE_LITERAL("");
		label = other;
	}
	return label;
}

int part_writer_begin_partition(struct part_writer *writer,
				const struct part_dictionary *dictionary, struct err *err)
{
	const struct tables_view *view = dictionary->view;
	struct part_written_partition *partition;

	(void)err;
	assert(!writer->dictionary && view->groups_count == 1 && view->series_count);
	writer->dictionary = dictionary;
	part_numbers_make(dictionary, &writer->numbers);
	mem_grow(writer->written.partitions, writer->written.partitions_count,
		 writer->written.partitions_capacity);
	partition = &writer->written.partitions[writer->written.partitions_count++];
	*partition = (struct part_written_partition){
		.tenant = text_of(writer, dictionary->key.tenant),
		.service = text_of(writer, dictionary->key.service),
		.service_label = text_of(writer, service_label(view)),
		.type = type_of(writer, view),
		.series = view->series_count,
		.row_label_sets = writer->numbers.row_label_sets_count,
		.label_strings = writer->numbers.label_strings_count,
		.strings = writer->numbers.strings_count,
		.frames = view->frames_count,
		.nodes = view->nodes_count,
		.stacks = writer->numbers.ranks_count,
		.start_min_ns = INT64_MAX,
		.start_max_ns = INT64_MIN,
	};
	writer->row_label_sets_used = mem_new_array(bool, view->label_sets_count);
	writer->blocks_count = 0;
	writer->level = SEGMENT_RAW;
	writer->last_series = 0;
	writer->last_start_ns = INT64_MIN;
	check(writer);
	return 0;
}

static struct part_written_partition *current(struct part_writer *writer)
{
	assert(writer->written.partitions_count);
	return &writer->written.partitions[writer->written.partitions_count - 1];
}

/* The stripe of the level with room for the report. */
static int find_stripe(struct part_writer *writer, enum segment_level level,
		       const struct part_report *report, struct part_stripe **ret, struct err *err)
{
	struct part_stripe *stripe = &writer->open_stripes[level];
	uint32_t type = current(writer)->type;
	int rc;

	*ret = stripe;
	if (stripe->open && stripe->type == type && part_stripe_has_room(stripe, report))
		return 0;
	if (stripe->open) {
		rc = put_stripe(writer, level, err);
		if (rc)
			return rc;
	}
	stripe->open = true;
	stripe->type = type;
	stripe->columns = writer->dictionary->view->groups[0].column_count;
	stripe->is_rollup = level != SEGMENT_RAW;
	stripe->number = writer->written.stripes_count;
	mem_grow(writer->written.stripes, writer->written.stripes_count,
		 writer->written.stripes_capacity);
	writer->written.stripes_count++;
	return 0;
}

static struct block *find_block(struct part_writer *writer, enum segment_level level,
				struct part_stripe *stripe)
{
	struct block *block = writer->blocks ? &writer->blocks[writer->blocks_count - 1] : NULL;

	if (writer->blocks_count && block->level == level && block->stripe == stripe->number)
		return block;
	part_stripe_begin_block(stripe);
	mem_grow(writer->blocks, writer->blocks_count, writer->blocks_capacity);
	block = &writer->blocks[writer->blocks_count++];
	*block = (struct block){ .level = level,
				 .stripe = stripe->number,
				 .first = stripe->reports_count,
				 .zone = { .series_min = UINT32_MAX,
					   .start_min_ns = INT64_MAX,
					   .start_max_ns = INT64_MIN } };
	current(writer)->blocks[level]++;
	return block;
}

static void check_order(struct part_writer *writer, enum segment_level level,
			const struct part_report *report)
{
	assert(writer->dictionary && level >= writer->level &&
	       report->series < current(writer)->series);
	if (level == writer->level)
		assert(report->series > writer->last_series ||
		       (report->series == writer->last_series &&
			report->start_ns >= writer->last_start_ns));
	writer->level = level;
	writer->last_series = report->series;
	writer->last_start_ns = report->start_ns;
}

static void widen(struct segment_zone *zone, const struct part_report *report)
{
	zone->series_min = report->series < zone->series_min ? report->series : zone->series_min;
	zone->series_max = report->series > zone->series_max ? report->series : zone->series_max;
	if (report->start_ns < zone->start_min_ns)
		zone->start_min_ns = report->start_ns;
	if (report->start_ns > zone->start_max_ns)
		zone->start_max_ns = report->start_ns;
	zone->reports++;
	zone->rows += report->row_count;
}

static void count_raw(struct part_writer *writer, const struct part_report *report)
{
	struct part_written_partition *partition = current(writer);

	if (report->start_ns < partition->start_min_ns)
		partition->start_min_ns = report->start_ns;
	if (report->start_ns > partition->start_max_ns)
		partition->start_max_ns = report->start_ns;
	partition->reports++;
	partition->rows += report->row_count;
}

int part_writer_report(struct part_writer *writer, enum segment_level level,
		       const struct part_report *report, struct err *err)
{
	struct part_stripe *stripe;
	int rc;

	check_order(writer, level, report);
	rc = find_stripe(writer, level, report, &stripe, err);
	if (rc)
		return rc;
	widen(&find_block(writer, level, stripe)->zone, report);
	if (level == SEGMENT_RAW)
		count_raw(writer, report);
	for (uint32_t i = 0; report->label_sets && i < report->row_count; i++)
		writer->row_label_sets_used[report->label_sets[i]] = true;
	part_stripe_add(stripe, report, writer->numbers.ranks, writer->numbers.row_label_sets);
	return 0;
}

static void encode_index(const struct part_writer *writer, struct strbuf *out)
{
	const struct part_written_partition *partition =
		&writer->written.partitions[writer->written.partitions_count - 1];
	uint64_t start_min = partition->reports ? (uint64_t)partition->start_min_ns : 0;
	uint64_t start_max = partition->reports ? (uint64_t)partition->start_max_ns : 0;
	const struct block *previous = NULL;

	for (uint32_t i = 0; i < writer->blocks_count; i++) {
		const struct block *block = &writer->blocks[i];
		const struct segment_zone *zone = &block->zone;

		if (previous && previous->level != block->level)
			previous = NULL;
		strbuf_add_varint(out, block->stripe - (previous ? previous->stripe + 1 : 0));
		strbuf_add_varint(out, block->first);
		strbuf_add_varint(out, zone->reports);
		strbuf_add_varint(out, zone->rows);
		strbuf_add_varint(out,
				  zone->series_min - (previous ? previous->zone.series_max : 0));
		strbuf_add_varint(out, zone->series_max - zone->series_min);
		strbuf_add_zigzag(out, (int64_t)((uint64_t)zone->start_min_ns -
						 (previous ? (uint64_t)previous->zone.start_min_ns
							   : start_min)));
		strbuf_add_zigzag(out, (int64_t)(start_max - (uint64_t)zone->start_max_ns));
		previous = block;
	}
}

static void add_row_label_names(struct part_writer *writer)
{
	const struct tables_view *view = writer->dictionary->view;
	struct part_written_partition *partition = current(writer);

	for (uint32_t i = 0; i < view->label_sets_count; i++) {
		const struct label_set *set = &view->label_sets[i];

		for (uint32_t j = 0; writer->row_label_sets_used[i] && j < set->label_count; j++) {
			uint32_t name = text_of(
				writer, tables_text(view, view->labels[set->label_first + j].name));
			uint32_t k = 0;

			while (k < partition->row_label_names_count &&
			       partition->row_label_names[k] != name)
				k++;
			if (k < partition->row_label_names_count)
				continue;
			mem_grow(partition->row_label_names, partition->row_label_names_count,
				 partition->row_label_names_capacity);
			partition->row_label_names[partition->row_label_names_count++] = name;
		}
	}
}

static int end_sections(struct part_writer *writer, const size_t before[PART_SECTIONS],
			struct err *err)
{
	struct part_written_partition *partition = current(writer);
	int rc = 0;

	for (int i = 0; i < PART_SECTIONS && !rc; i++) {
		partition->section_bytes[i] = writer->sections[i].raw.len - before[i];
		partition->chunk_begins[i] = !before[i] && partition->section_bytes[i];
		if (writer->sections[i].raw.len >= SHARED_CHUNK_BYTES)
			rc = put_section_chunk(writer, (enum part_section)i, err);
	}
	return rc;
}

int part_writer_end_partition(struct part_writer *writer, struct err *err)
{
	struct part_written_partition *partition = current(writer);
	size_t before[PART_SECTIONS];
	int rc;

	assert(writer->dictionary);
	check(writer);
	for (int i = 0; i < PART_SECTIONS; i++)
		before[i] = writer->sections[i].raw.len;
	encode_index(writer, &writer->sections[PART_SECTION_INDEX].raw);
	part_dictionary_encode(writer->dictionary, &writer->numbers, writer->sections);
	add_row_label_names(writer);
	rc = end_sections(writer, before, err);
	if (partition->reports) {
		if (partition->start_min_ns < writer->info.min_start_ns)
			writer->info.min_start_ns = partition->start_min_ns;
		if (partition->start_max_ns > writer->info.max_start_ns)
			writer->info.max_start_ns = partition->start_max_ns;
	}
	writer->info.rows += partition->rows;
	writer->info.reports += partition->reports;
	writer->info.series += partition->series;
	writer->info.stacks += partition->stacks;
	part_numbers_free(&writer->numbers);
	free(writer->row_label_sets_used);
	writer->row_label_sets_used = NULL;
	writer->dictionary = NULL;
	return rc;
}

/* The directory. */

static int put_directory(struct part_writer *writer, struct part_chunk *ret, struct err *err)
{
	struct part_chunk_builder builder = { 0 };
	struct slice stored;
	int rc;

	assert(!writer->dictionary);
	part_directory_encode(&writer->written, &builder.raw);
	rc = part_chunk_pack(&builder, writer->encoder, writer->sections_level, writer->throttle,
			     ret, &stored, err);
	ret->offset = writer->offset + writer->out.len;
	if (!rc)
		rc = put(writer, stored, err);
	part_chunk_builder_free(&builder);
	return rc;
}

static int put_end(struct part_writer *writer, struct err *err)
{
	struct part_chunk directory;
	XXH128_hash_t hash;
	size_t begin;
	int rc = put_directory(writer, &directory, err);

	if (!rc)
		rc = flush(writer, err);
	if (rc)
		return rc;
	hash = XXH3_128bits_digest(writer->hash);
	assert(!writer->out.len);
	writer->info.hash = (struct identity){ hash.low64, hash.high64 };
	begin = writer->out.len;
	strbuf_add_u64(&writer->out, directory.offset);
	strbuf_add_u64(&writer->out, directory.stored);
	strbuf_add_u64(&writer->out, directory.raw);
	strbuf_add_u64(&writer->out, writer->number);
	strbuf_add_u64(&writer->out, hash.low64);
	strbuf_add_u64(&writer->out, hash.high64);
	strbuf_add_u32(&writer->out, directory.crc);
	strbuf_add_u32(&writer->out,
		       hash_crc32c(0, writer->out.data + begin, writer->out.len - begin));
	strbuf_add(&writer->out, PART_MAGIC_END, 8);
	rc = flush(writer, err);
	writer->info.bytes = writer->offset;
	return rc;
}

static int put_rest(struct part_writer *writer, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < SEGMENT_LEVELS && !rc; i++)
		if (writer->open_stripes[i].open)
			rc = put_stripe(writer, (enum segment_level)i, err);
	for (int i = 0; i < PART_SECTIONS && !rc; i++)
		if (writer->sections[i].raw.len)
			rc = put_section_chunk(writer, (enum part_section)i, err);
	return rc ? rc : put_end(writer, err);
}

/* Closed first: some file systems say only then that a write failed. */
static int make_durable(struct part_writer *writer, struct err *err)
{
	int rc = vfs_sync(writer->file, err), close_rc;

	close_rc = writer->vfs->close(writer->file);
	writer->file = NULL;
	if (!rc && close_rc)
		rc = err_set_errno(err, -close_rc, "close \"%s\"", writer->temporary);
	if (rc)
		return rc;
	rc = writer->vfs->rename(writer->vfs, writer->temporary, writer->path.text);
	if (rc)
		return err_set_errno(err, -rc, "rename \"%s\" to \"%s\"", writer->temporary,
				     writer->path.text);
	return vfs_sync_dir(writer->vfs, writer->dir, err);
}

int part_writer_commit(struct part_writer *writer, struct part_info *ret, struct err *err)
{
	int rc;

	assert(!writer->dictionary && writer->written.partitions_count);
	check(writer);
	rc = put_rest(writer, err);
	if (!rc)
		rc = make_durable(writer, err);
	if (rc) {
		part_writer_abort(writer);
		return rc;
	}
	check_info(&writer->info, writer->offset);
	*ret = writer->info;
	free_writer(writer);
	return 0;
}
