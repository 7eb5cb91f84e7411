/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/table_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"

#define FLAGS_ALL (UNWIND_RULE_SIGNAL | UNWIND_RULE_PAC | UNWIND_RULE_PLAIN)

static int corrupt(const struct table_file *file, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "read unwind table \"%s\": %s", file->name, what);
}

static int read_at(const struct table_file *file, uint64_t at, void *into, size_t len,
		   struct err *err)
{
	size_t done = 0;

	if (file->fd < 0) {
		if (at > file->bytes.len || len > file->bytes.len - at)
			return corrupt(file, "it ends too early", err);
		memcpy(into, file->bytes.data + at, len);
		return 0;
	}
	while (done < len) {
		ssize_t got = pread(file->fd, (char *)into + done, len - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set_errno(err, errno, "read unwind table \"%s\"", file->name);
		if (got == 0)
			return corrupt(file, "it ends too early", err);
		done += (size_t)got;
	}
	return 0;
}

struct table_segment table_file_place(const struct table_file_segment *segment, uint32_t chunk,
				      uint32_t at)
{
	uint32_t rows_at = at + 4 * (segment->buckets + 1);

	return (struct table_segment){
		.first_bucket = segment->first_bucket,
		.buckets = segment->buckets,
		.chunk = chunk,
		.index_at = at,
		.rows_at = rows_at,
		.rules_at = (rows_at + 4 * segment->rows_count + 7) & ~7u,
	};
}

static bool is_segment_sound(const struct table_file_segment *segment, uint64_t file_bytes)
{
	const uint32_t words_max = TABLE_CHUNK_BYTES / 4;
	struct table_segment place;

	if (!segment->buckets || segment->buckets >= words_max || !segment->rows_count ||
	    segment->rows_count > words_max || !segment->rules_count ||
	    segment->rules_count > TABLE_CHUNK_BYTES / sizeof(struct unwind_rule) ||
	    segment->first_bucket > UINT32_MAX - segment->buckets)
		return false;
	place = table_file_place(segment, 0, 0);
	return segment->image_bytes <= TABLE_CHUNK_BYTES &&
	       segment->image_bytes ==
		       place.rules_at + segment->rules_count * sizeof(struct unwind_rule) &&
	       segment->image_at % TABLE_FILE_ALIGN == 0 && segment->image_at >= TABLE_FILE_ALIGN &&
	       segment->image_at <= file_bytes &&
	       segment->image_bytes <= file_bytes - segment->image_at;
}

static int check_header(const struct table_file *file, uint64_t file_bytes, struct err *err)
{
	const struct table_file_header *header = &file->header;
	uint32_t crc = hash_crc32c(0, header, offsetof(struct table_file_header, crc));
	uint64_t next_bucket = 0, rows = 0;

	if (memcmp(header->magic, TABLE_FILE_MAGIC, sizeof(header->magic)) != 0)
		return corrupt(file, "it does not begin as one", err);
	if (header->version != TABLE_FILE_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "read unwind table \"%s\": version %u",
			       file->name, header->version);
	if (crc != header->crc)
		return corrupt(file, "checksum mismatch of its header", err);
	if (header->file_bytes != file_bytes)
		return corrupt(file, "it has another length than it says", err);
	if (header->segments_count > TABLE_SEGMENTS_MAX)
		return corrupt(file, "too many segments", err);
	for (uint32_t i = 0; i < header->segments_count; i++) {
		const struct table_file_segment *segment = &header->segments[i];

		if (!is_segment_sound(segment, file_bytes))
			return corrupt(file, "the bounds of a segment make no sense", err);
		if (segment->first_bucket < next_bucket)
			return corrupt(file, "segments out of order", err);
		next_bucket = (uint64_t)segment->first_bucket + segment->buckets;
		rows += segment->rows_count;
	}
	return rows == header->rows_count ? 0 : corrupt(file, "rows miscounted", err);
}

/* ---- images ---- */

/* The mark of plain rules is where it belongs, and nowhere else. */
static bool is_mark_right(const struct unwind_rule *rule)
{
	struct unwind_rule unmarked = *rule;

	unmarked.flags &= (__u8)~UNWIND_RULE_PLAIN;
	return !unwind_rule_is_plain(&unmarked) == !(rule->flags & UNWIND_RULE_PLAIN);
}

static bool is_rule_sound(const struct unwind_rule *rule)
{
	return rule->cfa <= UNWIND_CFA_PLT && rule->ra <= UNWIND_VALUE_UNSUPPORTED &&
	       rule->fp <= UNWIND_VALUE_UNSUPPORTED && rule->cfa_register < UNWIND_REGISTERS &&
	       rule->cfa_index < UNWIND_REGISTERS && rule->ra_register < UNWIND_REGISTERS &&
	       rule->fp_register < UNWIND_REGISTERS && rule->bx <= UNWIND_VALUE_UNSUPPORTED &&
	       !rule->reserved && !(rule->flags & ~(uint32_t)FLAGS_ALL) && is_mark_right(rule);
}

/* Rows of one bucket are in order and behind its start, but for one at the start of the next. */
static bool is_bucket_sound(const struct table_image *image, uint32_t bucket)
{
	uint32_t first = image->index[bucket], last = image->index[bucket + 1], before = 0;

	if (last < first || last >= image->segment.rows_count)
		return false;
	for (uint32_t i = first + 1; i <= last; i++) {
		uint32_t at = TABLE_ROW_OFFSET(image->rows[i]);

		if (!at && i == last && bucket + 1 < image->segment.buckets)
			at = TABLE_BUCKET_BYTES;
		if (at <= before)
			return false;
		before = at;
	}
	return true;
}

static bool is_image_sound(const struct table_image *image)
{
	const struct table_file_segment *segment = &image->segment;

	if (image->index[0] || TABLE_ROW_OFFSET(image->rows[0]) ||
	    image->index[segment->buckets] != segment->rows_count - 1)
		return false;
	for (uint32_t i = 0; i < segment->buckets; i++)
		if (!is_bucket_sound(image, i))
			return false;
	for (uint32_t i = 0; i < segment->rows_count; i++)
		if (TABLE_ROW_RULE(image->rows[i]) >= segment->rules_count)
			return false;
	for (uint32_t i = 0; i < segment->rules_count; i++)
		if (!is_rule_sound(&image->rules[i]))
			return false;
	return true;
}

int table_image_load(const struct table_file *file, uint32_t segment, struct table_image *ret,
		     struct err *err)
{
	struct table_image image = { .segment = file->header.segments[segment] };
	struct table_segment place = table_file_place(&image.segment, 0, 0);
	int status;

	image.bytes = mem_calloc(1, image.segment.image_bytes);
	image.index = image.bytes;
	image.rows = (const uint32_t *)((const char *)image.bytes + place.rows_at);
	image.rules = (const struct unwind_rule *)((const char *)image.bytes + place.rules_at);
	status = read_at(file, image.segment.image_at, image.bytes, image.segment.image_bytes, err);
	if (!status &&
	    hash_crc32c(0, image.bytes, image.segment.image_bytes) != image.segment.image_crc)
		status = corrupt(file, "checksum mismatch of a segment", err);
	if (!status && !is_image_sound(&image))
		status = corrupt(file, "the rows of a segment make no sense", err);
	if (status)
		table_image_free(&image);
	else
		*ret = image;
	return status;
}

void table_image_free(struct table_image *image)
{
	free(image->bytes);
	*image = (struct table_image){ 0 };
}

static int check_all(struct table_file *file, uint64_t file_bytes, struct table_file *ret,
		     struct err *err)
{
	int status = read_at(file, 0, &file->header, sizeof(file->header), err);

	if (!status)
		status = check_header(file, file_bytes, err);
	for (uint32_t i = 0; !status && i < file->header.segments_count; i++) {
		struct table_image image = { 0 };

		status = table_image_load(file, i, &image, err);
		table_image_free(&image);
	}
	if (!status)
		*ret = *file;
	return status;
}

int table_file_open(int fd, const char *name, struct table_file *ret, struct err *err)
{
	struct table_file file = { .fd = fd, .name = name };
	struct stat st;

	if (fstat(fd, &st))
		return err_set_errno(err, errno, "stat \"%s\"", name);
	return check_all(&file, (uint64_t)st.st_size, ret, err);
}

int table_file_parse(struct slice bytes, const char *name, struct table_file *ret, struct err *err)
{
	struct table_file file = { .fd = -1, .bytes = bytes, .name = name };

	return check_all(&file, bytes.len, ret, err);
}

/* ---- rows ---- */

const struct unwind_rule *table_image_find(const struct table_image *image, uint64_t offset)
{
	uint64_t bucket = (offset >> TABLE_BUCKET_SHIFT) - image->segment.first_bucket;
	uint32_t low, high;

	if (offset >> TABLE_BUCKET_SHIFT < image->segment.first_bucket ||
	    bucket >= image->segment.buckets)
		return NULL;
	low = image->index[bucket];
	high = image->index[bucket + 1];
	while (low < high) { /* the answer is in low..high */
		uint32_t middle = high - (high - low) / 2;
		uint32_t at = TABLE_ROW_OFFSET(image->rows[middle]);

		if (at && at <= (offset & TABLE_BUCKET_MASK))
			low = middle;
		else
			high = middle - 1;
	}
	return &image->rules[TABLE_ROW_RULE(image->rows[low])];
}

int table_image_walk(const struct table_image *image,
		     int (*row)(void *context, uint64_t offset, const struct unwind_rule *rule),
		     void *context)
{
	uint64_t start = (uint64_t)image->segment.first_bucket << TABLE_BUCKET_SHIFT;
	int status = row(context, start, &image->rules[TABLE_ROW_RULE(image->rows[0])]);

	for (uint32_t bucket = 0; !status && bucket < image->segment.buckets; bucket++) {
		uint64_t base = start + ((uint64_t)bucket << TABLE_BUCKET_SHIFT);

		for (uint32_t i = image->index[bucket] + 1;
		     !status && i <= image->index[bucket + 1]; i++) {
			uint32_t at = TABLE_ROW_OFFSET(image->rows[i]);

			status = row(context, base + (at ? at : TABLE_BUCKET_BYTES),
				     &image->rules[TABLE_ROW_RULE(image->rows[i])]);
		}
	}
	return status;
}

void table_file_sources(uint32_t sources, char ret[TABLE_FILE_SOURCES_BYTES])
{
	static const char *const names[TABLE_SOURCES] = {
		[TABLE_SOURCE_START] = "start",	       [TABLE_SOURCE_GOPCLNTAB] = ".gopclntab",
		[TABLE_SOURCE_EH_FRAME] = ".eh_frame", [TABLE_SOURCE_DEBUG_FRAME] = ".debug_frame",
		[TABLE_SOURCE_SFRAME] = ".sframe",     [TABLE_SOURCE_PLT] = ".plt",
	};
	int len = 0;

	ret[0] = 0;
	for (int i = 0; i < TABLE_SOURCES; i++)
		if (sources & 1u << i)
			len += snprintf(ret + len, TABLE_FILE_SOURCES_BYTES - (size_t)len, "%s%s",
					len ? " " : "", names[i]);
}
