/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/segment_writer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/unwind/row_rule.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"

/*
 * Over so much unknown between known code, two segments take less room than one. Few can be spared,
 * so later ones may hold more of it.
 */
#define GAP_BLOCKS_MAX ((1u << 20) >> TABLE_BLOCK_SHIFT)
#define GAP_BLOCKS_MAX_LATER ((16u << 20) >> TABLE_BLOCK_SHIFT)

/*
 * The smaller the buckets, the more of them have all of their rows in their line, and the more
 * lines there are. The smallest that take no more than this are chosen. A binary of many segments
 * has to do with the least room.
 */
#define BYTES_PER_ROW_MAX 9u
#define BYTES_TO_BEGIN_WITH 4096u
#define ROOMY_SEGMENTS_MAX 4u

#define SHIFTS (TABLE_BUCKET_SHIFT_MAX - TABLE_BUCKET_SHIFT_MIN + 1)

struct row {
	uint64_t offset;
	struct unwind_rule rule;
};

struct coded_row {
	uint32_t at;   /* bytes from the start of the segment */
	uint32_t rule; /* as in TABLE_ROW */
};

/* What buckets of one size would take. */
struct bucket_size {
	uint32_t bucket; /* the last one with a row */
	uint32_t rows;	 /* behind its start */
	uint32_t far_count;
};

struct segment_writer {
	int fd;
	const char *name;
	struct table_file_header header;
	uint64_t write_at, unsupported_count;
	bool is_open, is_full, has_pending;
	struct row pending;
	struct unwind_rule last_rule; /* of the last row that was added */
	/* The open segment. */
	uint32_t first_block, block; /* `block` is the one rows are being added to */
	struct coded_row *rows;
	uint32_t rows_count, rows_capacity;
	struct bucket_size sizes[SHIFTS]; /* by bucket shift - TABLE_BUCKET_SHIFT_MIN */
	struct unwind_rule *rules;
	uint32_t rules_count, rules_capacity;
	struct idmap rule_ids;
	uint32_t *image; /* TABLE_CHUNK_BYTES */
};

struct segment_writer *segment_writer_new(int fd, const char *name)
{
	struct segment_writer *writer = mem_new(struct segment_writer);

	writer->fd = fd;
	writer->name = name;
	writer->write_at = TABLE_FILE_ALIGN;
	return writer;
}

void segment_writer_free(struct segment_writer *writer)
{
	if (!writer)
		return;
	idmap_free(&writer->rule_ids);
	free(writer->image);
	free(writer->rows);
	free(writer->rules);
	free(writer);
}

bool segment_writer_is_full(const struct segment_writer *writer)
{
	return writer->is_full;
}

uint64_t segment_writer_unsupported(const struct segment_writer *writer)
{
	return writer->unsupported_count;
}

static int write_at(struct segment_writer *writer, uint64_t at, const void *bytes, size_t len,
		    struct err *err)
{
	size_t done = 0;

	assert(len <= TABLE_CHUNK_BYTES && writer->fd >= 0);
	while (done < len) {
		ssize_t put = pwrite(writer->fd, (const char *)bytes + done, len - done,
				     (off_t)(at + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return err_set_errno(err, put ? errno : ENOSPC,
					     "write the unwind table of \"%s\"", writer->name);
		done += (size_t)put;
	}
	return 0;
}

/* ---- the open segment ---- */

static bool is_rule(const void *context, uint32_t id, const void *key)
{
	const struct segment_writer *writer = context;

	return !memcmp(&writer->rules[id], key, sizeof(struct unwind_rule));
}

static uint32_t intern(struct segment_writer *writer, const struct unwind_rule *rule)
{
	uint64_t hash = hash_bytes(rule, sizeof(*rule));
	uint32_t id = idmap_find(&writer->rule_ids, hash, is_rule, writer, rule);

	assert(writer->rules_count <= writer->rules_capacity);
	if (id != IDMAP_NONE)
		return id;
	mem_grow(writer->rules, writer->rules_count, writer->rules_capacity);
	id = writer->rules_count++;
	writer->rules[id] = *rule;
	idmap_add(&writer->rule_ids, hash, id);
	return id;
}

static uint32_t code_of(struct segment_writer *writer, const struct unwind_rule *rule)
{
	uint32_t code;

	return row_rule_pack(rule, &code) ? code : TABLE_RULE_LISTED | intern(writer, rule);
}

static struct unwind_rule rule_of(const struct segment_writer *writer, uint32_t code)
{
	return code & TABLE_RULE_LISTED ? writer->rules[TABLE_RULE_INDEX(code)]
					: row_rule_unpack(code);
}

static void count_row(struct segment_writer *writer, uint32_t at)
{
	assert(writer->is_open);
	for (uint32_t i = 0; i < SHIFTS; i++) {
		struct bucket_size *size = &writer->sizes[i];
		uint32_t shift = TABLE_BUCKET_SHIFT_MIN + i, bucket = at >> shift;

		if (bucket != size->bucket) {
			size->bucket = bucket;
			size->rows = 0;
		}
		if (!(at & ((1u << shift) - 1)))
			continue; /* it is the rule at the bucket's start */
		size->rows++;
		if (size->rows == TABLE_LINE_ROWS_MAX + 1)
			size->far_count += 2; /* one makes room for the mark */
		else if (size->rows > TABLE_LINE_ROWS_MAX)
			size->far_count++;
	}
}

static void add_row(struct segment_writer *writer, uint32_t at, const struct unwind_rule *rule)
{
	uint32_t code = code_of(writer, rule);

	assert(writer->is_open);
	assert(writer->rows_count <= writer->rows_capacity);
	assert(!writer->rows_count || at >= writer->rows[writer->rows_count - 1].at);
	mem_grow(writer->rows, writer->rows_count, writer->rows_capacity);
	writer->rows[writer->rows_count++] = (struct coded_row){ at, code };
	writer->last_rule = *rule;
	count_row(writer, at);
}

static uint64_t size_of(const struct segment_writer *writer, uint32_t shift, uint64_t blocks)
{
	return (blocks << (TABLE_BLOCK_SHIFT - shift)) * TABLE_LINE_BYTES +
	       4 * (uint64_t)writer->sizes[shift - TABLE_BUCKET_SHIFT_MIN].far_count;
}

/* The shift of the smallest buckets whose image is within the limit, else of the smallest image. */
static uint32_t choose_shift(const struct segment_writer *writer, uint64_t blocks, uint64_t most)
{
	uint32_t best = TABLE_BUCKET_SHIFT_MAX;

	for (uint32_t shift = TABLE_BUCKET_SHIFT_MIN; shift <= TABLE_BUCKET_SHIFT_MAX; shift++) {
		uint64_t bytes = size_of(writer, shift, blocks);

		if (bytes <= most)
			return shift;
		if (bytes < size_of(writer, best, blocks))
			best = shift;
	}
	return best;
}

/* What lines and far rows may take. */
static uint64_t fair_bytes(const struct segment_writer *writer)
{
	if (writer->header.segments_count >= ROOMY_SEGMENTS_MAX)
		return 0;
	return BYTES_TO_BEGIN_WITH + BYTES_PER_ROW_MAX * (uint64_t)writer->rows_count;
}

/* What there is for them in a chunk. */
static uint64_t room_bytes(const struct segment_writer *writer)
{
	return TABLE_CHUNK_BYTES - 8 - sizeof(struct unwind_rule) * (uint64_t)writer->rules_count;
}

/* For one more row, wherever it is in the current block. */
static bool has_room(const struct segment_writer *writer)
{
	uint64_t blocks = writer->block - writer->first_block + 1;
	uint32_t shift = choose_shift(writer, blocks, fair_bytes(writer));

	return size_of(writer, shift, blocks) + 4 * 2 + sizeof(struct unwind_rule) <=
	       room_bytes(writer);
}

static void open_segment(struct segment_writer *writer, uint32_t block,
			 const struct unwind_rule *rule)
{
	assert(!writer->is_open);
	if (writer->header.segments_count == TABLE_SEGMENTS_MAX) {
		writer->is_full = true;
		return;
	}
	writer->is_open = true;
	writer->rows_count = writer->rules_count = 0;
	memset(writer->sizes, 0, sizeof(writer->sizes));
	idmap_clear(&writer->rule_ids);
	writer->first_block = writer->block = block;
	add_row(writer, 0, rule);
}

/* Makes the line of a bucket from its rows, the first of which is not at its start. */
static uint32_t fill_line(uint32_t *image, uint32_t line, uint32_t start_rule, uint32_t mask,
			  const struct coded_row *rows, uint32_t count, uint32_t far_at)
{
	uint32_t *words = image + (size_t)line * TABLE_LINE_WORDS;
	uint32_t near = count <= TABLE_LINE_ROWS_MAX ? count : TABLE_LINE_ROWS_MAX - 1;

	assert(rows || !count);
	words[0] = TABLE_ROW(count - near, start_rule);
	for (uint32_t i = 0; i < TABLE_LINE_ROWS_MAX; i++)
		words[1 + i] =
			i < near ? TABLE_ROW(rows[i].at & mask, rows[i].rule) : TABLE_ROW_UNUSED;
	if (count > near)
		words[TABLE_LINE_ROWS_MAX] = TABLE_ROW_FAR | far_at;
	for (uint32_t i = near; i < count; i++)
		image[far_at++] = TABLE_ROW(rows[i].at & mask, rows[i].rule);
	return count - near;
}

/* Lines and far rows of the first rows_count rows. Returns how many are far. */
static uint32_t fill_lines(struct segment_writer *writer, uint32_t shift, uint32_t lines,
			   uint32_t rows_count)
{
	uint32_t rule = 0, row = 0, far_first = lines * TABLE_LINE_WORDS, far_at = far_first;

	assert(rows_count <= writer->rows_count);
	for (uint32_t line = 0; line < lines; line++) {
		const uint64_t start = (uint64_t)line << shift, end = start + (1u << shift);
		uint32_t first;

		if (row < rows_count && writer->rows[row].at == start)
			rule = writer->rows[row++].rule;
		for (first = row; row < rows_count && writer->rows[row].at < end;)
			row++;
		far_at += fill_line(writer->image, line, rule, (1u << shift) - 1,
				    writer->rows + first, row - first, far_at);
		if (row > first)
			rule = writer->rows[row - 1].rule;
	}
	return far_at - far_first;
}

/* Writes the segment as it is: blocks up to but not with end_block, and so many rows. */
static int close_segment(struct segment_writer *writer, uint32_t end_block, uint32_t rows_count,
			 struct err *err)
{
	struct table_file_segment *segment =
		&writer->header.segments[writer->header.segments_count];
	uint64_t fair = fair_bytes(writer), room = room_bytes(writer);
	uint32_t blocks = end_block - writer->first_block;
	uint32_t shift = choose_shift(writer, blocks, fair < room ? fair : room);
	uint32_t lines = blocks << (TABLE_BLOCK_SHIFT - shift);
	struct table_segment place;
	int status;

	assert(writer->is_open);
	assert(rows_count <= writer->rows_count);
	if (!writer->image)
		writer->image = mem_calloc(1, TABLE_CHUNK_BYTES);
	*segment = (struct table_file_segment){
		.first_block = writer->first_block,
		.blocks = blocks,
		.bucket_shift = shift,
		.rows_count = rows_count,
		.far_count = fill_lines(writer, shift, lines, rows_count),
		.rules_count = writer->rules_count,
		.image_at = writer->write_at,
	};
	place = table_file_place(segment, 0, 0);
	segment->image_bytes = table_file_image_bytes(segment);
	assert(segment->image_bytes <= TABLE_CHUNK_BYTES);
	/* What aligns the rules. */
	writer->image[lines * TABLE_LINE_WORDS + segment->far_count] = 0;
	if (writer->rules_count)
		memcpy((char *)writer->image + place.rules_at, writer->rules,
		       sizeof(struct unwind_rule) * writer->rules_count);
	segment->image_crc = hash_crc32c(0, writer->image, segment->image_bytes);
	status = write_at(writer, segment->image_at, writer->image, segment->image_bytes, err);
	writer->header.rows_count += rows_count;
	writer->header.segments_count++;
	writer->write_at = (segment->image_at + segment->image_bytes + TABLE_FILE_ALIGN - 1) &
			   ~(uint64_t)(TABLE_FILE_ALIGN - 1);
	writer->is_open = false;
	return status;
}

/* Ends the segment before the current block, whose rows begin the next one. */
static int cut(struct segment_writer *writer, struct err *err)
{
	static const uint32_t kept_max = TABLE_BLOCK_BYTES + 1;
	uint32_t start = (writer->block - writer->first_block) << TABLE_BLOCK_SHIFT;
	uint32_t end = writer->rows_count, first, count;
	struct row *kept = mem_new_array(struct row, kept_max);
	int status;

	while (end && writer->rows[end - 1].at >= start)
		end--;
	/* What holds at the block's start is a row there, or the last one before. */
	first = end < writer->rows_count && writer->rows[end].at == start ? end : end - 1;
	count = writer->rows_count - first;
	assert(start && end && count <= kept_max);
	for (uint32_t i = 0; i < count; i++) {
		kept[i].offset = writer->rows[first + i].at - start;
		kept[i].rule = rule_of(writer, writer->rows[first + i].rule);
	}
	/* Or the row that waits: a segment has one row at its start. */
	if (writer->pending.offset == (uint64_t)writer->block << TABLE_BLOCK_SHIFT)
		kept[0].rule = writer->pending.rule;
	status = close_segment(writer, writer->block, end, err);
	if (!status)
		open_segment(writer, writer->block, &kept[0].rule);
	for (uint32_t i = 1; writer->is_open && i < count; i++)
		add_row(writer, (uint32_t)kept[i].offset, &kept[i].rule);
	free(kept);
	return status;
}

static int advance_to_block(struct segment_writer *writer, uint32_t block, struct err *err)
{
	int status = 0;

	while (!status && writer->is_open && writer->block < block) {
		writer->block++;
		if (!has_room(writer))
			status = cut(writer, err);
	}
	return status;
}

static bool is_none(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_NONE;
}

static uint32_t gap_max(const struct segment_writer *writer)
{
	return writer->header.segments_count < TABLE_SEGMENTS_MAX / 2 ? GAP_BLOCKS_MAX
								      : GAP_BLOCKS_MAX_LATER;
}

static int add_pending(struct segment_writer *writer, struct err *err)
{
	const struct row *row = &writer->pending;
	uint32_t block = (uint32_t)(row->offset >> TABLE_BLOCK_SHIFT);
	bool at_start = row->offset % TABLE_BLOCK_BYTES == 0;
	struct unwind_rule none = { .cfa = UNWIND_CFA_NONE };
	int status = 0;

	writer->has_pending = false;
	if (!memcmp(&row->rule, &writer->last_rule, sizeof(row->rule)) || writer->is_full)
		return 0;
	if (writer->is_open && is_none(&writer->last_rule) &&
	    block - writer->block > gap_max(writer))
		status = close_segment(writer, writer->block + 1, writer->rows_count, err);
	if (status)
		return status;
	if (!writer->is_open)
		open_segment(writer, block, at_start ? &row->rule : &none);
	status = advance_to_block(writer, block, err);
	if (!status && writer->is_open && !has_room(writer))
		status = cut(writer, err);
	if (status || !writer->is_open)
		return status;
	writer->unsupported_count +=
		row->rule.cfa == UNWIND_CFA_UNSUPPORTED || row->rule.ra == UNWIND_VALUE_UNSUPPORTED;
	if (!memcmp(&row->rule, &writer->last_rule, sizeof(row->rule)))
		return 0;
	add_row(writer,
		(uint32_t)(row->offset - ((uint64_t)writer->first_block << TABLE_BLOCK_SHIFT)),
		&row->rule);
	return 0;
}

int segment_writer_row(struct segment_writer *writer, uint64_t offset,
		       const struct unwind_rule *rule, struct err *err)
{
	int status = 0;

	assert(!writer->has_pending || offset >= writer->pending.offset);
	if (writer->has_pending && offset > writer->pending.offset)
		status = add_pending(writer, err);
	writer->has_pending = true;
	writer->pending.offset = offset;
	writer->pending.rule = *rule;
	return status;
}

/* The last block may reach further. */
static int end_rows(struct segment_writer *writer, uint64_t offset, struct err *err)
{
	writer->pending = (struct row){ .offset = offset, .rule.cfa = UNWIND_CFA_NONE };
	return add_pending(writer, err);
}

int segment_writer_finish(struct segment_writer *writer, uint64_t end_offset, uint16_t machine,
			  uint32_t sources, struct table_file_header *ret, struct err *err)
{
	struct table_file_header *header = &writer->header;
	int status = 0;

	assert(writer->header.segments_count <= TABLE_SEGMENTS_MAX);
	if (writer->has_pending && writer->pending.offset < end_offset)
		status = add_pending(writer, err);
	if (!status && end_offset % TABLE_BLOCK_BYTES && writer->is_open)
		status = end_rows(writer, end_offset, err);
	if (!status && writer->is_open && !is_none(&writer->last_rule))
		status = advance_to_block(writer, (uint32_t)((end_offset - 1) >> TABLE_BLOCK_SHIFT),
					  err);
	if (!status && writer->is_open)
		status = close_segment(writer, writer->block + 1, writer->rows_count, err);
	if (status)
		return status;
	memcpy(header->magic, TABLE_FILE_MAGIC, sizeof(header->magic));
	header->version = TABLE_FILE_VERSION;
	header->machine = machine;
	header->sources = sources;
	header->file_bytes = writer->write_at;
	header->crc = hash_crc32c(0, header, offsetof(struct table_file_header, crc));
	if (ftruncate(writer->fd, (off_t)writer->write_at))
		return err_set_errno(err, errno, "write the unwind table of \"%s\"", writer->name);
	status = write_at(writer, 0, header, sizeof(*header), err);
	if (!status)
		*ret = *header;
	return status;
}
