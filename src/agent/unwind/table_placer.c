/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/table_placer.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>

#include "agent/bpf/shared.h"
#include "agent/unwind/unwind_metrics.h"
#include "base/log.h"

static void evict_from(struct table_placer *placer, const struct table_place *place)
{
	assert(place->chunk < placer->chunks.count);
	assert(placer->evict);
	for (uint32_t page = 0; page < place->pages; page++) {
		uint32_t owner = table_chunks_owner(&placer->chunks, place, page);

		if (owner != TABLE_OWNER_NONE)
			placer->evict(placer->context, owner);
	}
}

static bool add_chunk(struct table_placer *placer)
{
	struct table_chunks *chunks = &placer->chunks;
	struct err err;
	int code = table_chunks_add(chunks, &err);

	if (!code) {
		metric_add(&unwind_chunk_bytes, TABLE_CHUNK_BYTES);
		return true;
	}
	if (code != -ERR_LIMIT) {
		log_warn("agent", "memory limit for unwind tables reached",
			 "chunks=%u reason=\"%s\"", chunks->count, err.message);
		chunks->max = chunks->count; /* what there is has to do */
	}
	return false;
}

static int no_room(const struct table_placer *placer, struct err *err)
{
	return err_set(err, ERR_NO_MEMORY,
		       "no room for its unwind table: the %u MiB for all tables are in use",
		       placer->chunks.count * (TABLE_CHUNK_BYTES >> 20));
}

static int find_place(struct table_placer *placer, uint32_t pages, struct table_place *ret,
		      struct err *err)
{
	struct table_chunks *chunks = &placer->chunks;

	if (table_chunks_find_free(chunks, pages, ret))
		return 0;
	if (add_chunk(placer) && table_chunks_find_free(chunks, pages, ret))
		return 0;
	if (table_chunks_find_used(chunks, pages, placer->last_uses(placer->context), ret)) {
		evict_from(placer, ret);
		return 0;
	}
	return no_room(placer, err);
}

static uint32_t pages_of(const struct table_file_segment *segment)
{
	return (segment->image_bytes + TABLE_PAGE_BYTES - 1) / TABLE_PAGE_BYTES;
}

uint64_t table_placer_bytes(const struct table_file *file)
{
	uint64_t pages = 0;

	assert(file->header.segments_count <= TABLE_SEGMENTS_MAX);
	for (uint32_t i = 0; i < file->header.segments_count; i++)
		pages += pages_of(&file->header.segments[i]);
	return pages * TABLE_PAGE_BYTES;
}

static int find_places(struct table_placer *placer, uint32_t owner, const struct table_file *file,
		       struct table_place *places, struct err *err)
{
	uint64_t bytes = table_placer_bytes(file);
	int code = 0;

	assert(file->header.segments_count <= TABLE_SEGMENTS_MAX);
	if (bytes > (uint64_t)placer->chunks.max * TABLE_CHUNK_BYTES)
		return err_set(err, ERR_LIMIT,
			       "no room for its unwind table: it takes %llu KiB, and all together "
			       "may take %u MiB",
			       (unsigned long long)bytes >> 10,
			       placer->chunks.max * (TABLE_CHUNK_BYTES >> 20));
	/* Nothing goes for a table that finds no room all the same. */
	if (bytes / TABLE_PAGE_BYTES > table_chunks_pages_to_be_had(&placer->chunks, NULL) &&
	    bytes / TABLE_PAGE_BYTES > table_chunks_pages_to_be_had(
					       &placer->chunks, placer->last_uses(placer->context)))
		return no_room(placer, err);
	for (uint32_t i = 0; !code && i < file->header.segments_count; i++) {
		code = find_place(placer, pages_of(&file->header.segments[i]), &places[i], err);
		if (!code)
			table_chunks_take(&placer->chunks, &places[i], owner);
	}
	return code;
}

/*
 * Pages of a removed table, and its element in the map, which the kernel gives to the next table
 * at once, are used again only when no walk that found the old table is left.
 */
static int wait_readers(struct table_placer *placer, struct err *err)
{
	int code = 0;

	if (placer->readers_may_remain)
		code = table_chunks_wait_readers(&placer->chunks, err);
	if (!code)
		placer->readers_may_remain = false;
	return code;
}

static int copy_segment(struct table_placer *placer, const struct table_file *file,
			uint32_t segment, const struct table_place *place, struct err *err)
{
	struct table_image image;
	int code = table_image_load(file, segment, &image, err);

	assert(segment < file->header.segments_count);
	if (code)
		return code;
	code = table_chunks_write(&placer->chunks, place,
				  slice_from(image.bytes, image.segment.image_bytes), err);
	table_image_free(&image);
	return code;
}

/* What takes the place of an entry leaves its element to the next one: see wait_readers. */
static int publish(struct table_placer *placer, const struct file_key *key,
		   const struct binary_tables *value, struct err *err)
{
	struct binary_tables before;

	if (!bpf_map_lookup_elem(placer->tables_fd, key, &before))
		placer->readers_may_remain = true;
	if (bpf_map_update_elem(placer->tables_fd, key, value, BPF_ANY))
		return err_set_errno(err, errno, "give an unwind table to the BPF program");
	return 0;
}

int table_placer_put(struct table_placer *placer, const struct file_key *key, uint32_t owner,
		     const struct table_file *file, struct err *err)
{
	struct table_place places[TABLE_SEGMENTS_MAX];
	struct binary_tables value = { .segments_count = file->header.segments_count };
	int code = find_places(placer, owner, file, places, err);

	assert(owner != TABLE_OWNER_NONE);
	assert(file->header.segments_count <= TABLE_SEGMENTS_MAX);
	if (code == -ERR_NO_MEMORY || code == -ERR_LIMIT)
		metric_add(&unwind_refused_room, 1);
	if (!code)
		code = wait_readers(placer, err);
	for (uint32_t i = 0; !code && i < value.segments_count; i++) {
		value.segments[i] = table_file_place(&file->header.segments[i], places[i].chunk,
						     places[i].page * TABLE_PAGE_BYTES);
		code = copy_segment(placer, file, i, &places[i], err);
	}
	if (!code)
		code = publish(placer, key, &value, err);
	if (code)
		table_chunks_release(&placer->chunks, owner);
	return code;
}

int table_placer_put_missing(struct table_placer *placer, const struct file_key *key,
			     enum table_missing missing, struct err *err)
{
	struct binary_tables value = { .missing = missing };
	int code = wait_readers(placer, err);

	return code ? code : publish(placer, key, &value, err);
}

void table_placer_remove(struct table_placer *placer, const struct file_key *key, uint32_t owner)
{
	assert(owner != TABLE_OWNER_NONE);
	bpf_map_delete_elem(placer->tables_fd, key);
	for (uint32_t i = 0; placer->space_versions && i < SPACE_VERSIONS; i++)
		__atomic_add_fetch(&placer->space_versions[i], SPACE_VERSION_STEP,
				   __ATOMIC_SEQ_CST);
	table_chunks_release(&placer->chunks, owner);
	placer->readers_may_remain = true;
}

int64_t table_placer_used_at_ns(const struct table_placer *placer, const struct file_key *key)
{
	struct binary_tables value;

	if (bpf_map_lookup_elem(placer->tables_fd, key, &value))
		return 0;
	return (int64_t)value.used_at_ns;
}
