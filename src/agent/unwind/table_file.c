/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/table_file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/unwind/row_rule.h"
#include "base/hash.h"
#include "base/mem.h"

#define FLAGS_ALL (UNWIND_RULE_SIGNAL | UNWIND_RULE_PAC)
#define IMAGE_WORDS_MAX (TABLE_CHUNK_BYTES / 4)

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

static uint32_t lines_of(const struct table_file_segment *segment)
{
	return segment->blocks << (TABLE_BLOCK_SHIFT - segment->bucket_shift);
}

struct table_segment table_file_place(const struct table_file_segment *segment, uint32_t chunk,
				      uint32_t at)
{
	uint32_t rows_end = at + TABLE_LINE_BYTES * lines_of(segment) + 4 * segment->far_count;

	return (struct table_segment){
		.first_block = segment->first_block,
		.blocks = segment->blocks,
		.chunk = chunk,
		.lines_at = at,
		.rules_at = (rows_end + 7) & ~7u,
		.bucket_shift = segment->bucket_shift,
	};
}

uint32_t table_file_image_bytes(const struct table_file_segment *segment)
{
	return table_file_place(segment, 0, 0).rules_at +
	       segment->rules_count * (uint32_t)sizeof(struct unwind_rule);
}

static bool is_segment_sound(const struct table_file_segment *segment, uint64_t file_bytes)
{
	if (segment->bucket_shift < TABLE_BUCKET_SHIFT_MIN ||
	    segment->bucket_shift > TABLE_BUCKET_SHIFT_MAX || !segment->blocks ||
	    segment->blocks > IMAGE_WORDS_MAX / TABLE_LINE_WORDS || !segment->rows_count ||
	    segment->far_count > IMAGE_WORDS_MAX ||
	    segment->rules_count > TABLE_CHUNK_BYTES / sizeof(struct unwind_rule) ||
	    segment->first_block > UINT32_MAX - segment->blocks)
		return false;
	return segment->image_bytes <= TABLE_CHUNK_BYTES &&
	       segment->image_bytes == table_file_image_bytes(segment) &&
	       segment->image_at % TABLE_FILE_ALIGN == 0 && segment->image_at >= TABLE_FILE_ALIGN &&
	       segment->image_at <= file_bytes &&
	       segment->image_bytes <= file_bytes - segment->image_at;
}

static int check_header(const struct table_file *file, uint64_t file_bytes, struct err *err)
{
	const struct table_file_header *header = &file->header;
	uint32_t crc = hash_crc32c(0, header, offsetof(struct table_file_header, crc));
	uint64_t next_block = 0, rows = 0;

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
		if (segment->first_block < next_block)
			return corrupt(file, "segments out of order", err);
		next_block = (uint64_t)segment->first_block + segment->blocks;
		rows += segment->rows_count;
	}
	return rows == header->rows_count ? 0 : corrupt(file, "rows miscounted", err);
}

/* ---- images ---- */

static bool is_rule_sound(const struct unwind_rule *rule)
{
	return rule->cfa <= UNWIND_CFA_CLONE && rule->ra <= UNWIND_VALUE_UNSUPPORTED &&
	       rule->fp <= UNWIND_VALUE_UNSUPPORTED && rule->cfa_register < UNWIND_REGISTERS &&
	       rule->cfa_index < UNWIND_REGISTERS && rule->ra_register < UNWIND_REGISTERS &&
	       rule->fp_register < UNWIND_REGISTERS && rule->bx <= UNWIND_VALUE_UNSUPPORTED &&
	       !rule->reserved && !(rule->flags & ~(uint32_t)FLAGS_ALL);
}

/* The check of all lines, in order. */
struct line_check {
	const struct table_image *image;
	uint32_t far_next, far_end; /* words */
	uint32_t rows_count;
	uint32_t rule; /* of the last row */
};

static bool check_rows(struct line_check *check, const uint32_t *rows, uint32_t count,
		       uint32_t *before)
{
	const struct table_file_segment *segment = &check->image->segment;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = TABLE_ROW_OFFSET(rows[i]), rule = TABLE_ROW_RULE(rows[i]);

		if (at <= *before || at >> segment->bucket_shift || rule == check->rule ||
		    (rule & TABLE_RULE_LISTED && TABLE_RULE_INDEX(rule) >= segment->rules_count))
			return false;
		*before = at;
		check->rule = rule;
	}
	check->rows_count += count;
	return true;
}

static bool check_line(struct line_check *check, const uint32_t *words)
{
	const struct table_file_segment *segment = &check->image->segment;
	uint32_t far = TABLE_ROW_OFFSET(words[0]), rule = TABLE_ROW_RULE(words[0]);
	uint32_t near = far ? TABLE_LINE_ROWS_MAX - 1 : 0, before = 0;

	if (rule & TABLE_RULE_LISTED && TABLE_RULE_INDEX(rule) >= segment->rules_count)
		return false;
	check->rows_count += words == check->image->words || rule != check->rule;
	check->rule = rule;
	while (!far && near < TABLE_LINE_ROWS_MAX && words[1 + near] != TABLE_ROW_UNUSED)
		near++;
	if (!check_rows(check, words + 1, near, &before))
		return false;
	if (far) {
		if (words[TABLE_LINE_ROWS_MAX] != (TABLE_ROW_FAR | check->far_next) ||
		    far > check->far_end - check->far_next ||
		    !check_rows(check, check->image->words + check->far_next, far, &before))
			return false;
		check->far_next += far;
		near = TABLE_LINE_ROWS_MAX;
	}
	for (; near < TABLE_LINE_ROWS_MAX; near++)
		if (words[1 + near] != TABLE_ROW_UNUSED)
			return false;
	return true;
}

static bool is_image_sound(const struct table_image *image)
{
	const struct table_file_segment *segment = &image->segment;
	uint32_t lines = lines_of(segment), far = lines * TABLE_LINE_WORDS;
	struct line_check check = { image, far, far + segment->far_count, 0, 0 };

	for (uint32_t i = 0; i < lines; i++)
		if (!check_line(&check, image->words + (size_t)i * TABLE_LINE_WORDS))
			return false;
	for (uint32_t i = 0; i < segment->rules_count; i++)
		if (!is_rule_sound(&image->rules[i]))
			return false;
	return check.far_next == check.far_end && check.rows_count == segment->rows_count;
}

int table_image_load(const struct table_file *file, uint32_t segment, struct table_image *ret,
		     struct err *err)
{
	struct table_image image = { .segment = file->header.segments[segment] };
	struct table_segment place = table_file_place(&image.segment, 0, 0);
	int status;

	assert(segment < file->header.segments_count);
	image.bytes = mem_calloc(1, image.segment.image_bytes);
	image.words = image.bytes;
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

/* A damaged segment costs the code that it covers; only when all are, the table is refused. */
static int leave_out_damaged(struct table_file *file, struct err *err)
{
	struct table_file_header *header = &file->header;
	uint32_t count = header->segments_count, kept = 0;

	header->rows_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct table_image image = { 0 };
		struct err damage;
		int status = table_image_load(file, i, &image, &damage);

		table_image_free(&image);
		if (!status) {
			header->rows_count += header->segments[i].rows_count;
			header->segments[kept++] = header->segments[i];
			continue;
		}
		if (!file->damaged_count++)
			file->damage = damage;
		if (err && (status != -ERR_CORRUPT || file->damaged_count == count))
			*err = damage;
		if (status != -ERR_CORRUPT || file->damaged_count == count)
			return status;
	}
	header->segments_count = kept;
	return 0;
}

static int check_all(struct table_file *file, uint64_t file_bytes, struct table_file *ret,
		     struct err *err)
{
	int status = read_at(file, 0, &file->header, sizeof(file->header), err);

	if (!status)
		status = check_header(file, file_bytes, err);
	if (!status)
		status = leave_out_damaged(file, err);
	if (!status)
		*ret = *file;
	return status;
}

int table_file_open(int fd, const char *name, struct table_file *ret, struct err *err)
{
	struct table_file file = { .fd = fd, .name = name };
	struct stat st;

	assert(fd >= 0);
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

static struct unwind_rule rule_of(const struct table_image *image, uint32_t row)
{
	uint32_t rule = TABLE_ROW_RULE(row);

	return rule & TABLE_RULE_LISTED ? image->rules[TABLE_RULE_INDEX(rule)]
					: row_rule_unpack(rule);
}

/* The last of `count` rows that is not behind `offset`, or `before`. */
static uint32_t last_row(const uint32_t *rows, uint32_t count, uint32_t offset, uint32_t before)
{
	for (uint32_t i = 0; i < count && rows[i] <= TABLE_ROW_KEY(offset); i++)
		before = rows[i];
	return before;
}

static uint32_t near_rows(const uint32_t *words)
{
	return TABLE_ROW_OFFSET(words[0]) ? TABLE_LINE_ROWS_MAX - 1 : TABLE_LINE_ROWS_MAX;
}

static const uint32_t *far_rows(const struct table_image *image, const uint32_t *words)
{
	return image->words + (words[TABLE_LINE_ROWS_MAX] & TABLE_RULE_MASK);
}

bool table_image_find(const struct table_image *image, uint64_t offset, struct unwind_rule *ret)
{
	const struct table_file_segment *segment = &image->segment;
	uint64_t at = offset - ((uint64_t)segment->first_block << TABLE_BLOCK_SHIFT);
	uint32_t in_bucket = at & ((1u << segment->bucket_shift) - 1), row, far;
	const uint32_t *words;

	assert(image->words && image->rules);
	if (at >> TABLE_BLOCK_SHIFT >= segment->blocks)
		return false;
	words = image->words + (at >> segment->bucket_shift) * TABLE_LINE_WORDS;
	far = TABLE_ROW_OFFSET(words[0]);
	row = last_row(words + 1, near_rows(words), in_bucket, words[0]);
	if (far)
		row = last_row(far_rows(image, words), far, in_bucket, row);
	*ret = rule_of(image, row);
	return true;
}

struct row_walk {
	const struct table_image *image;
	int (*row)(void *context, uint64_t offset, const struct unwind_rule *rule);
	void *context;
	uint32_t last; /* rule of the last row */
};

static int tell_rows(struct row_walk *walk, uint64_t base, const uint32_t *rows, uint32_t count)
{
	int status = 0;

	for (uint32_t i = 0; !status && i < count && rows[i] != TABLE_ROW_UNUSED; i++) {
		struct unwind_rule rule = rule_of(walk->image, rows[i]);

		status = walk->row(walk->context, base + TABLE_ROW_OFFSET(rows[i]), &rule);
		walk->last = TABLE_ROW_RULE(rows[i]);
	}
	return status;
}

int table_image_walk(const struct table_image *image,
		     int (*row)(void *context, uint64_t offset, const struct unwind_rule *rule),
		     void *context)
{
	const struct table_file_segment *segment = &image->segment;
	struct row_walk walk = { image, row, context, UINT32_MAX };
	int status = 0;

	assert(image->words && image->rules);
	for (uint64_t line = 0; !status && line < lines_of(segment); line++) {
		const uint32_t *words = image->words + line * TABLE_LINE_WORDS;
		uint64_t base = ((uint64_t)segment->first_block << TABLE_BLOCK_SHIFT) +
				(line << segment->bucket_shift);
		uint32_t far = TABLE_ROW_OFFSET(words[0]), start = TABLE_ROW_RULE(words[0]);

		if (start != walk.last)
			status = tell_rows(&walk, base, &start, 1);
		if (!status)
			status = tell_rows(&walk, base, words + 1, near_rows(words));
		if (!status && far)
			status = tell_rows(&walk, base, far_rows(image, words), far);
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
