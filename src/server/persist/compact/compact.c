/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs list their partitions in one order (place_order), so that equal keys of all inputs stand
 * side by side: one merge over these lists, a partition of the result at a time.
 *
 * Invariant: the result follows from the inputs and the tombstones alone. Equal reports keep the
 * order of the inputs (report_stream.c), and nothing of the inputs is dropped before the part made
 * of them is durable, so a compaction that a crash cuts off is begun again from the same files.
 *
 * Why a partition at a time: its dictionaries (strings, frames, stacks) are what takes memory.
 * Those of one service fit where those of all would not.
 */
#include "server/persist/compact/compact.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "server/persist/compact/compact_int.h"

#define ROWS_PER_TOLD 1000000u

/* A partition of an input, in the order in which they are written. */
struct place {
	const struct part_partition *partition;
	uint32_t input, number;
};

static int compare(struct slice a, struct slice b, int order)
{
	return order ? order : slice_compare(a, b);
}

/* By group of sample types, so that blocks of one type come one after the other, then by key. */
static int group_order(const struct part_partition *a, const struct part_partition *b)
{
	int order = slice_compare(a->group_name, b->group_name);

	order = compare(a->period_type, b->period_type, order);
	order = compare(a->period_unit, b->period_unit, order);
	if (!order)
		order = (a->period > b->period) - (a->period < b->period);
	if (!order)
		order = (a->columns_count > b->columns_count) -
			(a->columns_count < b->columns_count);
	for (uint32_t i = 0; !order && i < a->columns_count; i++) {
		order = compare(a->columns[i].sample_type, b->columns[i].sample_type, order);
		order = compare(a->columns[i].sample_unit, b->columns[i].sample_unit, order);
		if (!order)
			order = (int)a->columns[i].kind - (int)b->columns[i].kind;
	}
	return order;
}

static int partition_order(const struct part_partition *a, const struct part_partition *b)
{
	int order = group_order(a, b);

	order = compare(a->key.tenant, b->key.tenant, order);
	return compare(a->key.service, b->key.service, order);
}

static int place_order(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	int order = partition_order(a->partition, b->partition);

	return order ? order : (a->input > b->input) - (a->input < b->input);
}

static int open_readers(struct compaction *compaction, struct err *err)
{
	const struct compact_job *job = compaction->job;

	compaction->readers = mem_new_array(struct part_reader *, job->inputs_count);
	for (size_t i = 0; i < job->inputs_count; i++) {
		int rc = part_reader_open(job->vfs, job->dir, &job->inputs[i],
					  &compaction->readers[i], err);

		assert(job->inputs[i].number && job->inputs[i].number < job->number);
		compaction->failed = i;
		if (rc)
			return rc;
		compaction->rows_total += job->inputs[i].rows;
	}
	return 0;
}

static void close_readers(struct compaction *compaction)
{
	for (size_t i = 0; i < compaction->job->inputs_count; i++)
		part_reader_close(compaction->readers[i]);
	free(compaction->readers);
}

static struct place *list_places(const struct compaction *compaction, size_t *ret_count)
{
	struct place *places = NULL;
	size_t count = 0, capacity = 0;

	for (uint32_t i = 0; i < compaction->job->inputs_count; i++) {
		const struct part_reader *reader = compaction->readers[i];

		for (uint32_t p = 0; p < part_reader_partitions(reader); p++) {
			mem_grow(places, count, capacity);
			places[count++] = (struct place){ part_reader_partition(reader, p), i, p };
		}
	}
	if (count)
		qsort(places, count, sizeof(*places), place_order);
	*ret_count = count;
	return places;
}

void compaction_tell(struct compaction *compaction, uint64_t rows)
{
	const struct compact_job *job = compaction->job;

	compaction->rows_done += rows;
	if (!job->progress || compaction->rows_done < compaction->rows_told + ROWS_PER_TOLD)
		return;
	compaction->rows_told = compaction->rows_done;
	job->progress(job->progress_context, compaction->rows_done, compaction->rows_total);
}

/* The places from `at` on that are the same partition. */
static size_t count_alike(const struct place *places, size_t count, size_t at)
{
	size_t end = at + 1;

	assert(at < count);
	while (end < count && !partition_order(places[at].partition, places[end].partition))
		end++;
	return end - at;
}

static int write_partitions(struct compaction *compaction, struct err *err)
{
	struct compact_source *sources;
	struct place *places;
	size_t count;
	int rc = 0;

	places = list_places(compaction, &count);
	sources = mem_new_array(struct compact_source, count);
	for (size_t i = 0; !rc && i < count;) {
		size_t alike = count_alike(places, count, i);

		for (size_t j = 0; j < alike; j++)
			sources[j] = (struct compact_source){ .input = places[i + j].input,
							      .partition = places[i + j].number };
		assert(alike && alike <= count - i);
		rc = compact_partition(compaction, sources, alike, err);
		for (size_t j = 0; j < alike; j++)
			part_reader_trim(compaction->readers[places[i + j].input]);
		i += alike;
	}
	free(sources);
	free(places);
	return rc;
}

static int commit(struct compaction *compaction, struct compact_result *ret, struct err *err)
{
	struct part_info info = { 0 };
	int rc;

	assert(compaction->writer && !ret->part.number);
	if (!compaction->partitions_written) {
		part_writer_abort(compaction->writer);
		return 0;
	}
	rc = part_writer_commit(compaction->writer, &info, err);
	if (rc)
		return rc;
	assert(info.number == compaction->job->number && info.bytes);
	info.tier = compaction->job->tier;
	info.deleted_to = info.number;
	ret->part = info;
	return 0;
}

int compact_run(const struct compact_job *job, struct compact_result *ret, struct err *err)
{
	struct compaction compaction = { .job = job };
	struct err cause = { 0 };
	int rc;

	assert(job->inputs_count && job->number && job->tier < PART_TIERS);
	*ret = (struct compact_result){ 0 };
	throttle_begin(job->throttle);
	rc = open_readers(&compaction, &cause);
	if (!rc) {
		rc = part_writer_open(job->vfs, job->dir, job->number,
				      job->tier >= PART_HOURS ? PART_THOROUGH : PART_QUICK,
				      job->throttle, &compaction.writer, &cause);
		compaction.failed = job->inputs_count;
	}
	if (!rc) {
		rc = write_partitions(&compaction, &cause);
		if (rc)
			part_writer_abort(compaction.writer);
		else
			rc = commit(&compaction, ret, &cause);
	}
	close_readers(&compaction);
	ret->reports_deleted = compaction.reports_deleted;
	if ((rc == -ERR_CORRUPT || rc == -ERR_NOT_FOUND) && compaction.failed < job->inputs_count)
		ret->damaged = job->inputs[compaction.failed].number;
	if (rc && err)
		*err = cause;
	return rc;
}

int compact_is_deleted(const struct vfs *vfs, const char *dir, const struct part_info *part,
		       const struct tombstones *tombstones, struct err *err)
{
	struct part_reader *reader;
	int rc = part_reader_open(vfs, dir, part, &reader, err);
	bool deleted = false;

	if (rc)
		return rc;
	for (uint32_t i = 0; !rc && !deleted && i < part_reader_partitions(reader); i++) {
		struct tombstone_deletions deletions;
		struct segment segment;

		rc = part_reader_segment(reader, i, SEGMENT_RAW, INT64_MIN, INT64_MAX, &segment,
					 err);
		if (rc)
			break;
		tombstones_apply(tombstones, part, &segment.view, &deletions);
		deleted = deletions.count > 0;
		tombstone_deletions_free(&deletions);
		part_reader_drop_segment(&segment);
		part_reader_trim(reader);
	}
	part_reader_close(reader);
	return rc ? rc : deleted;
}
