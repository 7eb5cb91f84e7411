/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/segment_writer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "base/mem.h"

/* Over so much unknown between known code, two segments take less room than one. */
#define GAP_BUCKETS_MAX ((64u << 20) >> TABLE_BUCKET_SHIFT)

struct row {
	uint64_t offset;
	struct unwind_rule rule;
};

struct segment_writer {
	int fd;
	const char *name;
	struct table_file_header header;
	uint64_t write_at, unsupported_count;
	bool is_open, is_full, has_pending;
	struct row pending;
	struct unwind_rule last_rule; /* of the last row that was added */
	/* The open segment. Row index[i] holds at the start of bucket first_bucket + i. */
	uint32_t first_bucket, bucket; /* `bucket` is the one rows are being added to */
	uint32_t *index, *rows;
	uint32_t rows_count, index_capacity, rows_capacity;
	struct unwind_rule *rules;
	uint32_t rules_count, rules_capacity;
	struct idmap rule_ids;
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
	free(writer->index);
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

static void put_index(struct segment_writer *writer, uint32_t bucket, uint32_t row)
{
	uint32_t i = bucket - writer->first_bucket;

	while (i >= writer->index_capacity)
		mem_grow(writer->index, writer->index_capacity, writer->index_capacity);
	writer->index[i] = row;
}

static bool is_rule(const void *context, uint32_t id, const void *key)
{
	const struct segment_writer *writer = context;

	return !memcmp(&writer->rules[id], key, sizeof(struct unwind_rule));
}

static uint32_t intern(struct segment_writer *writer, const struct unwind_rule *rule)
{
	uint64_t hash = hash_bytes(rule, sizeof(*rule));
	uint32_t id = idmap_find(&writer->rule_ids, hash, is_rule, writer, rule);

	if (id != IDMAP_NONE)
		return id;
	mem_grow(writer->rules, writer->rules_count, writer->rules_capacity);
	id = writer->rules_count++;
	writer->rules[id] = *rule;
	idmap_add(&writer->rule_ids, hash, id);
	return id;
}

static void add_row(struct segment_writer *writer, uint32_t low_bits,
		    const struct unwind_rule *rule)
{
	struct unwind_rule marked = *rule;
	uint32_t id;

	if (unwind_rule_is_plain(rule))
		marked.flags |= UNWIND_RULE_PLAIN;
	id = intern(writer, &marked);
	mem_grow(writer->rows, writer->rows_count, writer->rows_capacity);
	writer->rows[writer->rows_count++] = TABLE_ROW(low_bits, id);
	writer->last_rule = *rule;
}

static bool has_room(const struct segment_writer *writer)
{
	uint64_t buckets = writer->bucket - writer->first_bucket + 1;

	return 4 * (buckets + 1) + 4 * ((uint64_t)writer->rows_count + 1) + 8 +
		       sizeof(struct unwind_rule) * ((uint64_t)writer->rules_count + 1) <=
	       TABLE_CHUNK_BYTES;
}

static void open_segment(struct segment_writer *writer, uint32_t bucket,
			 const struct unwind_rule *rule)
{
	if (writer->header.segments_count == TABLE_SEGMENTS_MAX) {
		writer->is_full = true;
		return;
	}
	writer->is_open = true;
	writer->rows_count = writer->rules_count = 0;
	idmap_clear(&writer->rule_ids);
	writer->first_bucket = writer->bucket = bucket;
	put_index(writer, bucket, 0);
	add_row(writer, 0, rule);
}

/* Writes the segment as it is: buckets up to but not with end_bucket, and so many rows. */
static int close_segment(struct segment_writer *writer, uint32_t end_bucket, uint32_t rows_count,
			 struct err *err)
{
	struct table_file_segment *segment =
		&writer->header.segments[writer->header.segments_count];
	struct table_segment place;
	uint32_t padding = 0;
	size_t parts[4];
	const void *bytes[] = { writer->index, writer->rows, &padding, writer->rules };
	uint64_t at = writer->write_at;
	int status = 0;

	put_index(writer, end_bucket, rows_count - 1);
	bytes[0] = writer->index;
	*segment = (struct table_file_segment){
		.first_bucket = writer->first_bucket,
		.buckets = end_bucket - writer->first_bucket,
		.rows_count = rows_count,
		.rules_count = writer->rules_count,
		.image_at = at,
	};
	place = table_file_place(segment, 0, 0);
	parts[0] = place.rows_at;
	parts[1] = 4 * (size_t)rows_count;
	parts[2] = place.rules_at - place.rows_at - parts[1];
	parts[3] = sizeof(struct unwind_rule) * writer->rules_count;
	for (size_t i = 0; !status && i < 4; i++) {
		segment->image_crc = hash_crc32c(segment->image_crc, bytes[i], parts[i]);
		status = write_at(writer, at, bytes[i], parts[i], err);
		at += parts[i];
	}
	segment->image_bytes = (uint32_t)(at - segment->image_at);
	assert(segment->image_bytes <= TABLE_CHUNK_BYTES);
	writer->header.rows_count += rows_count;
	writer->header.segments_count++;
	writer->write_at = (at + TABLE_FILE_ALIGN - 1) & ~(uint64_t)(TABLE_FILE_ALIGN - 1);
	writer->is_open = false;
	return status;
}

/* Ends the segment before the current bucket, whose rows begin the next one. */
static int cut(struct segment_writer *writer, struct err *err)
{
	static const size_t kept_max = TABLE_BUCKET_BYTES + 1;
	uint32_t at = writer->bucket - writer->first_bucket;
	uint32_t first = writer->index[at], count = writer->rows_count - first;
	bool at_start = first > writer->index[at - 1] && !TABLE_ROW_OFFSET(writer->rows[first]);
	struct row *kept = mem_new_array(struct row, kept_max);
	int status;

	assert(at && count <= kept_max);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = writer->rows[first + i];

		kept[i].offset = TABLE_ROW_OFFSET(row);
		kept[i].rule = writer->rules[TABLE_ROW_RULE(row)];
	}
	status = close_segment(writer, writer->bucket, at_start ? first : first + 1, err);
	if (!status)
		open_segment(writer, writer->bucket, &kept[0].rule);
	for (uint32_t i = 1; writer->is_open && i < count; i++)
		add_row(writer, (uint32_t)kept[i].offset, &kept[i].rule);
	free(kept);
	return status;
}

static int advance_to_bucket(struct segment_writer *writer, uint32_t bucket, struct err *err)
{
	int status = 0;

	while (!status && writer->is_open && writer->bucket < bucket) {
		writer->bucket++;
		put_index(writer, writer->bucket, writer->rows_count - 1);
		if (!has_room(writer))
			status = cut(writer, err);
	}
	return status;
}

static bool is_none(const struct unwind_rule *rule)
{
	return rule->cfa == UNWIND_CFA_NONE;
}

static int add_pending(struct segment_writer *writer, struct err *err)
{
	const struct row *row = &writer->pending;
	uint32_t bucket = (uint32_t)(row->offset >> TABLE_BUCKET_SHIFT);
	uint32_t low_bits = row->offset & TABLE_BUCKET_MASK;
	struct unwind_rule none = { .cfa = UNWIND_CFA_NONE };
	int status = 0;

	writer->has_pending = false;
	if (!memcmp(&row->rule, &writer->last_rule, sizeof(row->rule)) || writer->is_full)
		return 0;
	if (writer->is_open && is_none(&writer->last_rule) &&
	    bucket - writer->bucket > GAP_BUCKETS_MAX)
		status = close_segment(writer, writer->bucket + 1, writer->rows_count, err);
	if (status)
		return status;
	if (!writer->is_open)
		open_segment(writer, bucket, low_bits ? &none : &row->rule);
	status = advance_to_bucket(writer, bucket, err);
	if (!status && writer->is_open && !has_room(writer))
		status = cut(writer, err);
	if (status || !writer->is_open ||
	    !memcmp(&row->rule, &writer->last_rule, sizeof(row->rule)))
		return status;
	writer->unsupported_count +=
		row->rule.cfa == UNWIND_CFA_UNSUPPORTED || row->rule.ra == UNWIND_VALUE_UNSUPPORTED;
	add_row(writer, low_bits, &row->rule);
	if (!low_bits)
		put_index(writer, bucket, writer->rows_count - 1);
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

int segment_writer_finish(struct segment_writer *writer, uint64_t end_offset, uint16_t machine,
			  uint32_t sources, struct table_file_header *ret, struct err *err)
{
	struct table_file_header *header = &writer->header;
	int status = 0;

	if (writer->has_pending && writer->pending.offset < end_offset)
		status = add_pending(writer, err);
	if (!status && writer->is_open && !is_none(&writer->last_rule))
		status = advance_to_bucket(writer,
					   (uint32_t)((end_offset - 1) >> TABLE_BUCKET_SHIFT), err);
	if (!status && writer->is_open)
		status = close_segment(writer, writer->bucket + 1, writer->rows_count, err);
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
