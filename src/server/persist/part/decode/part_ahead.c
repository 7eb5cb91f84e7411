/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/decode/part_ahead.h"

#include "server/persist/disk/layout.h"
#include "server/persist/part/decode/part_reader_int.h"

#define DIRECTORY_BYTES ((uint64_t)64 << 10) /* what most directories take, with the trailer */

static void expect(struct vfs_file *file, uint64_t offset, uint64_t len)
{
	if (file->vfs->will_read && len)
		file->vfs->will_read(file, offset, len);
}

void part_ahead_open(const struct vfs *vfs, const char *dir, const struct part_info *info)
{
	struct layout_path path = layout_path(dir, LAYOUT_PART, info->number);
	uint64_t tail = info->bytes < DIRECTORY_BYTES ? info->bytes : DIRECTORY_BYTES;
	struct vfs_file *file;

	if (!vfs->will_read || vfs_open(vfs, path.text, VFS_READ, &file, NULL))
		return;
	expect(file, 0, PART_HEADER_BYTES);
	expect(file, info->bytes - tail, tail);
	vfs_close(file);
}

static void expect_sections(struct part_reader *reader, const struct part_entry *entry,
			    enum part_section first, enum part_section last)
{
	for (int i = first; i <= (int)last; i++) {
		uint32_t chunk = entry->sections[i].chunk;

		if (chunk != UINT32_MAX)
			expect(reader->file, reader->directory.chunks[chunk].offset,
			       reader->directory.chunks[chunk].stored);
	}
}

void part_ahead_series(struct part_reader *reader, uint32_t partition)
{
	struct part_reader_partition *loaded = &reader->partitions[partition];
	bool has_series;

	lock_take(&loaded->lock);
	has_series = loaded->has_series;
	lock_give(&loaded->lock);
	if (!has_series)
		expect_sections(reader, loaded->entry, PART_SECTION_INDEX, PART_SECTION_SERIES);
}

static bool may_have_reports(const struct segment *segment, const struct segment_zone *zone)
{
	const struct segment_hole *hole = &segment->hole;

	return zone->start_max_ns >= segment->from_ns && zone->start_min_ns < segment->to_ns &&
	       (zone->start_min_ns < hole->from_ns || zone->start_max_ns >= hole->to_ns);
}

void part_ahead_blocks(const struct segment *segment, bool headers_only)
{
	const struct part_reader_partition *partition = segment->owner;
	const struct part_directory *directory = &partition->reader->directory;
	const struct part_block *blocks = partition->series.blocks[segment->level];
	uint32_t before = UINT32_MAX;

	if (!partition->reader->file->vfs->will_read)
		return;
	if (!headers_only)
		expect_sections(partition->reader, partition->entry, PART_SECTION_STRINGS,
				PART_SECTION_NODES);
	for (uint32_t i = 0; i < segment->blocks_count; i++) {
		const struct part_stripe_entry *stripe;
		const struct part_chunk *chunks;

		if (blocks[i].stripe == before || !may_have_reports(segment, &segment->zones[i]))
			continue;
		before = blocks[i].stripe;
		stripe = &directory->stripes[before];
		chunks = &directory->chunks[stripe->chunk];
		expect(partition->reader->file, chunks[0].offset,
		       headers_only || !stripe->shape.rows
			       ? chunks[0].stored
			       : (uint64_t)chunks[0].stored + chunks[1].stored);
	}
}
