/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts. The first byte says what the rest is:
 *
 *   F  a whole file (its magic), the checksums of trailer and directory repaired
 *   d  a directory: u64 end of the chunks, bytes
 *   h  a stripe: u32 reports, u32 rows, u32 columns, u32 length of the headers, headers, rows
 *   m  times of samples: u32 reports, u32 rows of each, bytes
 *   s  series: u32 x 7 counts of a partition, u32 length of the index, index, series
 *   t  stacks: the same with u32 lengths of strings and frames, strings, frames, nodes
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"
#include "server/persist/part/decode/part_directory.h"
#include "server/persist/part/part_moments.h"
#include "server/persist/part/decode/part_reader.h"

#define COUNTS 7
#define STACK_BYTES_MAX ((uint32_t)1 << 24) /* what a count may claim, so that rounds are short */

/* A file system of one file. */

struct memory_file {
	struct vfs_file head;
	struct slice bytes;
};

static struct slice whole_file;

static int open_memory(const struct vfs *vfs, const char *path, unsigned int flags,
		       struct vfs_file **ret)
{
	struct memory_file *file = mem_new(struct memory_file);

	(void)path;
	(void)flags;
	*file = (struct memory_file){ { vfs, "memory" }, whole_file };
	*ret = &file->head;
	return 0;
}

static int close_memory(struct vfs_file *file)
{
	free(file);
	return 0;
}

static ssize_t pread_memory(struct vfs_file *file, void *data, size_t len, uint64_t offset)
{
	struct slice bytes = ((struct memory_file *)file)->bytes;

	if (offset >= bytes.len)
		return 0;
	if (len > bytes.len - offset)
		len = bytes.len - offset;
	memcpy(data, bytes.data + offset, len);
	return (ssize_t)len;
}

static int size_memory(struct vfs_file *file, uint64_t *ret)
{
	*ret = ((struct memory_file *)file)->bytes.len;
	return 0;
}

static const struct vfs memory_vfs = {
	.open = open_memory, .close = close_memory, .pread = pread_memory, .size = size_memory
};

static uint64_t u64_at(const char *at)
{
	struct byte_reader in = byte_reader_of(slice_from(at, 8));

	return byte_reader_u64(&in);
}

/* What the manifest would say of the file, which is made to be so. */
static struct part_info repair(struct strbuf *bytes)
{
	char *trailer = bytes->data + bytes->len - PART_TRAILER_BYTES;
	uint64_t offset = u64_at(trailer), stored = u64_at(trailer + 8);
	struct part_info info = { .bytes = bytes->len };
	uint32_t crc;

	if (offset < bytes->len && stored <= bytes->len - offset) {
		crc = hash_crc32c(0, bytes->data + offset, stored);
		memcpy(trailer + 48, &crc, sizeof(crc));
	}
	memcpy(&info.hash, trailer + 32, sizeof(info.hash));
	info.hash = identity_of_bytes(bytes->data, bytes->len - PART_TRAILER_BYTES);
	memcpy(trailer + 32, &info.hash, sizeof(info.hash));
	info.number = u64_at(trailer + 24);
	crc = hash_crc32c(0, trailer, PART_TRAILER_BYTES - 12);
	memcpy(trailer + 52, &crc, sizeof(crc));
	return info;
}

static void read_file(struct slice input)
{
	struct strbuf bytes = { 0 };
	struct part_reader *reader;
	struct part_info info;
	struct err err;

	if (input.len < PART_HEADER_BYTES + PART_TRAILER_BYTES)
		return;
	strbuf_add_slice(&bytes, input);
	info = repair(&bytes);
	whole_file = strbuf_slice(&bytes);
	if (!part_reader_open(&memory_vfs, "", &info, &reader, &err)) {
		if (part_reader_verify(reader, &err) && !err.code)
			abort();
		part_reader_close(reader);
	}
	strbuf_free(&bytes);
}

static void read_directory(struct byte_reader *in)
{
	uint64_t end = byte_reader_u64(in);
	struct slice bytes = byte_reader_bytes(in, byte_reader_left(in));
	struct part_directory directory;
	struct err err;

	for (uint32_t version = PART_VERSION_OLDEST; version <= PART_VERSION; version++)
		if (!part_directory_decode(bytes, end, version, &directory, &err))
			part_directory_free(&directory);
}

static void read_stripe(struct byte_reader *in)
{
	struct part_stripe_shape shape = { .reports = byte_reader_u32(in),
					   .rows = byte_reader_u32(in),
					   .columns = byte_reader_u32(in) };
	struct slice headers = byte_reader_bytes(in, byte_reader_u32(in));
	struct slice rest = byte_reader_bytes(in, byte_reader_left(in));
	const struct part_stripe_range all = { .from_ns = INT64_MIN, .to_ns = INT64_MAX };
	struct part_stripe_range some = all;
	struct part_stripe_image image = { 0 };
	struct strbuf rows = { 0 };
	struct err err;

	strbuf_add_slice(&rows, rest);
	memset(strbuf_reserve(&rows, PART_STRIPE_SLACK), 0, PART_STRIPE_SLACK);
	if (!part_stripe_decode_headers(headers, &shape, &image, &err)) {
		part_stripe_make_reports(&image);
		if (shape.reports > 1)
			some.from_ns = image.reports[shape.reports / 2].start_ns;
		if (shape.reports > 2)
			some.hole = (struct segment_hole){ image.reports[1].start_ns,
							   image.reports[2].start_ns };
		if (part_stripe_decode_rows(strbuf_slice(&rows), some, &image, &err) &&
		    err.code != ERR_CORRUPT)
			abort();
		if (!part_stripe_decode_rows(strbuf_slice(&rows), all, &image, &err) &&
		    part_stripe_check_totals(&image, &err) && err.code != ERR_CORRUPT)
			abort();
	}
	part_stripe_image_free(&image);
	strbuf_free(&rows);
}

static void read_moments(struct byte_reader *in)
{
	uint32_t count = byte_reader_u32(in) & 0xffff, rows = byte_reader_u32(in);
	struct segment_report *reports = mem_new_array(struct segment_report, count);
	struct part_moments moments = { 0 };
	struct err err;

	for (uint32_t i = 0; i < count; i++)
		reports[i].row_count = rows;
	if (!part_moments_decode(byte_reader_bytes(in, byte_reader_left(in)), reports, count,
				 &moments, &err))
		for (size_t i = 0; i < moments.count; i++)
			if (moments.items[i].row >= rows ||
			    moments.items[i].link >= moments.links_count)
				abort();
	part_moments_free(&moments);
	free(reports);
}

static const struct column_name columns[] = {
	{ SLICE_LITERAL("samples"), SLICE_LITERAL("count"), COLUMN_DELTA },
};

static const struct part_partition type = { .group_name = SLICE_LITERAL("on_cpu"),
					    .period_type = SLICE_LITERAL("cpu"),
					    .period_unit = SLICE_LITERAL("nanoseconds"),
					    .columns = columns,
					    .columns_count = 1 };

static bool read_shape(struct byte_reader *in, struct part_dictionary_shape *ret)
{
	uint32_t counts[COUNTS];

	for (int i = 0; i < COUNTS; i++)
		counts[i] = byte_reader_u32(in) % STACK_BYTES_MAX;
	*ret = (struct part_dictionary_shape){
		.series = counts[0],
		.row_label_sets = counts[1],
		.label_strings = counts[2],
		.strings = counts[3],
		.frames = counts[4],
		.nodes = counts[5],
		.stacks = counts[6],
		.type = &type,
		.blocks = { 1 },
	};
	/* The directory's part of the bargain. */
	return ret->label_strings && ret->strings >= ret->label_strings;
}

static void read_series(struct byte_reader *in)
{
	struct part_dictionary_shape shape;
	struct part_series_image image;
	struct slice index;
	struct err err;

	if (!read_shape(in, &shape))
		return;
	index = byte_reader_bytes(in, byte_reader_u32(in));
	if (!part_series_decode(index, byte_reader_bytes(in, byte_reader_left(in)), &shape, &image,
				&err))
		part_series_free(&image);
}

static const struct node root_node;
static const struct string_ref no_string;
static const struct label_set no_label_set;

static void read_stacks(struct byte_reader *in)
{
	struct part_series_image series = { .view = { .nodes = &root_node,
						      .nodes_count = 1,
						      .string_bytes = "",
						      .strings = &no_string,
						      .strings_count = 1,
						      .label_sets = &no_label_set,
						      .label_sets_count = 1 } };
	struct part_dictionary_shape shape;
	struct part_stacks_image image;
	struct slice strings, frames;
	uint32_t strings_bytes, frames_bytes;
	struct err err;

	if (!read_shape(in, &shape))
		return;
	shape.label_strings = 1;
	strings_bytes = byte_reader_u32(in);
	frames_bytes = byte_reader_u32(in);
	strings = byte_reader_bytes(in, strings_bytes);
	frames = byte_reader_bytes(in, frames_bytes);
	if (!part_stacks_decode(strings, frames, byte_reader_bytes(in, byte_reader_left(in)),
				&shape, &series, &image, &err))
		part_stacks_free(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct byte_reader in = byte_reader_of(slice_from(data, size));

	switch (byte_reader_fixed(&in, 1)) {
	case 'F':
		read_file(slice_from(data, size));
		break;
	case 'd':
		read_directory(&in);
		break;
	case 'h':
		read_stripe(&in);
		break;
	case 'm':
		read_moments(&in);
		break;
	case 's':
		read_series(&in);
		break;
	case 't':
		read_stacks(&in);
		break;
	}
	return 0;
}
