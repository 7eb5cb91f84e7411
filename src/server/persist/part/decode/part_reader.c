/* SPDX-License-Identifier: Apache-2.0 */
#include "server/persist/part/decode/part_reader.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/hash.h"
#include "base/mem.h"
#include "server/persist/disk/byte_reader.h"
#include "server/persist/part/decode/part_find.h"
#include "server/persist/part/decode/part_reader_int.h"
#include "server/persist/disk/persist_locks.h"

#define SHARED_CHUNK_BYTES_MAX                                                                     \
	((size_t)1 << 20) /* larger ones are not kept for the next section                         \
			   */
#define VERIFY_BYTES ((size_t)1 << 20)
#define VERIFY_MEMORY_BYTES ((size_t)64 << 20)

static _Atomic uint64_t instances;

int part_reader_read(struct part_reader *reader, char *to, size_t len, uint64_t offset,
		     struct err *err)
{
	struct vfs_file *file = reader->file;

	while (len) {
		ssize_t done = file->vfs->pread(file, to, len, offset);

		if (done == -EINTR)
			continue;
		if (done < 0)
			return err_set_errno(err, (int)-done, "read at offset %llu",
					     (unsigned long long)offset);
		if (!done)
			return err_set(err, ERR_CORRUPT, "ends at offset %llu",
				       (unsigned long long)offset);
		to += done;
		offset += (uint64_t)done;
		len -= (size_t)done;
	}
	return 0;
}

int part_reader_note(struct part_reader *reader, int rc, struct err *cause, struct err *err)
{
	if (!rc)
		return 0;
	err_wrap(cause, "part \"%s\"", reader->file->path);
	if (rc == -ERR_CORRUPT) {
		lock_take(&reader->lock);
		if (!reader->damaged) {
			reader->damage = *cause;
			reader->damaged = true;
		}
		lock_give(&reader->lock);
	}
	if (err)
		*err = *cause;
	return rc;
}

bool part_reader_is_damaged(struct part_reader *reader, struct err *ret)
{
	bool damaged;

	lock_take(&reader->lock);
	damaged = reader->damaged;
	if (damaged)
		*ret = reader->damage;
	lock_give(&reader->lock);
	return damaged;
}

/* Chunks of sections. */

static int unpack_chunk(struct part_reader *reader, const struct part_chunk *chunk, char *to,
			struct err *err)
{
	char *stored = mem_realloc(NULL, chunk->stored ? chunk->stored : 1, 1);
	ZSTD_DCtx *decoder = ZSTD_createDCtx();
	int rc = decoder ? part_reader_read(reader, stored, chunk->stored, chunk->offset, err)
			 : err_set(err, ERR_NO_MEMORY, "no memory to decompress");

	if (!rc)
		rc = part_chunk_unpack(chunk, decoder, stored, to, err);
	ZSTD_freeDCtx(decoder);
	free(stored);
	return rc;
}

static void unref_chunk(struct part_reader *reader, struct chunk_bytes *bytes)
{
	bool last;

	if (!bytes)
		return;
	lock_take(&reader->lock);
	assert(bytes->references);
	last = !--bytes->references;
	lock_give(&reader->lock);
	if (last) {
		free(bytes->raw);
		free(bytes);
	}
}

static struct chunk_bytes *find_kept(struct part_reader *reader, enum part_section section,
				     uint32_t chunk)
{
	struct chunk_bytes *found = NULL;

	lock_take(&reader->lock);
	if (reader->kept[section] && reader->kept[section]->chunk == chunk) {
		found = reader->kept[section];
		found->references++;
	}
	lock_give(&reader->lock);
	return found;
}

/* For the next partition, whose section probably lies behind this one. */
static void keep(struct part_reader *reader, enum part_section section, struct chunk_bytes *bytes)
{
	struct chunk_bytes *old;

	lock_take(&reader->lock);
	old = reader->kept[section];
	reader->kept[section] = bytes;
	if (bytes)
		bytes->references++;
	lock_give(&reader->lock);
	unref_chunk(reader, old);
}

/* *ret_chunk is to be given back with unref_chunk; NULL when there is nothing. */
static int get_section(struct part_reader *reader, const struct part_reader_partition *partition,
		       enum part_section section, struct slice *ret, struct chunk_bytes **ret_chunk,
		       struct err *err)
{
	const struct part_place *place = &partition->entry->sections[section];
	const struct part_chunk *chunk;
	struct chunk_bytes *bytes;
	int rc;

	*ret = (struct slice){ "", 0 };
	*ret_chunk = NULL;
	if (place->chunk == UINT32_MAX)
		return 0;
	chunk = &reader->directory.chunks[place->chunk];
	bytes = find_kept(reader, section, place->chunk);
	if (!bytes) {
		bytes = mem_new(struct chunk_bytes);
		*bytes = (struct chunk_bytes){ 1, place->chunk,
					       mem_realloc(NULL, chunk->raw + 1ull, 1) };
		rc = unpack_chunk(reader, chunk, bytes->raw, err);
		if (rc) {
			unref_chunk(reader, bytes);
			return rc;
		}
		if (chunk->raw <= SHARED_CHUNK_BYTES_MAX && chunk->raw > place->bytes)
			keep(reader, section, bytes);
	}
	*ret = slice_from(bytes->raw + place->offset, place->bytes);
	*ret_chunk = bytes;
	return 0;
}

/* Opening. */

struct trailer {
	struct part_chunk directory;
	uint64_t raw, stored, number;
	struct identity hash;
};

static int check_header(struct part_reader *reader, uint32_t *ret_version, struct err *err)
{
	char bytes[PART_HEADER_BYTES];
	struct byte_reader in = byte_reader_of(slice_from(bytes, sizeof(bytes)));
	int rc = part_reader_read(reader, bytes, sizeof(bytes), 0, err);
	uint32_t version;

	if (rc)
		return rc;
	if (!slice_equal(byte_reader_bytes(&in, 8), slice_from(PART_MAGIC, 8)))
		return err_set(err, ERR_CORRUPT, "is not a part");
	version = byte_reader_u32(&in);
	*ret_version = version;
	if (version < PART_VERSION_OLDEST)
		return err_set(err, ERR_UNSUPPORTED,
			       "has version %u of an early firn, and this one reads versions from "
			       "%u on: start with an empty storage directory, or read the old one "
			       "with the firn that wrote it",
			       version, PART_VERSION_OLDEST);
	if (version > PART_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "has version %u, and this firn reads version %u: use a newer firn",
			       version, PART_VERSION);
	byte_reader_u32(&in);
	if (byte_reader_u64(&in) != reader->info.number)
		return err_set(err, ERR_CORRUPT, "is another part by its header");
	return 0;
}

static int read_trailer(struct part_reader *reader, uint64_t bytes, struct trailer *ret,
			struct err *err)
{
	char text[PART_TRAILER_BYTES];
	struct byte_reader in = byte_reader_of(slice_from(text, sizeof(text)));
	uint32_t crc;
	int rc;

	if (bytes < PART_HEADER_BYTES + PART_TRAILER_BYTES)
		return err_set(err, ERR_CORRUPT, "is cut short");
	rc = part_reader_read(reader, text, sizeof(text), bytes - sizeof(text), err);
	if (rc)
		return rc;
	ret->directory.offset = byte_reader_u64(&in);
	ret->stored = byte_reader_u64(&in);
	ret->raw = byte_reader_u64(&in);
	ret->number = byte_reader_u64(&in);
	ret->hash.low = byte_reader_u64(&in);
	ret->hash.high = byte_reader_u64(&in);
	ret->directory.crc = byte_reader_u32(&in);
	crc = byte_reader_u32(&in);
	if (!slice_equal(byte_reader_bytes(&in, 8), slice_from(PART_MAGIC_END, 8)))
		return err_set(err, ERR_CORRUPT, "has no end: cut short or overwritten");
	if (hash_crc32c(0, text, PART_TRAILER_BYTES - 12) != crc)
		return err_set(err, ERR_CORRUPT, "checksum mismatch of the trailer");
	if (ret->directory.offset < PART_HEADER_BYTES || ret->stored > UINT32_MAX ||
	    ret->raw > UINT32_MAX ||
	    ret->directory.offset + ret->stored != bytes - PART_TRAILER_BYTES)
		return err_set(err, ERR_CORRUPT, "its directory lies elsewhere");
	ret->directory.stored = (uint32_t)ret->stored;
	ret->directory.raw = (uint32_t)ret->raw;
	if (!part_chunk_is_plausible(&ret->directory))
		return err_set(err, ERR_CORRUPT, "its directory has impossible sizes");
	if (ret->number != reader->info.number || bytes != reader->info.bytes ||
	    !identity_equal(ret->hash, reader->info.hash))
		return err_set(err, ERR_CORRUPT, "not the file that the manifest names");
	return 0;
}

static int read_directory(struct part_reader *reader, struct err *err)
{
	struct trailer trailer;
	uint64_t bytes = 0;
	uint32_t version = 0;
	char *raw;
	int rc = reader->file->vfs->size(reader->file, &bytes);

	if (rc)
		return err_set_errno(err, -rc, "read its size");
	rc = check_header(reader, &version, err);
	if (!rc)
		rc = read_trailer(reader, bytes, &trailer, err);
	if (rc)
		return rc;
	raw = mem_realloc(NULL, trailer.directory.raw + 1ull, 1);
	rc = unpack_chunk(reader, &trailer.directory, raw, err);
	if (!rc)
		rc = part_directory_decode(slice_from(raw, trailer.directory.raw),
					   trailer.directory.offset, version, &reader->directory,
					   err);
	free(raw);
	return rc;
}

int part_reader_open(const struct vfs *vfs, const char *dir, const struct part_info *info,
		     struct part_reader **ret, struct err *err)
{
	struct layout_path path = layout_path(dir, LAYOUT_PART, info->number);
	struct part_reader *reader = mem_new(struct part_reader);
	struct err cause = { 0 };
	int rc = vfs_open(vfs, path.text, VFS_READ, &reader->file, err);

	if (rc) {
		free(reader);
		return rc;
	}
	lock_init(&reader->lock, "part_reader", PART_READER_RANK);
	reader->info = *info;
	reader->instance = ++instances;
	rc = part_reader_note(reader, read_directory(reader, &cause), &cause, err);
	if (rc) {
		part_reader_close(reader);
		return rc;
	}
	reader->partitions =
		mem_new_array(struct part_reader_partition, reader->directory.partitions_count);
	for (uint32_t i = 0; i < reader->directory.partitions_count; i++) {
		reader->partitions[i].reader = reader;
		reader->partitions[i].entry = &reader->directory.partitions[i];
		reader->partitions[i].number = i;
		lock_init(&reader->partitions[i].lock, "part_reader.partition",
			  PART_PARTITION_RANK);
	}
	reader->runs = part_find_runs(&reader->directory);
	reader->bytes = sizeof(*reader) + reader->directory.memory +
			reader->directory.partitions_count *
				(sizeof(*reader->partitions) + sizeof(*reader->runs));
	*ret = reader;
	return 0;
}

uint32_t part_reader_partitions(const struct part_reader *reader)
{
	return reader->directory.partitions_count;
}

const struct part_partition *part_reader_partition(const struct part_reader *reader,
						   uint32_t partition)
{
	return &reader->directory.partitions[partition].info;
}

uint32_t part_reader_next(const struct part_reader *reader, uint32_t from,
			  const struct selector *selector)
{
	return part_find_next(&reader->directory, reader->runs, from, selector);
}

/* Dictionaries. */

/* Stored bytes of a block: its rows' share of its stripe. */
static uint64_t block_bytes(const struct part_directory *directory,
			    const struct part_stripe_entry *stripe, const struct segment_zone *zone)
{
	const struct part_chunk *headers = &directory->chunks[stripe->chunk];
	uint64_t header_bytes = (uint64_t)headers->stored * zone->reports / stripe->shape.reports;

	if (!stripe->shape.rows)
		return header_bytes;
	return header_bytes + (uint64_t)((double)headers[1].stored * (double)zone->rows /
					 (double)stripe->shape.rows);
}

/* What the index says of stripes must be so. */
static int place_blocks(const struct part_reader_partition *partition,
			struct part_series_image *series, struct err *err)
{
	const struct part_directory *directory = &partition->reader->directory;

	for (int level = 0; level < SEGMENT_LEVELS; level++) {
		for (uint32_t i = 0; i < partition->entry->shape.blocks[level]; i++) {
			const struct part_block *block = &series->blocks[level][i];
			struct segment_zone *zone = &series->zones[level][i];
			const struct part_stripe_entry *stripe;

			if (block->stripe >= directory->stripes_count)
				return err_set(err, ERR_CORRUPT, "a block lies in no stripe");
			stripe = &directory->stripes[block->stripe];
			if (zone->reports > stripe->shape.reports ||
			    block->first > stripe->shape.reports - zone->reports ||
			    zone->rows > stripe->shape.rows ||
			    stripe->shape.columns != partition->entry->info.columns_count)
				return err_set(err, ERR_CORRUPT,
					       "a block is larger than its stripe");
			zone->bytes = block_bytes(directory, stripe, zone);
		}
	}
	return 0;
}

/* Modulo 2^64: what is taken off is added as its complement. */
static void count_bytes(struct part_reader *reader, size_t change)
{
	reader->bytes += change;
	if (reader->budget)
		reader->budget->used_bytes += change;
}

void part_reader_set_budget(struct part_reader *reader, struct part_budget *budget)
{
	reader->budget = budget;
	budget->used_bytes += reader->bytes;
}

static int load_series(struct part_reader_partition *partition, struct err *err)
{
	struct part_reader *reader = partition->reader;
	struct chunk_bytes *index_chunk = NULL, *series_chunk = NULL;
	struct slice index = { 0 }, series = { 0 };
	int rc = get_section(reader, partition, PART_SECTION_INDEX, &index, &index_chunk, err);

	if (!rc)
		rc = get_section(reader, partition, PART_SECTION_SERIES, &series, &series_chunk,
				 err);
	if (!rc)
		rc = part_series_decode(index, series, &partition->entry->shape, &partition->series,
					err);
	unref_chunk(reader, index_chunk);
	unref_chunk(reader, series_chunk);
	if (rc)
		return rc;
	rc = place_blocks(partition, &partition->series, err);
	if (rc) {
		part_series_free(&partition->series);
		return rc;
	}
	partition->has_series = true;
	count_bytes(reader, partition->series.bytes);
	return 0;
}

static int load_stacks(struct part_reader_partition *partition, struct err *err)
{
	struct part_reader *reader = partition->reader;
	struct chunk_bytes *chunks[PART_SECTIONS] = { 0 };
	struct slice bytes[PART_SECTIONS];
	int rc = 0;

	for (int i = PART_SECTION_STRINGS; i <= PART_SECTION_NODES && !rc; i++)
		rc = get_section(reader, partition, (enum part_section)i, &bytes[i], &chunks[i],
				 err);
	if (!rc)
		rc = part_stacks_decode(bytes[PART_SECTION_STRINGS], bytes[PART_SECTION_FRAMES],
					bytes[PART_SECTION_NODES], &partition->entry->shape,
					&partition->series, &partition->stacks, err);
	for (int i = 0; i < PART_SECTIONS; i++)
		unref_chunk(reader, chunks[i]);
	if (rc)
		return rc;
	partition->has_stacks = true;
	count_bytes(reader, partition->stacks.bytes);
	return 0;
}

/* With the partition's lock, as drop_dictionaries. */
static void drop_stacks(struct part_reader_partition *partition)
{
	assert(!partition->stacks_users);
	if (!partition->has_stacks)
		return;
	count_bytes(partition->reader, 0 - partition->stacks.bytes);
	part_stacks_free(&partition->stacks);
	partition->has_stacks = false;
}

static void drop_dictionaries(struct part_reader_partition *partition)
{
	assert(!partition->users);
	drop_stacks(partition);
	if (!partition->has_series)
		return;
	count_bytes(partition->reader, 0 - partition->series.bytes);
	part_series_free(&partition->series);
	partition->has_series = false;
}

size_t part_reader_bytes(const struct part_reader *reader)
{
	return reader->bytes;
}

void part_reader_trim(struct part_reader *reader)
{
	for (uint32_t i = 0; i < reader->directory.partitions_count; i++) {
		struct part_reader_partition *partition = &reader->partitions[i];

		if (!lock_try(&partition->lock))
			continue; /* somebody is about to use it */
		if (!partition->users)
			drop_dictionaries(partition);
		else if (!partition->stacks_users)
			drop_stacks(partition);
		lock_give(&partition->lock);
	}
	for (int i = 0; i < PART_SECTIONS; i++)
		keep(reader, (enum part_section)i, NULL);
}

void part_reader_close(struct part_reader *reader)
{
	if (!reader)
		return;
	for (uint32_t i = 0; reader->partitions && i < reader->directory.partitions_count; i++) {
		assert(!reader->partitions[i].users);
		drop_dictionaries(&reader->partitions[i]);
		lock_free(&reader->partitions[i].lock);
	}
	for (int i = 0; i < PART_SECTIONS; i++)
		keep(reader, (enum part_section)i, NULL);
	count_bytes(reader, 0 - reader->bytes);
	free(reader->partitions);
	free(reader->runs);
	part_directory_free(&reader->directory);
	vfs_close(reader->file);
	lock_free(&reader->lock);
	free(reader);
}

/* Segments. */

/* True if the segment has loaded them: the view of series has but the root. */
static bool has_stacks(const struct segment *segment)
{
	const struct part_reader_partition *partition = segment->owner;

	return segment->view.nodes != partition->series.view.nodes;
}

static int load_segment_stacks(struct segment *segment, struct err *err)
{
	struct part_reader_partition *partition = segment->owner;
	struct err cause = { 0 };
	int rc = 0;

	lock_take(&partition->lock);
	assert(partition->users && partition->has_series);
	if (!partition->has_stacks)
		rc = load_stacks(partition, &cause);
	if (!rc && !has_stacks(segment)) {
		segment->view = partition->stacks.view;
		segment->node_of_slot = partition->stacks.node_of_rank;
		partition->stacks_users++;
	}
	lock_give(&partition->lock);
	return part_reader_note(partition->reader, rc, &cause, err);
}

static void leave_stacks(struct segment *segment)
{
	struct part_reader_partition *partition = segment->owner;
	const struct part_budget *budget = partition->reader->budget;

	lock_assert_held(&partition->lock);
	if (!has_stacks(segment))
		return;
	assert(partition->has_stacks && partition->stacks_users);
	assert(partition->stacks_users <= partition->users);
	segment->view = partition->series.view;
	segment->node_of_slot = NULL;
	if (!--partition->stacks_users && budget && budget->used_bytes > budget->limit_bytes)
		drop_stacks(partition);
}

static void drop_segment_stacks(struct segment *segment)
{
	struct part_reader_partition *partition = segment->owner;

	lock_take(&partition->lock);
	leave_stacks(segment);
	lock_give(&partition->lock);
}

static const struct segment_ops part_ops = { load_segment_stacks, drop_segment_stacks,
					     part_block_read, .read_heads = part_block_read_heads };

/* What part_stacks_decode makes. */
static size_t stacks_bytes(const struct part_dictionary_shape *shape)
{
	return (size_t)shape->nodes * sizeof(struct node) +
	       (size_t)shape->frames * sizeof(struct frame) +
	       (size_t)shape->strings * sizeof(struct string_ref) +
	       (size_t)shape->stacks * sizeof(uint32_t);
}

static uint64_t partition_key_hash_of(const struct part_partition *info)
{
	const struct slice texts[] = { info->key.tenant, info->key.service, info->group_name,
				       info->period_type, info->period_unit };
	uint64_t hash = hash_stable(&info->period, sizeof(info->period), 0);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		hash = hash_stable(texts[i].data, texts[i].len, hash);
	for (uint32_t i = 0; i < info->columns_count; i++) {
		const struct column_name *column = &info->columns[i];

		hash = hash_stable(column->sample_type.data, column->sample_type.len, hash);
		hash = hash_stable(column->sample_unit.data, column->sample_unit.len, hash);
	}
	return hash ? hash : 1;
}

int part_reader_segment(struct part_reader *reader, uint32_t number, enum segment_level level,
			int64_t from_ns, int64_t to_ns, struct segment *ret, struct err *err)
{
	struct part_reader_partition *partition = &reader->partitions[number];
	struct err cause = { 0 };
	int rc = 0;

	assert(number < reader->directory.partitions_count && level < SEGMENT_LEVELS);
	lock_take(&partition->lock);
	if (!partition->has_series)
		rc = load_series(partition, &cause);
	if (!rc)
		partition->users++;
	lock_give(&partition->lock);
	if (rc)
		return part_reader_note(reader, rc, &cause, err);
	*ret = (struct segment){
		.view = partition->series.view,
		.ops = &part_ops,
		.owner = partition,
		.level = level,
		.from_ns = from_ns,
		.to_ns = to_ns,
		.zones = partition->series.zones[level],
		.blocks_count = partition->entry->shape.blocks[level],
		.slots_count = partition->entry->shape.stacks,
		.stacks_bytes = stacks_bytes(&partition->entry->shape),
		.has_sample_labels = partition->entry->info.sample_label_names_count > 0,
		.has_moments = level == SEGMENT_RAW && reader->directory.has_moments,
		.id = hash_mix(hash_mix(0, reader->instance), (uint64_t)number + 1),
		.partition_key_hash = partition_key_hash_of(&partition->entry->info),
	};
	return 0;
}

void part_reader_drop_segment(struct segment *segment)
{
	struct part_reader_partition *partition = segment->owner;

	lock_take(&partition->lock);
	assert(partition->users);
	leave_stacks(segment);
	partition->users--;
	assert(partition->stacks_users <= partition->users);
	lock_give(&partition->lock);
	*segment = (struct segment){ 0 };
}

/* Verifying. */

/* The chunks as they are stored, and the whole file. */
static int verify_hash(struct part_reader *reader, struct err *err)
{
	uint64_t left = reader->info.bytes - PART_TRAILER_BYTES, offset = 0;
	char *bytes = mem_realloc(NULL, VERIFY_BYTES, 1);
	XXH3_state_t *state = XXH3_createState();
	XXH128_hash_t hash = { 0 };
	int rc = 0;

	if (!state || XXH3_128bits_reset(state) != XXH_OK)
		rc = err_set(err, ERR_NO_MEMORY, "no memory for its hash");
	while (left && !rc) {
		size_t len = left < VERIFY_BYTES ? (size_t)left : VERIFY_BYTES;

		rc = part_reader_read(reader, bytes, len, offset, err);
		if (!rc)
			XXH3_128bits_update(state, bytes, len);
		offset += len;
		left -= len;
	}
	if (!rc)
		hash = XXH3_128bits_digest(state);
	XXH3_freeState(state);
	free(bytes);
	if (!rc && (hash.low64 != reader->info.hash.low || hash.high64 != reader->info.hash.high))
		rc = err_set(err, ERR_CORRUPT, "hash mismatch of the whole file");
	return rc;
}

static int verify_level(struct part_reader *reader, uint32_t number, enum segment_level level,
			struct segment_buffer *buffer, uint64_t *reports, struct err *err)
{
	struct segment segment;
	int rc = part_reader_segment(reader, number, level, INT64_MIN, INT64_MAX, &segment, err);

	if (rc)
		return rc;
	rc = load_segment_stacks(&segment, err);
	for (uint32_t i = 0; i < segment.blocks_count && !rc; i++) {
		struct segment_block block;

		rc = part_block_read(&segment, i, SEGMENT_MOMENTS, buffer, &block, err);
		if (!rc)
			rc = part_block_check_totals(buffer, err);
		*reports += rc ? 0 : block.reports_count;
	}
	part_reader_drop_segment(&segment);
	return rc;
}

int part_reader_verify(struct part_reader *reader, struct err *err)
{
	const struct part_directory *directory = &reader->directory;
	struct segment_buffer buffer = { 0 };
	uint64_t reports = 0;
	struct err cause = { 0 };
	int rc = part_reader_note(reader, verify_hash(reader, &cause), &cause, err);

	for (uint32_t i = 0; i < directory->partitions_count && !rc; i++) {
		for (int level = 0; level < SEGMENT_LEVELS && !rc; level++)
			rc = verify_level(reader, i, (enum segment_level)level, &buffer, &reports,
					  err);
		if (part_reader_bytes(reader) > VERIFY_MEMORY_BYTES)
			part_reader_trim(reader);
	}
	segment_buffer_free(&buffer);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < directory->stripes_count; i++)
		reports -= directory->stripes[i].shape.reports;
	if (reports)
		rc = err_set(&cause, ERR_CORRUPT, "reports belong to no partition, or to several");
	return part_reader_note(reader, rc, &cause, err);
}
